"""A front end is one class: here a language that no package has."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import constrain
from constrain.certificates import verify_certificate
from constrain.language.grammar import Grammar
from constrain.language.source import Source
from constrain.parts import sequence

PAGE = Path(__file__).parents[2] / "docs/explanation/front-ends.md"


@dataclass(frozen=True)
class Stars(Source):
    """A rating: between two numbers of stars."""

    least: int
    most: int

    def grammar(self) -> Grammar:
        return constrain.Regex(rf"\*{{{self.least},{self.most}}}").grammar()

    def render(self) -> str:
        return f"{self.least} to {self.most} stars"

    def describe(self) -> str:
        return f"Answer with {self.render()}."


RATING = Stars(3, 5)


def test_it_is_a_schema_and_a_part_of_others(model: constrain.Model) -> None:
    assert constrain.compile(RATING, model).accepts("****")
    assert set(constrain.generate(model, "Rate it.", schema=RATING, seed=1)) == {"*"}
    assert constrain.generate(model, "Rate it.", schema=sequence("rate: ", RATING), seed=1).startswith("rate: ***")
    assert constrain.explain(RATING, "**").matches is False


def test_it_has_certificates_with_the_grammar_alone(model: constrain.Model) -> None:
    completion = constrain.complete(model, "Rate it.", schema=RATING, seed=1, certificate=True)
    assert completion.certificate is not None
    assert completion.certificate["source"]["kind"] == "grammar"
    verify_certificate(completion.certificate)


def test_the_page_shows_this_front_end() -> None:
    assert inspect.getsource(Stars) in PAGE.read_text(encoding="utf-8")
