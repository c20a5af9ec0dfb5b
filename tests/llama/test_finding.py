"""Models on this machine, found in a home folder that other programs filled."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from constrain.cli.program import main
from constrain.llama.finding import FOLDERS, find_models
from constrain.llama.model import default_model_path

VARIABLES = ("LLAMA_CACHE", "HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME", FOLDERS)
MODEL = b"GGUF" + bytes([3, 0, 0, 0]) + bytes([7] + [0] * 7) + b"and so on"
VOCABULARY = b"GGUF" + bytes([3, 0, 0, 0]) + bytes(8)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CONSTRAIN_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def put(home: Path) -> Callable[..., Path]:
    def write(name: str, content: bytes = MODEL) -> Path:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def others() -> list[tuple[str, str, Path, int]]:
    """All but the models of packages, which this environment has."""
    return [
        (one.name, one.source, one.path, one.size) for one in find_models() if not one.source.startswith("package ")
    ]


def test_the_models_of_other_programs(home: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    own = put("mine/a.gguf")
    monkeypatch.setenv(FOLDERS, f"{home / 'mine'}:{put('alone/b.gguf')}:{home / 'missing'}")
    cached = put(".cache/llama.cpp/org_c.gguf")
    hub = put(".cache/huggingface/hub/models--org--d/snapshots/0ab/sub/d.gguf")
    studio = put(".lmstudio/models/org/e/e.gguf")
    put(".ollama/models/blobs/sha256-12")
    for name in ("registry.ollama.ai/library/llama/1b", "registry.ollama.ai/somebody/f/latest", "hf.co/org/g/Q4"):
        layers = [{"mediaType": "other", "digest": "sha256:0"}]
        layers += [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:12"}]
        put(f".ollama/models/manifests/{name}", json.dumps({"layers": layers}).encode())
    size = len(MODEL)
    assert others() == [
        ("a", FOLDERS, own, size),
        ("b", FOLDERS, home / "alone/b.gguf", size),
        ("org_c", "llama.cpp", cached, size),
        ("d", "Hugging Face", hub, size),
        ("e", "LM Studio", studio, size),
        ("org/g:Q4", "Ollama", home / ".ollama/models/blobs/sha256-12", size),  # once, though three names have it
    ]


def test_ollamas_names(put: Callable[..., Path]) -> None:
    for number, name in enumerate(("registry.ollama.ai/library/llama/1b", "registry.ollama.ai/somebody/f/latest")):
        put(f".ollama/models/blobs/sha256-{number}")
        layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{number}"}]
        put(f".ollama/models/manifests/{name}", json.dumps({"layers": layers}).encode())
    assert [name for name, *_ in others()] == ["llama:1b", "somebody/f:latest"]


def test_other_files_are_no_models(put: Callable[..., Path]) -> None:
    folder = ".cache/llama.cpp"
    put(f"{folder}/vocabulary.gguf", VOCABULARY)
    put(f"{folder}/short.gguf", MODEL[:10])
    put(f"{folder}/other.gguf", b"GGML" + MODEL[4:])
    put(f"{folder}/mmproj-model-f16.gguf")
    put(f"{folder}/model.gguf.part")
    put(".ollama/models/manifests/registry.ollama.ai/library/x/latest", b"{")
    put(".ollama/models/manifests/registry.ollama.ai/library/y/latest", b'{"layers": [1]}')
    put(".ollama/models/manifests/registry.ollama.ai/library/z/latest", b'{"layers": []}')
    assert others() == []


def test_a_split_model_is_one(put: Callable[..., Path]) -> None:
    first = put(".cache/llama.cpp/big-00001-of-00002.gguf")
    put(".cache/llama.cpp/big-00002-of-00002.gguf")
    assert others() == [("big-00001-of-00002", "llama.cpp", first, 2 * len(MODEL))]


def test_a_link_is_the_file_it_leads_to(home: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    blob = put(".cache/huggingface/hub/models--org--d/blobs/0ab")
    link = home / ".cache/huggingface/hub/models--org--d/snapshots/1/d.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    monkeypatch.setenv(FOLDERS, str(link.parent))
    assert others() == [("d", FOLDERS, link, len(MODEL))]


def test_odd_folders_and_files_are_left_out(
    home: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = put(".cache/llama.cpp/found.gguf")
    (home / ".cache/llama.cpp/loop.gguf").symlink_to("loop.gguf")
    (home / ".cache/llama.cpp/folder.gguf").mkdir()
    os.mkfifo(home / ".cache/llama.cpp/pipe.gguf")
    put(
        ".ollama/models/manifests/stray",
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "1"}]}',
    )
    monkeypatch.setenv(
        FOLDERS, f"~nobody-has-this-name/models:{home / 'missing'}:{home / '.cache/llama.cpp/loop.gguf'}"
    )
    assert [path for _, _, path, _ in others()] == [found]


def test_the_demo_model_is_that_of_its_package() -> None:
    path = default_model_path()
    (found,) = [one for one in find_models() if one.path.samefile(path)]
    assert (found.name, found.size) == (path.stem, path.stat().st_size)
    assert found.source.startswith("package ")


def test_the_command_lists_them(
    put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(".cache/llama.cpp/small.gguf")
    monkeypatch.setattr(sys, "argv", ["constrain", "models", "--json"])
    with pytest.raises(SystemExit):
        main()
    found = {"name": "small", "bytes": path.stat().st_size, "source": "llama.cpp", "path": str(path)}
    assert found in json.loads(capsys.readouterr().out)
