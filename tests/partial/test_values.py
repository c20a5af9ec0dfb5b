"""Values of random types while they are written: nothing that is complete changes, and the last one is the value."""

from __future__ import annotations

import dataclasses
import re
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, Optional, Union
from uuid import UUID

import pydantic
import pytest
from pydantic import BaseModel, Field, RootModel, TypeAdapter
from typing_extensions import TypedDict

import constrain
from constrain.engine.compiling import compile_any
from constrain.language.result import result_type
from constrain.partial.reader import FieldReader, Fields
from constrain.types.answer_text import read_answer
from tests.soundness.models import Models
from tests.soundness.search import walked
from tests.support import LONG, byte_vocabulary, each_row, for_each

SEEDS = range(500 if LONG else 60)
_NONE = object()


class Types(Models):
    """Makes dataclasses, typed dictionaries, tagged unions and models of one root, too."""

    def kind(self, depth: int) -> Any:
        if depth and self.rng.random() < 0.3:
            return self.rng.choice((self.dataclass, self.typed_dict, self.tagged, self.root, self.anything))(depth - 1)
        return super().kind(depth)

    def config(self) -> pydantic.ConfigDict:
        """Settings under which the values of texts are other texts."""
        if self.rng.random() < 0.5:
            return {}
        return {"str_strip_whitespace": self.rng.random() < 0.5, "str_to_upper": self.rng.random() < 0.5}

    def fields(self, depth: int) -> list[tuple[str, Any]]:
        return [(name, self.kind(depth)) for name in self.rng.sample(("a", "b", "c"), self.rng.randint(1, 3))]

    def dataclass(self, depth: int) -> Any:
        self.made += 1
        made = dataclasses.make_dataclass(f"D{self.made}", self.fields(depth))
        return pydantic.dataclasses.dataclass(made, config=self.config())

    def typed_dict(self, depth: int) -> Any:
        self.made += 1
        return TypedDict(f"T{self.made}", dict(self.fields(depth)), total=self.rng.random() < 0.5)  # type: ignore[operator]

    def tagged(self, depth: int) -> Any:
        made = []
        for tag in ("one", "two"):
            self.made += 1
            fields: dict[str, Any] = {
                "tag": (Literal[tag], ...),
                **{name: (kind, ...) for name, kind in self.fields(depth)},
            }  # type: ignore[valid-type]
            made.append(pydantic.create_model(f"U{self.made}", __config__=self.config(), **fields))
        discriminated = Union[made[0], made[1]]  # type: ignore[valid-type]  # noqa: UP007
        return Annotated[discriminated, Field(discriminator="tag")] if self.rng.random() < 0.5 else discriminated

    def root(self, depth: int) -> Any:
        return RootModel[self.rng.choice((self.list, self.dict))(depth)]  # type: ignore[misc]

    def anything(self, _: int) -> Any:
        return self.rng.choice((Any, dict[str, Any], Optional[str]))  # noqa: UP045


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    """The part of a finished value at a path in its JSON text; ``_NONE`` if it cannot be found this way."""
    for step in path:
        while isinstance(value, RootModel):
            value = value.root
        if isinstance(value, dict):
            value = next((item for key, item in value.items() if key == step or str(key) == str(step)), _NONE)
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step]
        elif isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
            value = getattr(value, str(step), _NONE)
        else:
            return _NONE
        if value is _NONE:
            return _NONE
    return value


def equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def check_shown(partial: Any, final: Any) -> None:
    """Compares what is shown with the finished value: strings may be shorter, fields missing, arrays shorter."""
    while isinstance(partial, RootModel):
        assert type(partial) is type(final)
        partial, final = partial.root, final.root
    if partial is None or equal(partial, final):
        return
    if isinstance(partial, str):
        assert str(getattr(final, "value", final)).startswith(partial)
        return
    assert type(partial) is type(final), (partial, final)
    if isinstance(partial, dict):
        for key, item in partial.items():
            check_shown(item, final[key])
    elif isinstance(partial, list | tuple):
        for item, other in zip(partial, final, strict=False):
            assert equal(item, other)
    elif isinstance(partial, set | frozenset):
        assert partial <= final
    elif isinstance(partial, BaseModel):
        for name in partial.model_fields_set:
            check_shown(getattr(partial, name), getattr(final, name))
    else:
        assert dataclasses.is_dataclass(partial), (partial, final)
        for field in dataclasses.fields(partial):
            check_shown(getattr(partial, field.name), getattr(final, field.name))


def written(kind: Any, rng: Random, *, closed: bool) -> str | None:
    """A random text of a type."""
    try:
        constraint = compile_any(kind, byte_vocabulary(), close_objects=closed, cache=False)
    except constrain.ConstrainError:
        return None
    return walked(constraint, byte_vocabulary(), rng, None, rng.choice((20, 60, 200))).text


@for_each("closed", [True, False])
@for_each("seed", SEEDS if LONG else range(20))
def test_random_types(seed: int, *, closed: bool) -> None:
    rng = Random(seed)
    kind = Types(rng).model(rng.randint(1, 3))
    text = written(kind, rng, closed=closed)
    if text is None:
        return
    result = result_type(kind)
    try:
        final = result.parse(text)
    except constrain.OutputValidationError:
        return
    plain = read_answer(text)
    reader, begin, n_typed, n_complete, last = Fields(result, closed=closed), 0, 0, 0, None
    while begin < len(text):
        length = rng.choice((1, 2, 5, 20))
        for event in reader.feed(text[begin : begin + length]):
            last = event
            check_shown(event.partial, final)
            if event.kind == "complete" and (value := at(final, event.path)) is not _NONE:
                n_complete += 1
                n_typed += equal(event.value, value)
                assert equal(event.value, value) or equal(event.value, at(plain, event.path)), (event, value)
        begin += length
    reader.finish()
    assert last is not None
    assert (last.kind, last.path) == ("complete", ())
    assert equal(last.partial, final)
    assert equal(reader.partial(), final)
    assert n_typed >= 0.3 * n_complete


class Line(BaseModel):
    text: str
    number: int = 3


class Page(BaseModel):
    title: str
    lines: list[Line]
    price: Decimal | None = None


def read(kind: Any, text: str) -> list[constrain.events.FieldEvent]:
    reader = FieldReader(kind)
    return [event for character in text for event in reader.feed(character)] + reader.finish()


def test_fields_begin_grow_and_are_complete() -> None:
    events = read(Page, '{"title": "Ab", "lines": [{"text": "x"}], "price": 1.10}')
    assert [(event.kind, event.path, event.text) for event in events[:5]] == [
        ("begin", (), ""),
        ("begin", ("title",), ""),
        ("grow", ("title",), "A"),
        ("grow", ("title",), "b"),
        ("complete", ("title",), ""),
    ]
    title = events[2].partial
    assert isinstance(title, Page)
    assert (title.title, title.lines, title.model_fields_set) == ("A", None, {"title"})
    line = next(event for event in events if event.path == ("lines", 0) and event.kind == "complete")
    assert line.value == Line(text="x")
    assert line.partial.lines == [Line(text="x")]
    assert events[-1].value == Page(title="Ab", lines=[Line(text="x")], price=Decimal("1.10"))


def test_items_of_arrays_appear_when_they_are_complete() -> None:
    shown = [event.partial for event in read(list[str], '["ab", "c"]')]
    assert [each for number, each in enumerate(shown) if not number or each != shown[number - 1]] == [
        [],
        ["ab"],
        ["ab", "c"],
    ]


def test_validators_that_need_other_fields_wait_for_the_end() -> None:
    class Span(BaseModel):
        low: int
        high: int

        @pydantic.field_validator("high")
        @classmethod
        def above(cls, value: int, info: pydantic.ValidationInfo) -> int:
            assert value >= info.data["low"]
            return value * 2

    events = read(Span, '{"low": 1, "high": 2}')
    assert [event.partial.high for event in events] == [None] * (len(events) - 1) + [4]


class Loud(BaseModel):
    model_config = pydantic.ConfigDict(str_to_upper=True, str_strip_whitespace=True)
    words: list[str]
    by_name: dict[str, str]
    own: Annotated[str, pydantic.StringConstraints(to_lower=True)]


def test_texts_that_a_type_rewrites_appear_when_they_are_complete() -> None:
    events = read(Loud, '{"words": [" ab "], "by_name": {"k": "v"}, "own": "Ab"}')
    final = events[-1].value
    assert final.words == ["AB"]
    for event in events:
        assert event.partial.words in (None, [], ["AB"])
        assert event.partial.by_name in (None, {}, {"K": "V"})
        assert event.partial.own in (None, final.own)
        if event.kind == "complete":
            assert equal(event.value, at(final, tuple("K" if step == "k" else step for step in event.path)))


class Name(str, Enum):
    ADA = "ada"


TEXTS = ["ada", "2024-02-01", "P1D", "1+2j", "1.5", "12345678-1234-5678-1234-567812345678", "10.0.0.1", "http://a.b/"]
OTHER_TEXTS: list[Any] = [
    *(date, timedelta, complex, Decimal, UUID, bytes, Path, IPv4Address, pydantic.AnyUrl, pydantic.SecretStr),
    *(re.Pattern, Name),
    RootModel[str],
    Annotated[str, pydantic.StringConstraints(to_upper=True)],
    Annotated[str, pydantic.AfterValidator(str.title)],
    Annotated[Union[int, str], Field(union_mode="left_to_right")],  # noqa: UP007
]
"""Types that may read a JSON string as another value than its text."""


@for_each("other", OTHER_TEXTS)
@for_each("text", TEXTS)
def test_a_text_that_may_become_another_value_is_shown_when_it_is_complete(other: Any, text: str) -> None:
    for kind in (Union[other, str], Union[str, other]):  # noqa: UP007
        events = read(kind, f'"{text}"')
        final = TypeAdapter(kind).validate_json(f'"{text}"')
        assert [event.partial for event in events] == [None] * (len(events) - 1) + [final]
        assert type(events[-1].partial) is type(final)


def test_a_text_that_may_become_a_member_of_an_enum_is_shown_when_it_is_not_that() -> None:
    kind = Union[Literal[Name.ADA], str]  # noqa: UP007
    assert [event.partial for event in read(kind, '"ads"')] == [None, None, None, "ads", "ads"]
    assert read(kind, '"ada"')[-2].partial is None


@for_each(
    "kind",
    *(str, Any, str | None, int | str | bool, str | list[str] | Line),
    Literal["ada"] | Annotated[str, Field(min_length=3)],
)
@for_each("text", TEXTS)
def test_a_text_that_only_types_of_texts_may_take_grows(kind: Any, text: str) -> None:
    assert [event.partial for event in read(kind, f'"{text}"')] == [
        "",
        *(text[: end + 1] for end in range(len(text))),
        text,
    ]


class Lenient(BaseModel):
    model_config = pydantic.ConfigDict(coerce_numbers_to_str=True, extra="allow")
    __pydantic_extra__: dict[str, Decimal] = Field(init=False)
    code: str


class Priced(BaseModel):
    amount: Decimal


class Described(BaseModel):
    amount: str
    unit: str


def test_a_part_of_a_union_that_is_not_decided_is_read_as_json() -> None:
    for kind in (Priced | Described, Described | Priced):
        events = read(kind, '{"amount": "1.5", "unit": "kg"}')
        assert equal(next(each.value for each in events if each.kind == "complete"), "1.5")
        assert events[-1].value == Described(amount="1.5", unit="kg")


def test_settings_of_a_model_hold_for_its_parts() -> None:
    events = read(Lenient, '{"code": 12, "other": 1.10}')
    assert all(isinstance(event.partial, Lenient) for event in events)
    complete = {event.path: event.value for event in events if event.kind == "complete"}
    assert complete["code",] == "12"
    assert equal(complete["other",], Decimal("1.10"))


@each_row(
    "kind, text",
    (dict[int, str], '{"1": "a", "b": "c"}'),
    (Union[dict[int, str], dict[str, int]], '{"b": 1}'),  # noqa: UP007
    (tuple[int, ...], "[1, 2]"),
)
def test_keys_and_items_of_any_number(kind: Any, text: str) -> None:
    events = read(kind, text)
    assert events[-1].value in (read_answer(text), tuple(read_answer(text)))


def test_a_schema_gives_plain_values() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    events = read(schema, '{"a": ["x", "y"]}')
    assert [event.partial for event in events if event.kind == "complete"] == [
        {"a": ["x"]},
        {"a": ["x", "y"]},
        {"a": ["x", "y"]},
        {"a": ["x", "y"]},
    ]


def test_a_number_alone_is_complete_at_the_end() -> None:
    reader = FieldReader(int)
    assert [event.kind for event in reader.feed("12")] == ["begin"]
    assert reader.value is None
    (event,) = reader.finish()
    assert (event.kind, event.value, reader.value) == ("complete", 12, 12)


def test_what_is_read_is_validated_as_the_type_does() -> None:
    adapter = TypeAdapter(dict[int, Decimal])
    assert read(dict[int, Decimal], '{"1": 0.10}')[-1].value == adapter.validate_json('{"1": 0.1}')
    assert str(read(dict[int, Decimal], '{"1": 12345678901234567890.12}')[-1].value[1]) == "12345678901234567890.12"


def test_values_are_read_as_json() -> None:
    assert read(None, '{"a": [1, null]}')[-1].value == read_answer('{"a": [1, null]}')


@pytest.mark.parametrize("kind", [None, list[Any], "recursive"])
def test_deeply_nested_values_are_read(kind: Any) -> None:
    if kind == "recursive":

        class Deep(RootModel[list["Deep"]]):
            pass

        Deep.model_rebuild()
        kind = Deep
    depth = 150
    events = read(kind, "[" * depth + "]" * depth)
    assert [len(event.path) for event in events] == [*range(depth), *reversed(range(depth))]
    final = read_answer("[" * depth + "]" * depth)
    assert (events[-1].value.model_dump() if isinstance(events[-1].value, BaseModel) else events[-1].value) == final
