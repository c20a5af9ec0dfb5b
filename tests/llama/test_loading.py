"""Loading models: which of llama.cpp's kernels are used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

import constrain
from constrain.llama.layouts import check
from constrain.llama.loading import MAX_CONTEXT, Llama
from tests.support import demo_model
from tests.support.gguf_files import write_gguf
from tests.support.llama.transformer import write_transformer

SYSTEM = b"CPU : AVX512 = 1 | AMX_INT8 = %d | REPACK = 1 | "


@pytest.mark.slow
@pytest.mark.parametrize(("amx", "works", "used"), [(False, False, True), (True, False, False), (True, True, True)])
def test_weights_are_laid_out_for_amx_kernels_if_these_work(
    monkeypatch: pytest.MonkeyPatch, amx: bool, works: bool, used: bool
) -> None:
    monkeypatch.setattr(llama_cpp, "llama_print_system_info", lambda: SYSTEM % amx)
    monkeypatch.setattr(check, "pass_the_check", lambda: works)
    llama = Llama(str(demo_model()), vocab_only=True, verbose=False)
    assert llama.model_params.use_extra_bufts is used
    assert llama.model_params.vocab_only


def test_models_are_loaded_by_this_class() -> None:
    model = constrain.Model(demo_model(), n_ctx=64)
    assert isinstance(model.llama, Llama)
    model.close()


@pytest.mark.parametrize("n_ctx", [-1, MAX_CONTEXT + 1, 2**32 + 512])
def test_a_context_of_no_possible_size_is_refused_at_once(n_ctx: int) -> None:
    with pytest.raises(ValueError, match=f"n_ctx is {n_ctx}; it must be between 0 and {MAX_CONTEXT}"):
        constrain.Model(demo_model(), n_ctx=n_ctx)


def test_a_context_for_which_there_is_no_memory_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        return None

    monkeypatch.setattr("llama_cpp.llama_cpp.llama_init_from_model", refuse)
    with pytest.raises(constrain.ModelError, match="too little memory for 64 tokens: take a smaller n_ctx"):
        constrain.Model(demo_model(), n_ctx=64)


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
def test_a_setting_that_is_no_number_in_its_range_is_named(name: str, value: object, kind: type[Exception]) -> None:
    settings: Any = {name: value}
    with pytest.raises(kind, match=f"{name} is {value!r}; it must be "):
        constrain.Model(demo_model(), **settings)


LOCKED = """
import resource, sys, constrain
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
try:
    constrain.Model(sys.argv[1], n_ctx=64, lock_memory=True)
except constrain.ModelError as error:
    print(error)
else:
    print(next(line for line in open("/proc/self/status") if line.startswith("VmLck")))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_memory_that_cannot_be_locked_is_an_error() -> None:
    command = [sys.executable, "-c", LOCKED, str(demo_model())]
    if os.geteuid() == 0:  # root may lock what it likes, unless it gives that up
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("there is no setpriv")
        command = [setpriv, "--bounding-set=-ipc_lock", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "its memory cannot be locked: failed to mlock" in done.stdout
    assert "ulimit -l" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of locked memory")
def test_locked_weights_are_in_main_memory(tmp_path: Path) -> None:
    model = constrain.Model(write_transformer(tmp_path / "tiny.gguf"), n_ctx=64, lock_memory=True)
    locked = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmLck"))
    assert int(locked.split()[1]) > 0
    model.close()


def test_a_loaded_llama_locks_its_memory_itself(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="use_mlock=True"):
        constrain.Model(model.llama, lock_memory=True)
