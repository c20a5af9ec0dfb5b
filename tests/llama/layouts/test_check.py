"""llama.cpp's own layouts of weights are used if a child process finds that they work on this processor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from constrain.llama.layouts import check
from constrain.llama.layouts.check import are_layouts_right, pass_the_check, uses_extra_buffers
from constrain.llama.layouts.products import Products
from constrain.llama.loading import llama_log


@pytest.fixture(autouse=True)
def cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CONSTRAIN_CACHE", str(tmp_path / "cache"))
    check._ask_a_child.cache_clear()
    yield tmp_path / "cache"
    check._ask_a_child.cache_clear()


def child(monkeypatch: pytest.MonkeyPatch, status: int | Exception) -> list[list[str]]:
    """Puts a child with an exit status in place of the real one; returns the commands that were run."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        commands.append(command)
        if isinstance(status, Exception):
            raise status
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


usable = pytest.mark.skipif(not uses_extra_buffers(), reason="llama.cpp's own layouts are wrong on this processor")


@usable
def test_the_layouts_of_this_processor_are_right() -> None:
    with llama_log():
        assert are_layouts_right()


@usable
def test_a_wrong_product_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    multiply = Products.multiply

    def wrong(self: Products, *arguments: Any) -> Any:
        product = multiply(self, *arguments)
        if self._extras:
            product[:, 16:32] = 0  # a tile that was not computed
        return product

    monkeypatch.setattr(Products, "multiply", wrong)
    monkeypatch.setattr(Products, "is_repacked", lambda *_: True)
    with llama_log():
        extras = Products(1)
        extras.close()
        if not extras._extras:
            pytest.skip("llama.cpp has no layouts of its own on this processor")
        assert not are_layouts_right()


@pytest.mark.slow
def test_the_child_is_asked_once(monkeypatch: pytest.MonkeyPatch, cache_directory: Path) -> None:
    found = pass_the_check()  # the real child
    assert len(list((cache_directory / "layouts").iterdir())) == 1
    check._ask_a_child.cache_clear()  # what is kept in the file counts
    commands = child(monkeypatch, found)
    assert pass_the_check() is found
    assert not commands


@pytest.mark.parametrize("status", [1, -11, OSError("no processes"), subprocess.TimeoutExpired("child", 60)])
def test_without_a_good_result_the_layouts_are_not_used(
    monkeypatch: pytest.MonkeyPatch, status: int | Exception
) -> None:
    commands = child(monkeypatch, status)
    assert not pass_the_check()
    assert commands == [[sys.executable, "-m", "constrain.llama.layouts.check"]]


def test_a_result_of_another_build_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, 1)
    assert not pass_the_check()
    monkeypatch.setattr(check.llama_cpp, "__version__", "0.0.0")
    check._ask_a_child.cache_clear()
    child(monkeypatch, 0)
    assert pass_the_check()
