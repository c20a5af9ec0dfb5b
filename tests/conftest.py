"""What holds for all tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def pytest_report_header() -> list[str]:
    data = os.environ.get("CONSTRAIN_DATA", "not set: tests on real schemas and vocabularies are skipped")
    length = "full length" if os.environ.get("CONSTRAIN_LONG") else "samples; CONSTRAIN_LONG=1 for full length"
    return [f"data: {data}", f"tests: {length}"]


os.environ["CONSTRAIN_CACHE"] = ""  # nobody's own cache is read or written to


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSTRAIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _outside_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that tests start import the installed package, not the sources in the folder they are started from."""
    monkeypatch.chdir(tmp_path)
