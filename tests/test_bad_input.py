"""Bad and huge input: each works, or ends in one clear error, in seconds and within 500 MB; never a crash.

What may be huge runs in a process of its own, whose code sees ``constrain``, a real vocabulary ``vocab``, ``try_out``,
which compiles a schema and takes the first mask, and ``finish``, which follows its shortest completion.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, model_validator

import constrain
from constrain.errors import ExportError
from constrain.language.result import result_type
from tests.support import byte_vocabulary, demo_model, for_each
from tests.support.apart import WORKS, Apart

SECONDS = 10.0
"""Processor seconds; on most machines, all take less than two."""

MEMORY = 500 << 20

PRELUDE = f"""
vocab = constrain.Vocabulary.from_gguf({str(demo_model())!r})

def try_out(schema, **options):
    constraint = constrain.compile(schema, vocab, **options)
    matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
    matcher.fill_bitmask(row)
    assert row.any(), "no token is allowed at the start"
    return constraint

def finish(constraint, most=1 << 16):
    completion = constraint.matcher().shortest_completion()
    assert len(completion) <= most and constraint.accepts(completion), completion[:100]
"""


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    with Apart(PRELUDE) as program:
        yield program


def check(apart: Apart, code: str, error: str, says: str = "", pointer: str | None = None) -> None:
    """There is one right outcome: this error (or ``WORKS``) at this place, with a message that says this."""
    outcome = apart.run(code)
    assert (outcome.error, outcome.pointer) == (error, pointer), outcome
    assert says in outcome.message, outcome
    if outcome.error != WORKS:
        assert says, "the test must tell what the message says"
        assert outcome.ours, outcome
        assert 10 < len(outcome.message) < 1000, outcome
    assert outcome.seconds <= SECONDS, outcome
    assert outcome.memory <= MEMORY, outcome


REFUSED = r"""
Schema | /type | 5 is not a type | {"type": 5}
Schema | /properties | properties must be a JSON object | {"properties": []}
Schema | /properties/a | a schema is an object or a boolean, not 1 | {"properties": {"a": 1}}
Schema | /required | required must be a list of strings | {"required": "a"}
Schema | /items/minimum | minimum must be a finite number | {"type": "array", "items": {"minimum": "1"}}
Schema | /enum | enum must be a list | {"enum": {}}
Schema | /anyOf | anyOf must be a list of schemas | {"anyOf": []}
Schema | root | a schema is an object or a boolean, not 17 | 17
Schema | - | line 1, column 18: not JSON | {"type": "string"
Schema | - | line 1, column 1: not JSON |
Schema | - | the key "type" occurs twice | {"type": "string", "type": "number"}
Schema | - | NaN is not a JSON number | {"minimum": NaN}
UnsatisfiableSchema | /minimum | maximum 3 exclude each other | {"type": "integer", "minimum": 5, "maximum": 3}
UnsatisfiableSchema | /exclusiveMinimum | exclude | {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1}
UnsatisfiableSchema | root | exclude each other | {"type": "string", "pattern": "^a{3}$", "maxLength": 2}
UnsatisfiableSchema | /minItems | maxItems 1 exclude each other | {"type": "array", "minItems": 3, "maxItems": 1}
UnsatisfiableSchema | root | exclude each other | {"allOf": [{"type": "string"}, {"type": "null"}]}
UnsatisfiableSchema | root | exclude each other | {"type": "string", "const": 1}
UnsatisfiableSchema | root | can have no value | {"type": "object", "properties": {"a": false}, "required": ["a"]}
Schema | /$ref | names an anchor that no schema has | {"$ref": "#none"}
Schema | /$ref | $ref must be a string, not 1 | {"$ref": 1}
UnsupportedSchema | root | the schema applies itself to the same value | {"$ref": "#"}
UnsupportedSchema | root | the schema applies itself to the same value | {"allOf": [{"type": "string"}, {"$ref": "#"}]}
Pattern | /items/pattern | column 1: the group that begins here has no closing ) | {"items": {"pattern": "("}}
Pattern | /items/pattern | column 2: the range 'b' to 'a' is out of order | {"items": {"pattern": "[b-a]"}}
Pattern | /items/pattern | column 2: the count {2,1} is out of order | {"items": {"pattern": "a{2,1}"}}
Pattern | /items/pattern | column 1: there is nothing to repeat | {"items": {"pattern": "*a"}}
Pattern | /items/pattern | column 1: 'None' is no general category | {"items": {"pattern": "\\p{None}"}}
Pattern | /items/pattern | column 8: two groups have the name a | {"items": {"pattern": "(?<a>x)(?<a>y)"}}
Pattern | /items/pattern | column 1: a backslash at the end escapes nothing | {"items": {"pattern": "\\"}}
Pattern | /items/pattern | column 2: this ) closes no group | {"items": {"pattern": "a)"}}
Limit | /properties/a/maximum | MAX_DIGITS | {"properties": {"a": {"maximum": -1e99999999999}}}
Limit | /items/minLength | MAX_DIGITS | {"items": {"minLength": 1e99999999}}
Limit | /items/enum | MAX_DIGITS | {"items": {"enum": [1e9999, 1]}}
Schema | - | too large an exponent | {"const": 1e999999999999999999999}
Schema | - | too large an exponent | {"multipleOf": 1e-99999999999999999999999}
"""
"""Error, place (``-``: none), what the message says, schema. More: ``json_schema/data/errors.toml``."""


@for_each("case", REFUSED.strip().split("\n"))
def test_a_wrong_schema_is_refused_by_place(case: str) -> None:
    error, place, says, schema = (part.strip() for part in case.split(" |", 3))
    with pytest.raises(getattr(constrain, f"{error}Error")) as caught:
        constrain.compile(schema, byte_vocabulary())
    assert says in str(caught.value)
    assert 10 < len(str(caught.value)) < 1000
    assert getattr(caught.value, "pointer", None) == {"-": None, "root": ""}.get(place, place)


HUGE = {
    "maxLength": "finish(try_out({'type': 'string', 'maxLength': 10**9}))",
    "minLength": "try_out({'type': 'string', 'minLength': 10**9})",
    "minLength of a property": "try_out({'properties': {'a': {'type': 'string', 'minLength': 10**9}}})",
    "both lengths": "try_out({'type': 'string', 'pattern': '^[a-z]+$', 'minLength': 10**6, 'maxLength': 10**9})",
    "maxItems": "finish(try_out({'type': 'array', 'items': {'type': 'integer'}, 'maxItems': 10**9}))",
    "minItems": "try_out({'type': 'array', 'items': {'type': 'integer'}, 'minItems': 10**9})",
    "maxItems of arrays": (
        "finish(try_out({'type': 'array', 'items': {'type': 'array', 'maxItems': 10**9}, 'maxItems': 10**9}))"
    ),
    "enum of 100,000 strings": "finish(try_out({'enum': [f'value number {i}' for i in range(100_000)]}))",
    "enum of 100,000 keys": (
        "finish(try_out({'type': 'object', 'properties': {f'k{i}': True for i in range(10_000)}, 'required': ['k7']}))"
    ),
    "an enum string of a million characters": "finish(try_out({'enum': ['x' * 10**6]}), most=1 << 21)",
    "a counted gap": "finish(try_out({'type': 'string', 'pattern': '^.*a.{1000}$'}))",
    "an unanchored counted gap": "finish(try_out({'type': 'string', 'pattern': '.*a.{1000}'}))",
    "a gap counted twice": "try_out({'type': 'string', 'pattern': '^(.*a.{200}){20}$'})",
    "nested counts": "try_out({'type': 'string', 'pattern': '^((a{1,100}){1,100}){1,100}$'})",
    "a count of a billion": "try_out({'items': {'type': 'string', 'pattern': '^a{1000000000}$'}})",
    "bounds of 1,000 digits": "try_out({'type': 'integer', 'minimum': 10**1000, 'maximum': 10**1000 + 7})",
    "a multiple of a prime": "finish(try_out({'type': 'integer', 'multipleOf': 2**61 - 1}))",
    "a tiny multiple": "finish(try_out({'type': 'number', 'multipleOf': 1e-300}))",
    "10,000 branches": "finish(try_out({'anyOf': [{'type': 'string', 'minLength': i} for i in range(10_000)]}))",
    "allOf of 30 choices": (
        "parts = [{'anyOf': [{'minLength': i}, {'maxLength': i}]} for i in range(30)]\n"
        "finish(try_out({'allOf': parts, 'type': 'string'}))"
    ),
}


REFUSED_HUGE: dict[str, tuple[str, str, str | None]] = {
    "minLength": ("LimitError", "MAX_INTERSECTION_STATES", ""),
    "minLength of a property": ("LimitError", "MAX_INTERSECTION_STATES", "/properties/a"),
    "minItems": ("LimitError", "MAX_LEAST_COUNT", ""),
    "a gap counted twice": ("LimitError", "MAX_COMPILE_WORK", ""),
    "a count of a billion": ("LimitError", "MAX_SHORTEST_MATCH", "/items"),
    "bounds of 1,000 digits": ("UnsupportedSchemaError", 'precision="decimal"', "/maximum"),
    "a multiple of a prime": ("UnsupportedSchemaError", 'precision="decimal"', "/multipleOf"),
    "10,000 branches": ("LimitError", "MAX_ALTERNATIVES", "/anyOf"),
}
"""Error, what its message says and the place; all other huge inputs work."""


def test_every_kind_of_refusal_is_in_the_tables() -> None:
    assert set(REFUSED_HUGE) <= set(HUGE)
    assert set(REFUSED_DEEP) <= set(DEEP)


@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE)
def test_huge_input_works_or_meets_a_limit(name: str, apart: Apart) -> None:
    check(apart, HUGE[name], *REFUSED_HUGE.get(name, (WORKS,)))


DEEP = {
    "items as text": """finish(try_out('{"type":"array","items":' * 10_000 + 'true' + '}' * 10_000))""",
    "items": """
schema = True
for _ in range(10_000):
    schema = {"type": "array", "items": schema}
finish(try_out(schema))""",
    "required properties": """
schema = {"type": "null"}
for _ in range(10_000):
    schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
finish(try_out(schema), most=1 << 20)""",
    "allOf": """
schema = {"type": "string"}
for _ in range(10_000):
    schema = {"allOf": [schema]}
finish(try_out(schema))""",
    "references": """
definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(10_000)}
finish(try_out({"$ref": "#/$defs/d0", "$defs": {**definitions, "d10000": {"type": "null"}}}))""",
    "a constant": """
value = 1
for _ in range(10_000):
    value = [value]
finish(try_out({"const": value}))""",
    "parentheses of a pattern": """finish(try_out({"type": "string", "pattern": "(" * 10_000 + "a" + ")" * 10_000}))""",
    "brackets without end": """try_out('[' * 100_000)""",
    "a schema that contains itself": """
schema = {"type": "array"}
schema["items"] = schema
try_out(schema)""",
}


TOO_DEEP = ("SchemaError", "nested too deeply to be read", None)
REFUSED_DEEP: dict[str, tuple[str, str, str | None]] = {
    "items as text": TOO_DEEP,
    "items": TOO_DEEP,
    "required properties": TOO_DEEP,
    "allOf": TOO_DEEP,
    "a constant": TOO_DEEP,
    "parentheses of a pattern": ("PatternError", "MAX_PATTERN_NESTING", "/pattern"),
    "brackets without end": TOO_DEEP,
    "a schema that contains itself": ("SchemaError", "Circular reference", None),
}
"""Error, what its message says and the place; all other deep inputs work."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DEEP)
def test_deep_input_works_or_meets_a_limit(name: str, apart: Apart) -> None:
    check(apart, DEEP[name], *REFUSED_DEEP.get(name, (WORKS,)))


TRUNCATED = {
    0: "it is empty",
    3: "it begins with b'GGU'",
    10: "the header needs 8 bytes at byte 8, the file has 10",
    24: "key 0 of 33 needs 8 bytes at byte 24, the file has 24",
    1_000: "key 22 of 33 needs 20 bytes at byte 982, the file has 1000",
    100_000: "the value of tokenizer.ggml.tokens needs",
    1_000_000: "the value of tokenizer.ggml.merges needs",
}


def require_no_model(path: Path, says: str) -> None:
    for read in (constrain.Vocabulary.from_gguf, constrain.Model):
        with pytest.raises(constrain.ModelError, match=says):
            read(path)


@pytest.mark.parametrize("size", TRUNCATED)
def test_a_truncated_model_is_refused(size: int, tmp_path: Path) -> None:
    with demo_model().open("rb") as whole:
        (tmp_path / "short.gguf").write_bytes(whole.read(size))
    require_no_model(tmp_path / "short.gguf", TRUNCATED[size])


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model at all\n" * 1000)
    (tmp_path / "lengths.gguf").write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 4000)
    require_no_model(tmp_path / "text.gguf", "not a GGUF file")
    require_no_model(tmp_path / "lengths.gguf", "truncated: key 0 of")
    require_no_model(tmp_path / "missing.gguf", "No such file")
    require_no_model(tmp_path, "Is a directory")


@for_each(
    "missing, schema, unspelled",
    [("0123456789", 40, "0x30 0x34"), ("4", 40, "0x34"), ("5-", -5, "0x2d 0x35"), ("0", 40, "0x30")],
)
def test_a_vocabulary_that_cannot_spell_the_schema_is_refused(missing: str, schema: int, unspelled: str) -> None:
    tokens = [bytes([byte]) for byte in range(256) if chr(byte) not in missing]
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, b"14", b""], eos=[len(tokens) + 1])
    with pytest.raises(constrain.ModelError, match=f"no single-byte tokens for the bytes {unspelled}"):
        constrain.compile({"const": schema}, vocabulary)


VOCABULARY = byte_vocabulary()
MATCHER = constrain.compile(True, VOCABULARY).matcher()
WORDS = (VOCABULARY.n_vocab + 31) // 32


@for_each("token", [-1, VOCABULARY.n_vocab, 2**31, 2**40, 2**70, -(2**40)])
def test_a_token_id_out_of_range_is_an_index_error(token: int) -> None:
    for call in (MATCHER.accept, lambda each: MATCHER.accept_many([each]), MATCHER.explain):
        with pytest.raises(IndexError, match=f"is not in the vocabulary of {VOCABULARY.n_vocab} tokens"):
            call(token)


NO_BUFFER = "bitmask must be a contiguous, writable array"
BITMASKS: dict[str, tuple[Any, type[Exception], str]] = {
    "of signed long words": (np.zeros(WORDS, np.int64), ValueError, "bitmask must have shape"),
    "of floats": (np.zeros(WORDS, np.float32), ValueError, "bitmask must have shape"),
    "of booleans": (np.zeros(VOCABULARY.n_vocab, bool), ValueError, "bitmask must have shape"),
    "too short": (np.zeros(WORDS - 1, np.uint32), ValueError, "bitmask must have shape"),
    "too long": (np.zeros(WORDS + 1, np.uint32), ValueError, "bitmask must have shape"),
    "empty": (np.zeros(0, np.uint32), ValueError, "bitmask must have shape"),
    "of two dimensions": (np.zeros((1, WORDS), np.uint32), ValueError, "bitmask must have shape"),
    "with gaps": (np.zeros(2 * WORDS, np.uint32)[::2], TypeError, NO_BUFFER),
    "backwards": (np.zeros(WORDS, np.uint32)[::-1], TypeError, NO_BUFFER),
    "that cannot be written": (np.frombuffer(bytes(4 * WORDS), np.uint32), TypeError, NO_BUFFER),
    "of the other byte order": (np.zeros(WORDS, np.dtype(">u4")), ValueError, "bitmask must have shape"),
}


@for_each("name", BITMASKS)
def test_a_bitmask_of_the_wrong_shape_or_type_is_refused(name: str) -> None:
    bitmask, error, says = BITMASKS[name]
    with pytest.raises(error, match=says):
        MATCHER.fill_bitmask(bitmask)


def test_a_bitmask_of_signed_words_is_taken() -> None:
    MATCHER.fill_bitmask(np.zeros(WORDS, np.int32))


@pytest.mark.parametrize("count", [1, -1, 2**40])
def test_a_rollback_beyond_the_start_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="cannot roll back"):
        MATCHER.rollback(count)


def test_a_batch_of_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        constrain.compile(True, VOCABULARY).allocate_bitmask(-1)


def test_the_root_of_a_schema_is_named_in_words() -> None:
    with pytest.raises(constrain.UnsatisfiableSchemaError, match=r"^at the root of the schema: ") as caught:
        constrain.compile(False, byte_vocabulary())
    assert caught.value.pointer == ""


def test_a_member_with_an_empty_name_is_not_the_root() -> None:
    with pytest.raises(constrain.SchemaError, match=r"^at /properties/: ") as caught:
        constrain.compile({"properties": {"": 5}}, byte_vocabulary())
    assert caught.value.pointer == "/properties/"


def test_the_root_of_an_answer_is_named_in_words() -> None:
    class Rejected(BaseModel):
        @model_validator(mode="after")
        def reject(self) -> Rejected:
            raise ValueError("never")

    with pytest.raises(constrain.OutputValidationError, match=r"^at the root of the answer: ") as caught:
        result_type(Rejected).parse("{}")
    assert caught.value.pointer == ""


@pytest.mark.parametrize(("divisor", "spelled"), [(1010, "1010"), (10.1, "10.1"), (101, "101")])
def test_a_divisor_is_named_as_the_schema_has_it(divisor: Any, spelled: str) -> None:
    schema = {"type": "number", "multipleOf": divisor, "not": {"multipleOf": 2 * divisor}}
    with pytest.raises(constrain.LimitError, match=f"multiples of {spelled} cannot be enforced .* list the numbers"):
        constrain.compile(schema, byte_vocabulary())


def test_errors_are_the_same_in_another_process() -> None:
    made = [
        constrain.SchemaError("bad", pointer="/a"),
        constrain.GrammarError("bad", line=2, column=3),
        constrain.BudgetError("few", needed=7),
        constrain.OutputValidationError("wrong", text="5", pointer=""),
        ExportError("not regular", target="regex", pointer="/b"),
    ]
    for error in made:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
