"""Short walks over a constraint: masks and ``accept`` agree, and every text can be finished."""

from __future__ import annotations

import zlib
from functools import cache
from random import Random

import numpy as np

import constrain
from tests.fuzz.judge import BrokenPromiseError, Meter

STEPS = 16
"""Tokens of a walk."""

ASKED = 10
"""Tokens for which a mask is compared with ``accept`` at each step, drawn at random; as many of those it allows."""

PATIENCE = 0.8
"""Seconds of computing after which an input is walked no further: others are more interesting."""

_PIECES = (
    '{"', '":', '": ', '",', '", "', '"}', '"]', "},", "[]", "{}", "true", "null", "1,", ", 1", '"a"', 'a":', '": [',
    "]}", "00", "0.", "1e", "-1", "ab", "aa", "ba", "abc", "é", "😀", "\\u", "\\n", '\\"', "\n", "\n  ", "  ", " a",
    "b ", "(a", "b)", "12", "2020-", "T0", ":0", "://", "@", ".c",
)  # fmt: skip


def random_of(data: bytes) -> Random:
    """Random numbers that an input stands for."""
    return Random(zlib.crc32(data))


@cache
def vocabulary() -> constrain.Vocabulary:
    """All bytes, pieces of JSON and texts, one special token with a name, one that ends."""
    texts = [*(bytes([byte]) for byte in range(256)), *(piece.encode() for piece in _PIECES)]
    return constrain.Vocabulary.from_tokens([*texts, b"", b""], eos=[len(texts) + 1], special={len(texts): "<|mark|>"})


def walk(constraint: constrain.Constraint, rng: Random, meter: Meter) -> bytes | None:
    """Follows a random text, and finishes it; that text, if it was followed to its end."""
    text = _follow(constraint, constraint.matcher(), rng, meter)
    if text is None:
        return None
    with meter.call("accepts"):
        is_accepted = constraint.accepts(text)
    _require(is_accepted, f"the masks lead to {text!r}, which is not accepted")
    _within_budget(constraint, rng, meter)
    return text


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise BrokenPromiseError(problem)


def _mask(matcher: constrain.Matcher, row: np.ndarray, meter: Meter) -> list[int]:
    with meter.call("fill_bitmask"):
        matcher.fill_bitmask(row)
    found: list[int] = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
    return found


def _follow(constraint: constrain.Constraint, matcher: constrain.Matcher, rng: Random, meter: Meter) -> bytes | None:
    known = constraint.vocabulary
    row, text, taken = constraint.allocate_bitmask()[0], b"", 0
    for step in range(STEPS):
        ids = _mask(matcher, row, meter)
        if not ids:
            _require(matcher.is_finished, f"no token is allowed after {text!r}")
            return text
        allowed = set(ids)
        for token in {*rng.choices(range(known.n_vocab), k=ASKED), *rng.sample(ids, min(ASKED, len(ids)))}:
            with meter.call("accept"):
                is_taken = matcher.fork().accept(token)
            _require(
                is_taken == (token in allowed),
                f"after {text!r} the mask says {token in allowed} to token {token} "
                f"({known.token_bytes(token)!r}), accept says {is_taken}",
            )
        token = rng.choice(ids)
        matcher.accept(token)
        if token in known.eos:
            _require(matcher.is_finished, f"token {token} does not end {text!r}")
            return text
        text, taken = text + known.marked_bytes(token), taken + 1
        if step == STEPS // 2:
            matcher.rollback(1)
            _require(_mask(matcher, row, meter) == ids, f"another mask after a token was taken back, at {text!r}")
            _require(matcher.accept(token), f"token {token} is not taken again at {text!r}")
        if meter.total > PATIENCE:
            return None
    with meter.call("shortest_completion"):
        ending = matcher.shortest_completion()
    with meter.call("forced_bytes"):
        forced = matcher.forced_bytes()
    _require(ending.startswith(forced), f"after {text!r} {forced!r} is forced, and {ending!r} would do")
    return text + ending


def _within_budget(constraint: constrain.Constraint, rng: Random, meter: Meter) -> None:
    """Few tokens are enough, where a matcher says so."""
    with meter.call("min_tokens_left"):
        most = constraint.matcher().min_tokens_left + rng.choice((0, 0, 1, 4))
    if most > 4 * STEPS:
        return
    with meter.call("matcher"):
        matcher = constraint.matcher(max_tokens=most)
    row, text = constraint.allocate_bitmask()[0], b""
    for _ in range(most):
        if matcher.is_finished or meter.total > PATIENCE:
            return
        ids = _mask(matcher, row, meter)
        _require(ids, f"within {most} tokens none is allowed after {text!r}")
        token = rng.choice(ids)
        _require(matcher.accept(token), f"within {most} tokens the mask has token {token}, not taken after {text!r}")
        if token in constraint.vocabulary.eos:
            return
        text += constraint.vocabulary.marked_bytes(token)
    _require(matcher.is_accepting or matcher.is_finished, f"{text!r} is not finished within {most} tokens")
