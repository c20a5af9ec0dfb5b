"""What a state depends on is part of its identity."""

from __future__ import annotations

from pathlib import Path

import gguf
import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.llama.prompt_cache.identity import ModelFacts
from constrain.vocabulary.gguf.files import fingerprint, has_tensor
from tests.support.gguf_files import finish


def write(path: Path, *, name: str = "a", changed: int | None = None, tensor: str = "two") -> Path:
    """A file with two tensors of 10,000 numbers, one of which may be changed."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    numbers = np.arange(10_000, dtype=np.float32)
    if changed is not None:
        numbers[changed] = -1
    writer.add_tensor("one", np.ones(10_000, np.float32))
    writer.add_tensor(tensor, numbers)
    finish(writer)
    return path


def test_weights_and_metadata_tell_models_apart_and_names_of_files_do_not(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.gguf"),
        write(tmp_path / "b.gguf"),
        write(tmp_path / "c.gguf", name="c"),
        *(write(tmp_path / f"{place}.gguf", changed=place) for place in (0, 5001, 9999)),
        write(tmp_path / "d.gguf", tensor="rope_factors_long.weight"),
    ]
    found = [fingerprint(path) for path in paths]
    assert found[0] == found[1]
    assert len(set(found)) == len(paths) - 1
    assert [has_tensor(path, "rope_factors_long") for path in paths] == [False] * 6 + [True]


def test_all_parts_of_a_split_model_count(tmp_path: Path) -> None:
    first = write(tmp_path / "m-00001-of-00002.gguf")
    second = write(tmp_path / "m-00002-of-00002.gguf")
    before = fingerprint(first)
    write(second, changed=0)
    assert fingerprint(first) != before


def facts_of(model: constrain.Model, **changes: int) -> bytes:
    parameters = llama_cpp.llama_context_params.from_buffer_copy(model.llama.context_params)
    for name, value in changes.items():
        setattr(parameters, name, value)
    return ModelFacts(model.llama).identity(parameters, 1, model.n_ctx)


def test_what_changes_a_state_changes_the_identity(model: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = facts_of(model)
    assert facts_of(model, n_ctx=77, n_threads=3, n_batch=64) == plain
    changes = [{"type_k": 8}, {"type_v": 8}, {"flash_attn_type": 1}, {"rope_freq_base": 5}, {"swa_full": 0}]
    found = [facts_of(model, **change) for change in changes]
    facts = ModelFacts(model.llama)
    found.append(facts.identity(model.llama.context_params, 4, model.n_ctx))
    monkeypatch.setattr(llama_cpp, "llama_print_system_info", lambda: b"another processor")
    found.append(facts_of(model))
    monkeypatch.setattr(llama_cpp, "__version__", "9.9")
    found.append(facts_of(model))
    assert len({plain, *found}) == len(found) + 1


def test_a_file_that_was_replaced_after_loading_has_no_identity(tmp_path: Path, model: constrain.Model) -> None:
    facts = ModelFacts(model.llama)
    facts._files = [write(tmp_path / "a.gguf")]
    with pytest.raises(constrain.ModelError, match="no longer the file"):
        facts.identity(model.llama.context_params, 1, 64)
