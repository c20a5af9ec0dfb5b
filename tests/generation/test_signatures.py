"""Options in signatures, and how often the schemas of a request are written and parsed."""

from __future__ import annotations

import inspect
import json
import pydoc
import re
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pydantic
import pytest

import constrain
from constrain.arguments import options_of as options_in
from constrain.generation.options import GROUPS, OPTION_DEFAULTS, OPTIONS, split_options
from constrain.generation.planning import prepare
from constrain.language.policies import DEFAULTS
from tests.support import each_row, for_each
from tests.support.schema_passes import MARK, counted_passes, new_schema, new_tools
from tests.support.type_checkers import CHECKERS, check

PLACES = (constrain, constrain.grammars, constrain.parts, constrain.prompts, constrain.strict, constrain.tools)
FUNCTIONS = {
    name: value for place in PLACES for name in place.__all__ if inspect.isfunction(value := getattr(place, name, None))
}
COMPILING = ["compile", "explain", "export"]
"""Functions that take the policies of ``compile`` alone."""


def parameters_of(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(FUNCTIONS[name]).parameters


GENERATING = [name for name in FUNCTIONS if "max_tokens" in parameters_of(name)]


def options_of(name: str) -> dict[str, object]:
    """The options in the signature of a public function, with their defaults."""
    known = constrain.options.ChatOptions.__annotations__
    return {each.name: each.default for each in parameters_of(name).values() if each.name in known}


@for_each("name", FUNCTIONS)
def test_no_function_hides_its_keywords(name: str) -> None:
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in parameters_of(name).values()}


@for_each("name", GENERATING)
def test_help_lists_every_option_with_its_meaning(name: str) -> None:
    assert options_of(name) == {each: OPTION_DEFAULTS[each] for each in constrain.options.ChatOptions.__annotations__}
    shown = pydoc.plain(pydoc.render_doc(FUNCTIONS[name]))
    assert [each for each in options_of(name) if f" {each}: '" not in shown and f' {each}: "' not in shown] == []
    described = shown.partition("Options:")[2]
    of_compile = {*DEFAULTS} - {"sources", "tables"}  # one line names them together
    assert [each for each in options_of(name).keys() - of_compile if f"    {each}: " not in described] == []


@pytest.mark.parametrize("name", COMPILING)
def test_help_lists_the_policies(name: str) -> None:
    assert options_of(name) == dict(DEFAULTS)


@for_each("name", constrain.options.ChatOptions.__annotations__)
def test_a_default_may_be_given(name: str) -> None:
    given: Mapping[str, object] = {name: OPTION_DEFAULTS[name]}
    assert split_options(given) == split_options({})  # type: ignore[arg-type]


@for_each("name", constrain.options.ChatOptions.__annotations__)
def test_an_option_is_declared_in_one_group_with_the_type_that_checkers_know(name: str) -> None:
    assert [name in options_in(group) for group in GROUPS].count(True) == 1
    declared, known = OPTIONS[name].annotation, constrain.options.ChatOptions.__annotations__[name].__forward_arg__
    assert declared == known or declared == "tuple[str, ...]", "Sampling has tuples of lists"


def test_the_classes_for_checkers_describe_their_options() -> None:
    for kind in (constrain.options.Options, constrain.options.ChatOptions):
        described = inspect.getdoc(kind) or ""
        own = kind.__annotations__.keys() - (
            constrain.options.Options.__annotations__ if kind is constrain.options.ChatOptions else ()
        )
        assert [name for name in own if not re.search(rf"^    (\w+, )*{name}(, \w+)*:", described, re.MULTILINE)] == []


TYPED = """
import constrain
from constrain.tools import ToolCall
from typing_extensions import assert_type

class Mail: ...

def double(n: int) -> int:
    return 2 * n

async def check(model: constrain.Model, done: constrain.Finished, some: constrain.Completion) -> None:
    assert_type(constrain.generate(model, "", schema=Mail), Mail)
    assert_type(constrain.generate(model, "", schema=int, n=5, vote=True, seed=1), int)
    assert_type(constrain.generate(model, "").upper(), str)
    assert_type(constrain.generate(model, "", tools=[double]), constrain.tools.Reply)
    assert_type(constrain.complete(model, "", schema=Mail), constrain.Completion[Mail])
    assert_type(constrain.complete(model, "", schema=list[int]).value, list[int])
    assert_type(constrain.complete(model, "", schema=constrain.Regex("a")).value, str)
    assert_type(constrain.complete(model, "", schema=Mail, tools=[double]).value.calls, tuple[ToolCall, ...])
    assert_type(await constrain.agenerate(model, "", schema=Mail), Mail)
    assert_type((await constrain.acomplete(model, "", schema=Mail)).value, Mail)
    assert_type(constrain.generate_batch(model, [""], schema=Mail), list[Mail])
    assert_type(constrain.complete_batch(model, [""], schema=Mail)[0].value, Mail)
    done.completion.value.anything, some.value.anything
    constrain.complete(model, "", schema={}).value.anything
    constrain.generate(model, "", schema=Mail, allow_refusal=True).anything
    constrain.generate(model, "", temprature=1)  # type: ignore[call-overload]
"""


@pytest.mark.parametrize("checker", CHECKERS)
def test_checkers_know_the_type_of_a_value(tmp_path: Path, checker: str) -> None:
    shown = check(checker, TYPED, tmp_path)
    assert re.search("^(Success|0 errors)", shown, re.MULTILINE), shown


_numbers = count()
REQUESTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"strict": True},
    "with refusal": {"allow_refusal": True},
    "strict with refusal": {"strict": True, "allow_refusal": True},
}
TOOLS = 20
Counts = list[tuple[int, int]]


def new_type() -> Any:
    name = f"{MARK}type_{next(_numbers)}"
    return pydantic.create_model("Kind", __config__=pydantic.ConfigDict(extra="forbid"), **{name: (float, ...)})  # type: ignore[call-overload]


def passes_of_two(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, schema: Any, options: dict[str, Any]
) -> Counts:
    """The counts of schemas that a request writes and parses, and those of its repetition."""
    counts = []
    for _ in range(2):
        with counted_passes(monkeypatch) as passes:
            prepare(model, "Hello", schema, {**options})  # type: ignore[typeddict-item]
        counts.append(passes.counts)
    return counts


@pytest.mark.parametrize("name", REQUESTS)
@each_row(
    "make, counts",
    (new_schema, [(1, 1), (1, 0)]),
    (lambda: json.dumps(new_schema()), [(0, 1), (0, 0)]),
    (new_type, [(1, 1), (0, 0)]),
    ids=["schema", "text", "type"],
)
def test_a_schema_is_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, make: Callable[[], Any], counts: Counts, name: str
) -> None:
    assert passes_of_two(monkeypatch, model, make(), REQUESTS[name]) == counts


@pytest.mark.parametrize("strict", [False, True])
def test_schemas_of_tools_are_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, strict: bool
) -> None:
    tools = new_tools(TOOLS, strict=strict)
    assert passes_of_two(monkeypatch, model, None, {"tools": tools}) == [(TOOLS, TOOLS), (TOOLS, 0)]


def test_schemas_of_functions_are_written_and_parsed_with_the_tool(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model
) -> None:
    with counted_passes(monkeypatch) as passes:

        @constrain.tool
        def forecast(counted_day: str, days: float = 0.5) -> None: ...

    assert passes.counts == (1, 1)
    assert passes_of_two(monkeypatch, model, None, {"tools": [forecast]}) == [(0, 0), (0, 0)]
