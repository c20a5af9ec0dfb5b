"""The parts of a ``tokenizers.Tokenizer`` that read a text: which of them change it, and a copy that reads on.

A part that drops or replaces characters is refused, because the tokens of a text would not join to the text. One is
accepted: the normal form NFC, in which most texts are already; ``encode`` spells the others byte by byte.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from constrain.vocabulary.libraries.decoders import UnknownPartError, flatten

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.vocabulary.libraries.decoders import Part

_NORMALIZERS = {
    "BertNormalizer": "changes upper case, accents or white space",
    "Lowercase": "changes upper case",
    "NFD": "takes characters apart",
    "NFKC": "replaces characters by similar ones",
    "NFKD": "replaces characters by similar ones",
    "Nmt": "drops and replaces white space and control characters",
    "Precompiled": "replaces characters by the table of a SentencePiece model",
    "Strip": "drops white space",
    "StripAccents": "drops accents",
}
"""Normalizers that are known and refused, with the reason."""

_PRE_TOKENIZERS = {
    "BertPreTokenizer": "drops white space",
    "CharDelimiterSplit": "drops its delimiter",
    "Whitespace": "drops white space",
    "WhitespaceSplit": "drops white space",
}
"""Pre-tokenizers that are known and refused, with the reason."""

_SPLITTERS = ("Digits", "FixedLength", "Punctuation", "Split", "UnicodeScripts")
"""Pre-tokenizers that only split, unless they remove what they split at."""


def require_exact(description: Part, decode: Callable[[str], bytes]) -> None:
    """Raises ``UnknownPartError`` if a tokenizer changes a text when it reads it.

    Args:
        description: the tokenizer in its JSON form.
        decode: the bytes of a token, as ``decoder_of`` found them.
    """
    _require_model(description["model"])
    for part in flatten(description["normalizer"]):
        _require_normalizer(part, decode)
    for part in flatten(description["pre_tokenizer"]):
        kind = part["type"]
        if kind in _PRE_TOKENIZERS:
            raise UnknownPartError(f"its pre-tokenizer {kind} {_PRE_TOKENIZERS[kind]}")
        if kind == "Metaspace":
            _require_space(part["replacement"], decode, "pre-tokenizer Metaspace")
        elif kind in _SPLITTERS:
            if part.get("behavior") == "Removed":
                raise UnknownPartError(f"its pre-tokenizer {kind} removes text: {part}")
        elif kind != "ByteLevel":
            raise UnknownPartError(f"its pre-tokenizer {kind} is not known")


def _require_model(model: Part) -> None:
    kind = model["type"]
    if kind == "WordPiece":
        raise UnknownPartError("its model WordPiece drops the spaces between words, so texts are not exact")
    for option in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(option):
            raise UnknownPartError(f"its model marks parts of words: {option} is {model[option]!r}")
    if kind not in ("BPE", "Unigram", "WordLevel"):
        raise UnknownPartError(f"its model {kind} is not known")


def _require_normalizer(part: Part, decode: Callable[[str], bytes]) -> None:
    kind = part["type"]
    if kind in _NORMALIZERS:
        raise UnknownPartError(f"its normalizer {kind} {_NORMALIZERS[kind]}")
    if kind == "Prepend":
        _require_space(part["prepend"], decode, "normalizer Prepend")
    elif kind == "Replace":
        if part["pattern"] != {"String": " "}:
            raise UnknownPartError(f"its normalizer replaces {part['pattern']} by {part['content']!r}")
        _require_space(part["content"], decode, "normalizer Replace")
    elif kind not in ("NFC", "ByteLevel"):
        raise UnknownPartError(f"its normalizer {kind} is not known")


def _require_space(written: str, decode: Callable[[str], bytes], part: str) -> None:
    if decode(written) != b" ":
        raise UnknownPartError(f"its {part} writes {written!r}, which its decoder does not read as a space")


def continuing(description: Part) -> str:
    """The JSON form of a tokenizer that reads a text as the continuation of another.

    It puts no space in front, adds no special tokens, and neither truncates nor pads. Merges are not left out at
    random. The caller's tokenizer stays as it is.
    """
    copy: dict[str, Any] = {**description, "truncation": None, "padding": None, "post_processor": None}
    kept = [part for part in flatten(description["normalizer"]) if part["type"] != "Prepend"]
    copy["normalizer"] = _sequence(kept, "normalizers")
    split = [_without_prefix(part) for part in flatten(description["pre_tokenizer"])]
    copy["pre_tokenizer"] = _sequence(split, "pretokenizers")
    if "dropout" in description["model"]:
        copy["model"] = {**description["model"], "dropout": None}
    return json.dumps(copy)


def _sequence(parts: list[Part], key: str) -> Part | None:
    return {"type": "Sequence", key: parts} if parts else None


def _without_prefix(part: Part) -> Part:
    if part["type"] == "Metaspace":
        return {**part, "prepend_scheme": "never"}
    return {**part, "add_prefix_space": False} if part["type"] == "ByteLevel" else part
