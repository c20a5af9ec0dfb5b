"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest


def pytest_report_header() -> list[str]:
    data = os.environ.get("CONSTRAIN_DATA", "not set: tests on real schemas and vocabularies are skipped")
    length = "full length" if os.environ.get("CONSTRAIN_LONG") else "samples; CONSTRAIN_LONG=1 for full length"
    return [f"data: {data}", f"tests: {length}"]


os.environ["CONSTRAIN_CACHE"] = ""  # nobody's own cache is read or written to

# Processes that the tests start get this path, and read helpers of the tests from it. What is installed comes first.
sys.path.append(str(Path(__file__).resolve().parent.parent))

# A shell without job control has what it starts in the background ignore SIGINT, and so has what that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
