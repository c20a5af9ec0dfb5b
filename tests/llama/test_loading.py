"""Loading models: which of llama.cpp's kernels are used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

import constrain
from constrain.llama.layouts import check
from constrain.llama.loading import MAX_CONTEXT, Llama
from tests.support.gguf_files import write_gguf

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


@pytest.mark.parametrize("n_ctx", [-1, MAX_CONTEXT + 1, 2**32 + 512])
def test_a_context_of_no_possible_size_is_refused_at_once(tiny: Path, n_ctx: int) -> None:
    with pytest.raises(ValueError, match=f"n_ctx is {n_ctx}; it must be between 0 and {MAX_CONTEXT}"):
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


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("n_ctx", "5", TypeError),
        ("n_ctx", 512.5, TypeError),
        ("n_threads", 0, ValueError),
        ("n_threads", 10**14, ValueError),
        ("n_threads", True, TypeError),
        ("n_gpu_layers", -7, ValueError),
        ("parallel", "2", TypeError),
    ],
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
