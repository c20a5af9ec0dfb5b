"""Arguments in every style are read back as values of their schema; grammars within JSON strings."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest

import constrain
from constrain.chat.answers.choices import DEFAULT_POLICIES, Calls, FunctionCalls, Value
from constrain.chat.answers.escapes import spell_in_json
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.tools.compiled import ToolArguments, compile_arguments
from constrain.chat.tools.kinds import FunctionTool
from constrain.chat.tools.openai import tool_from_json
from tests.support import Tokens, Walker, byte_vocabulary, for_each
from tests.support.chat.forms import ELEMENTS, PYTHON, TAGS
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import walked
from tests.support.judging import validation_error

STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}

SCHEMAS: dict[str, Any] = {
    "no type": {"properties": {"a": STRING}},
    "optional": {"type": "object", "properties": {"a": STRING, "b": NUMBER, "c": {"type": ["string", "null"]}}},
    "counted": {"type": "object", "properties": {"a": STRING, "b": NUMBER, "c": STRING}, "minProperties": 2},
    "at most": {"type": "object", "properties": {"a": STRING, "b": NUMBER, "c": STRING}, "maxProperties": 1},
    "dependent": {
        "type": "object",
        "properties": {"a": STRING, "b": NUMBER, "c": STRING},
        "dependentRequired": {"a": ["c"]},
    },
    "either": {
        "type": "object",
        "properties": {"a": STRING, "b": NUMBER},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "conditional": {
        "type": "object",
        "properties": {"kind": {"enum": ["x", "y"]}, "a": {"type": "integer"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "x"}}},
        "then": {"required": ["a"]},
    },
    "one of": {
        "oneOf": [
            {"type": "object", "properties": {"k": {"const": "x"}, "a": NUMBER}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": "y"}, "b": STRING}, "required": ["k", "b"]},
        ]
    },
    "recursive": {"type": "object", "properties": {"v": STRING, "next": {"$ref": "#"}}, "required": ["v"]},
    "constants": {
        "type": "object",
        "properties": {"a": {"enum": ["true", True, None, 'q"\\', 1]}, "b": {"const": [None, {"x": False}]}},
        "required": ["a", "b"],
    },
    "strings": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": '^["\\\\\\n]{1,4}$'},
            "b": {"type": "string", "enum": ["\n", "</parameter>", '"', "é"]},
            "c": {"type": "string", "format": "date"},
            "d": {"type": "string", "minLength": 2, "maxLength": 5, "not": {"const": "ab"}},
        },
        "required": ["a", "b", "d"],
    },
    "different items": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": ["boolean", "null"]}, "uniqueItems": True}},
        "required": ["a"],
    },
    "within": {
        "type": "object",
        "properties": {"a": {"type": "object", "additionalProperties": {"type": ["boolean", "string"]}}, "b": {}},
        "required": ["a"],
    },
}
POLICIES = {
    "default": DEFAULT_POLICIES,
    "any": DEFAULT_POLICIES._replace(whitespace="any", property_order="any", numbers="any"),
    "compact": DEFAULT_POLICIES._replace(whitespace="compact"),
}


@pytest.mark.slow(but=("python-no type-any", "python-at most-default", "python-recursive-compact"))
@pytest.mark.parametrize("policies", POLICIES)
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("form", [TAGS, ELEMENTS, PYTHON], ids=lambda form: form.name)
def test_random_arguments_are_valid(form: Any, name: str, policies: str) -> None:
    tools = (FunctionCalls("f", json.dumps(SCHEMAS[name])),)
    answer = AnswerLanguage(form, tools=tools, calls=Calls.REQUIRED, parallel=False, policies=POLICIES[policies])
    for text in walked(answer, 1, count=6):
        (call,) = read_answer(answer, text).calls
        assert call.ended
        assert validation_error(SCHEMAS[name], (call.arguments or "").encode()) is None, text


@pytest.mark.parametrize("typed", [True, False])
def test_integers_that_python_types_read_are_plain_under_every_policy(*, typed: bool) -> None:
    """Pydantic reads 7e3 as a float; by JSON Schema it is an integer."""
    schema = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'
    answer = AnswerLanguage(
        TAGS,
        tools=(FunctionCalls("f", schema, typed=typed),),
        content=Value(schema, typed=typed),
        policies=DEFAULT_POLICIES._replace(numbers="any"),
    )
    constraint = constrain.compile(answer, byte_vocabulary(), cache=False)
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    for form in ("%s", call):
        assert constraint.accepts(form % '{"x": 7}')
        assert constraint.accepts(form % '{"x": 7e3}') is not typed


def counted_tools(count: int, schema: Any = None) -> tuple[FunctionCalls, ...]:
    """Tools of a chat completion, each with a schema of its own unless one is given."""
    described = ({"type": "object", "properties": {"x": {"type": "integer", "minimum": n}}} for n in range(count))
    tools = [
        tool_from_json({"type": "function", "name": f"f{n}", "parameters": schema or each})
        for n, each in enumerate(described)
    ]
    return tuple(FunctionCalls(tool.name, tool.schema_text) for tool in tools if isinstance(tool, FunctionTool))


@for_each("schema, compiled", (None, 9), ({"type": "object", "properties": {"only here": STRING}}, 1))
def test_a_schema_is_compiled_once_for_the_check_and_the_grammars_of_all_tools(schema: Any, compiled: int) -> None:
    memory: Any = compile_arguments.memory  # type: ignore[attr-defined]
    memory.clear()
    tools = counted_tools(9, schema)
    AnswerLanguage(TAGS, tools=tools).grammar()
    assert len(memory) == compiled
    changed = AnswerLanguage(TAGS, tools=(*tools[1:], FunctionCalls("g", '{"const": {}}')))
    changed.grammar()
    assert len(memory) == compiled + 1


def test_each_tool_has_the_steps_of_a_compilation_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = counted_tools(50)
    steps = compile_arguments(ToolArguments(tools[0].parameters)).steps
    monkeypatch.setattr("constrain.work.MAX_COMPILE_WORK", 20 * steps)
    AnswerLanguage(TAGS, tools=tools).grammar()
    compile_arguments.memory.clear()  # type: ignore[attr-defined]
    AnswerLanguage(TAGS, tools=tools).grammar()


PATCH = """\
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: add | delete | update
add: "*** Add File: " filename LF add_line+
delete: "*** Delete File: " filename LF
update: "*** Update File: " filename LF change+
filename: /(.+)/
add_line: "+" /(.*)/ LF
change: ("+" | "-" | " ") /(.*)/ LF
%import common.LF
"""

CHARACTERS = 'ab "\\\n'
LENGTH = 5

APART = {
    "a line": r'start: /.+/ "\n"',
    "a line that may be empty": r'start: /.*/ "\n"',
    "lines": 'start: (/[^\\n]+/ LF)+ "b"\n%import common.LF',
    "a line behind a mark": r'start: ("a" | "b") /.*/ "\n"',
    "a line in a rule of its own": 'start: name "\\n" name? "\\n"\nname: /.+/',
    "characters of several kinds": r'start: /a[^\n]{0,2}|b"(a|\\\\)*/ "\n"',
    "words in a line": 'start: A "\\n"\nA: "ab" | "a\\"" | /b*\\\\+/',
    "up to a quote": r"""start: /[^"]+/ "\"" """,
    "up to a backslash": r"start: /[^\\]+/ /\\+/",
    "a line beside a word that ends": 'start: (/[^\\n]+/ "\\n")* ("ab" | "a b")',
    "a line or nothing": r'start: "a" (/.+/ "\n" | "\n")',
}
"""Their terminals are read character by character."""

KEPT = {
    "no escapes": r'start: /[ab]+/ "\n"',
    "nothing behind": "start: /.+/",
    "the end shows at once": r'start: /["a]+/ "b"',
    "ends inside": r'start: /[^\n]*\n/ "a"',
}


@for_each("name", [*APART, *KEPT])
def test_the_texts_within_a_string_are_those_of_the_grammar(name: str) -> None:
    grammar = constrain.Lark({**APART, **KEPT}[name]).grammar()
    plain = constrain.compile(grammar, byte_vocabulary(), cache=False)
    spelled = constrain.compile(spell_in_json(grammar), byte_vocabulary(), cache=False)
    found = 0
    for length in range(LENGTH + 1):
        for letters in itertools.product(CHARACTERS, repeat=length):
            text = "".join(letters)
            accepted = plain.accepts(text)
            assert spelled.accepts(json.dumps(text)[1:-1]) == accepted, text
            found += accepted
    assert found


@for_each("name", [*APART, *KEPT])
def test_terminals_are_read_by_characters_only_where_that_is_needed(name: str) -> None:
    grammar = constrain.Lark({**APART, **KEPT}[name]).grammar()
    assert (len(spell_in_json(grammar).rules) > len(grammar.rules)) == (name in APART)


REFUSED = {
    "what follows begins with a character of it": 'start: A B\nA: /a[^b]*/\nB: /"b/',
    "what follows something beside it goes on with it": 'start: A "\\n" | "ab" B\nA: /[^\\n]+/\nB: "\\""',
    "what stands beside it begins with a character of it": 'start: A "\\n" | B "b"\nA: /[^\\n]+/\nB: /a"/',
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_the_longest_match_matters_terminals_stay_whole(name: str) -> None:
    grammar = constrain.Lark(REFUSED[name]).grammar()
    assert len(spell_in_json(grammar).rules) == len(grammar.rules)


def test_special_tokens_are_no_characters() -> None:
    grammar = constrain.Lark('start: /.+/ "\\n" <|end|>').grammar()
    assert len(spell_in_json(grammar).rules) == len(grammar.rules) + 1


@pytest.mark.slow
def test_a_grammar_with_very_many_places_is_left_alone() -> None:
    words = " | ".join(f'"{word}" /.+/' for word in range(1500))
    grammar = constrain.Lark(f'start: ({words}) "\\n"').grammar()
    assert len(spell_in_json(grammar).rules) == len(grammar.rules)


def test_every_walk_through_a_patch_in_a_string_is_a_patch() -> None:
    grammar = constrain.Lark(PATCH).grammar()
    plain = constrain.compile(grammar, byte_vocabulary(), cache=False)
    walker = Walker(constrain.compile(spell_in_json(grammar), byte_vocabulary(), cache=False), byte_vocabulary())
    rng, tokens = Random(5), Tokens(byte_vocabulary())
    for _ in range(60):
        text = walker.text(rng, tokens, rng.randrange(100, 200))
        assert plain.accepts(json.loads(b'"' + text + b'"')), text


@pytest.mark.parametrize(("grammar", "line"), [("start: <[7]>", 1), ('start: "a"\n  | <[5-9]>', 2)])
def test_tokens_by_id_are_refused_within_a_string(grammar: str, line: int) -> None:
    with pytest.raises(constrain.GrammarError, match="tokens by id may need an escape") as caught:
        spell_in_json(constrain.Lark(grammar).grammar())
    assert caught.value.line == line
