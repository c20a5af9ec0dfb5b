"""``AtLeast`` and its like: fields of Python types that bound each other."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter

import constrain
from constrain import SchemaError
from constrain.bounds import Above, AtLeast, AtMost, Below, ItemOf, SameAs, UniqueBy
from tests.support import byte_vocabulary, for_each


class Visit(BaseModel):
    end: Annotated[date, Above("from"), Field(le=date(2030, 12, 31))]
    start: date = Field(alias="from")
    paid: Annotated[float | None, AtMost("price")]
    price: float


def accepts(kind: Any, text: str) -> bool:
    return constrain.compile(kind, byte_vocabulary(), whitespace="compact", cache=False).accepts(text)


def test_fields_of_a_model() -> None:
    texts = {
        '{"from":"2024-01-01","end":"2024-01-02","price":2.5,"paid":2.5}': True,
        '{"from":"2024-01-01","end":"2024-01-02","price":2.5,"paid":null}': True,
        '{"from":"2024-01-01","end":"2024-01-01","price":2.5,"paid":2.5}': False,
        '{"from":"2024-01-01","end":"2024-01-02","price":2.5,"paid":2.6}': False,
        '{"from":"2030-12-31","end":"2031-01-01","price":2.5,"paid":2}': False,
    }
    for text, right in texts.items():
        assert accepts(Visit, text) == right, text
        if right:
            assert TypeAdapter(Visit).validate_json(text).end.year == 2024


@for_each(
    "kind, bound, keyword",
    (int, AtLeast("a"), ("minimum", "1/a")),
    (float, Above("a"), ("exclusiveMinimum", "1/a")),
    (date, AtMost("a/b"), ("formatMaximum", "1/a~1b")),
    (datetime, Below("/x/a"), ("formatExclusiveMaximum", "/x/a")),
    (time, AtLeast("2/a"), ("formatMinimum", "2/a")),
    (str, AtMost("a"), ("maxLength", "1/a")),
    (list[int], AtLeast("a"), ("minItems", "1/a")),
    (dict[str, int], AtLeast("a"), ("minProperties", "1/a")),
    (str, SameAs("a"), ("const", "1/a")),
    (str, ItemOf("a"), ("enum", "1/a")),
)
def test_keywords(kind: Any, bound: Any, keyword: tuple[str, str]) -> None:
    assert TypeAdapter(Annotated[kind, bound]).json_schema()[keyword[0]] == {"$data": keyword[1]}


@for_each("kind", timedelta, Decimal, int | str, bool, BaseModel)
def test_types_that_have_no_order(kind: Any) -> None:
    with pytest.raises(SchemaError, match="bounds int, float, date"):
        TypeAdapter(Annotated[kind, Above("a")]).json_schema()


class Person(BaseModel):
    name: str


class Talk(BaseModel):
    host: Annotated[str, ItemOf("/guests/*/name")]
    guests: list[Person]


def test_fields_of_items() -> None:
    assert accepts(Talk, '{"guests":[{"name":"a"},{"name":"b"}],"host":"b"}')
    assert not accepts(Talk, '{"guests":[{"name":"a"},{"name":"b"}],"host":"c"}')


def test_items_that_differ() -> None:
    assert accepts(Annotated[list[Person], UniqueBy("name")], '[{"name":"a"},{"name":"b"}]')
    assert not accepts(Annotated[list[Person] | None, UniqueBy("name")], '[{"name":"a"},{"name":"a"}]')
    assert TypeAdapter(Annotated[list[Person], UniqueBy("a/b")]).json_schema()["x-unique-by"] == "/a~1b"


def test_mistakes() -> None:
    with pytest.raises(SchemaError, match="is for lists, not for the type string"):
        TypeAdapter(Annotated[str, UniqueBy("name")]).json_schema()
    with pytest.raises(SchemaError, match="there are 'name'"):
        accepts(Annotated[list[Person], UniqueBy("id")], "")
    with pytest.raises(TypeError, match="needs its field"):
        TypeAdapter(Annotated[int, AtLeast]).json_schema()

    class Wrong(BaseModel):
        low: int
        high: Annotated[int, AtLeast("lo")]

    with pytest.raises(SchemaError, match="did you mean 'low'"):
        accepts(Wrong, "")
