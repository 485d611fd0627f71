"""The forward loop: requests in, hypotheses out, as many rows at once as memory holds.

The engine knows kinds of networks, not models: whatever is particular to a model travels on the
request (prompt ids, features, rules for the logits).
"""
