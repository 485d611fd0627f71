"""Model families: what each one can do, where its weights are, how to talk to it."""
