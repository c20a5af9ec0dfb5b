"""``Regex`` where a schema may stand: compiled, kept, refused; without a model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Regex
from constrain.engine import remembered
from constrain.generation.options import AnswerSettings
from constrain.language.result import result_type
from tests.support import Tokens, Walker, byte_vocabulary, for_each, small_vocabulary


@for_each(
    "pattern, dialect, accepted, rejected",
    (r"[A-Z]{1,3}-\d{4}", "rust", ["AB-1234", "A-٣٣٣٣"], ["", "AB-123", "AB-1234 ", " AB-1234"]),
    (r"[A-Z]{1,3}-\d{4}", "ecma", ["AB-1234"], ["A-٣٣٣٣"]),
    ("(?P<a>x)(?# y)", "python", ["x"], ["", "xx"]),
    ("a|", "rust", ["a", ""], ["aa"]),
    ("", "rust", [""], ["a"]),
    ("(?s:.*)", "rust", ["", "a\n€"], []),
    ('"\\\\?', "rust", ['"', '"\\'], [""]),
)
def test_the_whole_text_matches(pattern: str, dialect: Any, accepted: list[str], rejected: list[str]) -> None:
    made = constrain.compile(Regex(pattern, dialect), byte_vocabulary())
    assert [text for text in accepted if not made.accepts(text)] == []
    assert [text for text in rejected if made.accepts(text)] == []


def test_walks_end_in_texts_that_match() -> None:
    vocabulary, rng = small_vocabulary(), Random(5)
    for pattern in ("(ab?c|[^a-y]{0,3})*", "a{2,5}(b|cd)*", "[^\\x00-\\x7f]*"):
        made = constrain.compile(Regex(pattern), vocabulary)
        texts = [Walker(made, vocabulary).text(rng, Tokens(vocabulary), 6) for _ in range(20)]
        assert all(map(made.accepts, texts))
        assert len(set(texts)) > 5


@for_each("pattern", ["a*", "(a|)", "", "(?s:.*)"])
def test_a_pattern_of_the_empty_text_may_end_at_once(pattern: str) -> None:
    matcher = constrain.compile(Regex(pattern), byte_vocabulary()).matcher(max_tokens=0)
    row = matcher.constraint.allocate_bitmask()[0]
    matcher.fill_bitmask(row)
    assert row.tolist() == [0] * 8 + [1]  # token 256 ends
    assert matcher.is_accepting
    assert matcher.completion_tokens() == []


def test_budgets_count_the_tokens_of_a_shortest_text() -> None:
    made = constrain.compile(Regex("(abc)+"), byte_vocabulary())
    with pytest.raises(constrain.BudgetError) as caught:
        made.matcher(max_tokens=2)
    assert caught.value.needed == 3
    assert made.matcher(max_tokens=5).completion_tokens() == [*b"abc"]


@pytest.mark.parametrize(("pattern", "dialect"), [("[a&&b]", "rust"), (r"\P{Any}c", "rust"), ("a^b", "ecma")])
def test_a_pattern_without_texts_is_refused(pattern: str, dialect: Any) -> None:
    with pytest.raises(constrain.PatternError, match="matches no text"):
        constrain.compile(Regex(pattern, dialect), byte_vocabulary())


def test_a_value_that_is_no_pattern_is_refused_at_once() -> None:
    with pytest.raises(constrain.PatternError, match="column 2") as caught:
        Regex("a(")
    assert caught.value.column == 2
    with pytest.raises(ValueError, match="dialect must be one of 'ecma', 'rust', 'python', not 'perl'"):
        Regex("a", "perl")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pattern must be a str, not b'a'"):
        Regex(b"a")  # type: ignore[arg-type]


def test_a_regex_is_frozen_and_compared_by_its_pattern() -> None:
    one = Regex("a+")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.pattern = "b"  # type: ignore[misc]
    assert {one, Regex("a+"), Regex("a+", "ecma")} == {one, Regex("a+", "ecma")}


def test_equal_patterns_are_compiled_once() -> None:
    vocabulary = small_vocabulary()
    made = constrain.compile(Regex("a+"), vocabulary)
    assert constrain.compile(Regex("a+"), vocabulary) is made
    assert constrain.compile(Regex("a+", "ecma"), vocabulary) is not made
    assert constrain.compile(Regex("a+"), small_vocabulary()) is not made


def test_patterns_are_kept_on_disk_and_found_by_pattern_and_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "CACHED_CONSTRAINTS", 0)
    pattern = Regex("(?:a|é\ud800?)+")
    assert constrain.compile(pattern, small_vocabulary(), cache=tmp_path).precompute().file is not None
    found = constrain.compile(Regex(pattern.pattern), small_vocabulary(), cache=tmp_path)
    assert found._grammar is None
    assert found.accepts("aé")
    assert not found.accepts("")
    assert len(found.grammar.terminals) == 1
    for other in (Regex(pattern.pattern, "python"), Regex("a+"), {"const": "a"}):
        assert constrain.compile(other, small_vocabulary(), cache=tmp_path)._grammar is not None


@pytest.mark.parametrize("options", [{"whitespace": "any"}, {"strict": True}, {"registry": {}}])
def test_policies_of_json_schemas_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="applies to JSON Schemas only, but this is a Regex"):
        constrain.compile(Regex("a"), byte_vocabulary(), **options)


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        (True, r"Answer with a text that matches this regular expression: \d+"),
        (False, ""),
        ("Mind {schema}!", r"Mind \d+!"),
    ],
)
def test_the_prompt_shows_the_pattern(show: bool | str, shown: str) -> None:
    assert AnswerSettings(show_schema=show).describe_schema(result_type(Regex(r"\d+"))) == shown
