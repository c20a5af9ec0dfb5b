"""``Regex`` where a schema may stand: compiled, kept, refused; its named groups, against Python's ``re``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import re
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import regress

import constrain
from constrain import Regex, kernel
from constrain.engine import remembered
from constrain.errors import PatternError
from constrain.generation.options import AnswerSettings
from constrain.language.result import result_type
from constrain.language.tree import Intersection, LiteralSet
from constrain.regex import named_groups as module
from constrain.regex.named_groups import Group, has_named_groups, named_groups
from constrain.regex.parsing.parser import parse_pattern
from tests.support import LONG, Tokens, Walker, byte_vocabulary, each_row, for_each, small_vocabulary
from tests.support.processor_time import finishes_within


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
    assert isinstance(found._places, bytes)
    assert found.accepts("aé")
    assert not found.accepts("")
    assert len(found.grammar.terminals) == 1
    for other in (Regex(pattern.pattern, "python"), Regex("a+"), {"const": "a"}):
        assert not isinstance(constrain.compile(other, small_vocabulary(), cache=tmp_path)._places, bytes)


@pytest.mark.parametrize("options", [{"whitespace": "any"}, {"strict": True}, {"registry": {}}])
def test_policies_of_json_schemas_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="applies to JSON Schemas only, but this is a Regex"):
        constrain.compile(Regex("a"), byte_vocabulary(), **options)


@each_row(
    "show, shown",
    (True, r"Answer with a text that matches this regular expression: \d+"),
    (False, ""),
    ("Mind {schema}!", r"Mind \d+!"),
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


@each_row(
    "dialect, pattern",
    ("rust", r"(?<d>\d+)\.(?P<m>[0-9--9]+)"),
    ("ecma", r"^(?<d>\d+)[.](?<m>\d+)$"),
    ("rust", r"(?U)(?<d>\d+)\.(?<m>\d+)"),
)
def test_other_dialects(dialect: str, pattern: str) -> None:
    assert named_groups(pattern, dialect, "24.12") == [Group("d", 0, 2), Group("m", 3, 5)]  # type: ignore[arg-type]


def test_a_group_in_a_repetition_has_all_its_texts() -> None:
    assert named_groups(r"(?:(?P<w>[a-z]+),?)+", "python", "ab,c") == [Group("w", 0, 2), Group("w", 3, 4)]


@for_each("pattern", ["(?:a)", "a", r"\(?P<x>", "(?=a)(?P<x>a)", "[(?P<x>]"])
def test_patterns_without_names_or_with_lookaround_have_no_groups(pattern: str) -> None:
    assert not has_named_groups(pattern, "python")


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(constrain.LimitError, match="MAX_CAPTURE_WORK"):
        named_groups("(?P<a>a{50000})", "python", "a" * 50_000)
    monkeypatch.setattr(module, "MAX_CAPTURE_WORK", 100)
    with pytest.raises(constrain.LimitError, match="MAX_CAPTURE_WORK"):
        named_groups("(?P<a>a*)*", "python", "a" * 200)


TEXTS = ["".join(text) for length in range(6) for text in product('ab"', repeat=length)]
WORDS = [
    *("foo", "xfoo", "foo bar", "foobar", "a1b", "ab1x", "x.y", "a foo b", "a\nfoo", "-ab", "ab-", "afoo_", "foo\n"),
    "é",
]

PATTERNS = [
    *("^(?!foo)", "^(?!foo).*$", "^(?:(?!foo).)*$", r"\bfoo\b", r"\Bfoo|foo\B", r"^(?=.*\d)(?=.*[a-z]).{3,}$"),
    *(r"^(?=.*\bfoo\b)", "(?<!a)b(?=a)", "^(?!.*(ab|b)).*$", "^(?!a$).*$", "foo(?!bar)", "(?<=a)b", "(?<=(?<!a)b)a"),
    *("(?:(?=a)..)*$", "a(?!$)", "^(?!-)[a-z-]{1,5}(?<!-)$", "^(?:a(?!b)|b)*$", "^(?:(?!ab).)*a$"),
    *("^(?:(?!ab)[ab]){2,3}a", "(?=a)(?!b)a", "(?!)", "(?=)", "(?<!^)a", "(?<=^a)b", "(?:^|(?<=b))a"),
    *("^(?:(?!(?=a)ab)..)*$", r"^(?!.*\b(?:foo|bar)\b)", "(?i:(?<=A)B)", r"(?i:\bFOO)", "^(?=(?:..)*$)(?=(?:...)*$)"),
]


def wrong(pattern: str, texts: list[str], *, json_content: bool = False) -> list[str]:
    """The texts for which the expression and regress disagree."""
    expression = parse_pattern(pattern, "ecma", json=json_content, anchored=False)
    oracle = regress.Regex(pattern, "u")
    spelled = {(json.dumps(text, ensure_ascii=False)[1:-1] if json_content else text).encode(): text for text in texts}
    found = kernel.list_matches(Intersection((LiteralSet(tuple(spelled)), expression)), len(texts))
    assert found is not None
    matched = {spelled[text] for text in found}
    return [text for text in texts if (text in matched) != (oracle.find(text) is not None)]


@for_each("spelled", [False, True])
@for_each("pattern", PATTERNS)
def test_lookaround_agrees_with_regress(pattern: str, spelled: bool) -> None:
    assert wrong(pattern, TEXTS + WORDS, json_content=spelled) == []


def _random_pattern(rng: random.Random, depth: int) -> str:
    choice = rng.randrange(14) if depth else rng.randrange(4)
    if choice < 4:
        return rng.choice(["a", "b", ".", "[ab]", "[^a]", "ab", "^", "$", r"\b", r"\B"][: 6 if choice < 3 else 10])
    inside = _random_pattern(rng, depth - 1)
    if choice < 7:
        return inside + _random_pattern(rng, depth - 1)
    if choice < 8:
        return f"(?:{inside}|{_random_pattern(rng, depth - 1)})"
    if choice < 11:
        return f"(?:{inside}){rng.choice(['*', '+', '?', '{2}', '{1,2}', '{0,1}', '{2,}', '*?'])}"
    return f"({rng.choice(['?=', '?!', '?<=', '?<!'])}{inside})"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10 if LONG else 3))
def test_random_lookaround_agrees_with_regress_or_is_refused(block: int) -> None:
    rng = random.Random(block)
    read = refused = 0
    while read < 40:
        pattern = _random_pattern(rng, 4)
        if "+)+)" in pattern:  # regress does not find aa by ^(?:(?:(?:a)+)+){2}$
            continue
        if "(?=" not in pattern and "(?!" not in pattern and "(?<" not in pattern and "\\" not in pattern:
            continue
        if rng.random() < 0.3:
            pattern = f"^(?:{pattern})$"
        with contextlib.suppress(PatternError):
            assert wrong(pattern, TEXTS) == [], pattern
            read += 1
            continue
        with pytest.raises(PatternError, match="cannot be expressed exactly"):
            parse_pattern(pattern, "ecma", anchored=False)
        refused += 1
    assert refused < read


@for_each(
    "pattern, column, message",
    ("(?=a.*b)a.*(?<!aab)b", 1, "looks past a lookbehind"),
    ("^(?:(?!foo).)*bar.*$", 14, "in a loop"),
    ("(?=.*^a)", 1, "an anchor inside it looks beyond it"),
    ("a(?:(?<=b.*)a)*$", 15, "in a loop"),
    ("".join(rf"\b{letter}?" for letter in "abcdefghijk"), 44, "MAX_LOOKAROUND_ALTERNATIVES"),
)
def test_lookaround_that_cannot_be_expressed_is_refused_with_a_column(pattern: str, column: int, message: str) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        parse_pattern(pattern, "ecma", anchored=False)
    assert caught.value.column == column


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    ["(?=a)" * 5000, "(?:(?!a).)*" * 2000 + "$", "(?=" * 90 + "a" + ")" * 90, r"\b" * 500],
    ids=lambda pattern: pattern[:12],
)
def test_many_lookarounds_are_compiled_in_little_time(pattern: str) -> None:
    with finishes_within(2), contextlib.suppress(PatternError):
        parse_pattern(pattern, "ecma", anchored=False)


@for_each("judge", [re.fullmatch, re.search])
@for_each("pattern", [r"\B", r"a?\B", r"(?:\B|a)", r"^(?!\B)a?", r"\B|b?"])
def test_the_inside_of_the_empty_text_is_that_of_the_python_in_use(pattern: str, judge: Any) -> None:
    expression = parse_pattern(pattern, "python", anchored=judge is re.fullmatch)
    for text in ("", "a", "aa", " ", "b"):
        assert kernel.matches(expression, text.encode()) == bool(judge(pattern, text)), text
    assert kernel.matches(parse_pattern(pattern, "ecma"), b"") == ("!" not in pattern)
