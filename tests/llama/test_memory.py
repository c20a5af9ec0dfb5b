"""What a model takes is reckoned from its file: weights and KV caches. When it is closed, it takes nothing."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import gguf
import pytest

import constrain
from constrain.llama.memory import memory_needed
from constrain.llama.model import default_model_path
from tests.support.gguf_files import finish


def model_file(path: Path, **numbers: Any) -> Path:
    """A file with metadata and no weights."""
    writer = gguf.GGUFWriter(path, "test")
    for key, value in numbers.items():
        name = "test." + key.replace("__", ".")
        writer.add_array(name, value) if isinstance(value, list) else writer.add_uint32(name, value)
    finish(writer)
    return path


def cell_bytes(path: Path) -> int:
    """Of one token in one sequence: there are 4, one beside them, one for embeddings, two are written to disk, and what
    4 put aside is one.
    """
    more, less = (memory_needed(path, n_ctx, 4) for n_ctx in (2048, 1024))
    return (more - less) // (1024 * 9)


def test_a_model_takes_its_file_and_its_caches() -> None:
    path = default_model_path()
    assert cell_bytes(path) == 30 * 3 * (64 + 64) * 2  # layers, heads, keys and values
    assert memory_needed(path, 1024, 4) > path.stat().st_size + 4 * 1024 * cell_bytes(path)


@pytest.mark.parametrize(
    ("numbers", "cell"),
    [
        ({"attention__head_count": 8}, 4 * 8 * (16 + 16) * 2),
        ({"attention__head_count": 8, "attention__head_count_kv": 2}, 4 * 2 * (16 + 16) * 2),
        ({"attention__head_count": [4, 8, 8, 8], "attention__head_count_kv": 2}, 4 * 2 * (16 + 16) * 2),
        ({"attention__head_count": 8, "attention__head_count_kv": [2, 0, 1, 0]}, 3 * (16 + 16) * 2),
        (
            {"attention__head_count": 8, "attention__key_length": 64, "attention__value_length": 32},
            4 * 8 * (64 + 32) * 2,
        ),
        ({}, 0),
    ],
)
def test_caches_are_as_large_as_the_architecture_says(tmp_path: Path, numbers: dict[str, Any], cell: int) -> None:
    path = model_file(tmp_path / "a.gguf", block_count=4, embedding_length=128, context_length=4096, **numbers)
    assert cell_bytes(path) == cell


def test_all_parts_of_a_model_count(tmp_path: Path) -> None:
    whole = model_file(tmp_path / "a.gguf", context_length=64)
    part = model_file(tmp_path / "a-00001-of-00002.gguf", context_length=64)
    (tmp_path / "a-00002-of-00002.gguf").write_bytes(bytes(1000))
    (tmp_path / "a-00002-of-00003.gguf").write_bytes(bytes(500))
    assert memory_needed(part, None, 1) == memory_needed(whole, None, 1) + 1000


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"none")
    with pytest.raises(constrain.ModelError, match="not a GGUF file"):
        memory_needed(tmp_path / "a.gguf", None, 1)


@pytest.mark.slow
def test_nothing_is_remembered_of_a_model_that_was_closed(tiny: Path) -> None:
    model = constrain.Model(tiny, n_ctx=128, n_threads=1)
    constrain.generate(model, "Hello", schema={"enum": ["a", "b"]})
    vocabulary = weakref.ref(model.vocabulary)
    model.close()
    del model
    gc.collect()
    assert vocabulary() is None
