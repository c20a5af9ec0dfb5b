"""``OneOf``: strings of a table, with the other keywords of the string, and without them."""

from __future__ import annotations

import gc
import json
import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import pydantic
import pytest

import constrain
from constrain import kernel
from constrain.certificates import certify, verify_certificate
from constrain.errors import LimitError, SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.hint import describe
from constrain.json_schema.lint.linter import lint_schema
from constrain.language.tree import LiteralTable
from constrain.regex.spelling import out_of_json
from constrain.tables import columns
from tests.support import byte_vocabulary

NAMES = ["Ada", "Grace", "Grace Hopper", 'Alan "A" Turing', "Émilie", "2020-02-30", "2020-02-29", "a\nb"]


def accepted(schema: object, values: list[str]) -> list[str]:
    constraint = constrain.compile(schema, byte_vocabulary())
    return [value for value in values if constraint.accepts(json.dumps(value, ensure_ascii=False).encode())]


def test_exactly_the_values_are_written() -> None:
    assert accepted(Annotated[str, constrain.OneOf(NAMES)], [*NAMES, "", "Grac", "Adam"]) == NAMES


@pytest.mark.parametrize(
    ("keyword", "fits"),
    [
        ({"pattern": "^[A-G]"}, lambda value: re.match("[A-G]", value)),
        ({"minLength": 4, "maxLength": 6}, lambda value: 4 <= len(value) <= 6),
        ({"format": "date"}, lambda value: value == "2020-02-29"),
        ({"enum": ["Ada", "Grace", "Bob", 3]}, lambda value: value in {"Ada", "Grace"}),
        ({"not": {"const": "Ada"}}, lambda value: value != "Ada"),
        ({"not": {"pattern": "a"}}, lambda value: "a" not in value),
    ],
)
def test_values_that_other_keywords_exclude_are_left_out(keyword: dict[str, Any], fits: Any) -> None:
    schema = {"type": "string", "x-one-of": (kept := constrain.OneOf(NAMES)).keyword(), **keyword}
    assert accepted(schema, NAMES) == list(filter(fits, NAMES))
    assert kept


def test_a_value_that_a_format_may_allow_is_refused_as_in_an_enum() -> None:
    kept = constrain.OneOf(["12:00:00Z", "23:59:60Z"])
    for listed in ({"enum": ["12:00:00Z", "23:59:60Z"]}, {"x-one-of": kept.keyword()}):
        with pytest.raises(UnsupportedSchemaError, match=r"23:59:60Z.*not certain"):
            constrain.compile({"type": "string", "format": "time", **listed}, byte_vocabulary())


def test_all_spellings_and_raw_strings_have_the_values() -> None:
    kind = Annotated[str, constrain.OneOf(NAMES)]
    assert constrain.compile(kind, byte_vocabulary(), escapes="any").accepts('"\\u0041da"')  # type: ignore[arg-type]
    raw = out_of_json(LiteralTable.of(kernel.Texts(NAMES)))
    assert kernel.matches(raw, b'Alan "A" Turing')
    assert not kernel.matches(raw, b"Alan")


def test_certificates_and_lint_know_the_keyword() -> None:
    kept = constrain.OneOf(NAMES)
    schema = {"type": "string", "x-one-of": kept.keyword()}
    constraint = constrain.compile(schema, byte_vocabulary())
    assert verify_certificate(certify(constraint, list(b'"Grace Hopper"')))
    with pytest.raises(ValueError, match="is refused"):
        certify(constraint, list(b'"Bob"'))
    described = {**schema, "description": "who wrote it"}
    assert lint_schema({"type": "object", "properties": {"name": described}}).advice == ()
    assert "one of 8 known values" in describe(schema)


def test_a_table_without_a_value_left_is_an_error_with_its_place() -> None:
    kept = constrain.OneOf(NAMES)
    field = {"type": "string", "x-one-of": kept.keyword(), "maxLength": 2}
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        constrain.compile({"type": "object", "properties": {"a": field}, "required": ["a"]}, byte_vocabulary())
    assert caught.value.pointer == "/properties/a/x-one-of"


def test_the_budget_counts_the_shortest_value_that_is_left() -> None:
    for options, least in (({}, "Ada"), ({"min_length": 4}, "Grace")):
        kind: Any = Annotated[str, constrain.OneOf(NAMES), pydantic.Field(**options)]
        assert constrain.compile(kind, byte_vocabulary()).report.min_tokens == len(f'"{least}"')


def test_unions_lists_and_keys_take_tables() -> None:
    one, two = (Annotated[str, constrain.OneOf(names)] for names in (NAMES[:2], NAMES[2:]))
    constraint = constrain.compile(list[one | two | None], byte_vocabulary())  # type: ignore[valid-type]
    assert constraint.accepts(json.dumps([NAMES[0], None, NAMES[3]]))
    assert not constraint.accepts('["Bob"]')


def test_different_items_run_out_of_values() -> None:
    schema = {"type": "array", "items": {"x-one-of": (kept := constrain.OneOf(["a", "b"])).keyword(), "type": "string"}}
    constraint = constrain.compile({**schema, "uniqueItems": True}, byte_vocabulary())
    assert constraint.accepts('["b","a"]')
    assert not constraint.accepts('["b","b"]')
    assert not constraint.accepts('["b","a",')
    assert kept


def test_dates_are_written_as_strings() -> None:
    days = [date(2024, 2, 29), date(1999, 12, 31)]
    constraint = constrain.compile(Annotated[date, constrain.OneOf(days)], byte_vocabulary())
    assert constraint.accepts('"2024-02-29"')
    assert not constraint.accepts('"2024-02-28"')


def test_equal_tables_are_one_and_are_found_while_one_of_them_is_in_use() -> None:
    one, two = constrain.OneOf(["a", "b"]), constrain.OneOf(["b", "a", "b"])
    keyword = one.keyword()
    assert keyword == two.keyword()
    del one
    gc.collect()
    schema = {"type": "string", "x-one-of": keyword}
    assert accepted(schema, ["a", "c"]) == ["a"]
    unused = {"x-one-of": constrain.OneOf(["nobody", "keeps", "these"]).keyword()}
    gc.collect()
    with pytest.raises(SchemaError, match="no longer in use; keep"):
        constrain.compile(unused, byte_vocabulary())
    assert two


def test_a_constraint_keeps_the_values_that_it_needs() -> None:
    schema = {"type": "string", "x-one-of": (kept := constrain.OneOf(["kept", "by it"])).keyword()}
    constraint = constrain.compile(schema, byte_vocabulary())
    del kept
    gc.collect()
    assert constrain.compile({**schema, "maxLength": 4}, byte_vocabulary()).accepts('"kept"')
    assert constraint.accepts('"by it"')


def test_other_types_are_refused() -> None:
    with pytest.raises(UnsatisfiableSchemaError, match="none of the 8 values of the table, which are strings"):
        constrain.compile(Annotated[int, constrain.OneOf(NAMES)], byte_vocabulary())
    with pytest.raises(TypeError, match=r"Annotated\[str"):
        constrain.compile(Annotated[str, constrain.OneOf], byte_vocabulary())


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    ("names", TypeError, "iterable"),
    (3, TypeError, "iterable"),
    (None, TypeError, "needs values"),
    ([b"a"], SchemaError, "the list of values has a value of the type bytes"),
    (["a", ["b"]], SchemaError, "of the type list"),
    ([float("nan")], SchemaError, "no number that JSON has"),
    ([Decimal("1e5000")], SchemaError, "MAX_TABLE_DIGITS"),
    (["\ud800"], SchemaError, "lone surrogate"),
    ([], ValueError, "no values"),
    ([None], ValueError, "no values"),
    ([{"a": 1}, 2], TypeError, "rows of a table are mappings, but one is 2"),
    ([{"a": 1, "b": 2}], SchemaError, "several columns: name one of 'a', 'b'"),
]


@pytest.mark.parametrize(("values", "error", "says"), MISTAKES)
def test_other_values_are_refused(values: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        constrain.OneOf(values)


def test_a_table_has_no_more_than_so_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_TABLE_VALUES", 3)
    assert constrain.OneOf(["a", "b", "b"])
    with pytest.raises(LimitError, match="MAX_TABLE_VALUES = 3; leave out rows"):
        constrain.OneOf(["a", "b", "b", "b"])
