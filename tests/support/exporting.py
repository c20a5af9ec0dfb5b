"""Exported grammars beside their originals: read back, they accept and reject the same texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import constrain
from tests.support import byte_vocabulary
from tests.support.matching import mask_of

SOURCES = {"gbnf": constrain.Gbnf, "lark": constrain.Lark, "regex": constrain.Regex}
TARGETS = tuple(SOURCES)

ALPHABET = b' {}[]",:abcdexyz019.-\n\\u\xc3\xa9\xe2\x82\xac'
"""Bytes of random walks: more of them spell nothing that matters to a grammar."""


def compiled(source: object, **policies: object) -> constrain.Constraint:
    return constrain.compile(source, byte_vocabulary(), cache=False, **policies)  # type: ignore[arg-type]


def read_back(text: str, target: str) -> constrain.Constraint:
    return compiled(SOURCES[target](text))


def walked(constraint: constrain.Constraint, rng: Random, alphabet: bytes = ALPHABET) -> bytes:
    """A text of the language: some allowed bytes of an alphabet, and a short end."""
    matcher, text = constraint.matcher(), b""
    for _ in range(rng.randint(1, 30)):
        mask = mask_of(matcher)
        allowed = [byte for byte in sorted(set(alphabet)) if mask[byte]]
        if not allowed:
            break
        byte = rng.choice(allowed)
        assert matcher.accept(byte)
        text += bytes([byte])
    return text + matcher.shortest_completion()


def changed(text: bytes, rng: Random) -> bytes:
    """A text with a few bytes removed, added or replaced."""
    found = bytearray(text)
    for _ in range(rng.randint(1, 2)):
        at = rng.randint(0, len(found))
        found[at : at + rng.randint(0, 2)] = bytes(rng.choices(ALPHABET, k=rng.randint(0, 2)))
    return bytes(found)


def texts_of_both(one: constrain.Constraint, other: constrain.Constraint, rng: Random, count: int) -> Iterator[bytes]:
    """Random texts of each language, and beside each a text that is nearly one."""
    for _ in range(count):
        for constraint in (one, other):
            text = walked(constraint, rng)
            yield from (text, changed(text, rng))


def require_same(
    original: constrain.Constraint, other: constrain.Constraint, rng: Random, count: int, texts: Iterable[str | bytes]
) -> None:
    """Fails for a text that one of two constraints accepts and the other one does not."""
    for text in (*texts, *texts_of_both(original, other, rng, count)):
        assert original.accepts(text) == other.accepts(text), text
