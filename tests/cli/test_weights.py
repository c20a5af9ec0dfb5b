"""``constrain check --model`` and ``constrain prepare``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from constrain.llama.weights.tensors import read_weights
from tests.support.command_line import run
from tests.support.llama.transformer import write_transformer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_transformer(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.mark.slow
def test_a_model_is_measured(tiny: Path) -> None:
    done = run("check", "--model", tiny, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "tiny.gguf: llama, 1 million parameters" in done.stdout
    assert "feed-forward" in done.stdout
    assert "logits of the last" in done.stdout


@pytest.mark.slow
def test_the_measurements_are_json_for_programs(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "integer"}')
    done = run("check", tmp_path / "schema.json", "--model", tiny, "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    schema, model = json.loads(done.stdout)
    assert schema["exact"] is True
    assert (model["architecture"], model["threads"]) == ("llama", [1, 1])
    assert model["bytes"] == read_weights(tiny).n_bytes
    assert set(model["seconds"]["all_logits"]) == {"1", "2", "3", "4", "6", "8", "16"}
    assert {"role": "output", "format": "f16", "in_file": True}.items() <= model["products"][0].items()
    assert sum(each["count"] for each in model["weights"]) == len(read_weights(tiny).tensors)


@pytest.mark.long
def test_a_copy_is_written_and_its_path_printed(tiny: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.gguf"
    done = run("prepare", tiny, "--output", target, "--max-divergence", "inf", "--threads", "1")
    assert done.returncode == 0, done.stderr
    path = done.stdout.strip()
    assert path == str(target if target.exists() else tiny)
    assert ("Alike: on" if target.exists() else "No copy: ") in done.stderr


@pytest.mark.long
def test_a_limit_that_no_copy_keeps_leaves_the_original(tiny: Path, tmp_path: Path) -> None:
    done = run("prepare", tiny, "--output", tmp_path / "copy.gguf", "--max-divergence", "0", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["path"], found["formats"], found["comparison"]) == (str(tiny), {}, None)
    assert found["note"]
    assert not (tmp_path / "copy.gguf").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check",), "give schemas, or --model"),
        (("check", "schema.json", "--threads", "2"), "--threads and --gpu-layers need --model"),
        (("check", "--model", "nowhere.gguf"), "nowhere.gguf: cannot be opened: No such file or directory"),
        (("prepare", "nowhere.gguf"), "nowhere.gguf: cannot be opened: No such file or directory"),
        (("prepare", "--max-divergence", "-1"), "--max-divergence"),
        (("prepare", "--text", "nowhere.txt"), "nowhere.txt: there is no such file or folder"),
    ],
)
def test_wrong_usage_is_told(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.returncode in (1, 2)
    assert message in " ".join(done.stderr.replace("│", " ").split())
