"""``x-unique-by`` and ``x-refers``: masks against all texts of small schemas, and random walks within budgets."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest

import constrain
from constrain import SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from tests.json_schema.stages.judging import Schema, is_valid
from tests.json_schema.stages.test_bounds import array, compiled, data, record
from tests.json_schema.stages.test_walks import END, VOCABULARY, WIDE, walked
from tests.support import LONG, allowed, for_each

MERGED = constrain.Vocabulary.from_tokens(
    [
        *(bytes([byte]) for byte in range(256)),
        b"",
        b'"},{"',
        b'":"',
        b'"}',
        b'"a"',
        b'"}]',
        b"e}",
        b"1},{",
        b'b"},',
        b'"id":1',
        b'{"id":1},{"id":1},{"id":2}',
        b'2},{"id":2},{"id":1}',
    ],
    eos=[END],
)
WORD: Schema = {"enum": ["a", "b", "ab"], "type": "string"}
SMALL: Schema = {"type": "integer", "minimum": 1, "maximum": 2}
TRUTH: Schema = {"type": "boolean"}


def unique(items: Schema, pointer: str = "/id", **more: Any) -> Schema:
    return array(items, **{"x-unique-by": pointer}, **more)


def row(**fields: Schema) -> Schema:
    return record(**fields) | {"additionalProperties": False}


def lists(*values: Any, most: int = 3) -> list[Any]:
    return [[*each] for count in range(most + 1) for each in itertools.product(values, repeat=count)]


WORDS = [{"id": each} for each in ("a", "b", "ab")]
PAIRS = [{"id": number, "t": truth} for number in (1, 2) for truth in (True, False)]


@pytest.mark.parametrize("vocabulary", [VOCABULARY, MERGED], ids=["bytes", "merged"])
@for_each(
    "schema, values",
    (unique(row(id=WORD)), lists(*WORDS)),
    (unique(row(id=WORD), minItems=2, maxItems=2), lists(*WORDS)),
    (unique(row(id=SMALL)), lists({"id": 1}, {"id": 2})),
    (unique(row(id=SMALL, t=TRUTH), minItems=1), lists(*PAIRS)),
    (
        unique(row(t=TRUTH, id=TRUTH), maxItems=3),
        lists(*({"t": t, "id": each} for t in (True, False) for each in (True, False))),
    ),
    (
        unique(row(key=row(code=SMALL), t={"const": 0}), "/key/code"),
        lists(*({"key": {"code": number}, "t": 0} for number in (1, 2))),
    ),
    (
        array(row(xs=unique({"$ref": "#/$defs/item"}, minItems=1)), maxItems=2) | {"$defs": {"item": row(id=SMALL)}},
        lists(*({"xs": xs} for xs in lists({"id": 1}, {"id": 2})), most=2),
    ),
    (
        unique(row(id=SMALL, to={"type": "integer", "minimum": data("1/id"), "maximum": 2})),
        lists(*({"id": one, "to": other} for one in (1, 2) for other in (1, 2))),
    ),
)
def test_masks_have_what_begins_a_valid_text(
    schema: Schema, values: list[Any], vocabulary: constrain.Vocabulary
) -> None:
    require_exact_masks(schema, values, vocabulary)


def require_exact_masks(schema: Schema, values: list[Any], vocabulary: constrain.Vocabulary) -> None:
    """Of some values, the valid ones are all; each token is allowed that begins the rest of one, and no other."""
    texts = [json.dumps(each, separators=(",", ":")).encode() for each in values if is_valid(schema, each)]
    begins = {text[:end] for text in texts for end in range(len(text) + 1)}
    constraint = constrain.compile(schema, vocabulary, whitespace="compact", cache=False)
    mask, rng = constraint.allocate_bitmask()[0], Random(1)
    tokens = [(each, vocabulary.token_bytes(each)) for each in range(vocabulary.n_vocab) if each != END]
    for start in sorted(begins) if LONG else rng.sample(sorted(begins), min(40, len(begins))):
        matcher = constraint.matcher()
        assert matcher.accept_many(list(start)) == len(start)
        expected = [token for token, spelled in tokens if start + spelled in begins] + [END] * (start in texts)
        assert allowed(matcher, mask).tolist() == sorted(expected), start
    assert any(not is_valid(schema, each) for each in values)


def made(rng: Random) -> Schema:
    """A random schema with arrays whose items differ in a member."""
    ids: list[Schema] = [
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "string", "enum": ["x", "yy", "zzz", "wwww", 'é\n"']},
        {"type": "string", "pattern": "^[ab]{1,2}$"},
        {"type": "string", "format": "date"},
        {"type": "string", "minLength": 2, "maxLength": 3},
        {"type": "integer", "minimum": rng.randint(-3, 8), "maximum": rng.randint(9, 13)},
        {"type": "integer", "multipleOf": 50, "not": {"const": 100}},
        {"$ref": "#/$defs/code"},
    ]
    key = rng.choice(ids)
    fields: dict[str, Schema] = {"id": key}
    if rng.random() < 0.6:
        fields["a"] = rng.choice([{"type": "integer", "maximum": 99}, {"type": "boolean"}, {"type": "null"}])
    if rng.random() < 0.3:
        fields |= {"lo": {"type": "integer", "minimum": 0, "maximum": 9}}
        fields |= {"up": {"type": "integer", "minimum": data("1/lo"), "maximum": 20}}
    names = rng.sample(sorted(fields), len(fields))
    if "lo" in names:
        names.remove("up")
        names.append("up")
    optional = [name for name in names if name == "a" and rng.random() < 0.5]
    item = record(*optional, **{name: fields[name] for name in names})
    pointer = "/id"
    if rng.random() < 0.2:
        item, pointer = record(key=item), "/key/id"
    sizes = {"minItems": rng.randint(0, 4)} if rng.random() < 0.7 else {}
    if rng.random() < 0.5:
        sizes["maxItems"] = max(rng.randint(1, 5), sizes.get("minItems", 0))
    if rng.random() < 0.3:
        item = {"$ref": "#/$defs/item", "$defs": {"item": item}}
    definitions = {"code": {"type": "string", "pattern": "^[A-Z][0-9]?$"}, **item.pop("$defs", {})}
    schema = unique(item, pointer, **sizes)
    match rng.randrange(6):
        case 0:
            schema = record("xs", xs=schema, n={"type": "integer"})
        case 1:
            schema = array(record(xs=schema), maxItems=2)
        case 2:
            schema = record(xs={"anyOf": [schema, {"type": "null"}]}, ys=unique(item, pointer, maxItems=2))
        case 3:
            schema = array(schema, minItems=rng.randrange(2), maxItems=2)
    return {**schema, "$defs": definitions}


def referring(rng: Random) -> Schema:
    """A random schema with an array and with values that are among those of its items."""
    keys: list[Schema] = [
        {"type": "string"},
        {"type": "integer"},
        {"type": "integer", "minimum": 98, "maximum": 101},
        {"type": "string", "pattern": "^[ab]{2,9}$"},
        {"type": "string", "enum": ["x", "yyyyyyyy"]},
    ]
    key = rng.choice(keys)
    own = {"type": key["type"]} if rng.random() < 0.5 else {}
    fields: dict[str, Schema] = {"id": key}
    if rng.random() < 0.5:
        fields[rng.choice(["a", "z"])] = {"type": "boolean"}
    steps = array(record(**dict(sorted(fields.items()))))
    if rng.random() < 0.4:
        steps |= {"x-unique-by": "/id"}
    if rng.random() < 0.5:
        steps["minItems"] = rng.randint(1, 2)
    if rng.random() < 0.5:
        steps["maxItems"] = rng.randint(2, 3)
    field: Schema = refers("/xs/*/id", **own)
    match rng.randrange(6):
        case 0:
            last = array(record(source=field, target=field), minItems=rng.randrange(3), maxItems=3)
        case 1:
            last = {"anyOf": [field, {"type": "null"}]}
        case 2:
            last = record(inner=field)
        case 3:
            last = array(field, minItems=rng.randrange(3))
        case _:
            last = field
    if own and rng.random() < 0.5 and last is field:
        return record(xs=steps, y=last, z={"type": key["type"], "const": data("1/y")})
    optional = ["y"] if rng.random() < 0.3 else []
    schema = record(*optional, **({"xs": steps, "y": last} if rng.random() < 0.7 else {"y": last, "xs": steps}))
    if rng.random() < 0.3:
        schema["properties"]["w"] = {"type": "string", "maxLength": 9}
        schema["required"].append("w")
    return schema


@pytest.mark.parametrize("vocabulary", [VOCABULARY, WIDE], ids=["bytes", "wide"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_walks_end_in_valid_texts(seed: int, vocabulary: constrain.Vocabulary) -> None:
    count = 2 if seed == 1 else 1000 if LONG else 60
    compiled = 0
    for number in range(count):
        rng = Random(1000 * seed + number)
        schema = (made if number % 2 else referring)(rng)
        texts = walked(schema, rng, vocabulary)
        compiled += texts is not None
        for text in texts or ():
            assert is_valid(schema, json.loads(text)), (schema, text)
    assert compiled > count / 2


def refers(pointer: str, **more: Any) -> Schema:
    return {"x-refers": pointer, **more}


XS = array(row(id=WORD), maxItems=2)
LINES = lists(*WORDS, most=2)


@pytest.mark.parametrize("vocabulary", [VOCABULARY, MERGED], ids=["bytes", "merged"])
@for_each(
    "schema, values",
    (row(xs=XS, x=refers("/xs/*/id")), [{"xs": xs, "x": x} for xs in LINES for x in ("a", "b", "ab")]),
    (
        row(xs=XS, x=refers("/xs/*/id")) | {"required": ["xs"]},
        [{"xs": xs, **x} for xs in LINES for x in ({}, {"x": "a"}, {"x": "ab"}, {"x": "b"})],
    ),
    (
        row(xs=XS, x={"anyOf": [refers("/xs/*/id", type="string"), {"type": "null"}]}),
        [{"xs": xs, "x": x} for xs in LINES for x in ("a", "b", "ab", None)],
    ),
    (
        row(to=array(row(x=refers("/xs/*/id")), maxItems=2), xs=unique(row(id=SMALL), maxItems=2)),
        [
            {"xs": xs, "to": to}
            for xs in lists({"id": 1}, {"id": 2}, most=2)
            for to in lists({"x": 1}, {"x": 2}, most=2)
        ],
    ),
    (
        row(
            xs=array(SMALL, maxItems=2), x=refers("/xs/*", type="integer"), y={"const": data("1/x"), "type": "integer"}
        ),
        [{"xs": xs, "x": x, "y": y} for xs in lists(1, 2, most=2) for x in (1, 2) for y in (1, 2)],
    ),
)
def test_masks_of_what_refers_to_items(schema: Schema, values: list[Any], vocabulary: constrain.Vocabulary) -> None:
    require_exact_masks(schema, values, vocabulary)


REFUSED = (
    (unique(record(id=WORD), "id"), SchemaError, "/x-unique-by", "must be a JSON Pointer to a member"),
    (unique(record(id=WORD)) | {"x-unique-by": 1}, SchemaError, "/x-unique-by", "must be a JSON Pointer to a member"),
    (unique(record(id=WORD), "/ix"), SchemaError, "/x-unique-by", "there are 'id'"),
    (unique(record("id", id=WORD)), UnsupportedSchemaError, "/x-unique-by", "add 'id' to required"),
    (unique({"properties": {"id": WORD}}), UnsupportedSchemaError, "/x-unique-by", "must be of the type object"),
    (unique(record(id={"type": "number"})), UnsupportedSchemaError, "/x-unique-by", "string, integer or boolean"),
    (unique(record(id={})), UnsupportedSchemaError, "/x-unique-by", "string, integer or boolean"),
    (
        unique(record(id=WORD), prefixItems=[{}]),
        UnsupportedSchemaError,
        "/x-unique-by",
        "cannot be read with prefixItems",
    ),
    (
        {"type": "array", "x-unique-by": "/id"},
        UnsupportedSchemaError,
        "/x-unique-by",
        "exactly one schema of the items",
    ),
    (unique(record(id=WORD), minItems=300), UnsupportedSchemaError, "/x-unique-by", "at most 256"),
    (unique(record(id=WORD), contains=TRUTH), UnsupportedSchemaError, "/contains", "cannot stand in a schema around"),
    ({"not": unique(record(id=WORD))}, UnsupportedSchemaError, "/not", "inside not"),
    (
        unique(record(a=SMALL, id={"type": "integer", "minimum": data("1/a")})),
        UnsupportedSchemaError,
        "/x-unique-by",
        "cannot depend on other fields",
    ),
    (
        unique(record(id=SMALL, a={"type": "integer", "const": data("1/id")})),
        UnsupportedSchemaError,
        "/x-unique-by",
        "cannot be repeated",
    ),
    (
        record(n=SMALL, xs=unique(record(id=WORD), minItems=data("1/n"))),
        UnsupportedSchemaError,
        "/properties/xs/x-unique-by",
        "minItems cannot be $data",
    ),
    (
        record(xs=array(record(id=WORD, x=refers("/xs/*/id")))),
        UnsupportedSchemaError,
        "/properties/xs/items/properties/x/x-refers",
        "refers to the array in which it lies; put it",
    ),
    (record(xs=XS, x=refers("/xs/0/id")), UnsupportedSchemaError, "/properties/x/x-refers", "with one *"),
    (record(xs=XS, x=refers("1/xs/*/id")), UnsupportedSchemaError, "/properties/x/x-refers", "absolute JSON Pointer"),
    (record(xs=XS, x={"x-refers": 1}), SchemaError, "/properties/x/x-refers", "must be a JSON Pointer"),
    (record(xs=XS, x=refers("/xs/*/ix")), SchemaError, "/properties/x/x-refers", "there are 'id'"),
    (record(xs=XS, x=refers("/x/*/id")), SchemaError, "/properties/x/x-refers", "bounds itself"),
    (
        record(xs=XS | {"type": ["array", "null"]}, x=refers("/xs/*/id")),
        UnsupportedSchemaError,
        "/properties/x/x-refers",
        "/xs must be of the type array",
    ),
    (
        record(xs=array({"properties": {"id": WORD}, "required": ["id"]}), x=refers("/xs/*/id")),
        UnsupportedSchemaError,
        "/properties/x/x-refers",
        "/xs/* must be of the type object",
    ),
    (record("xs", xs=XS, x=refers("/xs/*/id")), UnsupportedSchemaError, "/properties/x/x-refers", "'xs' to required"),
    (record(xs=array({}), x=refers("/xs/*")), UnsupportedSchemaError, "/properties/x/x-refers", "of the type string"),
    (
        record(xs=XS, x=refers("/xs/*/id", type="string", pattern="^a")),
        UnsupportedSchemaError,
        "/properties/x/x-refers",
        "not all values of /xs/*/id are valid here",
    ),
    (record(xs=XS, x=refers("/xs/*/id", type="integer")), UnsupportedSchemaError, "/properties/x/x-refers", "not all"),
    (unique(record(id=WORD), minItems=4), UnsatisfiableSchemaError, "/x-unique-by", "has only 3 values"),
)


@for_each("schema, kind, pointer, words", *REFUSED)
def test_refused(schema: Schema, kind: type[SchemaError], pointer: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        compiled(schema)
    assert (type(caught.value), caught.value.pointer) == (kind, pointer), caught.value
    assert words in caught.value.message


def test_where_it_is_supported() -> None:
    schema = unique(record(t=TRUTH, id=SMALL))
    with pytest.raises(UnsupportedSchemaError, match="one JSON text"):
        compile_schema(schema)
    constraint = compiled(schema, property_order="any")
    assert constraint.warnings == ()
    assert constraint.accepts('[{"t":true,"id":1},{"id":2,"t":true}]')
    assert not constraint.accepts('[{"t":true,"id":1},{"id":1,"t":true}]')
    assert constraint.staged is not None
    settled = constraint.staged.settled(b'[{"t":true,"id":1},{"t":true,"id":2}]')
    assert [settled.accepts(f'[{{"t":true,"id":1}},{{"t":true,"id":{number}}}]') for number in (1, 2)] == [False, True]
