"""How tokenizers spell bytes as characters: GPT-2's alphabet, and byte tokens such as ``<0x0A>``."""

from __future__ import annotations

import re
from functools import cache

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""The character that SentencePiece writes for a space."""

_BYTE_TOKEN = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


@cache
def byte_level_alphabet() -> dict[int, int]:
    """GPT-2's alphabet: the byte for each of its 256 code points.

    Printable Latin-1 characters are their own bytes; the other bytes follow in order from U+0100.

    >>> byte_level_alphabet()[ord("Ġ")]
    32
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {0x100 + number: byte for number, byte in enumerate(others)}


def read_byte_token(text: bytes) -> bytes | None:
    r"""The byte of a byte token; ``None`` for another text.

    >>> read_byte_token(b"<0x0A>")
    b'\n'
    """
    found = _BYTE_TOKEN.fullmatch(text)
    return None if found is None else bytes.fromhex(found[1].decode())
