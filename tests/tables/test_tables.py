"""Tables by name: kinds of values, sources, new values, and mistakes by their places."""

from __future__ import annotations

import json
import pickle
import random
import sqlite3
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import pydantic
import pytest

import constrain
from constrain.errors import SchemaError, UnsatisfiableSchemaError
from constrain.inspection.explanation import explain
from tests.support import byte_vocabulary, for_each
from tests.support.matching import accepted_by_forks, mask_of

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {"name": "Ada", "born": 1815, "fee": Decimal("12.50"), "paid": True, "since": date(1840, 1, 2)},
    {"name": "Grace", "born": 1906, "fee": 7, "paid": False, "since": date(1940, 5, 6)},
    {"name": None, "born": 2000, "fee": 0.1, "paid": True, "since": None},
]


def compiled(schema: object, tables: object = None, **options: Any) -> constrain.Constraint:
    return constrain.compile(
        schema, byte_vocabulary(), tables={"people": ROWS} if tables is None else tables, **options
    )


def column(name: str, **others: Any) -> dict[str, Any]:
    return {"x-one-of": {"table": "people", "column": name}, **others}


@for_each(
    "schema, yes, no",
    (
        (column("name"), ['"Ada"', '"Grace"'], ["null", '"Bob"', "1815", "[]"]),
        (column("name", type=["string", "null"]), ['"Ada"', "null"], ['"Bob"']),
        (column("born"), ["1815", "2000"], ["1816", "18", '"1815"', "1815.0"]),
        (column("born", type="integer"), ["1815", "1906"], ["1900"]),
        (column("born", type="number", minimum=1900), ["1906", "2000"], ["1815"]),
        (column("born", multipleOf=100), ["2000"], ["1906"]),
        (column("born", enum=[1815, 7]), ["1815"], ["7", "1906"]),
        (column("born", **{"not": {"const": 1815}}), ["2000"], ["1815"]),
        (column("fee", type="number"), ["12.5", "7", "0.1"], ["12.50", "12"]),
        (column("fee", type="integer"), ["7"], ["12.5"]),
        (column("fee", exclusiveMaximum=7), ["0.1"], ["7", "12.5"]),
        (column("paid"), ["true", "false"], ["null", "1"]),
        (column("paid", const=True), ["true"], ["false"]),
        (column("since", type="string", format="date"), ['"1840-01-02"'], ['"1840-01-03"']),
        ({"anyOf": [column("name"), column("born")]}, ['"Ada"', "1906"], ["1"]),
        ({"oneOf": [column("born"), column("born", minimum=1900)]}, ["1815"], ["1906"]),
    ),
)
def test_a_field_has_the_values_of_its_kind_that_other_keywords_leave(
    schema: Any, yes: list[str], no: list[str]
) -> None:
    constraint = compiled(schema)
    assert [text for text in yes + no if constraint.accepts(text)] == yes


def test_numbers_have_one_spelling_whatever_the_policy() -> None:
    constraint = compiled(column("fee", type="number"), numbers="any")
    assert [text for text in ("12.5", "12.50", "1.25e1") if constraint.accepts(text)] == ["12.5"]


@for_each("seed", range(4))
def test_masks_of_numbers_allow_what_stepping_through_each_token_allows(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.choice([rng.randint(-300, 300), Decimal(rng.randint(-999, 999)).scaleb(-2)]) for _ in range(200)]
    low, step = rng.randint(-200, 200), rng.choice([1, 2, Decimal("0.5")])
    schema = {"x-one-of": {"table": "people"}, "minimum": low, "multipleOf": float(step)}
    left = {value for value in values if value >= low and (Fraction(value) / Fraction(step)).denominator == 1}
    if not left:
        return
    constraint = compiled(schema, {"people": values})
    assert constraint.report.min_tokens == min(
        len(str(value.normalize() if isinstance(value, Decimal) else value)) for value in left
    )
    matcher = constraint.matcher()
    while not matcher.is_finished:
        wanted = accepted_by_forks(matcher)
        assert mask_of(matcher) == wanted
        matcher.accept(rng.choice([token for token, fits in enumerate(wanted) if fits]))


@for_each("seed", range(6))
def test_two_tables_of_one_field_leave_the_values_of_both(seed: int) -> None:
    rng = random.Random(seed)
    kind: Any = rng.choice([str, int])
    one, two = ([kind(rng.randint(0, 400)) for _ in range(rng.choice([3, 300]))] for _ in range(2))
    schema = {"allOf": [{"x-one-of": {"table": name}} for name in "ab"]}
    both = {*one} & {*two}
    if not both:
        with pytest.raises(UnsatisfiableSchemaError):
            compiled(schema, {"a": one, "b": two})
        return
    constraint = compiled(schema, {"a": one, "b": two})
    assert {value for value in one + two if constraint.accepts(json.dumps(value))} == both


def test_two_large_tables_of_one_field_are_merged() -> None:
    tables = {name: [f"value {number:06}" for number in range(0, 60_000, step)] for name, step in (("a", 2), ("b", 3))}
    constraint = compiled({"type": "string", "allOf": [{"x-one-of": {"table": name}} for name in "ab"]}, tables)
    assert constraint.accepts('"value 000006"')
    assert not constraint.accepts('"value 000004"')
    assert not compiled({"oneOf": [{"x-one-of": {"table": name}} for name in "ab"]}, tables).accepts('"value 000006"')


def test_types_name_tables_of_the_call() -> None:
    class Order(pydantic.BaseModel):
        customer: Annotated[str, constrain.OneOf(table="people", column="name")]
        year: Annotated[int | None, constrain.OneOf(table="people", column="born")]

    constraint = compiled(Order)
    assert constraint.accepts('{"customer":"Ada","year":null}')
    assert not constraint.accepts('{"customer":"Ada","year":1}')
    assert not constraint.accepts('{"customer":null,"year":1815}')
    found = explain(Order, b'{"customer":"Bob","year":null}', tables={"people": ROWS})
    assert not found.matches


def test_schemas_of_a_registry_name_tables_and_sources_of_the_call() -> None:
    registry = {"urn:a": column("name"), "urn:b": {"type": "string", "x-quote": "letter"}}
    options: Any = {"registry": registry, "sources": {"letter": "abc"}}
    constraint = compiled({"prefixItems": [{"$ref": "urn:a"}, {"$ref": "urn:b"}]}, **options)
    assert constraint.accepts('["Ada", "bc"]')
    assert not constraint.accepts('["Bob"]')
    assert not constraint.accepts('["Ada", "ca"]')
    assert compiled({}, **options).accepts("[1]")


def test_values_of_several_kinds_are_written_as_json_has_them() -> None:
    moment, name = datetime(2024, 1, 2, 3, 4, tzinfo=timezone.utc), UUID(int=7)
    constraint = compiled({"x-one-of": {"table": "t"}}, {"t": [moment, name, True, 3, 2.0, "a"]})
    for text in (f'"{moment.isoformat()}"', f'"{name}"', "true", "3", "2", '"a"'):
        assert constraint.accepts(text), text
    assert not constraint.accepts("false")


CSV = "name,born,paid\nAda,1815,true\nGrace,007,\n"


def sources(folder: Path) -> dict[str, constrain.Table]:
    """The same rows, in each kind of source."""
    path = folder / "crm.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (name TEXT, born INTEGER, photo BLOB)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", [("Ada", 1815, b"a"), ("Grace", None, b"b")])
        database.execute('CREATE VIEW "all ""of"" them" AS SELECT name FROM people')
    text = folder / "people.csv"
    text.write_text(CSV)
    import pyarrow as pa
    from pyarrow.parquet import write_table

    write_table(pa.table({"name": ["Ada", "Grace"], "born": [1815, None]}), folder / "people.parquet")
    return {
        "sqlite": constrain.Table.sqlite(path, "people"),
        "view": constrain.Table.sqlite(path, 'all "of" them'),
        "sql": constrain.Table.sql(f"sqlite:///{path}", "people"),
        "csv": constrain.Table.file(text),
        "parquet": constrain.Table.file(folder / "people.parquet"),
    }


@pytest.mark.slow
def test_databases_and_files_have_the_same_values(tmp_path: Path) -> None:
    for kind, table in sources(tmp_path).items():
        constraint = compiled({"type": "string", **column("name")}, {"people": table})
        assert [name for name in ("Ada", "Grace", "Bob") if constraint.accepts(f'"{name}"')] == ["Ada", "Grace"], kind
        if kind != "view":
            assert compiled({"type": "integer", **column("born")}, {"people": table}).accepts("1815"), kind
        if kind == "sqlite":
            with pytest.raises(
                SchemaError, match=r"the column 'photo' of the table 'people' of .*crm.db has a value .* bytes"
            ):
                compiled(column("photo"), {"people": table})
        assert pickle.loads(pickle.dumps(table)).columns == table.columns


def test_texts_of_csv_are_numbers_and_booleans_where_the_type_says_so(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(CSV)
    tables = {"people": constrain.Table.file(tmp_path / "people.csv")}
    for schema, yes in (
        (column("born"), ['"1815"', '"007"']),
        (column("born", type="string"), ['"1815"', '"007"']),
        (column("born", type="integer"), ["1815"]),
        (column("paid", type="boolean"), ["true"]),
    ):
        constraint = compiled(schema, tables)
        assert [text for text in ('"1815"', '"007"', "1815", "7", "true", "false") if constraint.accepts(text)] == yes


def test_refresh_makes_a_new_version_and_keeps_the_old_one_for_those_who_use_it(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("name\nAda\n")
    table = constrain.Table.file(path)
    before = compiled(column("name"), {"people": table})
    path.write_text("name\nGrace\n")
    table.refresh()
    after = compiled(column("name"), {"people": table})
    assert [each.accepts('"Ada"') for each in (before, after)] == [True, False]
    path.write_text('name\n"Gra')
    with pytest.raises(SchemaError, match=r"names\.csv cannot be read"):
        table.refresh()
    assert compiled(column("name"), {"people": table}).accepts('"Grace"')
    with pytest.raises(TypeError, match="made of values"):
        constrain.Table(["a"]).refresh()


MISTAKES: list[tuple[dict[str, Any], Any, type[Exception], str]] = [
    (column("nam"), None, SchemaError, r"'people' has no column 'nam' \(did you mean name\?\)"),
    (column("x"), None, SchemaError, "has no column 'x'; there are 'name', 'born'"),
    ({"x-one-of": {"table": "persons"}}, None, SchemaError, "give it in 'tables'"),
    ({"x-one-of": {"table": "people"}}, None, SchemaError, "has several columns: name one of 'name'"),
    ({"x-one-of": {"column": "name"}}, None, SchemaError, "must name a table"),
    ({"x-one-of": "people"}, None, SchemaError, "must name a table"),
    ({"x-one-of": {"digest": "0"}}, None, SchemaError, "must name a table"),
    ({"x-one-of": {"digest": "0" * 64, "size": 1}}, None, SchemaError, "no longer in use"),
    ({"x-one-of": {"table": "people"}}, {}, SchemaError, "there is no table 'people': give it in 'tables'"),
    ({"x-one-of": {"table": "people"}}, {"people": []}, UnsatisfiableSchemaError, "the table 'people' has no values"),
    (column("name"), {"people": []}, UnsatisfiableSchemaError, "has no values"),
    (column("name", type="integer"), None, UnsatisfiableSchemaError, "the 2 values of the column 'name' .* strings"),
    (column("born", minimum=3000), None, UnsatisfiableSchemaError, "none of the 3 values of the column 'born'"),
    (column("name", maxLength=2), None, UnsatisfiableSchemaError, "none of the 2 values of the column 'name'"),
]


@for_each("field, tables, error, says", MISTAKES)
def test_mistakes_are_named_with_their_place(field: dict[str, Any], tables: Any, error: type, says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        compiled({"type": "object", "properties": {"a": field}, "required": ["a"]}, tables)
    assert isinstance(caught.value, SchemaError)
    assert caught.value.pointer == "/properties/a/x-one-of"


@pytest.mark.parametrize("given", [5, {"people": 5}, {"people": {"": 5}}, {"people": {"": {"size": 1}}}])
def test_tables_that_a_schema_brings_itself_are_read_with_care(given: object) -> None:
    with pytest.raises(SchemaError, match=r"x-given-tables is written by constrain") as caught:
        constrain.compile({"x-given-tables": given, "x-one-of": {"table": "people"}}, byte_vocabulary())
    assert caught.value.pointer == "/x-one-of"


@for_each(
    "tables, error, says",
    (
        (["a"], TypeError, "tables must map"),
        ({1: ["a"]}, TypeError, "not a text"),
        ({"t": 5}, TypeError, r"tables\['t'\]: the values of a table are an iterable"),
        ({"t": [b""]}, SchemaError, r"tables\['t'\]: the list of values has a value"),
        ({"t": {"a": [1, {}]}}, SchemaError, r"tables\['t'\]: the column 'a' has a value of the type dict"),
    ),
)
def test_tables_that_cannot_be_are_refused(tables: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        compiled({"x-one-of": {"table": "t"}}, tables)


def test_sources_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name\n\xff", encoding="latin-1")
    (tmp_path / "a.db").write_text("no database, but long enough to be looked at" * 9)
    with sqlite3.connect(tmp_path / "b.db") as database:
        database.execute("CREATE TABLE people (name TEXT)")
    for make, says in (
        (lambda: constrain.Table.sqlite(tmp_path / "no.db", "people"), r"there is no database .*no\.db"),
        (lambda: constrain.Table.sqlite(tmp_path / "a.db", "people"), "cannot be read: file is not a database"),
        (lambda: constrain.Table.sqlite(tmp_path / "b.db", "peple"), r"no table 'peple' \(did you mean people\?\)"),
        (lambda: constrain.Table.sqlite(tmp_path / "b.db", "people", ["x"]), "no column 'x'; there are 'name'"),
        (lambda: constrain.Table.file(tmp_path / "a.csv"), r"a\.csv cannot be read"),
        (lambda: constrain.Table.file(tmp_path / "no.csv"), r"no\.csv cannot be read"),
        (lambda: constrain.Table.file(tmp_path / "a.db"), r"must end in \.csv or \.parquet"),
        (
            lambda: constrain.OneOf.sqlite(tmp_path / "b.db", "people", "name"),
            "'name' of the table 'people' has no values",
        ),
    ):
        with pytest.raises((SchemaError, ValueError), match=says):
            make()


@for_each("seed", range(5))
def test_the_values_of_a_column_in_rows_with_given_values_of_others(seed: int) -> None:
    rng = random.Random(seed)
    kinds: list[Any] = ["DE", "FR", 'a "b"', 3, True, None, Decimal("2.5")]
    values = [None, "x", "y" * 9, 7, 1]
    rows = [{"a": rng.choice(kinds), "b": rng.choice([1, 2]), "c": rng.choice(values)} for _ in range(40)]
    table = constrain.Table(rows)
    assert table.columns == ("a", "b", "c")
    for first in kinds[:5]:
        left = {row["c"] for row in rows if row["a"] is first and row["b"] == 1} - {None}
        found = table.given("c", {"b": 1, "a": first})
        assert len(found) == len(left)
        assert {*(found.numbers or ())} == {value for value in left if isinstance(value, int)}
    by_first = table.dependent("c", ["a"])
    lengths: dict[str, int] = {}
    for row in rows:
        if row["a"] is not None and row["c"] is not None:
            size = len(json.dumps(row["c"]))
            key = str(row["a"])
            lengths[key] = min(size, lengths.get(key, size))
    assert {str(each["a"]) for each in by_first.possible()} == {*lengths}
    hardest = by_first.hardest()
    assert hardest is not None
    assert lengths[str(hardest["a"])] == max(lengths.values())
    with pytest.raises(SchemaError, match="the column 'c' needs values of 'a'"):
        by_first.given({"b": 1})


def test_rows_of_another_version_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "cities.csv"
    path.write_text("country,city\nDE,Bonn\nFR,Lyon\nDE,Köln\n")
    table = constrain.Table.file(path)
    assert {*table.given("city", {"country": "DE"}).strings.texts} == {b"Bonn", "Köln".encode()}  # type: ignore[union-attr]
    path.write_text("country,city\nDE,Bonn\nFR,Metz\n")
    assert len(table.given("city", {"country": "DE"})) == 2, "remembered"
    with pytest.raises(SchemaError, match="has changed since it was read: call refresh"):
        table.given("country", {"city": "Lyon"})
    table.refresh()
    assert len(table.given("city", {"country": "FR"})) == 1
    assert not len(table.given("city", {"country": "IT"}))
