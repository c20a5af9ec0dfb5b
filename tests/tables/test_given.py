"""``x-one-of`` with ``given``: values of a column in the rows that other fields have chosen."""

from __future__ import annotations

import gc
import itertools
import json
import time
from random import Random
from typing import Annotated, Any

import pydantic
import pytest

import constrain
from constrain import SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.certificates import certify, verify_certificate
from constrain.engine.compiling import describe_source
from constrain.generation.observers.certificate.replay import recompile
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.hint import describe
from tests.json_schema.stages.test_walks import walk
from tests.support import allowed, byte_vocabulary, demo_model, for_each

ROWS: list[dict[str, Any]] = [
    {"country": "DE", "city": "Bonn", "zip": 53111},
    {"country": "DE", "city": "Köln", "zip": 50667},
    {"country": "FR", "city": "Metz", "zip": -1.5},
    {"country": "FR", "city": 'Villeneuve "d"', "zip": 1},
    {"country": "IT", "city": None, "zip": None},
    {"country": 3, "city": "Three Rivers", "zip": 3},
    {"country": True, "city": "Truth", "zip": 7},
]
PLACES = constrain.Table(ROWS)
PAIRS = {json.dumps([row["country"], row["city"]]) for row in ROWS if row["city"] is not None}
CITY = {"table": "places", "column": "city", "given": {"country": "1/country"}}


def city(**changed: Any) -> dict[str, Any]:
    return {"type": "string", "x-one-of": CITY | changed}


def record(required: Any = None, **fields: Any) -> dict[str, Any]:
    """An object that lists the given fields; all of them are required."""
    kept = [*fields] if required is None else required
    return {"type": "object", "properties": fields, "required": kept, "additionalProperties": False}


def compiled(schema: Any, table: Any = PLACES, **options: Any) -> constrain.Constraint:
    tables = {"places": table}
    return constrain.compile(schema, byte_vocabulary(), tables=tables, whitespace="compact", cache=False, **options)


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


ROW = record(city=city(), country={})
SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "a row, of which the later column is listed first": (ROW, lambda value: [value]),
    "rows": ({"type": "array", "items": ROW, "minItems": 1, "maxItems": 3}, lambda value: value),
    "rows by a reference": (
        record(rows={"type": "array", "items": {"$ref": "#/$defs/Row"}, "maxItems": 2}) | {"$defs": {"Row": ROW}},
        lambda value: value["rows"],
    ),
    "an absolute pointer": (
        record(at=record(country={"type": "string"}), city=city(given={"country": "/at/country"})),
        lambda value: [value | value["at"]],
    ),
    "a list of values": (
        record(
            cities={"type": "array", "items": city(given={"country": "2/country"}), "minItems": 2, "maxItems": 3},
            country={},
        ),
        lambda value: [{"country": value["country"], "city": each} for each in value["cities"]],
    ),
    "two columns": (
        record(city=city(), zip={"type": "number", "x-one-of": CITY | {"column": "zip"}}, country={}),
        lambda value: [value],
    ),
}


@for_each("name", *SCHEMAS)
def test_walks_end_in_rows_within_the_tokens(name: str) -> None:
    schema, rows_in = SCHEMAS[name]
    constraint = compiled(schema)
    rng, fewest = Random(name), constraint.matcher().min_tokens_left
    for most in (None, fewest, fewest + 1, fewest + 15):
        text = walk(constraint, rng, most)
        assert most is None or len(text.encode()) <= most
        assert constraint.accepts(text)
        assert all(json.dumps([row["country"], row["city"]]) in PAIRS for row in rows_in(json.loads(text))), text


def test_each_pair_of_a_row_can_be_written_and_no_other() -> None:
    constraint = compiled(ROW)
    for country in {json.dumps(row["country"]): row["country"] for row in ROWS}.values():
        for name in ("Bonn", "Metz", 'Villeneuve "d"', "Three Rivers", "Truth", "Rome"):
            is_row = json.dumps([country, name]) in PAIRS
            assert constraint.accepts(text_of({"country": country, "city": name})) == is_row
    assert constraint.matcher().forced_bytes() == b'{"country":'


def test_a_city_may_be_absent_or_null_where_its_country_has_none() -> None:
    field = {"anyOf": [city(), {"type": "null"}]}
    constraint = compiled(record(city=field, country={"type": ["string", "null"]}))
    for country, name, right in (
        ("DE", "Bonn", True),
        ("DE", None, True),
        ("IT", None, True),
        (None, None, True),
        (None, "Bonn", False),
        ("IT", "Bonn", False),
    ):
        assert constraint.accepts(text_of({"country": country, "city": name})) == right
    constraint = compiled(record(city=field, country={}))
    for country in ("[[1]]", '{"a":1}'):
        assert constraint.accepts(f'{{"country":{country},"city":null}}')
        assert not constraint.accepts(f'{{"country":{country},"city":"Bonn"}}')
    assert constraint.accepts('{"country":3.0,"city":"Three Rivers"}')
    constraint = compiled(record(["country"], city=city(), country={"type": "string"}))
    assert [constraint.accepts(text) for text in ('{"country":"IT"}', '{"country":"IT","city":"Bonn"}')] == [
        True,
        False,
    ]


def test_equal_columns_with_other_rows_are_other_schemas() -> None:
    one, two = (constrain.Table({"country": ["DE", "FR"], "city": names}) for names in (["A", "B"], ["B", "A"]))
    assert one.column("city") is two.column("city")
    for table, right in ((one, True), (two, False), (one, True)):
        made = constrain.compile(ROW, byte_vocabulary(), tables={"places": table}, whitespace="compact")
        assert made.accepts('{"country":"DE","city":"A"}') == right


def test_equal_rows_with_other_names_are_found_by_these() -> None:
    renamed = constrain.Table([{"land": row["country"], "city": row["city"]} for row in ROWS])
    assert renamed.dependent("city", ["land"]).digest != PLACES.dependent("city", ["country"]).digest
    fields = record(city=city(given={"land": "1/land"}), land={})
    assert compiled(fields, renamed).accepts('{"land":"DE","city":"Bonn"}')


def test_a_constraint_keeps_its_rows() -> None:
    constraint = compiled(ROW, [{"country": "A", "city": "kept"}, {"country": "B", "city": "by it"}])
    gc.collect()
    assert constraint.accepts('{"country":"B","city":"by it"}')


def test_texts_of_csv_are_strings(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("country,city\n1,Bonn\n2,Metz\n")
    table = constrain.Table.file(tmp_path / "a.csv")
    assert compiled(ROW, table).accepts('{"country":"1","city":"Bonn"}')
    with pytest.raises(UnsupportedSchemaError, match="/country must be of the type string"):
        compiled(record(city=city(), country={"type": "integer"}), table)


class Place(pydantic.BaseModel):
    city: Annotated[str, constrain.OneOf(table="places", column="city", given={"country": "land"})]
    country: str = pydantic.Field(alias="land")


def test_annotations_write_the_keyword() -> None:
    assert Place.model_json_schema()["properties"]["city"]["x-one-of"] == CITY | {"given": {"country": "1/land"}}
    constraint = compiled(list[Place])
    assert constraint.accepts('[{"land":"DE","city":"Bonn"},{"land":"FR","city":"Metz"}]')
    assert not constraint.accepts('[{"land":"DE","city":"Bonn"},{"land":"FR","city":"Bonn"}]')
    with pytest.raises(TypeError, match="given needs the name of a table"):
        constrain.OneOf(["Bonn"], given={"country": "country"})
    assert "a value of the column 'city' of the table 'places' in a row whose 'country' is" in describe(ROW)


def test_certificates_hold_and_those_of_other_rows_do_not() -> None:
    schema = {"type": "array", "items": ROW}
    constraint = compiled(schema)
    source = describe_source(
        schema, byte_vocabulary(), close_objects=False, whitespace="compact", tables={"places": PLACES}
    )
    facts: Any = {"source": source, "versions": {"constrain": ""}}
    text = b'[{"country":"DE","city":"Bonn"},{"country":"FR","city":"Metz"}]'
    proof = certify(constraint, list(text), facts=facts)
    verify_certificate(proof)
    recompile(proof)
    with pytest.raises(ValueError, match="refused"):
        certify(constraint, list(text.replace(b"Metz", b"Bonn")), facts=facts)


@for_each(
    "field, error, says",
    (
        (city(table="place"), SchemaError, r"no table 'place': give it in 'tables' \(did you mean places\?\)"),
        (city(column="cit"), SchemaError, r"no column 'cit' \(did you mean city\?\)"),
        (city(given={"land": "1/country"}), SchemaError, "no column 'land'; there are"),
        (city(given={"country": "1/land"}), SchemaError, "points at nothing"),
        (city(given={"country": "country"}), SchemaError, "given must be a JSON Pointer such as"),
        (city(given={"country": "1/free"}), UnsupportedSchemaError, "'free' may be absent"),
        (city(given={"country": "1/country", "zip": "1/free"}), UnsupportedSchemaError, "'free' may be absent"),
        (city(given={}), SchemaError, "given needs a table"),
        ({"x-one-of": {"digest": "0", "size": 1, "given": CITY["given"]}}, SchemaError, "given needs a table"),
        (city() | {"type": "integer"}, UnsupportedSchemaError, "the type of the field: string"),
        (city() | {"type": ["string", "null"]}, UnsupportedSchemaError, "write null by anyOf"),
        (city() | {"maxLength": 5}, UnsupportedSchemaError, "maxLength cannot stand beside given"),
    ),
)
def test_mistakes_are_named_with_their_place(field: dict[str, Any], error: type[SchemaError], says: str) -> None:
    schema = record(["country", "city"], country={}, city=field, free={})
    with pytest.raises(SchemaError, match=says) as caught:
        compiled(schema)
    assert type(caught.value) is error
    assert (caught.value.pointer or "").startswith("/properties/city/")


STREETS = [
    {"country": "DE", "city": "Bonn", "street": "Am Hof"},
    {"country": "DE", "city": "Bonn", "street": "Markt"},
    {"country": "DE", "city": "Köln", "street": "Markt"},
    {"country": "FR", "city": "Bonn", "street": "Rue 1"},
    {"country": "FR", "city": "Metz", "street": 7},
]
STREET = {"x-one-of": CITY | {"column": "street", "given": {"country": "1/country", "city": "1/city"}}}
BY_CITY = {"x-one-of": CITY | {"column": "street", "given": {"city": "1/city"}}}


@for_each(
    "street, columns",
    ((STREET, ("country", "city", "street")), (BY_CITY, ("city", "street"))),
)
def test_a_field_may_depend_on_several_and_on_one_that_depends_itself(street: Any, columns: tuple[str, ...]) -> None:
    constraint = compiled(record(street=street, city=city(), country={}), STREETS)
    names, values = (
        ("country", "city", "street"),
        ({row[name] for row in STREETS} for name in ("country", "city", "street")),
    )
    for combination in itertools.product(*values):
        value = dict(zip(names, combination, strict=True))
        known = [("country", "city"), columns]
        right = all(any(all(row[name] == value[name] for name in each) for row in STREETS) for each in known)
        assert constraint.accepts(text_of(value)) == right, value
    least = constraint.matcher().min_tokens_left
    for seed in range(20):
        for most in (None, least, least + 1, least + 15):
            assert constraint.accepts(walk(constraint, Random(seed), most))


def test_fields_of_a_row_need_a_row_for_all_of_them() -> None:
    with pytest.raises(UnsupportedSchemaError, match="must itself be a value of the table, by given with the others"):
        compiled(record(street=STREET, city={"type": "string"}, country={}), STREETS)
    gap = [*STREETS, {"country": "DE", "city": "Ulm", "street": None}]
    with pytest.raises(
        UnsupportedSchemaError, match="some rows of the column 'city' of the table 'places' have no value"
    ):
        compiled(record(street=STREET, city=city(), country={}), gap)


def test_tools_and_rows_without_values_are_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="one JSON text"):
        compile_schema(ROW)
    for rows in ([], [{"country": "IT", "city": None}], [{"country": "IT", "city": None}, {"city": "Bonn"}]):
        with pytest.raises(UnsatisfiableSchemaError) as caught:
            compiled(ROW, rows)
        assert caught.value.pointer == "/properties/city/x-one-of"
    given = {"places": {name: {"digest": PLACES.column(name).digest} for name in PLACES.columns}}
    for about in (5, {'["country"]': 5}, {'["country"]': {}}, {'["country"]': {"digest": []}}):
        given["places"]["city"]["given"] = about
        with pytest.raises(SchemaError, match="no longer in use"):
            constrain.compile({"x-given-tables": given, **ROW}, byte_vocabulary())


@pytest.mark.slow
def test_a_stage_of_a_large_table_is_compiled_fast() -> None:
    rng = Random(1)
    rows = [{"country": f"c{rng.randrange(20_000)}", "city": f"city {number}"} for number in range(100_000)]
    constraint = compiled(ROW, rows)
    for row in rng.sample(rows, 5):
        matcher, slowest = constraint.matcher(), 0.0
        for byte in text_of({"country": row["country"], "city": row["city"]}).encode():
            before = time.perf_counter()
            assert matcher.accept(byte)
            slowest = max(slowest, time.perf_counter() - before)
        assert matcher.is_accepting
        assert slowest < 0.05


@pytest.mark.slow
def test_no_walk_over_tokens_of_a_model_gets_stuck() -> None:
    vocabulary = constrain.Vocabulary.from_gguf(str(demo_model()))
    rng = Random(5)
    names = [
        "Köln",
        "Bonn",
        "Villeneuve",
        "Metz-sur-Loire",
        "Washington",
        "Ouagadougou",
        "Xqzjw",
        "東京",
        "Qx9",
        "Port-au-Prince",
        "'é",
    ]
    for number in range(8):
        rows = [{"country": rng.choice(names), "city": rng.choice(names)} for _ in range(10)]
        schema = {"type": "array", "items": ROW, "minItems": 1, "maxItems": 3} if number % 2 else ROW
        constraint = constrain.compile(schema, vocabulary, tables={"places": rows}, cache=False)
        fewest, row = constraint.matcher().min_tokens_left, constraint.allocate_bitmask()[0]
        for spare in (0, 1, 15) * 5:
            matcher = constraint.matcher(fewest + spare)
            while not matcher.is_finished:
                ids = allowed(matcher, row).tolist()
                assert ids
                assert matcher.accept(rng.choice(ids))
