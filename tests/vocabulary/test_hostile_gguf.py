"""GGUF files whose numbers lie: an error that names the place, at once, and without memory for what is only claimed."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

import constrain
from tests.support.processor_time import finishes_within

STRING, ARRAY, UINT32, INT32, UINT8 = 8, 9, 4, 5, 0
HUGE = 2**64 - 1

SECONDS = 1.0
MEMORY = 16 << 20


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def head(keys: int, tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, keys)


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name.encode()) + struct.pack("<I", kind) + value


def array(kind: int, count: int, items: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + items


TOKENS = [
    key("tokenizer.ggml.model", STRING, text(b"gpt2")),
    key("tokenizer.ggml.tokens", ARRAY, array(STRING, 2, text(b"a") + text(b"b"))),
    key("tokenizer.ggml.eos_token_id", UINT32, struct.pack("<I", 1)),
    key("general.architecture", STRING, text(b"llama")),
]


def with_tokens(*more: bytes, tensors: int = 0, behind: bytes = b"") -> bytes:
    return head(len(TOKENS) + len(more), tensors) + b"".join((*TOKENS, *more)) + behind


NESTED = array(ARRAY, 1) * 100_000 + array(UINT8, 1, b"x")

DAMAGED = {
    "keys": (head(HUGE), f"key 0 of {HUGE} needs 8 bytes"),
    "keys behind some": (head(2**63) + key("a", UINT8, b"x"), f"key 1 of {2**63} needs 8 bytes"),
    "tensors": (with_tokens(tensors=HUGE), f"tensor 0 of {HUGE} needs 8 bytes"),
    "a key's length": (head(1) + struct.pack("<Q", HUGE), f"key 0 of 1 needs {HUGE} bytes"),
    "a string's length": (head(1) + key("a", STRING, struct.pack("<Q", HUGE)), f"the value of a needs {HUGE} bytes"),
    "an array in an array": (head(1) + key("a", ARRAY, array(ARRAY, 1, array(UINT8, 1, b"x"))), "array of type 9"),
    "arrays nested deeply": (head(1) + key("a", ARRAY, NESTED), "array of type 9 at byte 37, the value of a"),
    "an array of no type": (head(1) + key("a", ARRAY, array(99, 1)), "array of type 99 at byte 37, the value of a"),
    "a value of no type": (head(1) + key("a", 99, b"x"), "value type 99 at byte 33, in the value of a"),
    "items": (head(1) + key("a", ARRAY, array(INT32, HUGE)), f"the value of a needs {4 * HUGE} bytes"),
    "strings": (head(1) + key("a", ARRAY, array(STRING, HUGE)), f"the value of a needs {8 * HUGE} bytes"),
    "tokens": (
        head(1) + key("tokenizer.ggml.tokens", ARRAY, array(STRING, 2**61)),
        f"the value of tokenizer.ggml.tokens needs {2**64} bytes",
    ),
    "a token's length": (
        head(1) + key("tokenizer.ggml.tokens", ARRAY, array(STRING, 2, text(b"a") + struct.pack("<Q", 2**63))),
        f"the value of tokenizer.ggml.tokens needs {2**63} bytes",
    ),
    "a key twice": (head(2) + 2 * key("a", UINT8, b"x"), "key 1 of 2, a, appears twice"),
    "a key of a million characters": (
        head(1) + key("k" * 10**6, 99, b""),
        f"value type 99 at byte 1000032, in the value of {'k' * 80}...",
    ),
    "dimensions": (with_tokens(tensors=1, behind=text(b"t") + struct.pack("<I", 2**32 - 1)), f"{2**32 - 1} dimensions"),
    "ids": (
        with_tokens(key("llama.vocab_size", UINT32, struct.pack("<I", 2**24))),
        f"llama.vocab_size says {2**24} ids, but the tokenizer has 2 tokens",
    ),
    "rows": (
        with_tokens(tensors=1, behind=text(b"token_embd.weight") + struct.pack("<IQQIQ", 2, 8, HUGE, 0, 0)),
        f"token_embd.weight says {HUGE} ids, but the tokenizer has 2 tokens",
    ),
    "types": (
        with_tokens(key("tokenizer.ggml.token_type", ARRAY, array(INT32, 1, bytes(4)))),
        "tokenizer.ggml.token_type is not one int32 for each of the 2 tokens",
    ),
    "tokens that are a text": (
        head(2) + TOKENS[0] + key("tokenizer.ggml.tokens", STRING, text(b"a")),
        "tokenizer.ggml.tokens is not an array of strings",
    ),
    "a model that is a number": (
        head(2) + key("tokenizer.ggml.model", UINT8, b"x") + TOKENS[1],
        "tokenizer.ggml.model is not a string",
    ),
    "a model of a million characters": (
        head(2) + key("tokenizer.ggml.model", STRING, text(b"m" * 10**6)) + TOKENS[1],
        "the tokenizer model 'mmm",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_number_that_lies_is_told_by_its_place(name: str, tmp_path: Path) -> None:
    data, says = DAMAGED[name]
    file = tmp_path / "v.gguf"
    file.write_bytes(data)
    tracemalloc.start()
    try:
        with finishes_within(SECONDS), pytest.raises(constrain.ModelError) as caught:
            constrain.Vocabulary.from_gguf(file)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1000
    with pytest.raises(constrain.ModelError, match=r"v\.gguf"):  # before llama.cpp sees the file
        constrain.Model(file)


def test_ids_without_tokens_are_padding(tmp_path: Path) -> None:
    file = tmp_path / "v.gguf"
    file.write_bytes(with_tokens(key("llama.vocab_size", UINT32, struct.pack("<I", 2**16))))
    assert constrain.Vocabulary.from_gguf(file).n_vocab == 2**16
