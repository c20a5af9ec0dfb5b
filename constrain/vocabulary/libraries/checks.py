"""Checks of a vocabulary against its library: all tokens, as the library decodes them, and texts of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_CHUNK = 512
"""Tokens that the library decodes in one call."""

TEXTS = (
    "".join(map(chr, range(0x20, 0x7F))),
    '{"name": "Ada  Lovelace", "born": 1815, "tags": ["x, y . z", "don\'t", "I\'ll"], "e": -1.5e-10}\n',
    "\n\n\t x \r\n  y\t\t  z   ",
    " leading,   inner    and trailing  ",
    "\x01\x07\x1b\x7f",
    "Größe, señor, Ça va, Žluťoučký kůň, Ελληνικά, Привет, Ђорђе",
    "שלום עליכם, مرحبا بالعالم, नमस्ते दुनिया, สวัสดี",
    "日本語の文、中文，한국어 안녕하세요。",
    "🙂🙃👩‍👩‍👧‍👦🇩🇪👍🏽 𝒜𝔅ℂ 𐍈",
    "ﬁ ½ ² ™ Ａ　！ ① ℌ ㎏ …",
    "a\u00a0b\u2003c\u200bd\u200de\ufefff\u2028g\u0085h\u00adi",
    "i̇ İ ı ſ ß ẞ q\u0323 x\u0301",
    "\ue000\U000f0000\U0010ffff\ufffd",
    "0 12 345 6789 0123456789 1,000.00 ٣ Ⅷ",
)
"""Texts of all kinds: white space, controls, scripts, emoji, private use, and characters that normalizers replace.

They are in the normal form NFC, and U+2581, with which tokenizers spell spaces, is not among their characters.
"""


def check_tokens(
    texts: Sequence[bytes],
    special: Collection[int],
    decode: Callable[[list[int]], str],
    *,
    where: str,
) -> None:
    """Raises ``ModelError`` if the library decodes a token to another text than its bytes.

    Args:
        texts: the bytes of each token.
        special: ids that stand for no text, which are not decoded.
        decode: the library's text of token ids.
        where: the tokenizer, for messages.

    Each token is decoded between two equal letters, as in the middle of a text.
    """
    words = [token for token, text in enumerate(texts) if token not in special and text.isalpha() and text.isascii()]
    # A letter may be a token for one byte, which some decoders read together with the bytes beside it.
    anchor = next((token for token in words if len(texts[token]) > 1), words[-1] if words else None)
    if anchor is None:
        raise ModelError(f"{where}: no token is a plain word, between which other tokens could be checked")
    word = texts[anchor]
    written = [token for token, text in enumerate(texts) if text and token not in special]
    for start in range(0, len(written), _CHUNK):
        chunk = written[start : start + _CHUNK]
        if not _decodes(chunk, texts, anchor, decode):
            for token in chunk:
                if not _decodes([token], texts, anchor, decode):
                    read = decode([anchor, token, anchor])
                    raise ModelError(
                        f"{where}: token {token} between {word!r} and {word!r} is decoded to {read!r}, "
                        f"but its bytes are {texts[token]!r}: its decoder is not understood"
                    )
            raise ModelError(
                f"{where}: what tokens are decoded to depends on other tokens: its decoder is not understood"
            )


def _decodes(chunk: list[int], texts: Sequence[bytes], anchor: int, decode: Callable[[list[int]], str]) -> bool:
    """Whether the library decodes tokens, each between two anchors, to their bytes."""
    ids, raw = [anchor], [texts[anchor]]
    for token in chunk:
        ids += [token, anchor]
        raw += [texts[token], texts[anchor]]
    return decode(ids) == b"".join(raw).decode("utf-8", "replace")


def check_texts(
    encode: Callable[[str], list[int]], texts: Sequence[bytes], unknown: Collection[int], *, where: str
) -> None:
    """Raises ``ModelError`` if the bytes of the tokens of a text do not join to the text.

    One space in front is allowed. Characters that the tokenizer does not know are left out: their tokens are none, or
    are ``unknown``.
    """
    known_bytes = {text[0] for text in texts if len(text) == 1}

    def read(text: str) -> bytes:
        return b"".join(texts[token] for token in encode(text))

    def knows(character: str) -> bool:
        raw = character.encode()
        if _same(read(character), raw):
            return True
        rest = bytes(byte for byte in raw if byte in known_bytes)  # some tokenizers drop bytes without a token
        is_unknown = any(token in unknown for token in encode(character))
        if is_unknown or (rest != raw and _same(read(character), rest)):
            return False
        raise _changed(character, read(character), where)

    for text in TEXTS:
        known = "".join(filter(knows, text))
        if not _same(read(known), known.encode()):
            raise _changed(known, read(known), where)


def _changed(text: str, read: bytes, where: str) -> ModelError:
    shown = read.decode("utf-8", "replace")
    return ModelError(
        f"{where}: the tokens of the text {text!r} join to {shown!r}: its normalizer or pre-tokenizer is not understood"
    )


def _same(read: bytes, text: bytes) -> bool:
    """Whether the bytes are those of the text, perhaps with the space that some tokenizers put in front."""
    return read in (text, b" " + text)
