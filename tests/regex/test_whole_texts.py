r"""What the ``regex`` crate has and terminals do not: lazy quantifiers, word boundaries, anchors at every line."""

from __future__ import annotations

from itertools import product

import pytest
import regress

import constrain
from constrain import PatternError, Regex
from constrain.chat.tools.openai import tool_from_json
from constrain.errors import ToolError
from constrain.parts import choice, sequence, text
from constrain.regex.parsing.parser import parse_pattern
from tests.support import byte_vocabulary, each_row, for_each

TEXTS = ["".join(text) for length in range(6) for text in product("ab \n", repeat=length)]

SAME_IN_ECMA = {
    r"\bab\b": "",
    r".*\bab\b.*": "",
    r"a*\B.*": "",
    r"(?:a|\b| )b.*": "",
    r"a*?b+?[ab ]??": "",
    r"a{1,3}?b": "",
    r"(?m:^a.?$\n^b?$.*)": "m",
    r"(?ms:.*^b.*)": "ms",
    r"(?U)a*b+": "",
    r"(?i)\bAB\b.*": "i",
}


@for_each("pattern", SAME_IN_ECMA)
def test_whole_texts_match_as_in_ecma(pattern: str) -> None:
    constraint = constrain.compile(Regex(pattern), byte_vocabulary(), cache=False)
    inner = pattern
    for flags in ("(?m:", "(?ms:"):
        inner = inner.replace(flags, "(?:")
    inner = inner.removeprefix("(?U)").removeprefix("(?i)")
    oracle = regress.Regex(rf"(?<![^])(?:{inner})(?![^])", SAME_IN_ECMA[pattern])
    whole = [text for text in TEXTS if oracle.find(text)]
    assert [text for text in TEXTS if constraint.accepts(text)] == whole
    assert whole


MATCHES = {
    r"<.*?>": (["<>", "<a>", "<a><b>"], ["", "<", "a>"]),
    r"\bfoo\b": (["foo"], ["", "foo ", "foobar"]),
    r"\bfoo\b.*": (["foo", "foo bar", "foo-"], ["foobar", "fooé"]),
    r"(?-u:\bfoo\b).*": (["foo", "fooé"], ["foobar"]),
    r".*\b{start}a.*": (["a", "b a", " ab"], ["ba", "b", ""]),
    r".*a\b{end}.*": (["a", "a b", "ba"], ["ab"]),
    r".*\<a.*": (["a", "b a"], ["ba"]),
    r".*a\>.*": (["ba", "a b"], ["ab"]),
    r".*\b{start-half}.": (["a", " a", " "], ["ba"]),
    r".\b{end-half}.*": (["a", "a ", "  "], [" a", "ab"]),
}


@for_each("pattern", MATCHES)
def test_word_boundaries_mean_what_they_do_in_the_rust_crate(pattern: str) -> None:
    constraint = constrain.compile(Regex(pattern), byte_vocabulary(), cache=False)
    accepted, rejected = MATCHES[pattern]
    assert [text for text in accepted if not constraint.accepts(text)] == []
    assert [text for text in rejected if constraint.accepts(text)] == []


def test_parts_of_compositions_take_anchors_too() -> None:
    tag = sequence(Regex(r"<\b[a-z]+?\b>"), text(until="!"), "!")
    constraint = constrain.compile(choice(tag, Regex(r"\d+?\b")), byte_vocabulary(), cache=False)
    assert constraint.accepts("<b>x!")
    assert constraint.accepts("12")
    assert not constraint.accepts("<>x!")


@for_each("pattern", [r"\bfoo\b", "<.*?>", "(?U)a", r"(?m)^a$", r"\<a"])
def test_custom_tools_refuse_anchors(pattern: str) -> None:
    tool = {"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": "regex", "definition": pattern}}
    with pytest.raises((ToolError, PatternError), match="not supported"):
        tool_from_json(tool)


def test_a_terminal_is_not_told_to_leave_the_question_mark_out() -> None:
    with pytest.raises(PatternError, match="lazy quantifiers are not supported: the longest match counts") as caught:
        parse_pattern("<.*?>", "rust")
    assert "leave" not in caught.value.message


@each_row(
    "pattern, dialect, message",
    ("a(?=b)b", "rust", r"lookahead is not supported.*; the pattern .* dialect 'ecma' or 'python'"),
    (r"\p{Lu}", "python", r"dialect 'ecma' or 'rust'"),
    (r"a\Z", "rust", r"dialect 'python'"),
)
def test_a_refusal_names_the_dialect_that_takes_the_pattern(pattern: str, dialect: str, message: str) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        Regex(pattern, dialect)  # type: ignore[arg-type]
    assert caught.value.column is not None
    with pytest.raises(PatternError) as caught:
        Regex(r"(a)\1", "rust")
    assert "dialect" not in caught.value.message
