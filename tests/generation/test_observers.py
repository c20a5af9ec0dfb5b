"""The seam of observers: one class and one line of the table, and an answer has another report."""

# ruff: noqa: ARG002 - an observer has the arguments that it is called with

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import constrain
from constrain.batch.records import answer_object
from constrain.generation.observers.observer import OBSERVERS, Observer
from constrain.llama.decoding.answer import TokenObserver

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs/explanation/observers.md"


class Widths(Observer, TokenObserver):
    """Reports how many tokens were allowed at each choice, by the number of the token."""

    def __init__(self) -> None:
        self.widths: dict[int, int] = {}

    def on_mask(self, allowed: Any, distribution: Any) -> None:
        self.latest = len(allowed)

    def on_choice(self, number: int, token: int, distribution: Any) -> None:
        self.widths[number] = self.latest

    def on_cut(self, length: int) -> None:
        self.widths = {number: width for number, width in self.widths.items() if number < length}

    def finish(self, written: Any) -> dict[str, Any]:
        return {"widths": self.widths}


def test_a_class_and_a_line_of_the_table_make_another_report(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Any = {"schema": {"enum": ["red", "green", "grey", "blue"]}, "trace": True, "seed": 1}
    plain = constrain.complete(model, "Which colour?", **asked)
    monkeypatch.setitem(OBSERVERS, "widths", f"{__name__}:Widths")
    completion = constrain.complete(model, "Which colour?", **asked)
    assert plain.trace is not None
    assert (completion.tokens, completion.trace) == (plain.tokens, plain.trace)
    chosen = {number: each.n_allowed for number, each in enumerate(plain.trace) if each.origin in ("chosen", "healed")}
    assert plain.reports is None
    assert completion.reports == {"widths": chosen}
    assert answer_object(completion)["widths"] == chosen
    assert len(chosen) >= 1


def test_the_page_shows_this_observer() -> None:
    assert inspect.getsource(Widths) in PAGE.read_text(encoding="utf-8")
