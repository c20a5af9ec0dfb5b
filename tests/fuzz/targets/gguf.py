"""GGUF files: an input is a whole file, changed as bytes."""

from __future__ import annotations

import functools
import os
import struct
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import constrain
from constrain.llama.memory import memory_needed
from tests.fuzz.judge import BrokenPromiseError, Meter
from tests.fuzz.walking import random_of, walk

DECLARED = (constrain.ModelError, constrain.LimitError)
MAX_SIZE = 8192

_WALKED_TOKENS = 2_000
"""Of a vocabulary that is walked with: what is made for larger ones takes its time for what it is."""

_BYTES = 256


@functools.cache
def _file() -> str:
    """Where inputs are put."""
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a file in memory, where the system has them
    return os.path.join(tempfile.mkdtemp(prefix="constrain-fuzz-", dir=folder), "input.gguf")  # noqa: PTH118


def run(data: bytes, meter: Meter) -> None:
    """Reads the vocabulary, and what the model would take of memory."""
    path = Path(_file())
    path.unlink(missing_ok=True)  # earlier ones may still be mapped
    path.write_bytes(data)
    errors = []
    try:
        with meter.call("from_gguf"):
            vocabulary = constrain.Vocabulary.from_gguf(path)
        if vocabulary.n_vocab <= _WALKED_TOKENS:
            constraint = constrain.compile(constrain.Regex("(?s).*"), vocabulary, cache=False)
            _walk(constraint, data, meter)
    except DECLARED as error:
        errors.append(error)
    with meter.call("memory_needed"):
        needed = memory_needed(path, 512, 2)
    if needed < 0:
        raise BrokenPromiseError(f"the model would take {needed} bytes")
    if errors:
        raise errors[0]


def _walk(constraint: constrain.Constraint, data: bytes, meter: Meter) -> None:
    """Walks, if each byte has a token: other vocabularies have no way to finish a text that they can begin."""
    known = constraint.vocabulary
    if len({text for token in range(known.n_vocab) if len(text := known.token_bytes(token)) == 1}) == _BYTES:
        walk(constraint, random_of(data), meter)
    else:
        with meter.call("fill_bitmask"):
            constraint.matcher().fill_bitmask(constraint.allocate_bitmask()[0])


# The form


@dataclass
class _Tree:
    version: int
    keys: list[list[Any]]
    """Each a name, a type, and a value."""
    tensors: list[list[Any]]
    """Each a name, extents, a type, and an offset."""
    counts: tuple[int, int] = (0, 0)
    """By how many the header is wrong."""


_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def _text(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def _scalar(kind: int, value: Any) -> bytes:
    code = _SCALARS.get(kind, "I")
    if code in "fd":
        return struct.pack("<" + code, value)
    size = struct.calcsize("<" + code)
    return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")


def _value(kind: int, value: Any) -> bytes:
    if kind == _STRING:
        return _text(value if isinstance(value, bytes) else str(value).encode())
    if kind == _ARRAY:
        item, values, more = value
        start = struct.pack("<IQ", item & 0xFFFFFFFF, (len(values) + more) & (1 << 64) - 1)
        return start + b"".join(_value(item, each) for each in values)
    if isinstance(value, tuple | list | bytes):
        value = len(value)
    return _scalar(kind, value)


def encode(tree: _Tree) -> bytes:
    """A file."""
    counts = len(tree.tensors) + tree.counts[0], len(tree.keys) + tree.counts[1]
    parts = [b"GGUF", struct.pack("<I", tree.version & 0xFFFFFFFF), *(_scalar(10, count) for count in counts)]
    for name, kind, value in tree.keys:
        parts += [_text(name), struct.pack("<I", kind & 0xFFFFFFFF), _value(kind, value)]
    for name, extents, kind, offset in tree.tensors:
        parts += [_text(name), struct.pack("<I", len(extents)), *(_scalar(10, extent) for extent in extents)]
        parts += [struct.pack("<I", kind & 0xFFFFFFFF), _scalar(10, offset)]
    return b"".join(parts)


# Seeds


def _file_of(model: str, tokens: list[bytes], types: list[int], *more: list[Any], rows: int = 0) -> bytes:
    keys = [
        [b"general.architecture", _STRING, b"llama"],
        [b"tokenizer.ggml.model", _STRING, model.encode()],
        [b"tokenizer.ggml.tokens", _ARRAY, (_STRING, tokens, 0)],
        [b"tokenizer.ggml.token_type", _ARRAY, (5, types, 0)],
        [b"tokenizer.ggml.eos_token_id", 4, len(tokens) - 1],
        *map(list, more),
    ]
    return encode(_Tree(3, keys, [[b"token_embd.weight", [4, rows], 0, 0]] if rows else []))


def seeds() -> Iterable[bytes]:
    """A small file for each way in which tokens are spelled, and for what else is read."""
    plain = [bytes([byte]) for byte in range(97, 110)]
    one = [1] * len(plain)
    bytewise = [f"<0x{byte:02X}>".encode() for byte in range(256)]
    space = "\N{LOWER ONE EIGHTH BLOCK}a".encode()
    yield _file_of("llama", [*plain, space, b"<s>", b"</s>"], [*one, 1, 3, 3], rows=20)
    yield _file_of("llama", [*bytewise, b"<unk>", b"</s>"], [6] * 256 + [2, 3])
    yield _file_of(
        "gpt2", [*plain, "\u0120a".encode(), "\u010a".encode(), b"<|im_end|>", b"<|endoftext|>"], [*one, 1, 1, 3, 3]
    )
    yield _file_of("gpt2", [*plain, space, b"<turn|>"], [*one, 4, 3], [b"tokenizer.ggml.pre", _STRING, b"gemma4"])
    yield _file_of("rwkv", [b"\\x41", b"\\n", b"a\\\\", b"''", b"</s>"], [1, 1, 1, 1, 3])
    yield _file_of("plamo2", [*plain, b"<|plamo:eos|>"], [*one, 3])
    yield _file_of("bert", plain, one)
    more = [
        [b"llama.block_count", 4, 4], [b"llama.embedding_length", 4, 128], [b"llama.context_length", 4, 4096],
        [b"llama.attention.head_count", _ARRAY, (5, [8, 0, 8], 0)], [b"llama.attention.head_count_kv", 4, 2],
        [b"llama.attention.key_length", 10, 16], [b"llama.attention.sliding_window", 4, 64], [b"llama.vocab_size", 4,
        30],
        [b"tokenizer.ggml.fim_pad_token_id", 4, 3], [b"tokenizer.ggml.eot_token_id", 5, -1], [b"x", 6, 0.5], [b"y", 7,
        1],
    ]  # fmt: skip
    yield _file_of("t5", [*plain, b"</s>"], [*one, 3], *more, rows=16)
    heads = b"llama.attention.head_count"
    layers = [b"llama.block_count", 4, 4]
    for kind, value in ((_STRING, b"eight"), (6, float("inf")), (_ARRAY, (5, [], 0)), (_ARRAY, (6, [8.0], 0)), (5, -8)):
        yield _file_of("plamo2", plain, one, layers, [heads, kind, value], [b"llama.attention.key_length", 4, 64])
    yield _file_of("plamo2", plain, one, layers, [heads, _ARRAY, (10, [2**64 - 1] * 3, 0)])
    for claimed in (1 << 21, 1 << 24):
        yield _file_of("plamo2", plain, one, [b"llama.vocab_size", 4, claimed])


def mutate(data: bytes, _: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """Changed bytes."""
    return mutate_bytes(data)
