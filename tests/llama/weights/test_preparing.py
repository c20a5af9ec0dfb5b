"""The search keeps the fastest copy that is close enough to the original, once for each machine."""

from __future__ import annotations

import math
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.errors import ModelError
from constrain.llama.costs.measuring import SIZES
from constrain.llama.costs.table import Costs
from constrain.llama.model import default_model_path
from constrain.llama.weights import copies, plan, preparing
from constrain.llama.weights.copies import prepare
from constrain.llama.weights.plan import Timing, Timings
from constrain.llama.weights.tensors import read_weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXTS = ["Two boats came in at night.", '{"name": "Ada", "age": 36}']


def timing(role: str, form: str, milliseconds: float) -> Timing:
    return Timing(role, form, (milliseconds / 1000, 8 * milliseconds / 1000), 1, 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for copies: ``tmp_path`` has the cache, too."""
    (tmp_path / "copies").mkdir()
    return tmp_path / "copies"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is fast with 8 bits in the layers, faster with 4, and as fast as it can be with the output."""
    timings = Timings(
        {"output": timing("output", "f16", 1), "attention": timing("attention", "f16", 4)},
        {
            "output": (timing("output", "q8_0", 2),),
            "attention": (timing("attention", "q8_0", 2), timing("attention", "q4_0", 1)),
        },
    )
    monkeypatch.setattr(preparing, "time_formats", lambda *_, **__: timings)
    speeds = iter([2.0, 1.0] * 50)

    def costs(_: object) -> Costs:
        seconds = next(speeds)
        table = dict.fromkeys(SIZES["every"], seconds)
        return Costs((1, 1), table, table, {})

    monkeypatch.setattr(preparing, "measure_costs", costs)


def formats_of(path: Path, role: str) -> set[str]:
    return {each.format for each in read_weights(path).tensors if each.role == role}


@pytest.mark.usefixtures("machine")
def test_without_a_limit_the_fastest_copy_is_kept(tiny: Path, folder: Path) -> None:
    found = prepare(tiny, folder / "copy.gguf", max_divergence=math.inf, n_threads=1, texts=TEXTS)
    assert found.path == folder / "copy.gguf"
    assert found.formats == {"attention": "q4_0"}
    assert (formats_of(found.path, "attention"), formats_of(found.path, "output")) == ({"q4_0"}, {"f16"})
    assert found.speedup == (2.0, 2.0)
    assert found.comparison is not None
    assert found.comparison.divergence > 0
    assert set(found.trials) == {"attention q4_0", "attention q8_0"}
    assert list(folder.iterdir()) == [found.path]


@pytest.mark.usefixtures("machine")
def test_a_limit_takes_a_slower_copy_that_is_closer(tiny: Path, tmp_path: Path) -> None:
    free = prepare(tiny, tmp_path / "free.gguf", max_divergence=math.inf, n_threads=1, texts=TEXTS)
    limit = (free.trials["attention q4_0"] + free.trials["attention q8_0"]) / 2
    found = prepare(tiny, tmp_path / "copy.gguf", max_divergence=limit, n_threads=1, texts=TEXTS)
    assert found.formats == {"attention": "q8_0"}
    assert found.comparison is not None
    assert found.comparison.divergence < limit


@pytest.mark.usefixtures("machine")
def test_where_no_copy_is_close_enough_the_original_stays(tiny: Path, folder: Path) -> None:
    found = prepare(tiny, folder / "copy.gguf", max_divergence=0, n_threads=1, texts=TEXTS)
    assert (found.path, found.formats, found.comparison) == (tiny, {}, None)
    assert "each faster format changes what the model says" in found.note
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("machine")
def test_a_copy_that_is_not_measured_to_be_faster_is_dropped(
    tiny: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = Costs((1, 1), dict.fromkeys(SIZES["every"], 1.0), {}, {})
    monkeypatch.setattr(preparing, "measure_costs", lambda _: same)
    found = prepare(tiny, folder / "copy.gguf", max_divergence=math.inf, n_threads=1, texts=TEXTS)
    assert (found.path, found.note) == (tiny, preparing._NOT_FASTER)
    assert list(folder.iterdir()) == []


def test_the_fastest_formats_are_tried_and_the_one_with_the_most_bits() -> None:
    def sized(form: str, n_bytes: int) -> Timing:
        return Timing("output", form, (1.0, 1.0), n_bytes, 0.0)

    faster = [sized("q4_0", 4), sized("iq4_nl", 4), sized("q5_0", 5), sized("q8_0", 8), sized("q6_K", 6)]
    assert [each.format for each in preparing._promising(faster)] == ["q4_0", "iq4_nl", "q8_0"]
    assert [each.format for each in preparing._promising(faster[:2])] == ["q4_0", "iq4_nl"]
    assert preparing._promising([]) == ()


def test_where_the_file_has_the_fastest_formats_nothing_is_tried(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timings = Timings({"output": timing("output", "f16", 1)}, {"output": (timing("output", "q8_0", 2),)})
    monkeypatch.setattr(preparing, "time_formats", lambda *_, **__: timings)
    found = prepare(tiny, tmp_path / "copy.gguf", n_threads=1, texts=TEXTS)
    assert (found.path, found.note) == (tiny, "the formats of the file are the fastest on this machine")


@pytest.mark.usefixtures("machine")
def test_a_copy_is_made_once_and_found_again(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(**options: Any) -> preparing.Prepared:
        given = {"n_threads": 1, "texts": TEXTS, "max_divergence": math.inf, "cache": tmp_path, **options}
        return prepare(tiny, **given)

    steps: list[str] = []
    first = again(report=lambda step, _: steps.append(step))
    assert first.path.parent == tmp_path / "models"
    assert "Writing the copy" in steps
    none = again(max_divergence=0)
    monkeypatch.setattr(preparing.Preparation, "write", refuse)
    assert again() == first
    assert again(max_divergence=0) == none
    for other in ({"n_threads": 2}, {"texts": TEXTS[::-1]}, {"max_divergence": 1.0}):
        with pytest.raises(AssertionError, match="searched again"):
            again(**other)
    first.path.unlink()
    with pytest.raises(AssertionError, match="searched again"):
        again()


@pytest.mark.usefixtures("machine")
def test_a_damaged_record_is_made_anew(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(tiny, n_threads=1, texts=TEXTS, max_divergence=math.inf, cache=tmp_path)
    first.path.with_suffix(".json").write_text('{"path":')
    monkeypatch.setattr(preparing.Preparation, "write", refuse)
    with pytest.raises(AssertionError, match="searched again"):
        prepare(tiny, n_threads=1, texts=TEXTS, max_divergence=math.inf, cache=tmp_path)


def test_a_folder_that_others_may_write_to_holds_no_copies(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir(mode=0o777)
    (tmp_path / "models").chmod(0o777)
    with pytest.raises(OSError, match="models cannot be used: others may use it"):
        prepare(tiny, texts=TEXTS, cache=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_divergence": -1}, "max_divergence is -1; it must be a number of nats, 0 or more"),
        ({"max_divergence": math.nan}, "max_divergence is nan"),
        ({"texts": ["one"]}, "give two texts or more"),
        ({"cache": False}, "there is no cache directory"),
    ],
)
def test_wrong_arguments_are_refused_at_once(tiny: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(tiny, **options)


def test_the_original_is_never_replaced(tiny: Path, tmp_path: Path) -> None:
    before = tiny.read_bytes()
    (tmp_path / "link.gguf").symlink_to(tiny)
    for target in (tiny, tmp_path / "link.gguf"):
        with pytest.raises(ValueError, match="is the original; give another path for the copy"):
            prepare(tiny, target, max_divergence=math.inf, texts=TEXTS)
    assert tiny.read_bytes() == before


@pytest.mark.usefixtures("machine")
def test_a_copy_that_is_close_but_hardly_faster_is_not_called_far(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timings = Timings({"output": timing("output", "f16", 1)}, {"output": (timing("output", "q8_0", 0.99),)})
    monkeypatch.setattr(preparing, "time_formats", lambda *_, **__: timings)
    found = prepare(tiny, tmp_path / "copy.gguf", max_divergence=math.inf, n_threads=1, texts=TEXTS)
    assert found.note == preparing._NOT_FASTER


@pytest.mark.usefixtures("machine")
def test_what_a_killed_search_left_is_removed_after_a_day(tiny: Path, folder: Path) -> None:
    for name, age in ((".prepare-old", 25 * 3600), (".prepare-new", 3600)):
        (folder / name).mkdir()
        (folder / name / "copy.gguf").write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    prepare(tiny, folder / "copy.gguf", max_divergence=0, n_threads=1, texts=TEXTS)
    assert [each.name for each in folder.iterdir()] == [".prepare-new"]


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ModelError, match="not a GGUF file"):
        prepare(tmp_path / "text.gguf")


def test_a_model_uses_its_prepared_copy(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def find(path: Path, *, n_threads: int | None, max_divergence: float) -> preparing.Prepared:
        asked.append((path, n_threads, max_divergence))
        return preparing.Prepared(default_model_path(), {}, None, (), {}, "")

    monkeypatch.setattr(copies, "prepare", find)
    for prepare_, limit in ((True, 0.02), (0.5, 0.5), (0, 0.0)):
        with constrain.Model(tiny, n_ctx=64, n_threads=1, prepare=prepare_) as model:
            assert model.llama.model_path == str(default_model_path())
        assert asked.pop() == (tiny, 1, limit)
    with constrain.Model(tiny, n_ctx=64, n_threads=1) as model:
        assert model.llama.model_path == str(tiny)
    assert not asked


@pytest.mark.parametrize("wrong", ["yes", None, [1]])
def test_other_values_of_prepare_are_refused(tiny: Path, wrong: Any) -> None:
    with pytest.raises(TypeError, match="it must be True, False or a number of nats"):
        constrain.Model(tiny, prepare=wrong)


def test_a_loaded_llama_cannot_be_prepared(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="a Llama is loaded already; leave it out"):
        constrain.Model(model.llama, prepare=True)


@pytest.mark.long
@pytest.mark.serial
def test_the_search_runs_on_a_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "time_formats", partial(plan.time_formats, formats=["q4_0"]))  # soon written
    steps: list[str] = []
    report: Callable[[str, float], None] = lambda step, _: steps.append(step)  # noqa: E731
    texts = ["Two boats came in at night, and nobody spoke.", 'user: How old is Ada?\nassistant: {"age": 36}']
    found = prepare(default_model_path(), tmp_path / "copy.gguf", max_divergence=math.inf, texts=texts, report=report)
    assert steps
    if found.note:  # on a processor without a fast layout for q4_0
        assert found.path == default_model_path()
        assert found.note in (preparing._NOT_FASTER, "the formats of the file are the fastest on this machine")
        return
    assert found.trials
    assert found.comparison is not None
    assert found.comparison.agreement > 0.3
    with constrain.Model(found.path, n_ctx=256) as model:
        assert constrain.generate(model, "Is the sky blue?", schema=bool) in (True, False)


def refuse(*_: object) -> None:
    raise AssertionError("searched again")
