"""Answers by form and mode: random walks over the masks, read back."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import constrain
from constrain.chat.answers.choices import Calls, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import ToolFormat
from constrain.chat.reading.reader import Event, Reader
from tests.support import LONG, allowed, byte_vocabulary, for_each
from tests.support.chat.forms import CHANNELS, ELEMENTS, FORMS, LIST, NAMES, OBJECT, PYTHON, TAGS
from tests.support.chat.parsed import gathered, read_answer
from tests.support.chat.walks import MODES, SCHEMA, SCHEMAS, TOOLS, VOCABULARY, assert_calls_hold, walked


def leads(form: ToolFormat, *, calls: bool) -> tuple[bytes, ...]:
    """Nothing, and what calls begin with."""
    if not calls:
        return (b"",)
    begin = (form.opening + form.call).partition("$")[0].encode()
    if form.preamble is not None:
        text = f"{form.preamble.begin}So:\n{form.preamble.end}".encode()
        return (b"", begin, text + begin, text)
    return (b"", begin, b"So:\n" + begin) if form.text_before else (b"", begin)


def content_of(form: ToolFormat, text: bytes) -> str:
    """The content of an answer without calls."""
    written = text.decode()
    return written if form.content is None else written.removeprefix(form.content.begin)


@pytest.mark.slow(but=("python-none", "elements-none", "list-none"))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_random_answers_read_back_as_the_mode_says(form: ToolFormat, mode: str) -> None:
    answer = AnswerLanguage(form, tools=TOOLS, **MODES[mode])
    free = answer.calls is Calls.AUTO
    for text in walked(answer, 1, leads(form, calls=free)):
        parsed = read_answer(answer, text)
        assert_calls_hold(answer, parsed)
        if mode in ("required", "named"):
            assert parsed.calls, text
            assert parsed.content == ""
        if mode == "none":
            assert not parsed.calls
        if mode in ("named", "one"):
            assert len(parsed.calls) <= 1
        if not parsed.calls:
            assert parsed.content == content_of(form, text)
        if form.id_pattern:
            assert all(call.id is not None and len(call.id) == 3 for call in parsed.calls)


@for_each("form", FORMS)
def test_answers_cut_anywhere_give_the_same_events(form: ToolFormat) -> None:
    answer = AnswerLanguage(form, tools=TOOLS, reasoning=Reasoning.OPTIONAL if form.thinking else Reasoning.NONE)
    rng = Random(3)
    for text in walked(answer, 2, leads(form, calls=True), count=6):
        whole = merged([*(reader := Reader(answer)).feed(text), *reader.finish()])
        for most in (1, 3, 20):
            assert merged(in_pieces(answer, text, rng, most)) == whole, text
        parsed = read_answer(answer, text)
        assert gathered(in_pieces(answer, text, rng, 5), answer) == parsed


def in_pieces(answer: AnswerLanguage, text: bytes, rng: Random, most: int) -> list[Event]:
    """The events of an answer that is fed in random pieces."""
    reader, events, place = Reader(answer), [], 0
    while place < len(text):
        length = rng.randint(1, most)
        events += reader.feed(text[place : place + length])
        place += length
    return events + reader.finish()


def merged(events: list[Event]) -> list[tuple[Any, ...]]:
    """Events with neighbouring texts joined."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        key = (type(event), *(getattr(event, name) for name in event.__slots__ if name != "text"))
        text = getattr(event, "text", None)
        if text is not None and found and found[-1][:-1] == key:
            found[-1] = (*key, found[-1][-1] + text)
        else:
            found.append((*key, text))
    return found


@pytest.mark.slow(but=("names", "recipients"))
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_answers_that_are_cut_short_read_as_far_as_they_go(form: ToolFormat) -> None:
    answer = AnswerLanguage(form, tools=TOOLS)
    for text in walked(answer, 5, leads(form, calls=True), count=6 if LONG else 3):
        whole = read_answer(answer, text)
        for length in range(len(text)):
            part = read_answer(answer, text[:length])
            assert len(part.calls) <= len(whole.calls)
            for call, other in zip(part.calls, whole.calls, strict=False):
                assert call == other if call.ended else call.name == other.name


def test_content_that_may_begin_like_a_call_is_refused() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "parameters": {"type": "object"}}}
    with pytest.raises(constrain.GrammarError, match="begin with"):
        AnswerLanguage(OBJECT, tools=TOOLS, content=Value(json.dumps(schema))).grammar()
    with pytest.raises(constrain.GrammarError, match="object"):
        AnswerLanguage(OBJECT, tools=TOOLS, content=constrain.Lark("start: /[{].*/")).grammar()


@pytest.mark.slow
def test_calls_and_content_may_both_be_objects() -> None:
    answer = AnswerLanguage(OBJECT, tools=TOOLS, content=Value(json.dumps(SCHEMA)))
    constraint = constrain.compile(answer, VOCABULARY)
    content = '{"name": "get_weather", "age": 3}'
    call = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'
    assert constraint.accepts(content)
    assert constraint.accepts(call)
    assert not constraint.accepts('{"name": "get_weather", "parameters": {}}')
    for length in (1, 7, 100):
        for text in (content, call):
            reader = Reader(answer)
            pieces = [text[start : start + length].encode() for start in range(0, len(text), length)]
            parsed = gathered([*(event for piece in pieces for event in reader.feed(piece)), *reader.finish()], answer)
            assert (parsed.content or parsed.calls[0].arguments) == (content if text == content else '{"city": "Oslo"}')


def test_a_refusal_stands_in_place_of_a_value() -> None:
    answer = AnswerLanguage(TAGS, content=Value(json.dumps(SCHEMA)), refusal=True)
    constraint = constrain.compile(answer, VOCABULARY)
    assert constraint.accepts('{"age": 3}')
    assert constraint.accepts("Refusal: I do not know.")
    assert not constraint.accepts("Refusal: ")
    assert not constraint.accepts("I do not know.")
    assert read_answer(answer, b"Refusal: I do not know.").refusal == "I do not know."
    assert read_answer(answer, b'{"age": 3}').refusal is None


def test_free_text_holds_no_mark_of_a_call() -> None:
    for calls in (Calls.AUTO, Calls.NONE):
        constraint = constrain.compile(AnswerLanguage(TAGS, tools=TOOLS, calls=calls), VOCABULARY)
        assert constraint.accepts("a <tool_ b")
        assert not constraint.accepts("a <tool_call> b")
        call = 'a\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
        assert constraint.accepts(call) == (calls is Calls.AUTO)


def test_without_text_before_calls_only_their_begin_is_left_out() -> None:
    constraint = constrain.compile(AnswerLanguage(OBJECT, tools=TOOLS), VOCABULARY)
    assert constraint.accepts('write {"name": "now"}')
    assert constraint.accepts('{"name" is a key')
    assert not constraint.accepts('{"name": 1}')


def test_arguments_keep_to_the_schema() -> None:
    def accepts(arguments: str, name: str = "get_weather", *, closed: bool = True) -> bool:
        tools = tuple(FunctionCalls(each, json.dumps(schema), closed) for each, schema in SCHEMAS.items())
        answer = AnswerLanguage(OBJECT, tools=tools, calls=Calls.REQUIRED)
        return constrain.compile(answer, VOCABULARY).accepts(f'{{"name": "{name}", "parameters": {arguments}}}')

    assert accepts('{"city": "Oslo", "days": 3}')
    assert not accepts('{"days": 3}')
    assert not accepts('{"city": "Oslo", "more": 3}')
    assert accepts('{"city": "Oslo", "more": 3}', closed=False)
    assert accepts("{}", "now")
    assert not accepts('{"a": 1}', "now")
    assert accepts('{"a": 1}', "now", closed=False)
    assert not accepts("[]", "now")


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "required": ["a"]}])
def test_arguments_are_not_closed_where_no_parameters_are_listed(schema: Any) -> None:
    answer = AnswerLanguage(OBJECT, tools=(FunctionCalls("f", json.dumps(schema)),), calls=Calls.REQUIRED)
    assert constrain.compile(answer, VOCABULARY).accepts('{"name": "f", "parameters": {"a": 1}}')


@pytest.mark.parametrize("content", [constrain.Regex(r"\n[a-z]+"), constrain.Lark('start: "\\n" "ab"')])
def test_a_new_line_that_content_begins_with_is_not_taken_for_one_behind_reasoning(content: Any) -> None:
    answer = AnswerLanguage(TAGS, content=content, reasoning=Reasoning.OPENED)
    text = "So.</think>\nab"
    assert constrain.compile(answer, VOCABULARY).accepts(text)
    assert read_answer(answer, text.encode()).content == "\nab"


def test_elements_hold_strings_as_they_are() -> None:
    answer = AnswerLanguage(ELEMENTS, tools=TOOLS, calls=Calls.REQUIRED)
    text = (
        '<tool_call>\n<function=get_weather>\n<parameter=city>\n"O\\s\nlo\n</parameter>\n<parameter=unit>\nnull\n'
        "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    assert constrain.compile(answer, VOCABULARY).accepts(text)
    (call,) = read_answer(answer, text.encode()).calls
    assert json.loads(call.arguments or "") == {"city": '"O\\s\nlo', "unit": None, "days": 3}


def test_the_end_of_an_element_may_begin_a_string() -> None:
    answer = AnswerLanguage(ELEMENTS, tools=TOOLS, calls=Calls.REQUIRED)
    value = "</parameter>\nx"
    text = f"<tool_call>\n<function=get_weather>\n<parameter=city>\n{value}\n</parameter>\n</function>\n</tool_call>"
    constraint = constrain.compile(answer, VOCABULARY)
    assert not constraint.accepts(text)  # longer than 12 characters
    answer = replace(answer, tools=(FunctionCalls("get_weather", '{"properties": {"city": {"type": "string"}}}'),))
    assert constrain.compile(answer, VOCABULARY).accepts(text)
    assert json.loads(read_answer(answer, text.encode()).calls[0].arguments or "") == {"city": value}


def test_keyword_arguments_are_read_as_json() -> None:
    answer = AnswerLanguage(PYTHON, tools=TOOLS, calls=Calls.REQUIRED)
    text = '[get(deep=[True, None, "True, )"], at={"x": 1.5}), get_weather(city="a\\"b", unit=None)]'
    assert constrain.compile(answer, VOCABULARY).accepts(text)
    first, second = read_answer(answer, text.encode()).calls
    assert json.loads(first.arguments or "") == {"deep": [True, None, "True, )"], "at": {"x": 1.5}}
    assert json.loads(second.arguments or "") == {"city": 'a"b', "unit": None}


@for_each(
    "schema",
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
    {"type": "object", "properties": {"no name>": {}}},
    {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"const": 1}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "number"}, "b": {"const": 2}}, "required": ["a", "b"]},
        ]
    },
    {"type": "object", "properties": {"a": {"const": "x\n</parameter>\ny"}}, "required": ["a"]},
)
def test_arguments_that_elements_cannot_say_are_refused(schema: Any) -> None:
    with pytest.raises(constrain.UnsupportedSchemaError, match="the tool f") as caught:
        AnswerLanguage(ELEMENTS, tools=(FunctionCalls("f", json.dumps(schema)),)).grammar()
    assert caught.value.pointer == "/tools/0"


def test_undeclared_arguments_that_elements_cannot_say_are_left_out_with_a_warning() -> None:
    schema = '{"properties": {"a": {"const": "x"}}, "required": ["a"], "additionalProperties": true}'
    answer = AnswerLanguage(ELEMENTS, tools=(FunctionCalls("f", schema),), calls=Calls.REQUIRED, parallel=False)
    constraint = constrain.compile(answer, byte_vocabulary(), cache=False)
    assert read_answer(answer, constraint.matcher().shortest_completion()).calls[0].arguments == '{"a": "x"}'
    [warning] = constraint.warnings
    assert "are left out" in warning
    assert "(in the tool f)" in warning
    exact = replace(answer, policies=answer.policies._replace(inexact="refuse"))
    with pytest.raises(constrain.UnsupportedSchemaError, match="does not declare by name"):
        exact.grammar()


def test_definitions_do_not_open_a_tool_without_parameters() -> None:
    schema = '{"$defs": {"x": {"type": "string"}}, "type": "object", "properties": {}, "required": []}'
    answer = AnswerLanguage(TAGS, tools=(FunctionCalls("f", schema),), calls=Calls.REQUIRED, parallel=False)
    constraint = constrain.compile(answer, byte_vocabulary(), cache=False)
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    assert constraint.accepts(call % "{}")
    assert not constraint.accepts(call % '{"y": 1}')


def test_arguments_are_objects() -> None:
    with pytest.raises(constrain.UnsatisfiableSchemaError, match="the tool f"):
        AnswerLanguage(TAGS, tools=(FunctionCalls("f", '{"type": "string"}'),)).grammar()


SUMS = constrain.Lark('start: "[" sum "]"\nsum: TERM ("+" TERM)*\nTERM: /[0-9]+/ | /"[^"]*"/\n%ignore /[ \\n]+/')


@for_each("form", [TAGS, LIST, NAMES, CHANNELS, ELEMENTS])
def test_input_follows_a_grammar_inside_of_a_call(form: ToolFormat) -> None:
    language = SUMS if form is not ELEMENTS else constrain.Lark('start: /[0-9]+/ ("+" /[0-9]+/)*')
    answer = AnswerLanguage(
        form, tools=(CustomCalls("sum", language), TOOLS[0]), calls=Calls.REQUIRED, allowed=("sum",)
    )
    inside = constrain.compile(language, VOCABULARY)
    for text in walked(answer, 9):
        calls = read_answer(answer, text).calls
        assert calls
        for call in calls:
            assert call.ended
            assert inside.accepts(call.input or ""), text


def test_a_grammar_whose_texts_may_hold_the_end_of_input_is_refused() -> None:
    with pytest.raises(constrain.GrammarError, match="custom"):
        AnswerLanguage(ELEMENTS, tools=(CustomCalls("any", constrain.Lark("start: /(.|\\n)+/")),)).grammar()


def test_answers_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="'a b' is not a valid name"):
        AnswerLanguage(TAGS, tools=(CustomCalls("a b"),))
    with pytest.raises(ValueError, match="two tools are named 'a'"):
        AnswerLanguage(TAGS, tools=(CustomCalls("a"), CustomCalls("a")))
    with pytest.raises(ValueError, match="none of the tools"):
        AnswerLanguage(TAGS, tools=TOOLS, allowed=("b",))
    with pytest.raises(ValueError, match="no tool that may be called"):
        AnswerLanguage(TAGS, calls=Calls.REQUIRED)
    with pytest.raises(ValueError, match="no reasoning section"):
        AnswerLanguage(OBJECT, reasoning=Reasoning.OPTIONAL)


def test_answers_end_within_their_budget() -> None:
    answer = AnswerLanguage(TAGS, tools=TOOLS, calls=Calls.REQUIRED, reasoning=Reasoning.OPTIONAL)
    constraint = constrain.compile(answer, VOCABULARY)
    least = constraint.report.min_tokens
    for seed, most in enumerate((least, least + 3, 80, 200)):
        matcher, row, text = constraint.matcher(max_tokens=most), constraint.allocate_bitmask()[0], b""
        rng = Random(seed)
        for _ in range(most + 1):
            token = int(rng.choice(allowed(matcher, row)))
            assert matcher.accept(token)
            if token == VOCABULARY.eos[0]:
                break
            text += VOCABULARY.token_bytes(token)
        assert matcher.is_finished
        parsed = read_answer(answer, text)
        assert parsed.calls
        assert_calls_hold(answer, parsed)
