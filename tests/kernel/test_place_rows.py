"""Masks of grammars whose terminals are read byte by byte: what ``accept`` takes, step by step, is what masks allow."""

from __future__ import annotations

from random import Random

import constrain
from constrain import Lark
from tests.support import for_each

GRAMMARS = {
    "a line": 'start: "x" ","? /.+/ "\\n"',
    "words": 'start: NAME "in" NAME\nNAME: /[a-zé]+/',
    "nested, so that places never end": 'start: "(" start? ")" | /[ab]+/ "b"',
    "a count": 'start: /a{2,40}/ "a"~3 ","',
    "beside values with keys that differ": 'start: "x" ","? /.+/ "\\n" %json {"type": "object"} "."',
    "beside a long text": 'start: "x" ","? /[a,c]+/ "\\n" /"[^"]*"/ ","',
}
LETTERS = [each.encode() for each in 'abcxin,.()\\n"{}:é'] + [b"\xc3", b"\xa9"]


def vocabulary() -> constrain.Vocabulary:
    rng = Random(3)
    made = {b"".join(rng.choices(LETTERS, k=rng.randint(2, 5))) for _ in range(600)}
    tokens = [*(bytes([byte]) for byte in range(256)), *sorted(made), b""]
    return constrain.Vocabulary.from_tokens(tokens, eos=[len(tokens) - 1])


@for_each("grammar", GRAMMARS.values())
def test_masks_allow_what_can_be_read(grammar: str) -> None:
    known = vocabulary()
    for again in range(2):  # the second constraint finds what the first one left in the vocabulary
        constraint = constrain.compile(Lark(grammar + "\n" * again), known, cache=False)
        assert constraint.report.split
        for seed in range(6):
            rng, matcher = Random(seed), constraint.matcher()
            for _ in range(12):
                row = constraint.allocate_bitmask()[0]
                matcher.fill_bitmask(row)
                allowed = [token for token in range(known.n_vocab) if row[token // 32] >> (token % 32) & 1]
                assert allowed == [token for token in range(known.n_vocab) if matcher.fork().accept(token)]
                if not allowed or not matcher.accept(rng.choice(allowed)) or matcher.is_finished:
                    break
