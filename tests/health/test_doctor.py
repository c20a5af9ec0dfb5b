"""``constrain doctor``, its checks, and the canary."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import constrain
from constrain.canary import run_canary
from constrain.cli.program import app
from constrain.errors import ModelError
from constrain.health import checks
from constrain.health.checks import Row, examine
from constrain.llama import binding
from constrain.llama.decoding.sampler import Chain
from constrain.llama.finding import FOLDERS
from constrain.server.config import ServerConfig
from constrain.server.serving.model_files import find_models as served_models
from tests.support.llama.transformer import write_transformer


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_transformer(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[constrain.Model]:
    with constrain.Model(path, n_ctx=64, n_threads=1, parallel=2, prompt_cache=False) as loaded:
        yield loaded


def test_a_canary_comes_back(model: constrain.Model) -> None:
    wanted, likelier, other = re.findall("'[^']*'", run_canary(model))
    assert len({wanted, likelier, other}) == 3


def outside(_: Chain, candidates: Any, *__: Any) -> int:
    """A sampler that ignores the mask: it takes a token that is not allowed."""
    return (int(candidates.buffer["id"][0]) + 1) % 256


def least(_: Chain, candidates: Any, count: int, __: Any) -> int:
    """A sampler that reads logits wrongly: it takes the least likely of the allowed tokens."""
    allowed = candidates.buffer[:count]
    return int(allowed["id"][np.argmin(allowed["logit"])])


@pytest.mark.parametrize(
    ("sampler", "said"),
    [(outside, "the matcher refused the token"), (least, "the mask allows .* and the less likely .* llama.cpp chose")],
)
def test_a_sampler_that_ignores_its_mask_is_found(
    model: constrain.Model, sampler: Callable[..., int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chain, "choose", sampler)
    with pytest.raises(ModelError, match=f"tiny.gguf: the canary of masks failed: {said}.*pip install"):
        run_canary(model)


def test_a_server_does_not_serve_such_a_model(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = served_models(ServerConfig(ctx=64, parallel=1, threads=1), path, [])
    monkeypatch.setattr(Chain, "choose", outside)
    with pytest.raises(ModelError, match="the canary of masks failed"):
        models.load("tiny")
    assert models.loaded("tiny") is None
    models.close()


def rows_of(name: str, model: Path | None = None) -> list[Row]:
    return list(checks._CHECKS[name](model))


def test_a_missing_compiler_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name if name == "dnf" else None)
    found = "none; only installing from source needs one"
    assert rows_of("compiler") == [Row("compiler", "note", found, "dnf install gcc-c++")]


def test_a_gpu_that_the_build_does_not_use_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_GPU_SIGNS", {str(tmp_path): ("NVIDIA", "-DGGML_CUDA=on")})
    _, row = rows_of("back-ends")
    assert (row.check, row.state) == ("GPU", "note")
    assert row.cure.startswith('CMAKE_ARGS="-DGGML_CUDA=on" pip install ')
    there = [("CUDA0", "a card", 1), ("BLAS", "a library", 3)]
    monkeypatch.setattr("constrain.llama.binding.devices", lambda: there)
    assert rows_of("back-ends")[1] == Row("GPU", "ok", "CUDA0: a card")
    assert binding.gpus() == ["a card"]


def test_no_model_is_wrong_unless_one_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_models", list)
    assert rows_of("model") == [Row("model", "wrong", "none", checks._MODEL_CURE)]
    assert rows_of("model", path) == []


def test_caches_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("CONSTRAIN_CACHE", str(folder))
    monkeypatch.setenv(FOLDERS, str(tmp_path / "models"))
    cache, models = rows_of("cache")
    assert (cache.state, cache.cure) == ("note", f"chmod 700 '{folder}'")
    assert models.found.startswith(f"{tmp_path / 'models'}, ")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("CONSTRAIN_CACHE", "")
    cache, models = rows_of("cache")
    assert cache.found == "turned off by CONSTRAIN_CACHE"
    assert (models.state, models.cure) == ("note", f"export {FOLDERS}=FOLDER, one that you may write")


def test_a_port_in_use_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain.server.http.listening import listen

    (held,) = listen("127.0.0.1", 0)
    config = ServerConfig(port=held.getsockname()[1])
    monkeypatch.setattr("constrain.server.config.ServerConfig", lambda: config)
    (row,) = rows_of("port")
    held.close()
    assert (row.state, row.cure) == ("note", "constrain serve --port 0")
    assert rows_of("port")[0].state == "ok"


def test_the_command_prints_findings_for_programs(path: Path) -> None:
    listed = CliRunner().invoke(app, ["doctor", "--model", str(path), "--json"])
    rows = json.loads(listed.stdout)
    assert listed.exit_code == 0
    assert [rows[0]["check"], rows[-1]["check"], rows[-1]["state"]] == ["Python", "canary", "ok"]


def test_what_is_wrong_comes_with_its_cure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path | None) -> Iterator[Row]:
        raise OSError("libllama.so: undefined symbol")

    monkeypatch.setitem(checks._CHECKS, "llama.cpp", fail)
    printed = CliRunner().invoke(app, ["doctor", "--model", str(path)])
    assert printed.exit_code == 1
    assert "wrong  llama.cpp       libllama.so: undefined symbol\n" in printed.stdout
    assert f"$ {checks._REBUILD}\n" in printed.stdout
    assert not {"canary", "GPU", "port"} & {row.check for row in examine(path)}


@pytest.mark.slow  # a program of its own, without llama.cpp
def test_a_library_that_cannot_be_loaded_does_not_stop_the_command(tmp_path: Path) -> None:
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp/__init__.py").write_text("raise RuntimeError('Failed to load shared library')")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    environment = {**os.environ, "PYTHONPATH": path, "LLAMA_CPP_LIB_PATH": str(tmp_path)}
    command = [sys.executable, "-m", "constrain", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "wrong  llama.cpp       Failed to load shared library" in done.stdout
    assert done.stderr == ""
