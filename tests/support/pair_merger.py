"""A small tokenizer that merges pairs (BPE), with its vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import constrain


class PairMerger:
    """Byte pair encoding: of all pairs side by side, that of the earliest merge is joined first, the leftmost first."""

    def __init__(self, alphabet: bytes, merges: Sequence[bytes]) -> None:
        self.tokens = [bytes([byte]) for byte in alphabet] + list(merges)
        self.rank = {text: rank for rank, text in enumerate(self.tokens)}
        self.vocabulary = constrain.Vocabulary.from_tokens([*self.tokens, b""], eos=[len(self.tokens)], encode=self)

    def __call__(self, text: bytes) -> list[int]:
        parts = [bytes([byte]) for byte in text]
        while True:
            pairs = [self.rank.get(one + other, len(self.rank)) for one, other in pairwise(parts)]
            if not pairs or min(pairs) == len(self.rank):
                return [self.rank[part] for part in parts]
            place = pairs.index(min(pairs))
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
