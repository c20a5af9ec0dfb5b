"""Models of Hugging Face, fetched from a stand-in on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import constrain
from constrain.errors import ModelError
from constrain.llama.fetching import fetch_model
from constrain.llama.finding import FETCHED, FOLDERS, find_models
from constrain.llama.names import model_path
from tests.support import each_row
from tests.support.hub import Hub

MODEL = b"GGUF" + bytes([3, 0, 0, 0]) + bytes([7] + [0] * 7) + b"0123456789" * 20
PART = "somebody/big-GGUF/big-Q8_0.gguf.*.part"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(FOLDERS, str(tmp_path / "models"))
    one = {"big-Q8_0.gguf": MODEL, "mmproj-big-Q8_0.gguf": MODEL, "config.json": b"{}"}
    several = {
        "sub/m-Q4_K_M.gguf": MODEL,
        "sub/m-Q4_K.gguf": MODEL,
        "m-BF16-00001-of-00002.gguf": MODEL,
        "m-BF16-00002-of-00002.gguf": MODEL + b"2",
        "half-00001-of-00002.gguf": MODEL,
        "twice/x-m.gguf": MODEL,
        "twice/y-m.gguf": MODEL,
    }
    files = {"somebody/big-GGUF": one, "somebody/several": several, "somebody/none": {"model.safetensors": b"1"}}
    made = Hub({**files, "somebody/evil": {"../../evil.gguf": MODEL}})
    with made.running() as url:
        monkeypatch.setenv("HF_ENDPOINT", f"{url}/")
        yield made


def fetch(name: str) -> Path:
    return fetch_model(name, lambda *_: None)


def test_the_only_file_needs_no_name_and_is_found_by_all_its_names(hub: Hub, tmp_path: Path) -> None:
    shown: list[tuple[str, float]] = []
    path = fetch_model("somebody/big-GGUF", lambda *step: shown.append(step))
    assert path == tmp_path / "models/somebody/big-GGUF/big-Q8_0.gguf"
    assert path.read_bytes() == MODEL
    assert shown == [("Fetching big-Q8_0.gguf", 0), ("Fetching big-Q8_0.gguf", 1)]
    for name in ("big-Q8_0", "somebody/big-GGUF", "somebody/big-GGUF:q8_0", "somebody/big-GGUF:big-Q8_0.gguf"):
        assert model_path(name) == path
    assert fetch("somebody/big-GGUF:Q8_0") == path
    assert len(hub.asked) == 1


@pytest.mark.usefixtures("hub")
def test_without_a_folder_of_ones_own_it_is_in_the_users_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDERS)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = fetch("somebody/big-GGUF")
    assert path.is_relative_to(tmp_path / "data")
    assert [(one.name, one.source) for one in find_models() if one.path == path] == [("big-Q8_0", FETCHED)]


@each_row(
    "which, files",
    ("Q4_K", ["sub/m-Q4_K.gguf"]),
    ("q4_k_m", ["sub/m-Q4_K_M.gguf"]),
    ("m-Q4_K.gguf", ["sub/m-Q4_K.gguf"]),
    ("sub/m-Q4_K.gguf", ["sub/m-Q4_K.gguf"]),
    ("BF16", ["m-BF16-00002-of-00002.gguf", "m-BF16-00001-of-00002.gguf"]),
)
def test_a_file_is_named_by_its_name_or_its_end(hub: Hub, which: str, files: list[str]) -> None:
    path = fetch(f"somebody/several:{which}")
    assert [name for name, *_ in hub.asked] == files
    assert str(path).endswith(files[-1])
    assert model_path(f"somebody/several:{which}") == path


@each_row(
    "name, said",
    ("just-a-name", "is no name of a model on Hugging Face; write OWNER/REPOSITORY"),
    ("../etc", "is no name of a model"),
    ("somebody/missing", "has no model somebody/missing, or shows it to nobody without permission \\(status 404\\)"),
    ("somebody/none", "somebody/none has no GGUF files; .* -GGUF may have"),
    ("somebody/several", "there are several files; write somebody/several:FILE .*m-BF16-00001.*sub/m-Q4_K_M.gguf"),
    (
        "somebody/several:m",
        "several files match m; .*: sub/m-Q4_K_M.gguf .*, twice/x-m.gguf \\(0.0 GiB\\), twice/y-m.gguf",
    ),
    ("somebody/several:Q2", "no file matches Q2; .*: half-00001-of-00002.gguf"),
    ("somebody/several:half-00001-of-00002.gguf", "has no half-00002-of-00002.gguf, a part of half-00001"),
    ("somebody/evil", "named '../../evil.gguf', which is not safe to write"),
)
def test_a_name_that_means_no_file_is_refused(hub: Hub, name: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        fetch(name)
    assert hub.asked == []


def test_a_broken_connection_goes_on_where_it_broke(hub: Hub) -> None:
    hub.breaks_after = 50
    assert fetch("somebody/big-GGUF").read_bytes() == MODEL
    assert [asked for _, asked, _ in hub.asked] == [f"bytes={begin}-" for begin in range(0, len(MODEL), 50)]


def test_the_next_fetch_goes_on_after_too_many_breaks(hub: Hub, tmp_path: Path) -> None:
    hub.breaks_after = 30
    with pytest.raises(
        ModelError, match=r"broke after 150 of 216 bytes of big-Q8_0.gguf: .*run the same command again"
    ):
        fetch("somebody/big-GGUF")
    (part,) = (tmp_path / "models").glob(PART)
    assert part.read_bytes() == MODEL[:150]
    assert model_path("somebody/big-GGUF") != part
    hub.asked.clear()
    assert fetch("somebody/big-GGUF").read_bytes() == MODEL
    assert [asked for _, asked, _ in hub.asked] == ["bytes=150-", "bytes=180-", "bytes=210-"]
    assert not part.exists()


def test_another_content_than_stated_is_removed(hub: Hub, tmp_path: Path) -> None:
    hub.states = "0" * 64
    with pytest.raises(
        ModelError, match=f"big-Q8_0.gguf was damaged on its way: .* states {hub.states}; it was removed"
    ):
        fetch("somebody/big-GGUF")
    assert [path for path in (tmp_path / "models").rglob("*") if path.is_file()] == []


def test_a_full_disk_is_noticed_before(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 0, len(MODEL) - 1))
    with pytest.raises(ModelError, match=f"has 0.0 GiB left, and the model needs 0.0; make room, or set {FOLDERS}"):
        fetch("somebody/big-GGUF")
    assert hub.asked == []


def test_a_token_opens_what_is_closed(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = "mine"
    with pytest.raises(ModelError, match=r"\(status 401\): .* set HF_TOKEN to a token of yours"):
        fetch("somebody/big-GGUF")
    stored = tmp_path / "home/.cache/huggingface/token"
    stored.parent.mkdir(parents=True)
    stored.write_text("mine\n")
    fetch("somebody/big-GGUF:Q8_0").unlink()
    stored.unlink()
    monkeypatch.setenv("HF_TOKEN", "mine")
    fetch("somebody/big-GGUF:Q8_0")
    assert [token for *_, token in hub.asked] == ["Bearer mine"] * 2


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "nonsense"])
def test_without_a_network_the_error_says_what_to_do(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(ModelError, match=f"{endpoint} cannot be reached: .*; check the network, HTTPS_PROXY"):
        fetch("somebody/big-GGUF")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set, so nothing is fetched"):
        fetch("somebody/big-GGUF")


@pytest.mark.usefixtures("hub")
def test_a_name_of_several_models_names_their_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / "models" / folder).mkdir(parents=True)
        (tmp_path / "models" / folder / "same.gguf").write_bytes(MODEL)
    with pytest.raises(ModelError, match=r"several models have the name same: .*a/same.gguf, .*b/same.gguf; pass"):
        constrain.Model("same")
