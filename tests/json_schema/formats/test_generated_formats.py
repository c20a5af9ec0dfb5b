"""Formats in generation: what is written passes the checks of those who read it, and nothing becomes impossible."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
import uuid
from random import Random
from typing import Annotated, Any

import pydantic
import pytest

import constrain
from constrain import kernel
from constrain.engine.compiling import compile_any
from constrain.json_schema.formats.expressions import format_expression
from constrain.json_schema.formats.generated import GENERATED_FORMATS, generated_format
from constrain.language.tree import Complement, Intersection
from tests.json_schema.formats.test_formats import table
from tests.support import LONG, Tokens, Walker, byte_vocabulary, for_each

SEED = 23
WALKS = 150 if LONG else 40


def _generating(schema: dict[str, Any]) -> constrain.Constraint:
    return compile_any({"type": "string", **schema}, byte_vocabulary(), close_objects=True, cache=False)


CASES = table("generated")


def test_every_generated_format_has_cases() -> None:
    assert set(CASES) == GENERATED_FORMATS


@for_each("name", sorted(CASES))
def test_generation_writes_what_readers_take(name: str) -> None:
    constraint = _generating({"format": name})
    accepted, rejected = CASES[name]
    assert [text for text in accepted if not constraint.accepts(json.dumps(text))] == []
    assert [text for text in rejected if constraint.accepts(json.dumps(text))] == []


@for_each("name", sorted(CASES))
def test_what_is_written_is_part_of_the_format(name: str) -> None:
    whole = format_expression(name)
    assert whole is not None
    assert kernel.is_empty(Intersection((generated_format(name), Complement(whole))))


# What each of these checks once more has sent no more than the format.

_ZOD_EMAIL = re.compile(  # zod 3.25; that of zod 4 takes the same
    r"(?!\.)(?!.*\.\.)([A-Z0-9_'+\-\.]*)[A-Z0-9_+-]@([A-Z0-9][A-Z0-9\-]*\.)+[A-Z]{2,}", re.IGNORECASE | re.ASCII
)
_ZOD_DATE_TIME = re.compile(  # with ``offset: true``
    r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([+-]\d{2}:?\d{2}|Z)", re.ASCII
)

READERS: dict[str, tuple[dict[str, Any], Any, re.Pattern[str] | None]] = {
    "EmailStr": ({"format": "email"}, pydantic.EmailStr, _ZOD_EMAIL),
    "datetime": ({"format": "date-time"}, dt.datetime, _ZOD_DATE_TIME),
    "date": ({"format": "date"}, dt.date, None),
    "time": ({"format": "time"}, dt.time, None),
    "timedelta": ({"format": "duration"}, dt.timedelta, None),
    "IPv4Address": ({"format": "ipv4"}, ipaddress.IPv4Address, None),
    "IPv6Address": ({"format": "ipv6"}, ipaddress.IPv6Address, None),
    "IPvAnyAddress": ({"format": "ipvanyaddress"}, pydantic.IPvAnyAddress, None),
    "UUID": ({"format": "uuid"}, uuid.UUID, None),
    "UUID4": ({"format": "uuid4"}, pydantic.UUID4, None),
    "AnyUrl": ({"format": "uri", "minLength": 1}, pydantic.AnyUrl, None),
    "web": ({"format": "uri", "pattern": "^https?:"}, pydantic.AnyHttpUrl, None),
    "special": ({"format": "uri", "pattern": "^(wss?|ftp|file):"}, pydantic.AnyUrl, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_random_strings_pass_the_check_of_their_reader(reader: str) -> None:
    if reader == "EmailStr":
        pytest.importorskip("email_validator")
    schema, type_, pattern = READERS[reader]
    walker, rng, adapter = Walker(_generating(schema), byte_vocabulary()), Random(SEED), pydantic.TypeAdapter(type_)
    tokens = Tokens(byte_vocabulary())
    texts = {walker.text(rng, tokens, rng.randrange(1, 60)) for _ in range(WALKS)}
    assert len(texts) > WALKS // 3
    for text in texts:
        adapter.validate_json(text)
        assert pattern is None or pattern.fullmatch(json.loads(text)), text


# Nothing that a schema asks for becomes impossible.

LEFT = {
    "a listed offset": ({"format": "date-time", "const": "2024-02-29T12:00:00+02:00"}, "2024-02-29T12:00:00+02:00"),
    "a pattern with offsets": ({"format": "date-time", "pattern": r"\+02:00$"}, "2024-02-29T12:00:00+02:00"),
    "a listed year": ({"format": "date", "enum": ["0476-09-04", "1453-05-29"]}, "0476-09-04"),
    "a pattern of early years": ({"format": "date", "pattern": "^0"}, "0476-09-04"),
    "a pattern of late years": ({"format": "date-time", "pattern": "^[3-9]"}, "3001-01-01T00:00:00Z"),
    "a small letter": ({"format": "date-time", "pattern": "t"}, "2024-02-29t12:00:00z"),
    "a domain of special use": ({"format": "email", "pattern": r"\.local$"}, "a@printer.local"),
    "a single label": ({"format": "email", "enum": ["root@localhost"]}, "root@localhost"),
    "a short address": ({"format": "email", "maxLength": 4}, "a@bc"),
    "allOf": ({"allOf": [{"format": "email"}, {"pattern": r"@\[127"}]}, "a@[127.0.0.1]"),
    "a URI of any scheme": ({"format": "uri", "pattern": "^http:[^/]"}, "http:example.com"),
    "IPv4 in IPv6": ({"format": "ipv6", "pattern": r"^1:2:3:4:5:6:1\."}, "1:2:3:4:5:6:1.2.3.4"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", LEFT)
def test_the_whole_format_is_written_where_nothing_would_be_left(case: str) -> None:
    schema, text = LEFT[case]
    assert _generating(schema).accepts(json.dumps(text))


YEARS = ("0001", "0800", "0999", "1000", "2999", "3000", "9999")
BOUNDED_YEARS: dict[str, tuple[Any, str, str]] = {
    "nothing is said": ({"format": "date"}, "1000", "2999"),
    "a form": ({"format": "date", "pattern": r"^\d{4}-\d\d-\d\d$"}, "1000", "2999"),
    "a length": ({"format": "date", "maxLength": 10}, "1000", "2999"),
    "allOf": ({"allOf": [{"format": "date"}, {"pattern": "-"}]}, "1000", "2999"),
    "all but a year": ({"format": "date", "not": {"pattern": "^2000"}}, "1000", "2999"),
    "a century": ({"format": "date", "pattern": "^(08|30)"}, "0800", "3000"),
    "no early years": ({"format": "date", "pattern": "^[^0]"}, "1000", "2999"),
    "no late years": ({"format": "date", "pattern": "^[^9]"}, "1000", "3000"),
    "from 800": (Annotated[dt.date, pydantic.Field(ge=dt.date(800, 1, 1))], "0800", "2999"),
    "to 3000": (Annotated[dt.date, pydantic.Field(le=dt.date(3000, 12, 31))], "1000", "3000"),
    "from 3000": (Annotated[dt.date, pydantic.Field(ge=dt.date(3000, 1, 1))], "3000", "9999"),
}


@for_each("case", BOUNDED_YEARS)
def test_years_are_narrowed_on_each_side_that_the_schema_leaves_open(case: str) -> None:
    schema, first, last = BOUNDED_YEARS[case]
    generated = compile_any(schema, byte_vocabulary(), close_objects=True, cache=False)
    lifted = compile_any(schema, byte_vocabulary(), close_objects=True, cache=False, years="any")
    valid = constrain.compile(schema, byte_vocabulary(), cache=False)
    for year in YEARS:
        text = f'"{year}-06-15"'
        assert lifted.accepts(text) == valid.accepts(text)
        assert generated.accepts(text) == (valid.accepts(text) and first <= year <= last), text


def test_years_can_be_narrowed_without_closing() -> None:
    constraint = constrain.compile({"format": "date-time"}, byte_vocabulary(), cache=False, years="1000-2999")
    assert constraint.accepts('"2024-02-29t12:34:56z"')
    assert not constraint.accepts('"3024-02-29t12:34:56z"')
    assert constraint.report.policies["years"] == "1000-2999"


def test_a_format_beside_a_pattern_is_kept_to_what_is_taken() -> None:
    constraint = _generating({"format": "email", "pattern": r"@example\.com$"})
    assert constraint.accepts('"a@example.com"')
    assert not constraint.accepts('"\\"a b\\"@example.com"')


def test_a_negated_format_leaves_out_all_that_it_allows() -> None:
    constraint = _generating({"not": {"format": "email"}})
    assert constraint.accepts('"a"')
    assert not constraint.accepts('"a@localhost"')


def test_different_items_do_not_run_out() -> None:
    item = {"type": "string", "format": "email", "pattern": "^[ab]@(localhost|x[.]de)$"}
    schema = {"type": "array", "items": item, "uniqueItems": True, "minItems": 2}
    constraint = compile_any(schema, byte_vocabulary(), close_objects=True, cache=False)
    assert constraint.accepts('["a@x.de", "b@x.de"]')
    assert not constraint.accepts('["a@x.de", "b@x.de", "a@localhost"]')


def test_compile_keeps_to_the_format_itself() -> None:
    constraint = constrain.compile({"type": "string", "format": "date-time"}, byte_vocabulary(), cache=False)
    assert constraint.accepts('"2024-02-29t12:34:56z"')


@for_each("name", ["binary", "password", "path", "json-string", "base64", "name-email", "jwt"])
def test_formats_of_libraries_that_are_not_known_are_named(name: str) -> None:
    constraint = _generating({"format": name})
    assert constraint.accepts('"any text"')
    assert any(repr(name) in warning for warning in constraint.report.warnings)
