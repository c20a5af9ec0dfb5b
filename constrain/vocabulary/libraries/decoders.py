"""The bytes of a token, as the decoder of a ``tokenizers.Tokenizer`` makes them; other decoders are refused.

A decoder turns the tokens of a whole text into the text. It is understood if each token has bytes of its own, wherever
it stands. The one exception is the beginning of a text, where some decoders drop the space that the tokenizer put
there: generated text stands in the middle of a text, so here a token stands for all of its bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from constrain.vocabulary.spelling import byte_level_alphabet, read_byte_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Part = dict[str, Any]
"""A part of a tokenizer in its JSON form: ``type``, and options."""

_REFUSED = {
    "WordPiece": "drops the spaces between words and punctuation, so texts are not exact",
    "BPEDecoder": "writes a space after the last word of a text only if another word follows",
    "CTC": "merges tokens that repeat",
}
"""Decoders that are known and refused, with the reason."""


class UnknownPartError(Exception):
    """A part of a tokenizer is not understood; the message names it and says why."""


def flatten(part: Part | None) -> Iterator[Part]:
    """The parts of a ``Sequence``, of sequences in it, and so on; a part by itself otherwise."""
    work = [] if part is None else [part]
    while work:
        first = work.pop()
        inner = next((first[key] for key in ("decoders", "normalizers", "pretokenizers") if key in first), None)
        if first["type"] != "Sequence" or inner is None:
            yield first
        else:
            work += reversed(inner)


def decoder_of(part: Part | None) -> Callable[[str], bytes]:
    """Returns a function from a token, as the tokenizer spells it, to its bytes. Raises ``UnknownPartError``."""
    steps = list(flatten(part))
    if not steps:
        raise UnknownPartError("it has no decoder, and joins tokens with spaces")
    kinds = [step["type"] for step in steps]
    for kind in kinds:
        if kind in _REFUSED:
            raise UnknownPartError(f"its decoder {kind} {_REFUSED[kind]}")
    if kinds[0] == "ByteLevel":
        if set(kinds[1:]) - {"Fuse"}:
            raise UnknownPartError(f"its decoder applies {kinds[1]} after ByteLevel")
        return _byte_level
    return _spelled(steps)


def _byte_level(token: str) -> bytes:
    """The bytes of a token in GPT-2's alphabet; a token with another character is its own text."""
    try:
        return token.translate(_latin_1_of_alphabet()).encode("latin-1")
    except UnicodeEncodeError:
        return token.encode("utf-8", "surrogatepass")


@cache
def _latin_1_of_alphabet() -> dict[int, int]:
    """For each character of GPT-2's alphabet, the one in Latin-1 with its byte; none for others of Latin-1."""
    return dict.fromkeys(range(0x100), 0xFFFD) | byte_level_alphabet()


def _spelled(steps: Sequence[Part]) -> Callable[[str], bytes]:
    """The bytes of a token in which characters are replaced; perhaps tokens such as ``<0x0A>`` are bytes."""
    replaced: list[tuple[str, str]] = []
    has_bytes = is_joined = False
    for step in steps:
        kind = step["type"]
        if kind == "Fuse":
            is_joined = True
        elif kind == "ByteFallback" and not is_joined:
            has_bytes = True
        elif kind == "Metaspace" and not has_bytes and not is_joined:
            replaced.append((step["replacement"], " "))
        elif kind == "Replace" and not has_bytes and not is_joined:
            replaced.append((_one_character(step), step["content"]))
        elif kind == "Strip" and is_joined and not step["stop"]:
            continue  # the space at the beginning of a text
        else:
            raise UnknownPartError(f"its decoder has {kind} where tokens have no bytes of their own: {step}")

    def decode(token: str) -> bytes:
        for old, new in replaced:
            token = token.replace(old, new)
        raw = token.encode("utf-8", "surrogatepass")
        return (read_byte_token(raw) if has_bytes else None) or raw

    return decode


def _one_character(step: Part) -> str:
    """The character that a decoder replaces. Raises ``UnknownPartError`` for longer texts and patterns."""
    pattern: object = step["pattern"].get("String")
    if not isinstance(pattern, str) or len(pattern) != 1:
        raise UnknownPartError(f"its decoder replaces {step['pattern']}, which may stand across tokens")
    return pattern
