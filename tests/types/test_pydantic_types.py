"""Types survive the way from type to grammar to text to value: whatever the grammar lets through, the type reads."""

from __future__ import annotations

import enum
import json
import math
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path
from random import Random
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
import regress
from pydantic import AliasPath, BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter, constr
from pydantic.alias_generators import to_camel
from pydantic.networks import IPvAnyAddress, IPvAnyInterface, IPvAnyNetwork
from pydantic.types import PaymentCardNumber
from rich.console import Console
from typing_extensions import NotRequired, TypedDict

import constrain
from constrain import OutputValidationError
from constrain.cli.program import _answer
from constrain.engine.compiling import compile_any
from constrain.language.result import result_type
from constrain.tools import tool_from_json
from constrain.types import patterns
from constrain.types.answer_text import MAX_ANSWER_NESTING, read_answer
from tests.support import Tokens, Walker, byte_vocabulary, for_each

WALKS = 8


def texts(kind: Any, **options: Any) -> list[bytes]:
    """A shortest text of the grammar of a type, and texts of random walks."""
    vocabulary = byte_vocabulary()
    constraint = constrain.compile(kind, vocabulary, **options)
    walker, tokens = Walker(constraint, vocabulary), Tokens(vocabulary)
    walks = [walker.text(Random(seed), tokens, most=30 + 10 * seed) for seed in range(WALKS)]
    return [bytes(constraint.matcher().shortest_completion()), *walks]


def check(kind: Any, **options: Any) -> list[Any]:
    """The values of such texts, as ``generate`` reads them; each must be one."""
    result = result_type(kind)
    return [result.parse(text.decode()) for text in texts(kind, **options)]


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    label: str = "p"


@dataclass
class Box:
    width: Annotated[int, Field(gt=0)]
    tags: list[Literal["a", "b"]] = field(default_factory=list)


class Movie(TypedDict):
    name: str
    year: NotRequired[Annotated[int, Field(ge=1888, le=2100)]]


TODAY = date(2024, 2, 28)
HAS_ASCII_ONLY = "ascii_only" in pydantic.StringConstraints.__dataclass_fields__
"""Whether Pydantic has this constraint (since 2.13)."""

PRICE = Annotated[Decimal, Field(ge=0, max_digits=8, decimal_places=2)]
BOUNDED = Annotated[Decimal, Field(gt=0, le=Decimal("99.5"))]
OF_FOUR_DIGITS = Annotated[Decimal, Field(max_digits=4)]
BELOW_1 = Annotated[Decimal, Field(max_digits=3, decimal_places=3)]
SMALL = Annotated[Decimal, Field(max_digits=2, decimal_places=3)]
OF_PLACES = Annotated[Decimal, Field(max_digits=5, decimal_places=2)]
BETWEEN = Annotated[
    pydantic.AwareDatetime,
    Field(
        gt=datetime(2024, 2, 28, 23, 59, 58, 500_000, tzinfo=timezone.utc),
        lt=datetime(2024, 2, 29, 2, 0, 1, tzinfo=timezone(timedelta(hours=2))),
    ),
]
_OWN = """
    FiniteFloat PastDate FutureDate PastDatetime FutureDatetime AwareDatetime NaiveDatetime UUID1 UUID4 AnyUrl
    FileUrl PostgresDsn RedisDsn SecretStr SecretBytes ByteSize Base64Bytes Base64Str Base64UrlBytes
"""
SCALARS: list[Any] = [
    *(getattr(pydantic, name) for name in _OWN.split()),
    *(PRICE, BOUNDED, OF_FOUR_DIGITS, BELOW_1, SMALL, OF_PLACES, bool, int, float, str, None, Any, bytes),
    *(complex, Fraction, Decimal, Size, Level, date, datetime, time, timedelta, UUID, IPv4Address, IPv6Address),
    *(IPv4Network, IPv6Network, IPv4Interface, IPv6Interface, IPvAnyAddress, IPvAnyNetwork, IPvAnyInterface),
    *(HttpUrl, Path, ZoneInfo, BETWEEN),
    pydantic.conbytes(min_length=2, max_length=3),
    Annotated[Decimal, Field(decimal_places=1)],
    Annotated[Decimal, Field(max_digits=3, decimal_places=0)],
    Annotated[Decimal, Field(multiple_of=Decimal("0.5"), ge=0, lt=100)],
    pydantic.conint(gt=3, lt=1000, multiple_of=7),
    pydantic.confloat(ge=0.25, le=10),
    Annotated[float, Field(multiple_of=0.5, lt=0, ge=-100)],
    constr(min_length=2, max_length=4),
    constr(pattern=r"^[a-z]+-\d{2}$"),
    constr(pattern=r"^\d+\s\S\w\D\W.$"),
    constr(pattern=r"ab"),
    constr(pattern=r"^(?P<key>[a-z])=(?P<value>\d)$"),
    Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=3, max_length=5)],
    Annotated[str, pydantic.StringConstraints(strip_whitespace=True, pattern="^[ab ]+$", min_length=1)],
    Annotated[str, pydantic.StringConstraints(ascii_only=True, max_length=9)] if HAS_ASCII_ONLY else str,
    Annotated[str, pydantic.StringConstraints(to_upper=True)],
    Literal["a", 1, True, None],  # noqa: PYI061
    Annotated[date, Field(gt=TODAY)],
    Annotated[date, Field(le=TODAY)],
    Annotated[date, Field(ge=TODAY, lt=date(2024, 3, 2))],
    Annotated[date, Field(ge="2024-02-29")],
    Annotated[datetime, Field(ge=datetime(2020, 1, 1))],  # noqa: DTZ001
    Annotated[datetime, Field(ge=TODAY)],
    Annotated[pydantic.NaiveDatetime, Field(ge=datetime(2023, 12, 31, 12))],  # noqa: DTZ001
    Annotated[time, Field(lt=time(12, 30))],
    Annotated[time, Field(lt="12:30")],
    Annotated[timedelta, Field(gt=timedelta(0))],
    Annotated[timedelta, Field(ge=timedelta(minutes=1), le=timedelta(hours=1))],
]


@for_each("kind", SCALARS)
def test_scalars_are_read_from_texts_of_their_grammar(kind: Any) -> None:
    check(kind)


def test_emails_are_read_from_texts_of_their_grammar() -> None:
    pytest.importorskip("email_validator")
    check(pydantic.EmailStr)
    check(pydantic.NameEmail)


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    following: Optional[Page[Item]] = None  # noqa: UP045


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    value: int
    children: list[Node] = []


CONTAINERS: list[Any] = [
    *(Point, Box, Movie, Cat, Node),
    list[int],
    list[list[bool]],
    pydantic.conlist(int, min_length=1, max_length=2),
    tuple[int, str],
    tuple[int, ...],
    tuple[()],
    deque[int],
    Sequence[bool],
    Iterable[int],
    dict[str, int],
    Annotated[dict[str, bool], Field(min_length=1, max_length=2)],
    dict[int, str],
    dict[float, str],
    dict[bool, str],
    dict[constr(pattern="^[a-c]$"), int],  # type: ignore[misc]
    OrderedDict[str, int],
    defaultdict[str, list[int]],
    Counter[str],
    Union[int, str, list[bool]],  # noqa: UP007
    Optional[int],  # noqa: UP045
    pydantic.dataclasses.dataclass(Box),
    Cat | Dog,
    Annotated[Cat | Dog, Field(discriminator="kind")],
    Page[Cat],
    Page[Page[Annotated[int, Field(multiple_of=5)]]],
    pydantic.RootModel[list[Cat]],
]


@for_each("kind", CONTAINERS)
def test_containers_are_read_from_texts_of_their_grammar(kind: Any) -> None:
    check(kind)


@pytest.mark.parametrize("kind", [set[int], frozenset[str], set[Size]])
def test_sets_are_read_from_texts_of_their_grammar(kind: Any) -> None:
    for text, value in zip(texts(kind), check(kind), strict=True):
        assert len(json.loads(text)) == len(value)


@for_each(
    "key",
    *(date, UUID, Size, Level),
    Literal["a", "b"],
    int | bool,
    Optional[int],  # noqa: UP045
    Annotated[int, pydantic.AfterValidator(abs)],
)
def test_dicts_are_read_with_the_keys_that_propertynames_allows(key: Any) -> None:
    kind = Annotated[dict[key, int], Field(min_length=1)]
    assert all(check(kind))


class Circle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: int = 1


class Square(BaseModel):
    kind: Literal["square"] = Field("square", alias="Kind")
    side: int = 1


class Line(BaseModel):
    kind: Literal["line"] = Field("line", alias="Kind")
    next: Annotated[Square | Line, Field(discriminator="kind")] | None = None


@pytest.mark.filterwarnings("ignore::pydantic.json_schema.PydanticJsonSchemaWarning")  # of a tag that refers to itself
@pytest.mark.parametrize("kinds", [Circle | Dog, Square | Line])
def test_a_tag_is_written_even_if_it_has_a_default(kinds: Any) -> None:
    kind = Annotated[kinds, Field(discriminator="kind")]
    for text, value in zip(texts(kind), check(kind), strict=True):
        assert value.kind in json.loads(text).values()


# Fields come back under the right names.


class Renamed(BaseModel):
    by_alias: int = Field(alias="byAlias")
    when_read: str = Field(validation_alias="whenRead", serialization_alias="whenWritten")
    first_of: bool = Field(validation_alias=pydantic.AliasChoices("firstChoice", "secondChoice"))
    plain: None


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    snake_case: int
    inner_part: Cat


class Populated(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    snake_case: int


def test_aliases_are_the_keys() -> None:
    for text, value in zip(texts(Renamed), check(Renamed), strict=True):
        written = json.loads(text)
        assert list(written) == ["byAlias", "whenRead", "firstChoice", "plain"]
        assert [value.by_alias, value.when_read, value.first_of, value.plain] == list(written.values())


def test_generated_aliases_are_the_keys() -> None:
    for text, value in zip(texts(Camel), check(Camel), strict=True):
        assert list(json.loads(text)) == ["snakeCase", "innerPart"]
        assert value.snake_case == json.loads(text)["snakeCase"]
    for value in check(Populated):
        assert isinstance(value.snake_case, int)


class ByPath(BaseModel):
    first: int = Field(validation_alias=pydantic.AliasChoices(AliasPath("names", 0), "first_name"))


def test_the_first_alias_that_is_a_key_is_used() -> None:
    for value in check(ByPath):
        assert isinstance(value.first, int)


# What a model is configured to do.


class Forbidding(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: int = 3


class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Typed(BaseModel):
    __pydantic_extra__: dict[str, bool]
    model_config = ConfigDict(extra="allow")
    a: int


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    i: int
    f: float
    s: str
    b: bytes
    day: date
    moment: datetime
    noon: time
    span: timedelta
    key: UUID
    pair: tuple[int, str]
    size: Size
    amount: Decimal
    address: IPv4Address


class Computed(BaseModel):
    a: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.a


class Defaults(BaseModel):
    a: int = 1
    b: Size = Size.SMALL
    c: list[int] = Field(default_factory=list, max_length=2)
    d: Annotated[str, Field(min_length=1)] | None = None


class Binary(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64", ser_json_timedelta="float")
    data: bytes
    span: timedelta


class Base64Of(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    few: bytes = Field(min_length=2, max_length=4)
    one: bytes = Field(min_length=1, max_length=1)
    some: bytes = Field(min_length=4)
    most: bytes = Field(max_length=2)


class Hexadecimal(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    data: Annotated[bytes, Field(min_length=1, max_length=4)]


class Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True, use_enum_values=True, str_strip_whitespace=True, use_attribute_docstrings=True
    )
    size: Size
    name: Annotated[str, Field(min_length=1)]


@for_each("model", [Forbidding, Allowing, Typed, Strict, Computed, Defaults, Binary, Base64Of, Hexadecimal, Frozen])
def test_configured_models_are_read_from_texts_of_their_grammar(model: type[BaseModel]) -> None:
    for value in check(model):
        assert isinstance(value, model)


def test_extra_keys_are_as_configured() -> None:
    vocabulary = byte_vocabulary()
    assert constrain.compile(Allowing, vocabulary).accepts('{"a": 1, "x": []}')
    assert constrain.compile(Typed, vocabulary).accepts('{"a": 1, "x": true}')
    assert not constrain.compile(Typed, vocabulary).accepts('{"a": 1, "x": 1}')
    assert not constrain.compile(Forbidding, vocabulary).accepts('{"a": 1, "x": 1}')


def test_computed_fields_are_not_asked_for() -> None:
    """The schema is that of validation, not of serialization."""
    for text in texts(Forbidding):
        assert set(json.loads(text)) <= {"a", "b"}
    assert not any("twice" in json.loads(text) for text in texts(constrain.strict.strict_schema(Computed)))


def test_defaults_fill_what_is_left_out() -> None:
    assert constrain.compile(Defaults, byte_vocabulary()).accepts("{}")
    assert result_type(Defaults).parse("{}") == Defaults()


def test_strict_schemas_of_models_are_read_by_the_models() -> None:
    for model in (Renamed, Camel, Defaults, Node, Page[Cat], Cat, Forbidding):
        for text in texts(constrain.strict.strict_schema(model), strict=True):
            TypeAdapter(model).validate_json(text)


# What a grammar cannot say.


class Even(BaseModel):
    number: Annotated[int, Field(ge=1, le=1)]

    @pydantic.field_validator("number")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


def test_a_validator_of_ones_own_rejects_when_the_text_is_read() -> None:
    with pytest.raises(constrain.OutputValidationError) as caught:
        check(Even)
    assert caught.value.pointer == "/number"
    assert caught.value.text == '{"number":1}'


class Wrapped(BaseModel):
    inner: pydantic.Json[list[int]]


def test_json_in_a_string_is_refused_with_advice() -> None:
    with pytest.raises(constrain.UnsupportedSchemaError, match="use the type in the brackets"):
        constrain.compile(Wrapped, byte_vocabulary())


class Referring(BaseModel):
    path: pydantic.FilePath | None
    parts: list[Referring] = []


@dataclass
class Settings:
    rules: dict[str, list[Referring]]


@dataclass
class Tool:
    code: pydantic.ImportString


OUTSIDE: dict[str, Any] = {
    "FilePath": pydantic.FilePath,
    "DirectoryPath": pydantic.DirectoryPath,
    "NewPath": pydantic.NewPath,
    "ImportString": pydantic.ImportString,
    "ImportString ": pydantic.ImportString[int],
    "PaymentCardNumber": PaymentCardNumber,
    r"type\[int\]": type[int],
    r"type\[Cat\]": type[Cat],
    "the field Referring.path: FilePath": Referring,
    r"the field Referring\.path: FilePath": Settings,
    r"the field Tool\.code: ImportString": list[Tool],
}


class Plain(enum.Enum):
    ONE = 1
    PAIR = (1, 2)
    DAY = date(2024, 2, 1)
    BYTES = b"a"
    ANY = object()


class Pairs(enum.Enum):
    PAIR = (1, 2)


class Anything(enum.Enum):
    ANY = object()


class Days(enum.Enum):
    DAY = date(2024, 2, 1)


class Located(BaseModel):
    first: int
    second: Annotated[int, Field(validation_alias=AliasPath("values", 1))]


@dataclass
class Placed:
    first: int
    second: Annotated[int, Field(validation_alias=pydantic.AliasChoices(AliasPath("a", 0), AliasPath("b", 0)))] = 1


class Named(BaseModel):
    size: Literal[Size.SMALL] | None = None


UNREADABLE: list[tuple[str, Any]] = [
    *((rf"Pydantic reads the value <Plain\.{each.name}: .* Literal of the value", Literal[each]) for each in Plain),  # type: ignore[valid-type]
    (r"the field Named\.size: Pydantic reads the value <Size\.SMALL", Named),
    ("Pydantic reads the value <Size.SMALL", list[Literal[Size.SMALL, "other"]]),
    (r"Pydantic reads the value <Pairs.PAIR.* use str, int or float", Pairs),
    ("Pydantic reads the value <Days.DAY", Days),
    ("Pydantic reads the value <Anything.ANY", Anything),
    ("Pydantic reads the value b'a'", Literal[b"a"]),
    (r"the field Located\.second: AliasPath", Located),
    (r"the field Located\.second: AliasPath", dict[str, list[Located]]),
    (r"the field Placed\.second: AliasPath", Placed),
    (
        r"the field Td\.a: AliasPath",
        TypedDict("Td", {"a": Annotated[int, Field(validation_alias=AliasPath("x", "y"))]}),
    ),
    (r"keys in JSON are strings, and Pydantic does not read \['1'\]", dict[Literal[1, "a"], int]),
    (r"keys in JSON are strings.*\(tuple\); use list", dict[tuple[int, int], int]),
    (r"keys in JSON are strings.*\(none\); use list", dict[None, int]),
    (r"keys in JSON are strings.*\(model\); use list", dict[Cat, int]),
    (r"keys in JSON are strings.* multiple_of", dict[Annotated[int, Field(multiple_of=7)], int]),
    ("the items of a set must be hashable", set[list[int]]),
    ("the items of a set must be hashable", frozenset[Cat]),
]


@for_each("message, kind", UNREADABLE)
def test_types_with_values_that_no_text_has_are_refused(message: str, kind: Any) -> None:
    with pytest.raises(constrain.UnsupportedSchemaError, match=f"^{message}"):
        constrain.compile(kind, byte_vocabulary())


def test_the_schema_of_a_value_that_json_cannot_express_is_refused() -> None:
    kind = Annotated[Anything, pydantic.BeforeValidator(Anything)]
    for read in (result_type, lambda kind: constrain.compile(kind, byte_vocabulary())):
        with pytest.raises(constrain.SchemaError, match="no JSON Schema can be made"):
            read(kind)


class Converting(BaseModel):
    size: Annotated[Literal[Size.SMALL], pydantic.BeforeValidator(Size)]
    place: int = Field(validation_alias=AliasPath("place", 0))

    @pydantic.model_validator(mode="before")
    @classmethod
    def listed(cls, data: dict[str, Any]) -> dict[str, Any]:
        return data | {"place": [data["place"]]}


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    place: int = Field(validation_alias=AliasPath("place", 0))


@for_each("kind", [Converting, ByName, Level, Literal[Level.LOW], set[int | str]])
def test_such_types_are_read_if_a_function_or_a_setting_helps(kind: Any) -> None:
    check(kind)


@for_each("message", OUTSIDE)
def test_types_that_ask_for_more_than_a_text_are_refused(message: str) -> None:
    with pytest.raises(constrain.UnsupportedSchemaError, match=f"^{message.strip()}") as caught:
        constrain.compile(OUTSIDE[message], byte_vocabulary())
    assert type(caught.value) is constrain.UnsupportedSchemaError
    assert caught.value.pointer is None  # the message names the field: there is no schema yet


def test_a_schema_of_ones_own_says_what_such_a_type_takes() -> None:
    here = Annotated[pydantic.FilePath, pydantic.WithJsonSchema({"enum": [__file__]})]
    assert check(here)[0] == Path(__file__)
    there = Annotated[pydantic.ImportString, pydantic.WithJsonSchema({"const": "math.pi"})]
    assert check(there)[0] == math.pi


def test_a_type_without_a_schema_is_refused() -> None:
    with pytest.raises(constrain.SchemaError, match="no JSON Schema"):
        constrain.compile(type(lambda: None), byte_vocabulary())


# Tightened schemas accept what one would write.

ACCEPTED: dict[str, tuple[Any, list[str], list[str]]] = {
    "UUID4": (pydantic.UUID4, ['"f47ac10b-58cc-4372-a567-0e02b2c3d479"'], ['"f47ac10b-58cc-1372-a567-0e02b2c3d479"']),
    "HttpUrl": (
        HttpUrl,
        ['"https://example.com"', '"http://www.example.co.uk:8080/a/b.html?q=1&r=a%20b#top"', '"http://127.0.0.1/"'],
        ['"ftp://example.com"', '"http://"', '"http://a b"', '"http://h:70000"', '"http://1.2.3.256/"'],
    ),
    "AnyUrl": (pydantic.AnyUrl, ['"https://example.com"', '"mailto:a@example.com"', '"git+ssh://git@host/x"'], ['"x"']),
    "PostgresDsn": (pydantic.PostgresDsn, ['"postgresql://user:secret@db.example.com:5432/app"'], ['"mysql://db/app"']),
    "IPv4Network": (
        IPv4Network,
        ['"10.0.0.0/8"', '"192.168.4.0/22"', '"1.2.3.4"'],
        ['"10.0.0.1/8"', '"192.168.4.0/21"'],
    ),
    "Decimal": (Decimal, ["12.5", '"12.50"', '"0.1234567890123456789"'], ['"x"', '"1e5"']),
    "long Decimal": (Decimal, ["12345678901234567890.12", '"12345678901234567890.12"'], []),
    "price": (
        PRICE,
        ["12.5", "0", "999999.99", '"1.00"', '"0"', '"999999.99"'],
        ["-1", "0.001", "1000000", '"-1"', '"-0.01"', '"0.001"', '"10.000"', '"1000000"'],
    ),
    "Decimal with bounds": (
        BOUNDED,
        ['"0.01"', '"99.50"', '"99.4999"', "99.5"],
        ['"0"', '"0.00"', '"-1"', '"99.51"', '"100"', "0"],
    ),
    "Decimal between negative bounds": (
        Annotated[Decimal, Field(ge=Decimal("-12.5"), lt=Decimal("-0.05"))],
        ['"-12.5"', '"-12.50"', '"-9"', '"-0.051"'],
        ['"-12.51"', '"-13"', '"-0.05"', '"-0.0"', '"1"', '"-100"'],
    ),
    "Decimal of four digits": (
        OF_FOUR_DIGITS,
        ['"0.1234"', '"12.34"', '"1234"', "1234"],
        ['"1.2345"', '"12345"', '"0.12345"', "12345"],
    ),
    "dict by Decimal": (
        dict[Annotated[Decimal, Field(ge=1, max_digits=3, decimal_places=1)], bool],
        ['{"1.5": true, "99.9": false}'],
        ['{"0.5": true}', '{"1.55": true}', '{"100": true}'],
    ),
    "Decimal below 1": (
        BELOW_1,
        ["0.125", "-0.5", "0.001", '"0.0"', '"0.125"', '"-0.5"'],
        ["0", "0.0", "-0", '"0"', '"-0"', '"1.5"', "1", "0.0001"],
    ),
    "Decimal of fewer digits than places": (
        SMALL,
        ["0.05", "0.25", "-0.5", '"0.05"', '"0.25"'],
        ["0.005", "0.025", '"0.005"', '"0.025"', "0", '"0"'],
    ),
    "Decimal without digits": (Annotated[Decimal, Field(max_digits=1, decimal_places=1)], ['"0.5"'], ['"0"', "0"]),
    "multiples of any size": (
        Annotated[Decimal, Field(multiple_of=Decimal("0.01"))],
        ["12.25", "9" * 20, "-0.01"],
        ["0.005", "1" + "0" * 26, "9" * 60, "-" + "9" * 40 + ".25"],
    ),
    "places": (OF_PLACES, ["999.99", '"-999.99"', '"0.5"'], ["1000", '"1000"', '"0.125"']),
    "dict by bounded number": (
        dict[Annotated[int, Field(gt=-2, le=120)], bool],
        ['{"-1": true, "0": false, "120": true}'],
        ['{"-2": true}', '{"121": true}', '{"1.5": true}'],
    ),
    "date": (
        Annotated[date, Field(ge=TODAY, lt=date(2024, 3, 2))],
        ['"2024-02-29"', '"2024-03-01"'],
        ['"2024-02-27"', '"2024-03-02"', '"2024-02-30"'],
    ),
    "datetime": (
        BETWEEN,
        ['"2024-02-28T23:59:59Z"', '"2024-02-29T00:00:00Z"'],
        ['"2024-02-28T23:59:58Z"', '"2024-02-29T00:00:01Z"'],
    ),
    "naive": (
        pydantic.NaiveDatetime,
        ['"2024-02-29T12:00:00"', '"2024-02-29T12:00:00.123456"'],
        ['"2024-02-29T12:00:00Z"', '"2023-02-29T12:00:00"'],
    ),
    "time": (Annotated[time, Field(lt=time(12, 30))], ['"12:29:59"', '"00:00:00"'], ['"12:30:00"']),
    "timedelta": (
        Annotated[timedelta, Field(ge=timedelta(minutes=1), le=timedelta(hours=1))],
        ['"PT60S"', '"PT3600S"'],
        ['"PT59S"', '"PT3601S"'],
    ),
    "dict by number": (dict[int, bool], ['{"-12": true, "0": false}'], ['{"a": true}', '{"01": true}']),
    "Base64Str": (pydantic.Base64Str, ['"aGVsbG8="', '"aGk="', '"YWJj"'], ['"aGVsbG8"', '"/w=="']),
    "Base64Bytes": (pydantic.Base64Bytes, ['"/w=="', '"AAECAw=="'], ['"/w="', '"_w=="']),
    "ByteSize": (pydantic.ByteSize, ["1024", '"1.5 GiB"', '"10KB"'], ['"10 parsecs"']),
    "email": (
        Annotated[str, Field(json_schema_extra={"format": "email"})],
        ['"a.b+c@mail.example.com"'],
        ['"a"', '"a@b"'],
    ),
}


def test_integers_of_types_are_plain_under_every_policy() -> None:
    """Pydantic reads 7e35 as a float, and makes no integer of it."""
    with pytest.raises(pydantic.ValidationError):
        TypeAdapter(int).validate_json("7e35")
    for kind in (int, Annotated[int, Field(gt=10)], list[int]):
        constraint = constrain.compile(kind, byte_vocabulary(), numbers="any")
        texts = ("7e35", "7" * 40, "12.0", "1.2e1", "12")
        taken = [text for text in texts if constraint.accepts(f"[{text}]" if kind == list[int] else text)]
        assert taken == ["7" * 40, "12"]
    of_schema = constrain.compile(TypeAdapter(int).json_schema(), byte_vocabulary(), numbers="any")
    assert of_schema.accepts("7e35")
    assert constrain.compile(float, byte_vocabulary(), numbers="any").accepts("7e35")


@for_each("name", ACCEPTED)
def test_usual_spellings_are_accepted_and_wrong_ones_are_not(name: str) -> None:
    kind, accepted, rejected = ACCEPTED[name]
    constraint = constrain.compile(kind, byte_vocabulary())
    for text in accepted:
        TypeAdapter(kind).validate_json(text)
        assert constraint.accepts(text), text
    for text in rejected:
        assert not constraint.accepts(text), text


LONG = "12345678901234567890.12"
"""A float would make 12345678901234567000 of it."""


@dataclass
class Boxed:
    amount: Decimal


class Bill(BaseModel):
    amount: Decimal
    limited: Annotated[Decimal, Field(gt=0, max_digits=22, decimal_places=2)]
    by_name: dict[str, Decimal]
    listed: list[Decimal | None]
    box: Boxed
    either: int | Decimal | bool
    parts: list[Bill] = []
    unread: Any = None


class StrictBill(Bill):
    model_config = ConfigDict(strict=True)


def bill(number: str, parts: str = "") -> str:
    one = f'"amount": {number}, "limited": {number}, "by_name": {{"a": {number}}}, "listed": [null, {number}]'
    return f'{{{one}, "box": {{"amount": {number}}}, "either": {number}, "parts": [{parts}], "unread": {number}}}'


@pytest.mark.parametrize("model", [Bill, StrictBill])
@pytest.mark.parametrize("number", [LONG, f'"{LONG}"', "1.50", "0.30"])
def test_every_digit_of_a_decimal_is_read(model: type[Bill], number: str) -> None:
    text, digits = bill(number, bill(number)), number.strip('"')
    assert compile_any(model, byte_vocabulary(), close_objects=True).accepts(text)  # as answers are: zeros count
    value = result_type(model).parse(text)
    assert type(value) is model
    for one in (value, value.parts[0]):
        found = [one.amount, one.limited, one.by_name["a"], one.listed[1], one.box.amount, one.either]
        assert [str(amount) for amount in found] == [digits] * 6
    assert type(value.unread) is (str if '"' in number else float)
    assert str(result_type(list[Decimal]).parse(f"[{number}]")[0]) == digits


def test_decimals_that_floats_cannot_tell_apart_are_not_mixed_up() -> None:
    kind = result_type(list[Decimal])
    assert kind.parse("[0.1, 0.10]") == [Decimal("0.1"), Decimal("0.1")]
    with pytest.raises(constrain.OutputValidationError, match="which Pydantic reads as one float") as caught:
        kind.parse(f"[1, {LONG}, {LONG}3]")
    assert caught.value.pointer == "/1"


class Built(BaseModel):
    amount: Decimal

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)


def test_a_model_that_builds_itself_reads_decimals_from_texts() -> None:
    """Its arguments are floats already, which have too few digits."""
    constraint = constrain.compile(Built, byte_vocabulary())
    text = f'{{"amount": "{LONG}"}}'
    assert constraint.accepts(text)
    assert result_type(Built).parse(text).amount == Decimal(LONG)
    assert not constraint.accepts(f'{{"amount": {LONG}}}')


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_decimal_texts_are_compared_by_value(seed: int) -> None:
    rng = Random(seed)
    texts = [f"{rng.randint(-(10**5), 10**5) * 10 ** rng.randint(0, 2):d}" for _ in range(40)]
    decimals = [Decimal(text).scaleb(-rng.randint(0, 6)) for text in [*texts, "0", "1", "-1", "9", "99", "100"]]
    compare = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}
    for bound in decimals[::4]:
        for name, holds in compare.items():
            within = regress.Regex(patterns.whole(patterns.decimal_bound(name, bound)))
            for value in [*decimals, bound, bound + Decimal("1e-7"), bound - Decimal("1e-7")]:
                assert bool(within.find(f"{value:f}")) == holds(value, bound), (value, name, bound)


def test_the_schema_that_is_shown_is_pydantics_own() -> None:
    assert result_type(Cat).document == TypeAdapter(Cat).json_schema()
    assert "pattern" not in json.dumps(result_type(HttpUrl).document)


@for_each("step", [0.1, 0.01, 0.3, 0.001])
def test_multiples_of_what_no_float_is_are_read(step: float) -> None:
    kind = Annotated[float, Field(multiple_of=step)]
    adapter: TypeAdapter[float] = TypeAdapter(kind)
    constraint = compile_any(kind, byte_vocabulary(), close_objects=True, cache=False)
    rng, exact, read = Random(7), Decimal(repr(step)), 0
    for _ in range(3000):
        text = f"{rng.randrange(-(10**11), 10**11) // 10 ** rng.randrange(11) * exact:f}"
        if constraint.accepts(text):
            read += 1
            assert adapter.validate_json(text) == float(text)
        else:
            assert abs(Decimal(text)) > 10**6
    assert read > 1000


@for_each(
    "kind, text",
    (Annotated[Decimal, Field(multiple_of=Decimal("0.1"))], "98793528.3"),
    (Annotated[int, Field(multiple_of=3)], "300000000"),
    (Annotated[float, Field(multiple_of=0.5)], "300000000.5"),
    (Annotated[float, Field(multiple_of=0.1, ge=2_000_000)], "2000000.5"),
    (Annotated[float, Field(multiple_of=0.1, gt=1_000_000)], "1000000.5"),
    (Annotated[float, Field(multiple_of=0.1, ge=0, lt=10**9)], "999999.9"),
    (Annotated[float, Field(multiple_of=1_500_000.1, gt=0)], "1500000.1"),
)
def test_other_multiples_have_no_bounds_but_their_own(kind: Any, text: str) -> None:
    constraint = constrain.compile(kind, byte_vocabulary(), cache=False)
    assert constraint.accepts(text)
    TypeAdapter(kind).validate_json(text)


@pytest.mark.parametrize(
    ("bounds", "refused"),
    [({"ge": -5}, ["-5.1", "1000000.1"]), ({"lt": 3, "gt": -2_000_000}, ["3", "-1000000.1"]), ({}, ["1000000.1"])],
)
def test_bounds_of_multiples_hold_beside_ours(bounds: Any, refused: list[str]) -> None:
    kind = Annotated[float, Field(multiple_of=0.1, **bounds)]
    constraint = constrain.compile(kind, byte_vocabulary(), cache=False)
    assert not any(map(constraint.accepts, refused))
    assert constraint.accepts("1.5")


LISTS: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}
TOO_DEEP = MAX_ANSWER_NESTING + 1
TOOL = tool_from_json({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}})


def lists(levels: int) -> str:
    return "[" * levels + "]" * levels


def arguments(levels: int) -> str:
    return '{"a": ' + lists(levels - 1) + "}"


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, list | dict):
        levels += 1
        value = next(iter(value.values() if isinstance(value, dict) else value), None)
    return levels


def within_calls(count: int, read: Callable[[], Any]) -> Any:
    return read() if count == 0 else within_calls(count - 1, read)


@for_each("calls", [0, 700])
@for_each(
    "read",
    lambda: result_type(LISTS).parse(lists(MAX_ANSWER_NESTING)),
    lambda: result_type(json.dumps(LISTS)).parse(lists(MAX_ANSWER_NESTING)),
    lambda: TOOL.read(arguments(MAX_ANSWER_NESTING)).values,
)
def test_the_deepest_answer_is_read_whatever_calls_are_under_way(calls: int, read: Callable[[], Any]) -> None:
    assert depth(within_calls(calls, read)) == MAX_ANSWER_NESTING


@for_each("levels", [TOO_DEEP, 100_000])
@for_each(
    "read, text",
    (result_type(LISTS).parse, lists),
    (result_type(list[Any]).parse, lists),
    (result_type(list[Decimal | list[Any]]).parse, lists),
    (TOOL.read, arguments),
    (TOOL.validate, arguments),
    (replace(TOOL, function=dict).call, arguments),
)
def test_what_is_deeper_is_an_error_that_has_the_text(
    read: Callable[[str], Any], text: Callable[[int], str], levels: int
) -> None:
    with pytest.raises(OutputValidationError, match="MAX_ANSWER_NESTING") as caught:
        read(text(levels))
    assert caught.value.text == text(levels)


@pytest.mark.parametrize("kind", [list[Any], list[Decimal | list[Any]]])
def test_what_pydantic_cannot_read_is_an_error_that_has_the_text(kind: Any) -> None:
    with pytest.raises(OutputValidationError, match=r"Pydantic cannot read the text: .*recursion") as caught:
        result_type(kind).parse(lists(MAX_ANSWER_NESTING))
    assert caught.value.text == lists(MAX_ANSWER_NESTING)


def test_marks_in_strings_are_no_levels() -> None:
    text = json.dumps(["[{" * MAX_ANSWER_NESTING, '"[\\' * MAX_ANSWER_NESTING, *([],) * TOO_DEEP])
    assert read_answer(text) == json.loads(text)


def test_the_command_line_prints_a_text_of_which_no_value_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stream(*_: Any, **__: Any) -> Iterator[Any]:
        yield from ()
        result_type(LISTS).parse(lists(TOO_DEEP))

    monkeypatch.setattr("constrain.generation.generate.stream", stream)
    with pytest.raises(OutputValidationError):
        _answer(Console(stderr=True), None, "x", None, {})
    assert capsys.readouterr().out == lists(TOO_DEEP) + "\n"
