"""Loading models: kernels that are used, the memory that a model takes, and the vectors that it makes."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gguf
import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.errors import ModelError
from constrain.llama import canary
from constrain.llama.embedding import Embedder
from constrain.llama.layouts import check
from constrain.llama.loading import CONTEXT_SIZES, Llama
from constrain.llama.memory import memory_needed
from constrain.llama.model import default_model_path
from tests.support import each_row
from tests.support.gguf_files import finish, write_gguf

SYSTEM = b"CPU : AVX512 = 1 | AMX_INT8 = %d | REPACK = 1 | "


@pytest.mark.parametrize(("amx", "works", "used"), [(False, False, True), (True, False, False), (True, True, True)])
def test_weights_are_laid_out_for_amx_kernels_if_these_work(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, amx: bool, works: bool, used: bool
) -> None:
    monkeypatch.setattr(llama_cpp, "llama_print_system_info", lambda: SYSTEM % amx)
    monkeypatch.setattr(check, "pass_the_check", lambda: works)
    llama = Llama(str(tiny), vocab_only=True, verbose=False)
    assert llama.model_params.use_extra_bufts is used
    assert llama.model_params.vocab_only


@pytest.mark.parametrize("n_ctx", [-1, CONTEXT_SIZES[1] + 1, 2**32 + 512])
def test_a_context_of_no_possible_size_is_refused_at_once(tiny: Path, n_ctx: int) -> None:
    with pytest.raises(ValueError, match=f"n_ctx is {n_ctx}; it must be between 0 and {CONTEXT_SIZES[1]}"):
        constrain.Model(tiny, n_ctx=n_ctx)


def test_a_context_for_which_there_is_no_memory_is_an_error_that_says_so(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llama_cpp.llama_cpp.llama_init_from_model", lambda *_: None)
    with pytest.raises(constrain.ModelError, match="too little memory for 64 tokens: take a smaller n_ctx"):
        constrain.Model(tiny, n_ctx=64)


def test_a_file_that_is_no_model_is_not_told_to_take_less_memory(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "vocabulary.gguf", "gpt2", [b"a", b"b", b"</s>"])
    with pytest.raises(constrain.ModelError, match="cannot load it") as caught:
        constrain.Model(file)
    assert "n_ctx" not in str(caught.value)


@each_row(
    "name, value, kind",
    ("n_ctx", "5", TypeError),
    ("n_ctx", 512.5, TypeError),
    ("n_threads", 0, ValueError),
    ("n_threads", 10**14, ValueError),
    ("n_threads", True, TypeError),
    ("n_gpu_layers", -7, ValueError),
    ("parallel", "2", TypeError),
)
def test_a_setting_that_is_no_number_in_its_range_is_named(
    tiny: Path, name: str, value: object, kind: type[Exception]
) -> None:
    settings: Any = {name: value}
    with pytest.raises(kind, match=f"{name} is {value!r}; it must be "):
        constrain.Model(tiny, **settings)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of locked memory")
def test_locked_weights_are_in_main_memory(tiny: Path) -> None:
    model = constrain.Model(tiny, n_ctx=64, lock_memory=True)
    assert isinstance(model.llama, Llama)
    locked = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmLck"))
    assert int(locked.split()[1]) > 0
    model.close()


def test_a_loaded_llama_locks_its_memory_itself(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="use_mlock=True"):
        constrain.Model(model.llama, lock_memory=True)


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


@each_row(
    "numbers, cell",
    ({"attention__head_count": 8}, 4 * 8 * (16 + 16) * 2),
    ({"attention__head_count": 8, "attention__head_count_kv": 2}, 4 * 2 * (16 + 16) * 2),
    ({"attention__head_count": [4, 8, 8, 8], "attention__head_count_kv": 2}, 4 * 2 * (16 + 16) * 2),
    ({"attention__head_count": 8, "attention__head_count_kv": [2, 0, 1, 0]}, 3 * (16 + 16) * 2),
    ({"attention__head_count": 8, "attention__key_length": 64, "attention__value_length": 32}, 4 * 8 * (64 + 32) * 2),
    ({}, 0),
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


TEXT = "The quick brown fox jumps over the lazy dog. " * 4
"""More tokens than are evaluated at once."""


@pytest.fixture(scope="module")
def small(tiny: Path) -> Iterator[constrain.Model]:
    with constrain.Model(tiny, n_ctx=256, n_threads=1) as found:
        yield found


def with_pooling(model: constrain.Model, pooling: int) -> llama_cpp.Llama:
    """The same weights, as if the file said how vectors are made."""
    llama = model.llama
    metadata = {**llama.metadata, "llama.pooling_type": str(pooling)}
    parts = {"_model": llama._model, "context_params": llama.context_params, "model_path": llama.model_path}
    return cast("llama_cpp.Llama", SimpleNamespace(metadata=metadata, **parts))


def vector_of_llama(model: constrain.Model, pooling: int) -> Any:
    options: dict[str, Any] = {"n_ctx": 256, "n_batch": 256, "n_ubatch": 256, "n_threads": 1, "n_threads_batch": 1}
    llama = Llama(model.llama.model_path, embedding=True, pooling_type=pooling, verbose=False, **options)
    try:
        return np.array(llama.embed(TEXT, normalize=True))
    finally:
        llama.close()


@pytest.mark.parametrize("pooling", [llama_cpp.LLAMA_POOLING_TYPE_MEAN, llama_cpp.LLAMA_POOLING_TYPE_LAST])
def test_vectors_are_those_of_llama_cpp(small: constrain.Model, pooling: int) -> None:
    tokens = small.text_tokens(TEXT, whole=True)
    assert 128 < len(tokens) <= 256
    embedder = Embedder(with_pooling(small, pooling), 256)
    try:
        found = embedder.embed(tokens)
    finally:
        embedder.close()
    assert found == pytest.approx(vector_of_llama(small, pooling), abs=1e-5)
    is_default = pooling == llama_cpp.LLAMA_POOLING_TYPE_MEAN  # what a model means that says nothing
    assert (small.embedder.embed(tokens) == found).all() == is_default


def test_a_model_of_scores_makes_no_vectors(small: constrain.Model) -> None:
    with pytest.raises(constrain.ModelError, match="makes no vectors"):
        Embedder(with_pooling(small, llama_cpp.LLAMA_POOLING_TYPE_RANK), 256)


@pytest.mark.parametrize("count", [0, 257])
def test_texts_have_a_token_and_fit_into_the_context(small: constrain.Model, count: int) -> None:
    with pytest.raises(constrain.ModelError, match="1 to 256"):
        small.embedder.embed([1] * count)


def test_a_closed_model_makes_no_vectors(tiny: Path) -> None:
    model = constrain.Model(tiny, n_ctx=64, n_threads=1)
    embedder = model.embedder
    model.close()
    with pytest.raises(constrain.ModelError, match="closed"):
        embedder.embed([1])
    with pytest.raises(constrain.ModelError, match="closed"):
        _ = model.embedder


@pytest.fixture(scope="module")
def demo() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=1024, n_threads=1) as model:
        yield model


@pytest.mark.slow  # each evaluates a text
@each_row(
    "name, value, sentence",
    ("_TEXT", canary._TEXT[1:], "divides a text wrongly"),
    ("_LOGPROBS", [*canary._LOGPROBS[1:], -9.0], "computes wrongly"),
)
def test_other_numbers_are_told(
    demo: constrain.Model, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, sentence: str
) -> None:
    canary.prove_forward(demo)
    monkeypatch.setattr(canary, name, value)
    with pytest.raises(ModelError, match=sentence):
        canary.prove_forward(demo)
