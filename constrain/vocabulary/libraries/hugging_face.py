"""Vocabularies of ``tokenizers.Tokenizer`` and of the tokenizers of transformers that are built on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from constrain.errors import ModelError
from constrain.vocabulary.exact import ExactEncoder
from constrain.vocabulary.libraries.checks import check_texts, check_tokens
from constrain.vocabulary.libraries.decoders import UnknownPartError, decoder_of
from constrain.vocabulary.libraries.encoders import continuing, require_exact
from constrain.vocabulary.libraries.loading import Loaded, Sizing, finish_table, require_library
from constrain.vocabulary.spelling import SPACE, read_byte_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.vocabulary.libraries.decoders import Part


def load_tokenizer(tokenizer: Any, sizing: Sizing) -> Loaded:
    """Reads a ``tokenizers.Tokenizer``. Raises ``TypeError`` for another object, and ``ModelError``."""
    require_library(tokenizer, "tokenizers", "Tokenizer", "tokenizer")
    return _load(tokenizer, {}, sizing, "tokenizers.Tokenizer")


def load_transformers(tokenizer: Any, sizing: Sizing) -> Loaded:
    """Reads a tokenizer of transformers. Raises ``TypeError`` for another object, and ``ModelError``."""
    require_library(tokenizer, "transformers", "PreTrainedTokenizerBase", "tokenizer")
    where = f"{type(tokenizer).__name__} {tokenizer.name_or_path}".rstrip()
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(
            f"{where}: it is not built on the library tokenizers; load the fast version (AutoTokenizer does so where "
            f"there is one), or pass its model to Vocabulary.from_sentencepiece or from_tiktoken"
        )
    if sizing.eos is None:
        sizing = sizing._replace(eos=tokenizer.eos_token_id)
    if sizing.eos is None:
        raise ModelError(f"{where}: it names no end-of-generation token (eos_token); name one with eos=")
    special = {token: tokenizer.convert_ids_to_tokens(token) for token in tokenizer.all_special_ids}
    loaded = _load(backend, special, sizing, where)
    _require_plain_decoding(tokenizer, where)
    return loaded


def _require_plain_decoding(tokenizer: Any, where: str) -> None:
    """Raises ``ModelError`` if the tokenizer cleans texts up after its decoder."""
    sample = "x , y . z ! n't 's"
    ids = tokenizer.backend_tokenizer.encode(sample, add_special_tokens=False).ids
    plain = tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=False)
    read = tokenizer.decode(ids)
    if read != plain:
        raise ModelError(
            f"{where}: it decodes {plain!r} to {read!r}, so answers would not be the texts that the masks allow; set "
            f"tokenizer.clean_up_tokenization_spaces = False"
        )


def _load(tokenizer: Any, more_special: Mapping[int, str], sizing: Sizing, where: str) -> Loaded:
    description = _describe(tokenizer, where)
    try:
        decode = decoder_of(description["decoder"])
        require_exact(description, decode)
    except UnknownPartError as error:
        raise ModelError(f"{where}: {error}") from None
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    unknown = _unknown_token(description["model"], vocabulary)
    special = {**unknown, **_added_special(description), **more_special}
    texts = _texts(vocabulary, special, decode)
    _require_added_texts(description, texts, special, where)
    check_tokens(texts, special, lambda ids: _text(tokenizer, ids), where=where)
    reader = type(tokenizer).from_str(continuing(description))
    reader.encode_special_tokens = True  # special tokens in a text are text

    def read(text: str) -> list[int]:
        ids: list[int] = reader.encode(text, add_special_tokens=False).ids
        return ids

    check_texts(read, texts, unknown, where=where)
    table = finish_table(texts, special, sizing, where=where)
    return Loaded(table, ExactEncoder(where, lambda text: read(text.decode())))


def _describe(tokenizer: Any, where: str) -> Part:
    """Returns the parts of a tokenizer. Raises ``ModelError`` for parts written in Python, which have no text form."""
    try:
        text = tokenizer.to_str()
    except Exception as error:  # the library raises no narrower type
        raise ModelError(f"{where}: its parts cannot be read: {error}") from error
    description: Part = json.loads(text)
    return description


def _text(tokenizer: Any, ids: list[int]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=False)
    return text


def _texts(vocabulary: Mapping[str, int], special: Mapping[int, str], decode: Callable[[str], bytes]) -> list[bytes]:
    """The bytes of each token; ``b""`` for special tokens and for ids without a token."""
    texts = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for name, token in vocabulary.items():
        if token not in special:
            texts[token] = decode(name)
    return texts


def _added_special(description: Part) -> dict[int, str]:
    return {added["id"]: added["content"] for added in description["added_tokens"] if added["special"]}


def _unknown_token(model: Part, vocabulary: Mapping[str, int]) -> dict[int, str]:
    """The token that stands for unknown characters, by its id; empty if there is none."""
    if model["type"] == "Unigram":
        unknown = model["unk_id"]
        return {} if unknown is None else {unknown: model["vocab"][unknown][0]}
    name = model["unk_token"]
    return {vocabulary[name]: name} if name in vocabulary else {}


def _require_added_texts(description: Part, texts: list[bytes], special: Mapping[int, str], where: str) -> None:
    """Raises ``ModelError`` if an added token is read as one text and written as another.

    Such a token is a letter beyond ASCII in a byte-level vocabulary, where it stands for a byte. An added token may be
    spelled as the others are: with the character for spaces, or as a byte.
    """
    for added in description["added_tokens"]:
        token, content = added["id"], added["content"]
        raw = content.encode("utf-8", "surrogatepass")
        spellings = (raw, raw.replace(SPACE.encode(), b" "), read_byte_token(raw))
        if token not in special and texts[token] not in spellings:
            raise ModelError(
                f"{where}: the added token {token} stands for {content!r}, but its decoder reads it as {texts[token]!r}"
            )
