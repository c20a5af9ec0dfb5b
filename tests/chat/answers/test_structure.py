"""Structure: texts split at the names of special tokens, templates of calls, the tree of what may stand next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from constrain.chat.answers.choices import Calls, CustomCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.answers.structure import END, SpecialName, Variable, path_of, structure_parts, template_parts, tree
from constrain.chat.answers.trees import answer_trees
from constrain.chat.reading.reader import Reader
from tests.support import for_each
from tests.support.chat.forms import CHANNELS, FENCES, LIST, TAGS
from tests.support.chat.parsed import gathered


@for_each(
    "text, names, parts",
    ("", {"<a>"}, []),
    ("x<a>y", set(), ["x<a>y"]),
    ("x<a>y", {"<a>"}, ["x", SpecialName("<a>"), "y"]),
    ("<a><a>", {"<a>"}, [SpecialName("<a>"), SpecialName("<a>")]),
    ("<a>>b", {"<a>", "<a>>"}, [SpecialName("<a>>"), "b"]),
    ("abc", {"bc", "ab"}, [SpecialName("ab"), "c"]),
    ("a.b|", {".", "|"}, ["a", SpecialName("."), "b", SpecialName("|")]),
    ("abc", {""}, ["abc"]),
)
def test_the_leftmost_and_longest_name_is_a_token(text: str, names: set[str], parts: list[object]) -> None:
    assert structure_parts(text, frozenset(names)) == parts


def test_templates_are_split_at_their_variables() -> None:
    parts = template_parts("<$name>$arguments$id$names$")
    assert parts == ["<", Variable.NAME, ">", Variable.ARGUMENTS, Variable.ID, "$names$"]


def test_names_of_tools_hold_no_special_tokens() -> None:
    path = path_of(["<", Variable.NAME, "ab"], "ab", frozenset({"ab"}))
    assert path == (*b"<ab", SpecialName("ab"))


def test_a_tree_says_what_may_stand_next() -> None:
    names = frozenset({"|"})
    paths = [(path_of([text], "", names), index) for index, text in enumerate(["get(", "get_it(", "get|", "x"])]
    node = tree([*paths, ((), END)])
    assert node.reached == END
    assert [step for step, _ in node.onward] == [b"get", b"x"]
    (_, inner), _ = node.onward
    assert [(step, each.reached) for step, each in inner.onward] == [(b"(", 0), (b"_it(", 1), (SpecialName("|"), 2)]


def test_two_calls_that_are_written_alike_are_refused() -> None:
    with pytest.raises(ValueError, match="same spelling"):
        tree([((1, 2), 0), ((1, 2), 1)])


@for_each(
    "change, message",
    ({"call": "<$name>"}, "must have .arguments once"),
    ({"call": "$arguments$name"}, "in front of the value"),
    ({"custom_call": "<$name>$arguments"}, "custom_call of the form tags"),
    ({"call": "<$name $id>$arguments"}, "without id_pattern"),
    ({"call": "<$name>$arguments$id", "id_pattern": "a"}, "directly behind the value"),
    ({"call": "x<b>$name $arguments", "custom_call": "<b>$name $input "}, "contains the beginning of another"),
)
def test_forms_that_cannot_be_read_are_refused(change: dict[str, str], message: str) -> None:
    from constrain.chat.answers.choices import FunctionCalls

    with pytest.raises(ValueError, match=message):
        answer_trees(AnswerLanguage(replace(TAGS, **change), tools=(FunctionCalls("f", "{}"), CustomCalls("g"))))


def test_ids_must_end_where_what_follows_begins() -> None:
    answer = AnswerLanguage(replace(FENCES, id_pattern="[a-z:]+"), tools=(CustomCalls("g"),))
    with pytest.raises(ValueError, match="may contain the text that follows"):
        answer.grammar()


SPECIAL = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def test_special_tokens_are_told_from_the_text_of_their_names() -> None:
    answer = AnswerLanguage(TAGS, special=SPECIAL, tools=(CustomCalls("note"),), reasoning=Reasoning.OPTIONAL)
    reader = Reader(answer)
    written = (
        b"\xff<think>\xfe\nno </think> yet\xff</think>\xfe\n\nsee <tool_call>\n"
        b'\xff<tool_call>\xfe\n{"name": "note", "input": "\\"</tool_call>"}\n\xff</tool_call>\xfe'
    )
    parsed = gathered([*(event for byte in written for event in reader.feed(bytes([byte]))), *reader.finish()], answer)
    assert parsed.reasoning == "no </think> yet"
    assert parsed.content == "see <tool_call>\n"
    assert [(call.name, call.input) for call in parsed.calls] == [("note", '"</tool_call>')]


def test_grammars_name_the_special_tokens_that_structure_holds() -> None:
    answer = AnswerLanguage(
        replace(CHANNELS, thinking=None), special=("<|channel|>", "<|message|>"), tools=(CustomCalls("note"),)
    )
    texts = {getattr(terminal.expression, "text", b"") for terminal in answer.grammar().terminals}
    assert {b"\xff<|channel|>\xfe", b"\xff<|message|>\xfe", b"final", b"commentary"} <= texts


def test_ids_behind_values_come_with_the_end_of_a_call() -> None:
    answer = AnswerLanguage(LIST, tools=(CustomCalls("note"),), calls=Calls.REQUIRED)
    text = b'[TOOL_CALLS][{"name": "note", "input": "a", "id": "x7y"}, {"name": "note", "input": "", "id": "abc"}]'
    reader = Reader(answer)
    events = [*reader.feed(text), *reader.finish()]
    assert [(call.id, call.input) for call in gathered(events, answer).calls] == [("x7y", "a"), ("abc", "")]
