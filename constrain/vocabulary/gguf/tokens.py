"""The tokens of a GGUF file as bytes, and the ids that are special or end a generation.

GGUF files spell tokens in three ways:

- byte-level BPE (GPT-2 and its successors): each character of a token is one byte, in GPT-2's alphabet of printable
  characters;
- SentencePiece (Llama 2, Gemma, T5): characters stand for themselves, U+2581 for a space, ``<0x0A>`` for one byte;
- RWKV (escapes as in a Python literal) and PLaMo 2 (the text itself).

SentencePiece tokenizers add a space before a text when they encode and remove it when they decode. That space belongs
to the start of the text, not to its first token. Generated text always stands in the middle of a text, so here a token
stands for all of its bytes, and ``encode`` never adds a space.

The ids that end a generation are those that llama.cpp chooses (``llama_vocab_is_eog``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.vocabulary.ends import END_NAMES, not_ends
from constrain.vocabulary.gguf.metadata import Metadata, StringArray, read_metadata, shown
from constrain.vocabulary.spelling import SPACE, byte_level_alphabet, read_byte_token
from constrain.vocabulary.table import MOST_PADDING, TokenTable, make_table

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
"""Values of ``tokenizer.ggml.token_type``, as SentencePiece numbers them."""

_SPACE_ESCAPING_BPE = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
"""Pre-tokenizers of BPE vocabularies whose tokens are spelled like SentencePiece tokens."""

_DEFAULT_EOS = {"llama": 2, "gpt2": 11, "t5": 1, "plamo2": 2}
"""llama.cpp's ids where the file has no ``tokenizer.ggml.eos_token_id``, by tokenizer model."""

_END_NAME_GROUPS = {
    "tokenizer.ggml.fim_pad_token_id": (b"<|fim_pad|>", b"<fim-pad>", b"<fim_pad>", b"<PAD>", b"[PAD]"),
    "tokenizer.ggml.fim_rep_token_id": (b"<|fim_repo|>", b"<|repo_name|>", b"<fim-repo>", b"<REPO>", b"<reponame>"),
    "tokenizer.ggml.fim_sep_token_id": (b"<|file_sep|>",),
}
"""Fill-in-the-middle tokens that end a generation: the metadata key that names the token, and texts to look for if
the key is absent."""

_TOKENS, _TYPES, _EMBEDDING = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "token_embd.weight"

_DECODED_TOGETHER = 1 << 14
"""Tokens decoded in one step; bounds the memory of intermediate tables."""


def read_gguf_tokens(path: str | os.PathLike[str]) -> TokenTable:
    """Reads the token table of a GGUF file. Raises ``ModelError``."""
    metadata = read_metadata(path, arrays=(_TOKENS, _TYPES), tensors=(_EMBEDDING,))
    tokens = metadata.values.get(_TOKENS)
    model = metadata.text("tokenizer.ggml.model")
    if model is None or tokens is None:
        raise ModelError(f"{metadata.path}: no tokenizer ({_TOKENS} is missing)")
    if not isinstance(tokens, StringArray):
        raise ModelError(f"{metadata.path}: {_TOKENS} is not an array of strings")
    types = _token_types(metadata, len(tokens))
    raw = tokens.to_list()
    texts = _spell(metadata, model, tokens, raw, types)
    # llama.cpp treats tokens with these texts as control tokens, whatever type the file gives them.
    ends = _ends_of_generation(metadata, model, raw)
    ids = np.flatnonzero((types == _UNKNOWN) | (types == _CONTROL) | (types == _UNUSED)).tolist()
    special = {token: raw[token].decode("utf-8", "replace") for token in ids}
    texts.extend([b""] * _padding(metadata, len(texts)))
    return make_table(texts, special=special, eos=ends, where=metadata.path)


def _token_types(metadata: Metadata, count: int) -> NDArray[np.int32]:
    types = metadata.values.get(_TYPES)
    if types is None:
        return np.full(count, _NORMAL, np.int32)
    if not isinstance(types, np.ndarray) or types.dtype != np.int32 or len(types) < count:
        raise ModelError(f"{metadata.path}: {_TYPES} is not one int32 for each of the {count} tokens")
    return types[:count].astype(np.int32)


def _padding(metadata: Metadata, count: int) -> int:
    """The number of ids that the model has beyond the ``count`` tokens of its tokenizer."""
    embedding = metadata.tensors.get(_EMBEDDING)
    shape = embedding.shape if embedding else ()
    rows = shape[1] if len(shape) == 2 else 0
    architecture = metadata.text("general.architecture")
    declared = metadata.integer(f"{architecture}.vocab_size") or 0
    padding = max(rows, declared) - count
    if padding > MOST_PADDING:
        name = _EMBEDDING if rows >= declared else shown(f"{architecture}.vocab_size")
        raise ModelError(
            f"{metadata.path}: damaged: {name} says {count + padding} ids, but the tokenizer has {count} tokens; "
            f"at most {MOST_PADDING} more are supported"
        )
    return max(padding, 0)


def _ends_of_generation(metadata: Metadata, model: str, raw: list[bytes]) -> set[int]:
    """The ids that end a generation for llama.cpp: ids named in the metadata, and ids with certain texts."""
    names = END_NAMES.union(*_END_NAME_GROUPS.values())
    by_name = {text: token for token, text in enumerate(raw) if text in names}
    ends = {token for text, token in by_name.items() if text in END_NAMES}
    for key, group in _END_NAME_GROUPS.items():
        named = _valid_id(metadata, key, len(raw))
        if named is None:
            named = next((by_name[text] for text in group if text in by_name), None)
        if named is not None:
            ends.add(named)
    eos = _valid_id(metadata, "tokenizer.ggml.eos_token_id", len(raw))
    if eos is None:
        eos = _DEFAULT_EOS.get(model)
    for token in (eos, *(_valid_id(metadata, f"tokenizer.ggml.{end}_token_id", len(raw)) for end in ("eot", "eom"))):
        if token is not None and token < len(raw):
            ends.add(token)
    return ends - not_ends(by_name)


def _valid_id(metadata: Metadata, key: str, count: int) -> int | None:
    """A token id from the metadata; an id out of range counts as absent, as in llama.cpp."""
    token = metadata.integer(key)
    return token if token is not None and 0 <= token < count else None


def _spell(
    metadata: Metadata, model: str, tokens: StringArray, raw: list[bytes], types: NDArray[np.int32]
) -> list[bytes]:
    """The bytes of every token, decoded from the tokenizer's spelling."""
    escapes_space = model in ("llama", "t5", "gemma4") or (
        model == "gpt2" and metadata.text("tokenizer.ggml.pre") in _SPACE_ESCAPING_BPE
    )
    if escapes_space:
        space = SPACE.encode()
        texts = [text.replace(space, b" ") for text in raw]
    elif model == "gpt2":
        texts = _decode_byte_level(tokens)
    elif model == "plamo2":
        texts = list(raw)
    elif model == "rwkv":
        return [_unescape_rwkv(metadata.path, token, text) for token, text in enumerate(raw)]
    elif model == "bert":
        raise ModelError(f"{metadata.path}: WordPiece (bert) is not supported: it drops spaces, so texts are not exact")
    else:
        raise ModelError(f"{metadata.path}: the tokenizer model {model!r:.80} is not supported")
    for token in np.flatnonzero(types != _NORMAL).tolist():
        if types[token] == _BYTE:
            texts[token] = _byte_token(metadata.path, token, raw[token])
        else:
            texts[token] = raw[token] if types[token] == _USER_DEFINED else b""
    return texts


def _byte_token(path: str, token: int, text: bytes) -> bytes:
    """The one byte of a token such as ``<0x0A>``. Raises ``ModelError`` for another spelling."""
    byte = read_byte_token(text)
    if byte is not None:
        return byte
    raise ModelError(
        f"{path}: byte token {token} is spelled {text!r:.80}, not like '<0x0A>'; the file is damaged or was converted "
        "wrongly: convert the model again, or take another GGUF file of it"
    )


def _byte_level_table() -> NDArray[np.int16]:
    """GPT-2's alphabet as a table from code point to byte; -1 for code points outside the alphabet."""
    alphabet = byte_level_alphabet()
    table = np.full(0x800, -1, np.int16)
    table[list(alphabet)] = list(alphabet.values())
    return table


def _decode_byte_level(tokens: StringArray) -> list[bytes]:
    """Decodes GPT-2's alphabet: each character of a token is one byte.

    A token with a character outside the alphabet has no text here (llama.cpp prints a placeholder for it).
    """
    alphabet = _byte_level_table()
    result: list[bytes] = []
    for begin in range(0, len(tokens), _DECODED_TOGETHER):
        chunk = slice(begin, begin + _DECODED_TOGETHER)
        starts, lengths = tokens.starts[chunk], tokens.lengths[chunk]
        low, high = int(starts[0]), int(starts[-1] + lengths[-1])
        _decode_byte_level_chunk(tokens.data[low:high], starts - low, lengths, alphabet, result)
    return result


def _decode_byte_level_chunk(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    alphabet: NDArray[np.int16],
    result: list[bytes],
) -> None:
    """Decodes all of ``data`` at once, gaps between the texts included, and appends the bytes of each text."""
    continuation = (data & 0xC0) == 0x80
    lead = (data >= 0xC2) & (data < 0xE0)
    follower = np.append(data[1:], np.uint8(0))
    code = np.where(lead, ((data & 0x1F).astype(np.int16) << 6) | (follower & 0x3F), data)
    values = alphabet[code]
    values[(data >= 0x80) & ~(lead & ((follower & 0xC0) == 0x80))] = -1
    character = ~continuation
    character[1:] |= ~lead[:-1]
    values = values[character]
    index = np.concatenate(([0], np.cumsum(character)))
    first, last = index[starts], index[starts + lengths]
    foreign = np.concatenate(([0], np.cumsum(values < 0)))
    spoiled = foreign[last] != foreign[first]
    text = values.astype(np.uint8).tobytes()
    spans = zip(first.tolist(), last.tolist(), spoiled.tolist(), strict=True)
    result.extend(b"" if bad else text[start:end] for start, end, bad in spans)


def _unescape_rwkv(path: str, token: int, text: bytes) -> bytes:
    r"""Resolves ``\t``, ``\n``, ``\r``, ``\xHH``; a backslash before any other character stands for that character."""
    if b"\\" not in text:
        return text
    result = bytearray()
    position = 0
    while position < len(text):
        byte = text[position]
        position += 1
        if byte != ord("\\"):
            result.append(byte)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == b"x":
            try:
                result += bytes.fromhex(text[position : position + 2].decode("ascii"))
            except ValueError as error:
                raise ModelError(f"{path}: token {token} has a bad escape: {text!r:.80}") from error
            position += 2
        else:
            result += {b"t": b"\t", b"n": b"\n", b"r": b"\r"}.get(escaped, escaped)
    return bytes(result)
