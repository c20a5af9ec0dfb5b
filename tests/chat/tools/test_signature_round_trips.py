"""Random signatures: whatever their schema lets through becomes a call, and every call can be written.

Functions are made from source text, so that it is Python that binds the arguments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import NotRequired, TypedDict

import constrain
from constrain import tool
from tests.support import LONG, Tokens, Walker, byte_vocabulary
from tests.support.judges import second_validation_error


class Color(Enum):
    RED = "r"
    BLUE = "b"


class Point(BaseModel):
    x: int
    y: Annotated[int, Field(alias="the y", ge=0)] = 0


class Node(BaseModel):
    value: bool
    next: Node | None = None


@dataclass
class Box:
    width: int


class Movie(TypedDict):
    title: Annotated[str, Field(max_length=5)]
    year: NotRequired[int]


EXAMPLES = 200 if LONG else 40
SMALL = st.integers(-1000, 1000)
WORD = st.text('abcé"\\ \n', max_size=4)
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "": (Any, st.one_of(st.none(), SMALL, WORD, st.lists(SMALL, max_size=2))),  # no annotation
    "int": (int, SMALL),
    "bool": (bool, st.booleans()),
    "str": (str, WORD),
    "date": (date, st.sampled_from(["2020-02-29", "0001-01-01"])),
    "Color": (Color, st.sampled_from(["r", "b"])),
    "Literal[1, 'a'] | None": (Literal[1, "a"] | None, st.sampled_from([1, "a", None])),
    "int | None": (int | None, st.one_of(st.none(), SMALL)),
    "list[int]": (list[int], st.lists(SMALL, max_size=3)),
    "tuple[int, str]": (tuple[int, str], st.tuples(SMALL, WORD).map(list)),
    "dict[str, bool]": (dict[str, bool], st.dictionaries(WORD, st.booleans(), max_size=2)),
    "Point": (Point, st.one_of(st.builds(lambda x: {"x": x}, SMALL), st.just({"x": 1, "the y": 2}))),
    "Node": (Node, st.sampled_from([{"value": True}, {"value": True, "next": {"value": False, "next": None}}])),
    "Box": (Box, st.builds(lambda width: {"width": width}, SMALL)),
    "Movie": (Movie, st.sampled_from([{"title": "a"}, {"title": "b", "year": 1}])),
    "Annotated[int, Field(ge=3, lt=9)]": (Annotated[int, Field(ge=3, lt=9)], st.integers(3, 8)),
    "Annotated[str, Field(pattern='^[ab]+$')]": (Annotated[str, Field(pattern="^[ab]+$")], st.text("ab", min_size=1)),
}
"""By annotation: the type, and JSON values of it."""

NAMES = [
    "a",
    "b",
    "path",
    "self",
    "cls",
    "_hidden",
    "__very",
    "schema",
    "copy",
    "json",
    "model_config",
    "model_fields",
    "args",
    "kwargs",
    "validate",
    "argument_0",
    "argument_1",
    "größe",
    "type",
    "date",
    "int",
]
ALIASES = ["the alias", "", "a", "b", "/~", 'quo"te', "kwargs"]

POSITIONAL_ONLY, EITHER, MORE, KEYWORD_ONLY, OTHERS = range(5)


@dataclass(frozen=True)
class Drawn:
    """A parameter: what kind, with which annotation, under which key, and whether it has a default (a text)."""

    name: str
    kind: int
    annotation: str
    key: str
    has_default: bool

    @property
    def source(self) -> str:
        stars = {MORE: "*", OTHERS: "**"}.get(self.kind, "")
        annotation = self.annotation
        if self.key != self.name:
            annotation = f"Annotated[{annotation or 'Any'}, Field(alias={self.key!r})]"
        return f"{stars}{self.name}" + (f": {annotation}" if annotation else "") + self.default

    @property
    def default(self) -> str:
        return f" = {self.name!r}" if self.has_default else ""

    def expected(self, value: Any) -> Any:
        """What the function is given for a JSON value."""
        kind = TYPES[self.annotation][0]
        if self.kind == MORE:
            return tuple(TypeAdapter(list[kind]).validate_json(json.dumps(value)))
        kind = dict[str, kind] if self.kind == OTHERS else kind
        return TypeAdapter(kind).validate_json(json.dumps(value))

    @property
    def if_left_out(self) -> Any:
        return {MORE: (), OTHERS: {}}.get(self.kind, self.name)


@st.composite
def signatures(draw: st.DrawFn) -> list[Drawn]:
    """Parameters in the order in which Python has them, with keys that differ."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=6, unique=True))
    kinds = sorted(draw(st.lists(st.sampled_from(range(5)), min_size=len(names), max_size=len(names))))
    for only_one in (MORE, OTHERS):
        first = kinds.index(only_one) if only_one in kinds else len(kinds)
        kinds = [
            kind if kind != only_one or index == first else (KEYWORD_ONLY if only_one == MORE else EITHER)
            for index, kind in enumerate(kinds)
        ]
    kinds.sort()
    parameters: list[Drawn] = []
    keys: set[str] = set()
    defaults = False  # of positional parameters, those after the first with a default have one, too
    for name, kind in zip(names, kinds, strict=True):
        annotation = draw(st.sampled_from([one for one in TYPES if one not in names]))
        key = draw(st.sampled_from([name, name, name, *ALIASES]))
        while key in keys or (key != name and key in names):
            key = f"{key}'"
        keys.add(key)
        wanted = draw(st.booleans())
        defaults = defaults or (wanted and kind <= EITHER)
        has_default = kind not in (MORE, OTHERS) and (defaults if kind <= EITHER else wanted)
        parameters.append(Drawn(name, kind, annotation, key, has_default))
    return parameters


def made_of(parameters: list[Drawn]) -> constrain.FunctionTool:
    """The tool of a function with these parameters, which returns them by name."""
    pieces: list[str] = []
    for index, one in enumerate(parameters):
        if one.kind == KEYWORD_ONLY and not any(other.kind in (MORE, KEYWORD_ONLY) for other in parameters[:index]):
            pieces.append("*")
        pieces.append(one.source)
        following = parameters[index + 1].kind if index + 1 < len(parameters) else OTHERS
        if one.kind == POSITIONAL_ONLY and following != POSITIONAL_ONLY:
            pieces.append("/")
    namespace = dict(globals())
    exec(f"def f({', '.join(pieces)}): return locals()", namespace)
    return tool(namespace["f"])


def check(made: constrain.FunctionTool, parameters: list[Drawn], arguments: dict[str, Any]) -> None:
    """Python gives the function what the arguments say, and what is left out has its default."""
    given_ = made.call(arguments)
    assert set(given_) == {one.name for one in parameters}
    for one in parameters:
        expected = one.expected(arguments[one.key]) if one.key in arguments else one.if_left_out
        assert given_[one.name] == expected, one


@pytest.mark.slow
@settings(
    max_examples=200 if LONG else 40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(signatures(), st.integers(0, 2**32))
def test_whatever_a_schema_lets_through_becomes_a_call(parameters: list[Drawn], seed: int) -> None:
    made = made_of(parameters)
    vocabulary = byte_vocabulary()
    constraint = constrain.compile(made.schema, vocabulary)
    walker, tokens = Walker(constraint, vocabulary), Tokens(vocabulary)
    for most in (0, 30, 100):
        text = walker.text(Random(seed + most), tokens, most)
        check(made, parameters, json.loads(text))


@pytest.mark.slow
@settings(
    max_examples=200 if LONG else 40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(signatures(), st.data())
def test_every_call_can_be_written(parameters: list[Drawn], data: st.DataObject) -> None:
    made = made_of(parameters)
    assert list(made.parameters["properties"]) == [one.key for one in parameters]
    required = [one.key for one in parameters if not one.has_default and one.kind not in (MORE, OTHERS)]
    assert made.parameters.get("required", []) == required
    assert made.parameters["additionalProperties"] is False
    by_name = {one.name for one in parameters if one.kind in (EITHER, KEYWORD_ONLY)}
    arguments: dict[str, Any] = {}
    for one in parameters:
        values = TYPES[one.annotation][1]
        if one.kind == MORE:
            values = st.lists(values, max_size=3)
        elif one.kind == OTHERS:
            keys = st.sampled_from([key for key in [*NAMES, *ALIASES] if key not in by_name])
            values = st.dictionaries(keys, values, max_size=3)
        if not (one.has_default or one.kind in (MORE, OTHERS)) or data.draw(st.booleans()):
            arguments[one.key] = data.draw(values)
    check(made, parameters, arguments)
    text = json.dumps(arguments, ensure_ascii=False)
    assert constrain.explain(made.schema, text).matches, (made.schema, text)
    assert second_validation_error(made.parameters, text.encode()) is None
