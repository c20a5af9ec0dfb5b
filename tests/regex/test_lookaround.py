"""Lookaround and word boundaries: tables, random patterns compared with regress, and what is refused."""

from __future__ import annotations

import contextlib
import json
import random
import re
from itertools import product
from typing import Any

import pytest
import regress

from constrain import kernel
from constrain.errors import PatternError
from constrain.language.tree import Intersection, LiteralSet
from constrain.regex.parsing.parser import parse_pattern
from tests.support import LONG, for_each
from tests.support.processor_time import finishes_within

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
