"""Signatures of every kind: the schema that is made of them, and the call that arguments become."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import pytest
from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, ConfigDict, Field, Json
from typing_extensions import Doc, NotRequired, ParamSpec, TypedDict, Unpack

import constrain
from constrain import ToolError, tool
from constrain.tools import ToolContext
from tests.support import for_each


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


class Tree(BaseModel):
    label: str
    children: list[Tree] = []


@dataclass
class Box:
    width: int


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Options(TypedDict, total=False):
    deep: bool
    limit: Annotated[int, Field(gt=0)]


class Pair(NamedTuple):
    first: int
    second: str


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Unfinished(BaseModel):
    part: Missing  # type: ignore[name-defined] # noqa: F821


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


T = TypeVar("T")
P = ParamSpec("P")


class Envelope(BaseModel, Generic[T]):
    content: T


def result(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


# Functions, and for each: arguments as JSON, and what is called


def none() -> Any:
    return result()


def plain(a: int, b: str = "b") -> Any:
    return result(a, b)


def positional_only(a: int, b: int = 2, /) -> Any:
    return result(a, b)


def keyword_only(*, a: int, b: int = 2) -> Any:
    return result(a=a, b=b)


def all_kinds(a: int, /, b: int, *more: int, c: int, d: int = 4, **others: int) -> Any:
    return result(a, b, *more, c=c, d=d, **others)


def default_before_more(a: int = 1, *more: int) -> Any:
    return result(a, *more)


def hidden_keyword(a: int, /, **others: int) -> Any:
    return result(a, **others)


def without_annotations(a, b=None, *more, **others):  # type: ignore[no-untyped-def]
    return result(a, b, *more, **others)


def of_models(point: Point, tree: Tree, box: Box, movie: Movie, pair: Pair, size: Size, day: date) -> Any:
    return result(point, tree, box, movie, pair, size, day)


def of_unions(pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")], other: Optional[int] = None) -> Any:  # noqa: UP007, UP045
    return result(pet, other)


def of_pets(*pets: Annotated[Cat | Dog, Field(discriminator="kind")]) -> Any:
    return result(*pets)


def generic(envelope: Envelope[list[int]]) -> Any:
    return result(envelope)


def alias(a: Annotated[int, Field(alias="first number")], b: int = Field(2, validation_alias="second")) -> Any:
    return result(a, b)


def crossed(a: Annotated[int, Field(alias="b")], b: Annotated[int, Field(alias="a")]) -> Any:
    return result(a, b)


def variadic_alias(*more: Annotated[int, Field(gt=0, alias="numbers")]) -> Any:
    return result(*more)


def field_defaults(
    a: int = Field(3, ge=1),
    b: list[int] = Field(default_factory=lambda: [1]),  # noqa: B008
    c: int = Field(..., lt=5),
) -> Any:
    return result(a, b, c)


def annotated_default(a: Annotated[int, Field(default=3)], b: Annotated[int, Field(default=3)] = 4) -> Any:
    return result(a, b)


def awkward(
    self: int, cls: int, model_config: int, schema: int, copy: int, json: int, _hidden: int, __very: int
) -> Any:
    return result(self, cls, model_config, schema, copy, json, _hidden, __very)


def more_awkward(
    model_fields: int, argument_0: int, kwargs: int, args: int, validate: int = 1, model_x: int = 2
) -> Any:
    return result(model_fields, argument_0, kwargs, args, validate, model_x)


def shadowing(date: date, int: int) -> Any:  # noqa: A002
    return result(date, int)


def unpacked(a: int, **options: Unpack[Options]) -> Any:
    return result(a, **options)


def unpacked_required(**movie: Unpack[Movie]) -> Any:
    return result(**movie)


LOCK = threading.Lock()


def odd_defaults(a: Any = LOCK, b: Any = ..., c: float = float("nan"), d: Any = {"lock": LOCK}, e: int = None) -> Any:  # type: ignore[assignment] # noqa: B006, RUF013
    assert a is LOCK
    assert b is ...
    assert c != c
    assert d["lock"] is LOCK
    return result(e)


def validated(even: Annotated[int, AfterValidator(lambda value: value * 2)]) -> Any:
    return result(even)


TREE = Tree(label="a", children=[Tree(label="b")])

CALLS: list[tuple[Callable[..., Any], dict[str, Any], tuple[tuple[Any, ...], dict[str, Any]]]] = [
    (none, {}, result()),
    (plain, {"a": 1}, result(1, "b")),
    (plain, {"b": "c", "a": 1}, result(1, "c")),
    (positional_only, {"a": 1}, result(1, 2)),
    (positional_only, {"a": 1, "b": 3}, result(1, 3)),
    (keyword_only, {"a": 1}, result(a=1, b=2)),
    (all_kinds, {"a": 1, "b": 2, "c": 3}, result(1, 2, c=3, d=4)),
    (
        all_kinds,
        {"a": 1, "b": 2, "more": [5, 6], "c": 3, "others": {"e": 7, "a": 8, "more": 9}},
        result(1, 2, 5, 6, c=3, d=4, e=7, a=8, more=9),
    ),
    (default_before_more, {}, result(1)),
    (default_before_more, {"more": [2]}, result(1, 2)),
    (hidden_keyword, {"a": 1, "others": {"a": 2, "others": 3, "": 4}}, result(1, **{"a": 2, "others": 3, "": 4})),
    (without_annotations, {"a": {"b": [1.5, None]}}, result({"b": [1.5, None]}, None)),
    (without_annotations, {"a": 1, "b": 2, "more": [3], "others": {"c": "d"}}, result(1, 2, 3, c="d")),
    (
        of_models,
        {
            "point": {"x": 1},
            "tree": {"label": "a", "children": [{"label": "b"}]},
            "box": {"width": 3},
            "movie": {"title": "Emma"},
            "pair": [1, "one"],
            "size": "l",
            "day": "2020-02-29",
        },
        result(Point(x=1), TREE, Box(3), {"title": "Emma"}, Pair(1, "one"), Size.LARGE, date(2020, 2, 29)),
    ),
    (of_unions, {"pet": {"kind": "dog", "name": "Rex"}}, result(Dog(kind="dog", name="Rex"), None)),
    (of_pets, {"pets": [{"kind": "cat", "lives": 9}]}, result(Cat(kind="cat", lives=9))),
    (generic, {"envelope": {"content": [1]}}, result(Envelope[list[int]](content=[1]))),
    (alias, {"first number": 1}, result(1, 2)),
    (alias, {"first number": 1, "second": 3}, result(1, 3)),
    (crossed, {"a": 1, "b": 2}, result(2, 1)),
    (variadic_alias, {"numbers": [1, 2]}, result(1, 2)),
    (field_defaults, {"c": 1}, result(3, [1], 1)),
    (annotated_default, {}, result(3, 4)),
    (
        awkward,
        dict.fromkeys(["self", "cls", "model_config", "schema", "copy", "json", "_hidden", "__very"], 1),
        result(*[1] * 8),
    ),
    (more_awkward, {"model_fields": 1, "argument_0": 2, "kwargs": 3, "args": 4}, result(1, 2, 3, 4, 1, 2)),
    (shadowing, {"date": "2020-01-01", "int": 1}, result(date(2020, 1, 1), 1)),
    (unpacked, {"a": 1}, result(1)),
    (unpacked, {"a": 1, "options": {"limit": 2}}, result(1, limit=2)),
    (unpacked_required, {"movie": {"title": "Emma"}}, result(title="Emma")),
    (odd_defaults, {}, result(None)),
    (odd_defaults, {"e": 1}, result(1)),
    (validated, {"even": 2}, result(4)),
]


@for_each("function, arguments, called", CALLS)
def test_arguments_become_the_call(function: Any, arguments: dict[str, Any], called: Any) -> None:
    made = tool(function)
    assert made.call(arguments) == called
    assert made.call(json.dumps(arguments)) == called
    assert made.call(json.dumps(arguments).encode()) == called
    for schema in (made.schema, made.parameters):
        assert constrain.explain(schema, json.dumps(arguments), property_order="any").matches


REFUSED_ARGUMENTS: list[tuple[Callable[..., Any], str, str | None]] = [
    (plain, "{}", ""),
    (plain, '{"a": "x"}', "/a"),
    (plain, '{"a": 1, "c": 2}', "/c"),
    (plain, '{"a": 1, "a": 2}', None),
    (plain, '{"a": 1', None),
    (plain, "[1]", None),
    (none, '{"a": 1}', "/a"),
    (positional_only, '{"b": 1}', ""),
    (all_kinds, '{"a": 1, "b": 2, "c": 3, "others": {"b": 4}}', "/others"),
    (all_kinds, '{"a": 1, "b": 2, "c": 3, "others": {"c": 4}}', "/others"),
    (all_kinds, '{"a": 1, "b": 2, "c": 3, "e": 4}', "/e"),
    (all_kinds, '{"a": 1, "b": 2, "c": 3, "more": ["x"]}', "/more/0"),
    (alias, '{"a": 1}', ""),
    (variadic_alias, '{"numbers": [0]}', "/numbers/0"),
    (field_defaults, '{"a": 0, "c": 1}', "/a"),
    (awkward, '{"argument_0": 1}', ""),
    (unpacked, '{"a": 1, "options": {"limit": 0}}', "/options/limit"),
    (unpacked_required, "{}", ""),
]


@for_each("function, text, pointer", REFUSED_ARGUMENTS)
def test_arguments_that_no_call_takes_are_refused_by_model_and_schema(
    function: Any, text: str, pointer: str | None
) -> None:
    made = tool(function)
    with pytest.raises(constrain.OutputValidationError) as caught:
        made.validate(text)
    assert caught.value.text == text
    assert caught.value.pointer == pointer
    for schema in (made.schema, made.parameters):
        assert not constrain.explain(schema, text, property_order="any").matches


def test_what_is_no_utf8_is_refused() -> None:
    for text in (b'{"a": 1, "b": "\xff"}', '{"a": 1, "b": "\ud800"}'):
        with pytest.raises(constrain.OutputValidationError, match="UTF-8"):
            tool(plain).validate(text)


def test_values_are_named_by_the_parameters_with_their_defaults() -> None:
    assert tool(alias).validate('{"first number": 1}').values == {"a": 1, "b": 2}
    assert tool(all_kinds).validate('{"a": 1, "b": 2, "c": 3}').values == {
        "a": 1,
        "b": 2,
        "more": [],
        "c": 3,
        "d": 4,
        "others": {},
    }


def test_a_default_that_can_be_changed_is_fresh_for_each_call() -> None:
    def add(item: int, to: list[int] = []) -> list[int]:  # noqa: B006
        to.append(item)
        return to

    made = tool(add)
    assert made.call({"item": 1}) == [1]
    assert made.call({"item": 2}) == [2]


# Schemas


def test_the_schema_of_a_file_reader_hides_the_context_and_makes_the_directory_optional() -> None:
    def read_file(ctx, path: str, directory: str | None = None) -> str:  # type: ignore[no-untyped-def]
        """Read the contents of a file.

        Args:
            path: The path to the file to read.
            directory: The directory to read the file from.
        """
        return f"{ctx}:{directory}/{path}"

    made = tool(read_file)
    assert made.name == "read_file"
    assert made.description == "Read the contents of a file."
    assert not made.strict
    assert made.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The path to the file to read."},
            "directory": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "The directory to read the file from.",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert made.call({"path": "a"}, context="disk") == "disk:None/a"


def test_strict_requires_every_parameter_and_keeps_what_may_be_null() -> None:
    def read_file(path: str, directory: str | None = None, lines: int = 10) -> Any:
        return result(path, directory, lines)

    made = tool(read_file, strict=True)
    assert made.strict
    assert made.parameters["required"] == ["path", "directory", "lines"]
    assert not constrain.strict.check_strict(made.parameters, subset="structural")
    assert not constrain.explain(made.schema, '{"path": "a"}').matches
    assert made.call('{"path": "a", "directory": null, "lines": 3}') == result("a", None, 3)


def test_no_titles_are_made_of_names_and_those_of_the_user_stay() -> None:
    def f(a: int, b: Annotated[int, Field(title="The b")]) -> None: ...

    assert tool(f).parameters["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer", "title": "The b"}}


def test_constraints_and_json_defaults_are_shown() -> None:
    def f(a: Annotated[int, Field(ge=1, le=5)] = 2, b: Size = Size.LARGE, c: date = date(2020, 1, 1)) -> None: ...

    properties = tool(f).parameters["properties"]
    assert properties["a"] == {"type": "integer", "minimum": 1, "maximum": 5, "default": 2}
    assert properties["b"]["default"] == "l"
    assert properties["c"]["default"] == "2020-01-01"


def test_what_tells_items_apart_is_shown() -> None:
    assert tool(of_pets).parameters["properties"]["pets"]["items"]["discriminator"]["propertyName"] == "kind"


def test_defaults_that_are_no_json_are_not_shown() -> None:
    properties = tool(odd_defaults).parameters["properties"]
    assert {name for name, schema in properties.items() if "default" in schema} == {"e"}


def test_names_of_parameters_that_are_not_shown_are_no_keys_either() -> None:
    def f(ctx, key: str, a: int, **others: int) -> Any:  # type: ignore[no-untyped-def]
        return result(ctx, key, a, **others)

    made = tool(functools.partial(f, key="secret", more=3))
    assert "ctx" not in json.dumps(made.parameters)
    assert "key" not in json.dumps(made.parameters).replace('"propertyNames"', "")
    assert "secret" not in json.dumps([made.parameters, made.schema])
    assert made.call({"a": 1, "others": {"b": 2}}, context=0) == result(0, "secret", 1, b=2, more=3)
    for key in ("ctx", "key", "a", "more"):
        text = json.dumps({"a": 1, "others": {key: 2}})
        assert not constrain.explain(made.schema, text).matches
        with pytest.raises(constrain.OutputValidationError):
            made.validate(text)


# Descriptions


def test_overrides_win_over_the_docstring_which_wins_over_annotations() -> None:
    def f(
        a: Annotated[int, Field(description="annotated a")],
        b: Annotated[int, Field(description="annotated b")],
        c: Annotated[int, Field(description="annotated c")],
        d: Annotated[int, "plain d"],
        e: Annotated[int, Doc("documented e")],
        g: int = Field(1, description="default g"),
        h: int = Field(1, description="default h"),
        *i: Annotated[int, Field(description="annotated i")],
        **j: int,
    ) -> None:
        """Does.

        Args:
            a: docstring a
            b: docstring b
            h: docstring h
            **j: docstring j
        """

    made = tool(f, description="Overridden.", descriptions={"a": "override a"})
    assert made.description == "Overridden."
    assert {name: schema["description"] for name, schema in made.parameters["properties"].items()} == {
        "a": "override a",
        "b": "docstring b",
        "c": "annotated c",
        "d": "plain d",
        "e": "documented e",
        "g": "default g",
        "h": "docstring h",
        "i": "annotated i",
        "j": "docstring j",
    }


def test_a_description_of_no_parameter_is_refused() -> None:
    def f(ctx, a: int) -> None: ...  # type: ignore[no-untyped-def]

    for name in ("b", "ctx"):
        with pytest.raises(ToolError, match=name):
            tool(f, descriptions={name: "?"})


# What is refused when the tool is made


def unresolvable(a: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821
def no_type(a: 3) -> None: ...  # type: ignore[valid-type]
def a_callable(fine: int, a: Callable[[int], int]) -> None: ...
def arbitrary(fine: int, a: threading.Thread) -> None: ...
def json_text(a: Json[list[int]]) -> None: ...
def unfinished_model(a: Unfinished) -> None: ...


def wrong_constraint(a: Annotated[int, Field(discriminator="x")]) -> None: ...
def choices(a: Annotated[int, Field(validation_alias=AliasChoices("b", "c"))]) -> None: ...
def path(a: Annotated[int, Field(validation_alias=AliasPath("b", 0))]) -> None: ...
def equal_aliases(a: Annotated[int, Field(alias="x")], b: Annotated[int, Field(alias="x")]) -> None: ...
def alias_of_a_name(a: Annotated[int, Field(alias="b")], b: int) -> None: ...
def alias_of_variadic(a: Annotated[int, Field(alias="more")], *more: int) -> None: ...
def context_second(a: int, ctx) -> None: ...  # type: ignore[no-untyped-def]
def marked_second(a: int, b: ToolContext[int]) -> None: ...
def context_by_name(*, ctx: ToolContext[int]) -> None: ...
def context_variadic(*ctx: ToolContext[int]) -> None: ...
def two_contexts(ctx: ToolContext[int], context: ToolContext[int]) -> None: ...
def nested_context(a: list[ToolContext[int]]) -> None: ...
def of_parameter_spec(*args: P.args, **kwargs: P.kwargs) -> None: ...
def unpacked_tuple(*args: Unpack[tuple[int, str]]) -> None: ...
def unpacked_twice(deep: bool, **options: Unpack[Options]) -> None: ...
def variadic_default(*args: Annotated[int, Field(default=1)]) -> None: ...
def yields() -> Iterator[int]:
    yield 1


async def yields_too() -> Any:
    yield 1


REFUSED: list[tuple[Any, str]] = [
    (unresolvable, "'a'.*Missing"),
    (no_type, "'a'"),
    (a_callable, "parameter 'a'"),
    (arbitrary, "parameter 'a'"),
    (json_text, "parameter 'a'"),
    (unfinished_model, "parameter 'a'"),
    (wrong_constraint, "parameter 'a'"),
    (choices, "'a'.*string"),
    (path, "'a'.*AliasPath.*alias"),
    (equal_aliases, "'a' and 'b'.*'x'"),
    (alias_of_a_name, "'a' and 'b'.*'b'"),
    (alias_of_variadic, "'a' and 'more'.*'more'"),
    (context_second, "'ctx'.*first"),
    (marked_second, "'b'.*first"),
    (context_by_name, "'ctx'.*first"),
    (context_variadic, "'ctx'.*first"),
    (two_contexts, "'context'.*first"),
    (nested_context, "'a'.*inside"),
    (of_parameter_spec, "args"),
    (unpacked_tuple, "'args'"),
    (unpacked_twice, "'deep'"),
    (variadic_default, "'args'.*default"),
    (yields, "yields"),
    (yields_too, "yields"),
    (Point, "schema="),
    (int, "schema="),
    (3, "not a function; pass the function itself"),
    ([], "not a function"),
    (max, "signature"),
    (lambda a: a, "<lambda>.*name="),
]


@for_each("function, said", REFUSED)
def test_what_no_tool_can_be_made_of_is_refused_at_definition(function: Any, said: str) -> None:
    with pytest.raises(ToolError, match=f"(?s){said}"):
        tool(function)


def test_types_that_cannot_be_enforced_are_refused_at_definition_with_the_place() -> None:
    def f(a: Annotated[list[int], Field(json_schema_extra={"not": {"uniqueItems": True}})]) -> None: ...

    with pytest.raises(constrain.UnsupportedSchemaError, match="tool 'f'") as caught:
        tool(f)
    assert caught.value.pointer == "/properties/a"


def test_types_without_values_are_refused_at_definition() -> None:
    def f(a: Annotated[int, Field(gt=3, lt=4)]) -> None: ...

    with pytest.raises(constrain.UnsatisfiableSchemaError, match="tool 'f'"):
        tool(f)


def test_strict_is_refused_for_arbitrary_keys() -> None:
    with pytest.raises(ToolError, match=r"hidden_keyword.*strict"):
        tool(hidden_keyword, strict=True)


def test_a_strict_tool_refuses_what_its_schema_refuses() -> None:
    with pytest.raises(constrain.OutputValidationError, match="plain"):
        tool(plain, strict=True).validate('{"a": 1}')


def test_references_to_local_types_are_resolved_where_the_tool_is_made() -> None:
    class Local(BaseModel):
        model_config = ConfigDict(frozen=True)
        a: int

    def f(local: Local) -> Any:
        return local

    @tool(name="decorated")
    def g(local: list[Local]) -> Any:
        return local

    class Holder:
        class Inner(BaseModel):
            b: int

        @tool
        def method(self, local: Local, inner: Inner) -> Any:
            return local.a + inner.b

    assert tool(f).call({"local": {"a": 1}}) == Local(a=1)
    assert g.call({"local": [{"a": 1}]}) == [Local(a=1)]
    assert Holder().method.call({"local": {"a": 1}, "inner": {"b": 2}}) == 3


def test_locals_of_a_caller_do_not_stand_in_for_names_of_the_functions_module() -> None:
    Point = "something else"  # noqa: F841, N806
    assert tool(of_models).parameters["properties"]["point"] == {"$ref": "#/$defs/Point"}


def test_return_annotations_are_not_read() -> None:
    def f() -> Missing: ...  # type: ignore[name-defined] # noqa: F821

    assert tool(f).call({}) is None
