"""Tools of functions, methods and objects; their docstrings; running them; custom tools."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import functools
import inspect
import json
import threading
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

import constrain
from constrain import Lark, Regex, ToolError, tool
from constrain.chat.tools.calls import CustomCall, FunctionCall
from constrain.chat.tools.definition import as_tools
from constrain.chat.tools.docstrings import read_docstring
from constrain.tools import CustomTool, FunctionTool, ToolContext, tool_from_json, tool_to_json
from tests.support import Tokens, Walker, byte_vocabulary, data_folder, for_each, tomllib
from tests.support.judges import second_validation_error


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int = 1) -> int:
    """Adds, later."""
    await asyncio.sleep(0)
    return a + b


# What a tool can be made of


def test_a_function_becomes_a_tool_and_stays_callable() -> None:
    made = tool(add)
    assert isinstance(made, FunctionTool)
    assert (made.name, made.description, made.strict) == ("add", "Adds.", False)
    assert made(2, b=3) == 5
    assert made.call({"a": 2}) == 3


def test_the_decorator_takes_arguments_or_none() -> None:
    @tool
    def one(a: int) -> int:
        return a

    @tool(name="other", description="Does.", descriptions={"a": "it"}, strict=True)
    def two(a: int = 1) -> int:
        return a

    assert (one.name, one.description) == ("one", "")
    assert (two.name, two.description, two.strict) == ("other", "Does.", True)
    assert two.parameters["properties"]["a"]["description"] == "it"
    assert two.parameters["required"] == ["a"]


def test_an_empty_description_overrides_that_of_the_docstring() -> None:
    assert tool(add, description="").description == ""


def test_a_decorated_function_is_called_as_decorated() -> None:
    def doubled(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return 2 * function(*args, **kwargs)

        return wrapper

    made = tool(doubled(add))
    assert list(made.parameters["properties"]) == ["a", "b"]
    assert (made.name, made.description) == ("add", "Adds.")
    assert made.call({"a": 1, "b": 2}) == 6


class Account:
    """An account."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance

    @tool
    def deposit(self, amount: Annotated[int, Field(gt=0)]) -> int:
        """Pays in.

        Args:
            amount: how much
        """
        self.balance += amount
        return self.balance

    @tool(name="transfer_money")
    async def transfer(self, ctx: ToolContext[str], amount: int) -> str:
        return f"{ctx} {self.balance - amount}"

    @tool
    @classmethod
    def open(cls, balance: int) -> Account:
        return cls(balance)

    @tool
    @staticmethod
    def currency(code: str) -> str:
        return code.upper()

    def withdraw(self, amount: int) -> int:
        """Pays out."""
        return self.balance - amount

    def __call__(self, amount: int) -> int:
        """Pays, somehow."""
        return amount


def test_a_method_becomes_a_tool_of_each_object() -> None:
    one, other = Account(1), Account(2)
    assert one.deposit.parameters["properties"] == {
        "amount": {"type": "integer", "exclusiveMinimum": 0, "description": "how much"}
    }
    assert one.deposit.call({"amount": 5}) == 6
    assert other.deposit(1) == 3
    assert (one.balance, other.balance) == (6, 3)
    assert other.transfer.call({"amount": 1}, context="left:") == "left: 2"


def test_class_methods_and_static_methods_become_tools() -> None:
    for holder in (Account, Account(3)):
        assert holder.open.call({"balance": 4}).balance == 4
        assert holder.currency.call({"code": "eur"}) == "EUR"


def test_a_method_of_an_object_is_a_tool() -> None:
    made = tool(Account(5).withdraw)
    assert (made.name, made.description) == ("withdraw", "Pays out.")
    assert made.call({"amount": 1}) == 4


def test_a_method_without_its_object_cannot_be_run() -> None:
    for unbound in (Account.deposit, tool(Account.withdraw)):
        with pytest.raises(ToolError, match="instance of the class"):
            unbound.call({"amount": 1})
        with pytest.raises(ToolError, match="instance of the class"):
            as_tools([unbound])


def test_an_object_that_can_be_called_is_a_tool() -> None:
    made = tool(Account(), name="pay")
    assert (made.name, made.description) == ("pay", "Pays, somehow.")
    assert made.call({"amount": 2}) == 2
    assert tool(Account()).name == "Account"


def test_what_a_partial_gives_is_not_shown() -> None:
    made = tool(functools.partial(functools.partial(add, 3), b=4))
    assert (made.name, made.description) == ("add", "Adds.")
    assert made.parameters["properties"] == {}
    assert made.call({}) == 7


def test_a_tool_of_a_tool_is_refused() -> None:
    with pytest.raises(ToolError, match="already"):
        tool(tool(add))  # type: ignore[arg-type]


@for_each("name", ["", "two words", "größe", "a" * 257, "a:b"])
def test_names_that_no_endpoint_takes_are_refused(name: str) -> None:
    with pytest.raises(ToolError, match="a name has"):
        tool(add, name=name)
    with pytest.raises(ToolError, match="a name has"):
        CustomTool(name)


# Context


def test_a_marked_context_is_what_the_caller_gives() -> None:
    @tool
    def owner(whose: ToolContext[dict[str, str]], key: str) -> str:
        return whose[key]

    assert list(owner.parameters["properties"]) == ["key"]
    assert owner.takes_context
    assert owner.call({"key": "a"}, context={"a": "Emma"}) == "Emma"


def test_a_context_may_be_optional_or_positional_only() -> None:
    @tool
    def one(ctx: ToolContext[str] | None = None) -> object:
        return ctx

    @tool
    def two(context, /, a: int) -> object:  # type: ignore[no-untyped-def]
        return context, a

    assert one.parameters["properties"] == {}
    assert (one.call({}), one.call({}, context="c")) == (None, "c")
    assert two.call({"a": 1}, context="c") == ("c", 1)


def test_an_annotated_parameter_called_context_is_the_models() -> None:
    @tool
    def answer(context: str, question: str) -> str:
        return context + question

    assert list(answer.parameters["properties"]) == ["context", "question"]
    assert not answer.takes_context
    assert answer.call({"context": "a", "question": "b"}, context="c") == "ab"


# Running


def test_async_tools_run_with_and_without_a_loop() -> None:
    made = tool(add_later)
    assert made.call({"a": 1}) == 2
    assert asyncio.run(made.acall({"a": 1, "b": 5})) == 6


def test_an_async_tool_is_awaited_inside_a_loop() -> None:
    async def inside() -> None:
        with pytest.raises(ToolError, match="acall"):
            tool(add_later).call({"a": 1})
        assert await tool(add_later).acall({"a": 1}) == 2
        assert tool(add).call({"a": 1}) == 2

    asyncio.run(inside())


def test_a_function_that_is_not_async_leaves_the_loop_free() -> None:
    begun, ended = threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return ended.wait(60)

    async def inside() -> bool:
        running = asyncio.create_task(tool(wait).acall({}))
        while not begun.is_set():
            await asyncio.sleep(0)
        ended.set()
        return await running

    assert asyncio.run(inside())


def test_context_variables_reach_the_thread() -> None:
    variable = contextvars.ContextVar("variable", default="none")

    def get() -> str:
        return variable.get()

    async def inside() -> str:
        variable.set("set")
        result: str = await tool(get).acall({})
        return result

    assert asyncio.run(inside()) == "set"


def test_what_a_function_returns_is_awaited_if_it_can_be() -> None:
    def disguised(a: int) -> Any:
        return add_later(a)

    assert tool(disguised).call({"a": 1}) == 2
    assert asyncio.run(tool(disguised).acall({"a": 1})) == 2


def test_what_a_function_raises_comes_through() -> None:
    def fail(a: int) -> None:
        raise KeyError(a)

    with pytest.raises(KeyError):
        tool(fail).call({"a": 1})
    with pytest.raises(KeyError):
        asyncio.run(tool(fail).acall({"a": 1}))


def test_a_call_holds_its_arguments_and_runs() -> None:
    made = tool(add)
    call = FunctionCall("call_1", made, made.read('{"b": 2, "a": 1}'))
    assert (call.id, call.name, call.text, call.arguments) == ("call_1", "add", '{"b": 2, "a": 1}', {"a": 1, "b": 2})
    assert call.call() == 3
    assert asyncio.run(call.acall()) == 3


def test_validated_arguments_are_not_validated_again() -> None:
    read = []

    def f(a: Annotated[int, AfterValidator(lambda value: read.append(value) or value)]) -> int:
        return a

    made = tool(f)
    assert made.call(made.validate('{"a": 1}')) == 1
    assert read == [1]


# Custom tools


def test_a_custom_tool_takes_a_text_of_its_format() -> None:
    made = CustomTool("shout", "Shouts.", Regex("[a-z]+"), str.upper)
    assert made.validate("abc") == "abc"
    with pytest.raises(constrain.OutputValidationError, match="shout"):
        made.validate("ABC")
    assert made.call("abc") == "ABC"
    assert asyncio.run(made.acall("abc")) == "ABC"
    call = CustomCall("call_2", made, "abc")
    assert (call.name, call.call(), asyncio.run(call.acall())) == ("shout", "ABC", "ABC")


def test_a_custom_tool_without_format_takes_any_text() -> None:
    assert CustomTool("free").validate("any\ntext {") == "any\ntext {"


def test_a_custom_tool_passes_the_context_on() -> None:
    def say(ctx, text: str) -> str:  # type: ignore[no-untyped-def]
        return f"{ctx}: {text}"

    made = CustomTool("say", function=say)
    assert made.takes_context
    assert made.call("hello", context="Emma") == "Emma: hello"


def test_custom_tools_are_refused_at_definition() -> None:
    with pytest.raises(constrain.GrammarError, match="tool 'a'") as caught:
        CustomTool("a", format=Lark("start: b\n"))
    assert caught.value.line == 1
    with pytest.raises(constrain.PatternError, match="tool 'a'"):
        CustomTool("a", format=Regex("[a&&b]"))
    with pytest.raises(ToolError, match="format"):
        CustomTool("a", format="[a-z]")  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="does not accept"):
        CustomTool("a", function=lambda: None)


def test_tools_without_a_function_say_so() -> None:
    with pytest.raises(ToolError, match="no function"):
        CustomTool("a").call("text")


# Lists of tools


def test_functions_tools_and_json_may_stand_in_one_list() -> None:
    tools = as_tools([add, tool(add, name="plus"), {"type": "function", "name": "ask"}, CustomTool("free")])
    assert [one.name for one in tools] == ["add", "plus", "ask", "free"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolError, match="'add'"):
        as_tools([add, tool(add)])


@for_each(
    "second",
    "add",
    tool(add),
    {"type": "function"},
    {"type": "function", "name": "f", "parameters": {"type": "string"}},
    {"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": "regex", "definition": "("}},
)
def test_errors_say_which_tool_of_a_list_is_wrong(second: Any) -> None:
    with pytest.raises(constrain.ConstrainError, match=r"^((at /\S* *|line 1, column 1): )?tools\[1\]: "):
        as_tools([add, second])


@pytest.mark.parametrize("given", [add, "add", {"type": "function", "name": "f"}])
def test_tools_are_a_list(given: Any) -> None:
    with pytest.raises(ToolError, match="must be a list"):
        as_tools(given)


CASES = tomllib.loads((Path(__file__).parent / "data" / "docstrings.toml").read_text(encoding="utf-8"))["docstring"]


@for_each("case", CASES)
def test_description_and_parameters_are_read(case: dict[str, Any]) -> None:
    found = read_docstring(inspect.cleandoc(case["text"]))
    assert found.description == case["description"]
    assert found.parameters == case.get("parameters", {})


WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather, now.",
    "parameters": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "pattern": "^[a-z]{1,20}$"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["location"],
    },
}
PLACE: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string", "maxLength": 3}}}


def nested(document: dict[str, Any]) -> dict[str, Any]:
    """The shape of chat completions."""
    inner = {key: value for key, value in document.items() if key != "type"}
    if "format" in inner and inner["format"]["type"] == "grammar":
        grammar = {key: value for key, value in inner["format"].items() if key != "type"}
        inner["format"] = {"type": "grammar", "grammar": grammar}
    return {"type": document["type"], document["type"]: inner}


def with_strict(document: dict[str, Any], strict: Any) -> dict[str, Any]:
    return {**document, "strict": strict}


CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"location": {"type": "string"}},
    "required": ["location"],
    "additionalProperties": False,
}

# Function tools


@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_both_shapes_are_read(shape: str) -> None:
    document = nested(WEATHER) if shape == "chat" else WEATHER
    before = copy.deepcopy(document)
    made = tool_from_json(document)
    assert isinstance(made, FunctionTool)
    assert (made.name, made.description, made.strict) == ("get_weather", "Weather, now.", False)
    assert made.parameters == WEATHER["parameters"]
    made.parameters["properties"].clear()
    assert document == before


@pytest.mark.parametrize("strict", [None, False])
def test_what_is_not_strict_stays_so(strict: bool | None) -> None:
    made = tool_from_json(with_strict(WEATHER, strict))
    assert isinstance(made, FunctionTool)
    assert not made.strict
    assert made.parameters["required"] == ["location"]
    assert made.validate('{"location": "oslo"}').values == {"location": "oslo"}
    assert tool_to_json(made, "responses") == with_strict(WEATHER, strict=False)
    again = tool_from_json(tool_to_json(made))
    assert isinstance(again, FunctionTool)
    assert not again.strict
    assert again.parameters == made.parameters


def test_strict_parameters_must_keep_the_structural_rules() -> None:
    made = tool_from_json({"type": "function", "name": "f", "parameters": CLOSED, "strict": True})
    assert isinstance(made, FunctionTool)
    assert made.strict
    with pytest.raises(constrain.SchemaError, match="additionalProperties") as caught:
        tool_from_json(with_strict(WEATHER, strict=True))
    assert "get_weather" in str(caught.value)
    assert "days" in str(caught.value)


@pytest.mark.parametrize("parameters", [{}, {"parameters": None}, {"parameters": {"type": "object", "properties": {}}}])
def test_without_parameters_there_are_no_arguments(parameters: dict[str, Any]) -> None:
    made = tool_from_json({"type": "function", "name": "now", **parameters}, lambda: "now")
    assert made.call("{}") == "now"
    with pytest.raises(constrain.OutputValidationError):
        made.validate('{"a": 1}')


@for_each(
    "text",
    ['{"location": "Oslo"}', "{}", '{"location": "a", "days": 0}', "[]", "{", '{"location": "a", "location": "b"}'],
)
def test_arguments_that_the_schema_does_not_take_are_refused(text: str) -> None:
    with pytest.raises(constrain.OutputValidationError) as caught:
        tool_from_json(WEATHER).validate(text)
    assert caught.value.text == text


@pytest.mark.parametrize("text", ['{"days": 2.0, "location":\n"a"}', '{ "location" : "a" , "more": null }'])
def test_arguments_may_be_in_any_order_and_spelling(text: str) -> None:
    made = tool_from_json(WEATHER)
    assert isinstance(made, FunctionTool)
    assert made.validate(text).values == json.loads(text)


def test_characters_may_be_escaped_in_any_way() -> None:
    made = tool_from_json({"type": "function", "name": "f", "parameters": PLACE})
    assert made.validate(r'{"place": "\u00e9\u0001\/"}').values == {"place": "é\x01/"}  # type: ignore[union-attr]
    with pytest.raises(constrain.OutputValidationError):
        made.validate(r'{"place": "\ud800"}')


def test_arguments_are_an_object_even_where_the_schema_does_not_say_so() -> None:
    made = tool_from_json({"type": "function", "name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}})
    with pytest.raises(constrain.OutputValidationError):
        made.validate("3")
    with pytest.raises(constrain.SchemaError, match="array"):
        tool_from_json({"type": "function", "name": "f", "parameters": {"type": "array"}})


def test_a_function_runs_with_the_arguments_by_name() -> None:
    def weather(ctx: constrain.tools.ToolContext[str], location: str, days: int = 1) -> str:
        return f"{ctx} {location} {days}"

    made = tool_from_json(WEATHER, weather)
    assert made.call({"location": "oslo"}, context="sunny:") == "sunny: oslo 1"


def other_name(place: str, days: int = 1) -> None: ...


def without_default(location: str, days: int) -> None: ...


def too_few(location: str) -> None: ...


def by_position(location: str, /, days: int = 1) -> None: ...


def test_a_function_takes_whatever_keys_an_open_object_may_have() -> None:
    document = {"type": "function", "name": "note", "parameters": {"type": "object"}}
    assert tool_from_json(document, lambda **keys: keys).call('{"a": 1}') == {"a": 1}
    with pytest.raises(ToolError, match="any_other"):
        tool_from_json(document, lambda a=None: a)


@for_each("function", [other_name, without_default, too_few, by_position])
def test_a_function_that_cannot_take_the_arguments_is_refused(function: Any) -> None:
    with pytest.raises(ToolError, match="get_weather"):
        tool_from_json(WEATHER, function)


def test_parameters_that_cannot_be_enforced_are_refused_with_the_place() -> None:
    parameters = {"type": "object", "properties": {"a": {"const": 1e300}}}
    with pytest.raises(constrain.UnsupportedSchemaError, match="tool 'f'") as caught:
        tool_from_json({"type": "function", "name": "f", "parameters": parameters})
    assert caught.value.pointer == "/properties/a/const"


PATTERN = {"type": "grammar", "syntax": "regex", "definition": r"\p{L}\cA"}


def test_a_pattern_may_be_of_another_dialect() -> None:
    made = tool_from_json({"type": "custom", "name": "a", "format": {**PATTERN, "dialect": "ecma"}})
    assert isinstance(made, CustomTool)
    assert made.format == Regex(PATTERN["definition"], "ecma")
    with pytest.raises(constrain.PatternError):
        tool_from_json({"type": "custom", "name": "a", "format": PATTERN})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "/type"),
    ({"type": "web_search"}, "/type"),
    ({"type": "function"}, "/name"),
    ({"type": "function", "function": {}}, "/function/name"),
    ({"type": "function", "function": []}, "/function"),
    ({"type": "function", "name": "a b"}, "/name"),
    ({"type": "function", "function": {"name": "a:b"}}, "/function/name"),
    ({"type": "function", "name": "a", "description": 3}, "/description"),
    ({"type": "function", "name": "a", "strict": "yes"}, "/strict"),
    ({"type": "function", "name": "a", "parameters": True}, "/parameters"),
    ({"type": "custom", "custom": {"name": "a", "format": "x"}}, "/custom/format"),
    ({"type": "custom", "custom": {"name": "a", "format": {}}}, "/custom/format/type"),
    ({"type": "custom", "name": "a", "format": {"type": "json"}}, "/format/type"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar"}}, "/format/syntax"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar", "grammar": {}}}, "/format/grammar/syntax"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "lark"}}, "/format/definition"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "x", "definition": ""}}, "/format/syntax"),
    ({"type": "custom", "name": "a", "format": {**PATTERN, "dialect": "perl"}}, "/format/dialect"),
]


@for_each("document, pointer", REFUSED)
def test_other_documents_are_refused_with_the_place(document: dict[str, Any], pointer: str) -> None:
    with pytest.raises(ToolError) as caught:
        tool_from_json(document)
    assert caught.value.pointer == pointer


# Custom tools


def test_custom_tools_are_written_in_both_shapes() -> None:
    made = CustomTool("digits", "Digits.", Regex("[0-9]+"))
    grammar = {"syntax": "regex", "definition": "[0-9]+"}
    assert tool_to_json(made, "responses") == {
        "type": "custom",
        "name": "digits",
        "description": "Digits.",
        "format": {"type": "grammar", **grammar},
    }
    assert tool_to_json(made) == {
        "type": "custom",
        "custom": {"name": "digits", "description": "Digits.", "format": {"type": "grammar", "grammar": grammar}},
    }
    assert tool_to_json(CustomTool("free"), "responses")["format"] == {"type": "text"}


@pytest.mark.parametrize(
    "source", [Regex("a", dialect="ecma"), Lark("begin: /a/", start="begin"), constrain.parts.text()]
)
def test_formats_that_openai_does_not_have_are_not_written(source: Any) -> None:
    with pytest.raises(ToolError, match="digits"):
        tool_to_json(CustomTool("digits", format=source))


# OpenAI's examples


def examples() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data_folder() / "openai-examples.json").read_text(encoding="utf-8"))
    return found


def walks(schema: dict[str, Any]) -> list[str]:
    vocabulary = byte_vocabulary()
    constraint = constrain.compile(schema, vocabulary)
    walker, tokens = Walker(constraint, vocabulary), Tokens(vocabulary)
    return [walker.text(Random(seed), tokens, most=60).decode() for seed in range(10)]


def test_every_function_tool_of_the_examples_is_read_written_and_run() -> None:
    for document in examples()["function_tools"].values():
        for shaped, shape in ((document, "responses"), (nested(document), "chat")):
            made = tool_from_json(shaped, lambda **arguments: arguments)
            assert isinstance(made, FunctionTool)
            written = with_strict(document, document.get("strict", False))
            assert tool_to_json(made, shape) == (nested(written) if shape == "chat" else written)  # type: ignore[arg-type]
            for text in walks(made.schema):
                assert made.call(text) == json.loads(text)
                assert second_validation_error(document["parameters"], text.encode()) is None


def test_every_custom_tool_of_the_examples_takes_what_it_should() -> None:
    for document in examples()["custom_tools"].values():
        given = {key: value for key, value in document.items() if key not in ("accept", "reject")}
        for shaped, shape in ((given, "responses"), (nested(given), "chat")):
            made = tool_from_json(shaped, lambda text: text)
            assert isinstance(made, CustomTool)
            if "format" in given:
                assert tool_to_json(made, shape) == shaped  # type: ignore[arg-type]
            for text in document.get("accept", ["print('any text')"]):
                assert made.call(made.validate(text)) == text
            for text in document.get("reject", ()):
                with pytest.raises(constrain.OutputValidationError):
                    made.validate(text)


def quoting(quote: object, **more: object) -> constrain.tools.FunctionTool:
    parameters = {"type": "object", "properties": {"it": {"type": "string", "x-quote": quote}}, **more}
    tool = constrain.tools.tool_from_json({"type": "function", "name": "f", "parameters": parameters})
    assert isinstance(tool, constrain.tools.FunctionTool)
    return tool


def test_arguments_are_compared_with_the_sources_in_the_schema_alone() -> None:
    assert quoting(True).validate('{"it": "anything"}').values == {"it": "anything"}
    with_source = quoting("page", **{"x-sources": {"page": "One page"}})
    assert with_source.validate('{"it": "One"}').values == {"it": "One"}
    with pytest.raises(constrain.OutputValidationError, match="invalid arguments of tool 'f'"):
        with_source.validate('{"it": "anything"}')


def test_a_malformed_quote_in_a_tool_is_named() -> None:
    with pytest.raises(constrain.SchemaError, match=r"the parameters of tool 'f': .*no option 'folds'") as caught:
        quoting({"folds": True})
    assert caught.value.pointer == "/properties/it/x-quote"
