"""Messages about ``schema=`` arguments that are no schema: each says what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import annotated_types
import pydantic
import pytest

from constrain import Gbnf, Lark, Quote
from constrain.errors import GrammarError, SchemaError
from constrain.language.result import result_type
from constrain.language.schema_text import parse_schema, schema_text
from tests.support import for_each


class Person(pydantic.BaseModel):
    name: str


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


class Plain:
    name: str


WRONG: dict[str, tuple[Any, str]] = {
    "an instance of a model": (Person(name="Ada"), "pass the class, not an instance: schema=Person"),
    "an instance of a dataclass": (Point(1), "pass the class, not an instance: schema=Point"),
    "a member of an enum": (Colour.RED, "pass the class, not an instance: schema=Colour"),
    "an annotation": (Quote("report"), "it says more about a type: write Annotated[str, Quote(...)]"),
    "a bound": (annotated_types.Gt(3), "write Annotated[str, Gt(...)]"),
    "a number": (7, "pass the class, not an instance: schema=int"),
    "a plain class": (Plain, "write @dataclass above it, or derive it from pydantic.BaseModel"),
    "a list of values": (["red", "blue"], "write typing.Literal['red', 'blue']"),
    "many values": ([f"value {number}" for number in range(20)], "write typing.Literal[...]"),
    "a list of a class": ([Person], "write list[Person]"),
    "a list of classes": ((int, str), "write list[int | str]"),
    "a compiled pattern": (re.compile(r"\d+"), r"write constrain.Regex('\\d+', dialect='python')"),
    "a path": (Path("person.json"), "pass the text of the file: schema=path.read_text()"),
    "types in a dict": (
        {"name": str},
        'contains the Python type str, a value that JSON cannot express; write {"type": "string"}',
    ),
    "a class in a dict": (
        {"properties": {"who": Person}},
        "contains the Python type Person, a value that JSON cannot express; write its JSON Schema",
    ),
    "a pattern as text": (r"\d{3}", "a regular expression is Regex"),
    "a class of characters": ("[a-z]+", "a regular expression is Regex"),
    "alternatives": ("red|blue", "a regular expression is Regex"),
    "the name of a class": ("Person", r"'Person' names a class; pass the class itself, without quotation marks"),
    "the name of a class and its module": ("my.people:Person", "or write a key with a type (Person str)"),
    "a type as text": ("list[Person]", "a type of Python goes without quotation marks"),
    "a type with several parameters": ("dict[str, int]", "a type of Python goes without quotation marks"),
    "a type of TypeScript": ("Person[]", "a type of Python goes without quotation marks"),
    "the name of a file": ("person.json", "this is the name of a file: pass its text"),
    "Python for JSON": ("{'type': 'string'}", "JSON has double quotes"),
    "a grammar": ('start: "a"', "Lark(...) or --lark takes a grammar"),
    "a type that is nearly one": ("name sting", "unknown type 'sting' (did you mean string?)"),
    "a type alone": ("int", "write a key before it (answer int), or pass the type of Python itself"),
}


@for_each("case", WRONG)
def test_what_is_no_schema_gets_one_sentence_with_the_cure(case: str) -> None:
    schema, message = WRONG[case]
    for tightened in (False, True):
        with pytest.raises(SchemaError) as caught:
            parse_schema(schema_text(schema, tightened=tightened))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@for_each("case", [case for case in WRONG if not isinstance(WRONG[case][0], dict)])
def test_the_type_of_answers_is_refused_alike(case: str) -> None:
    schema, message = WRONG[case]
    with pytest.raises(SchemaError) as caught:
        result_type(schema)
    assert message in str(caught.value)


_FILE = "this is the name of a file: pass its text"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (Lark("json.lark"), _FILE),
        (Gbnf("folder/json.gbnf\n"), _FILE),
        (Lark("sql_select"), "this is a name: .*load\\('sql_select'\\)"),
    ],
)
def test_a_name_is_no_grammar(source: Lark | Gbnf, says: str) -> None:
    with pytest.raises(GrammarError, match=says):
        source.grammar()


def test_texts_that_may_be_json_get_no_advice() -> None:
    for text in ("", "{", '{"a": }', '["a",', '"a'):
        with pytest.raises(SchemaError) as caught:
            parse_schema(text)
        assert ";" not in str(caught.value)
