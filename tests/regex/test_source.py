"""``Regex`` where a schema may stand: compiled, kept, refused; its named groups, against Python's ``re``."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Regex
from constrain.engine import remembered
from constrain.generation.options import AnswerSettings
from constrain.language.result import result_type
from constrain.regex import named_groups as module
from constrain.regex.named_groups import Group, has_named_groups, named_groups
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


@for_each(
    "pattern, text",
    (r"(?P<k>.*?): (?P<v>.*)", "a: b: c"),
    (r"(?P<k>.*): (?P<v>.*)", "a: b: c"),
    (r"(?P<a>a|ab)(?P<b>c|bcd)(?P<c>d*)", "abcd"),
    (r"(?i)^(?P<a>É+)$", "éÉ"),
    (r"\b(?P<w>\w+)\b (?P<r>.*)", "ab cd"),
    (r"(?P<n>\d{2,3})(?P<m>\d*)", "12345"),
    (r"(?P<n>\d{2,3}?)(?P<m>\d*)", "12345"),
    (r"(?s)(?P<a>.)(?:x|(?P<b>y))", "\nx"),
    ("(?x) (?P<a> a+ )  # a comment\n b", "aab"),
    (r"(?m)^(?P<a>\w+)$\n^(?P<b>\w+)$", "ab\ncd"),
)
def test_groups_are_those_of_re(pattern: str, text: str) -> None:
    expected = re.fullmatch(pattern, text)
    assert expected
    found = {group.name: (group.start, group.end) for group in named_groups(pattern, "python", text)}
    assert found == {name: expected.span(name) for name in expected.groupdict() if expected.start(name) >= 0}


def test_random_patterns_have_the_groups_of_re() -> None:
    compared = 0
    for seed in range(200):
        rng = Random(seed)
        names = iter("pqrs")
        pattern = part(rng, 3, names)
        if "(?P" not in pattern:
            continue
        for _ in range(20):
            text = "".join(rng.choices("ab", k=rng.randrange(6)))
            expected = re.fullmatch(pattern, text)
            if expected is None:
                continue
            last = {group.name: (group.start, group.end) for group in named_groups(pattern, "python", text)}
            spans = {name: expected.span(name) for name in expected.groupdict() if expected.start(name) >= 0}
            assert last == spans, (seed, pattern, text)
            compared += 1
    assert compared > 150


def part(rng: Random, depth: int, names: object) -> str:
    kinds = ["char", "char", "class"] if depth == 0 else ["sequence", "sequence", "choice", "repeat", "group", "char"]
    match rng.choice(kinds):
        case "sequence":
            return part(rng, depth - 1, names) + part(rng, depth - 1, names)
        case "choice":
            return f"(?:{part(rng, depth - 1, names)}|{part(rng, depth - 1, names)})"
        case "repeat":
            inner = rng.choice(["a", "b", "[ab]", "(?:ab|a)"])
            return inner + rng.choice(["*", "+", "?", "{1,2}", "*?", "+?", "??"])
        case "group":
            inner = part(rng, depth - 1, names)
            name = next(names, None)  # type: ignore[call-overload]
            return inner if name is None else f"(?P<{name}>{inner})"
        case "class":
            return "[ab]"
    return rng.choice("ab")


@pytest.mark.parametrize(
    ("dialect", "pattern"),
    [
        ("rust", r"(?<d>\d+)\.(?P<m>[0-9--9]+)"),
        ("ecma", r"^(?<d>\d+)[.](?<m>\d+)$"),
        ("rust", r"(?U)(?<d>\d+)\.(?<m>\d+)"),
    ],
)
def test_other_dialects(dialect: str, pattern: str) -> None:
    assert named_groups(pattern, dialect, "24.12") == [Group("d", 0, 2), Group("m", 3, 5)]  # type: ignore[arg-type]


def test_a_group_in_a_repetition_has_all_its_texts() -> None:
    assert named_groups(r"(?:(?P<w>[a-z]+),?)+", "python", "ab,c") == [Group("w", 0, 2), Group("w", 3, 4)]


@for_each("pattern", ["(?:a)", "a", r"\(?P<x>", "(?=a)(?P<x>a)", "[(?P<x>]"])
def test_patterns_without_names_or_with_lookaround_have_no_groups(pattern: str) -> None:
    assert not has_named_groups(pattern, "python")


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(constrain.LimitError, match="MAX_GROUP_STATES"):
        named_groups("(?P<a>a{50000})", "python", "a" * 50_000)
    monkeypatch.setattr(module, "MAX_GROUP_WORK", 100)
    with pytest.raises(constrain.LimitError, match="MAX_GROUP_WORK"):
        named_groups("(?P<a>a*)*", "python", "a" * 200)
