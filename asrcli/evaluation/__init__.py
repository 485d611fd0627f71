"""How good transcripts are: compared with references, word by word or character by character.

    >>> from asrcli.evaluation import Pair, score
    >>> score([Pair(name="a", reference="one two", hypothesis="one too")]).total.wer
    0.5

``references`` and ``transcripts`` find the texts, ``normalizers`` makes them comparable,
``scoring`` counts, ``report`` writes JSON. Tables are drawn by the command line.
"""

from asrcli.evaluation.scoring import Chunk, Counts, Evaluation, FileScore, Pair, Total, score

__all__ = ["Chunk", "Counts", "Evaluation", "FileScore", "Pair", "Total", "score"]
