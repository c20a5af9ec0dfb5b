"""Named groups of patterns, against Python's ``re``."""

from __future__ import annotations

import re
from random import Random

import pytest

import constrain
from constrain.regex import named_groups as module
from constrain.regex.named_groups import Group, has_named_groups, named_groups
from tests.support import for_each


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
