"""Bad and huge input: it works, or ends in its own clear error, within 2 seconds and 500 MB; never a crash.

Each case runs in a process of its own. Seconds are of processor time, so that a busy machine makes no difference. The
code of a case sees ``constrain``, a real vocabulary ``vocab``, ``try_out``, which compiles a schema and takes the first
mask, and ``finish``, which follows its shortest completion.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support import demo_model

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 2.0
MEMORY = 500 << 20
WORKS = "works"

PRELUDE = """
import json, resource, sys, time
import numpy as np
import constrain

folder, model = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # a runaway ends soon; the test judges the resident peak
vocab = constrain.Vocabulary.from_gguf(model)

def try_out(schema, **options):
    constraint = constrain.compile(schema, vocab, **options)
    matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
    matcher.fill_bitmask(row)
    assert row.any(), "no token is allowed at the start"
    return constraint

def finish(constraint, most=1 << 16):
    completion = constraint.matcher().shortest_completion()
    assert len(completion) <= most and constraint.accepts(completion), completion[:100]

def run():
BODY

start = time.process_time()
try:
    run()
    outcome = {"error": "works", "message": ""}
except BaseException as error:
    ours = isinstance(error, constrain.ConstrainError)
    outcome = {"error": type(error).__name__, "message": str(error), "ours": ours}
    outcome["pointer"] = getattr(error, "pointer", None)
outcome["seconds"] = time.process_time() - start
status = open("/proc/self/status").read()
outcome["memory"] = int(status.split("VmHWM:")[1].split()[0]) << 10
print(json.dumps(outcome))
"""


@dataclass(frozen=True)
class Outcome:
    error: str
    message: str
    seconds: float
    memory: int
    ours: bool = True
    pointer: str | None = None


def run_apart(code: str, folder: Path) -> Outcome:
    body = "\n".join(f"    {line}" for line in code.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE.replace("BODY", body), str(folder), str(demo_model())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}:\n{done.stderr[-2000:]}"
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def check(code: str, folder: Path, errors: str, pointer: str | None = None) -> None:
    """``errors``: the names of the outcomes that are right, with blanks between them."""
    outcome = run_apart(code, folder)
    assert outcome.error in errors.split(), outcome
    if outcome.error != WORKS:
        assert outcome.ours or outcome.error in ("IndexError", "ValueError", "TypeError"), outcome
        assert 10 < len(outcome.message) < 1000, outcome
        if pointer is not None:
            assert outcome.pointer == pointer, outcome
    assert outcome.seconds <= SECONDS, outcome
    assert outcome.memory <= MEMORY, outcome


MALFORMED = {
    "a type that is a number": ('{"type": 5}', "/type"),
    "a type that does not exist": ('{"type": "strin"}', "/type"),
    "properties that are a list": ('{"properties": []}', "/properties"),
    "a property that is a number": ('{"properties": {"a": 1}}', "/properties/a"),
    "required that is a string": ('{"required": "a"}', "/required"),
    "a bound that is a string": ('{"type": "array", "items": {"minimum": "1"}}', "/items/minimum"),
    "a negative length": ('{"minLength": -1}', "/minLength"),
    "an enum that is an object": ('{"enum": {}}', "/enum"),
    "anyOf without branches": ('{"anyOf": []}', "/anyOf"),
    "multipleOf zero": ('{"multipleOf": 0}', "/multipleOf"),
    "a schema that is a number": ("17", ""),
    "a schema that is a list": ("[]", ""),
    "text that is not JSON": ('{"type": "string"', None),
    "empty text": ("", None),
    "a key twice": ('{"type": "string", "type": "number"}', None),
    "a number that is none": ('{"minimum": NaN}', None),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_schema(name: str, tmp_path: Path) -> None:
    text, pointer = MALFORMED[name]
    check(f"try_out({text!r})", tmp_path, "SchemaError", pointer)


UNSATISFIABLE = {
    "false": "False",
    "empty enum": "{'enum': []}",
    "integer bounds": "{'type': 'integer', 'minimum': 5, 'maximum': 3}",
    "no integer between": "{'type': 'integer', 'minimum': 1.2, 'maximum': 1.8}",
    "exclusive bounds": "{'type': 'number', 'exclusiveMinimum': 1, 'exclusiveMaximum': 1}",
    "no multiple between": "{'type': 'number', 'minimum': 1, 'maximum': 6, 'multipleOf': 7}",
    "string lengths": "{'type': 'string', 'minLength': 5, 'maxLength': 2}",
    "pattern against length": "{'type': 'string', 'pattern': '^a{3}$', 'maxLength': 2}",
    "array lengths": "{'type': 'array', 'minItems': 3, 'maxItems': 1}",
    "types that exclude each other": "{'allOf': [{'type': 'string'}, {'type': 'null'}]}",
    "a constant of another type": "{'type': 'string', 'const': 1}",
    "a required key of no value": "{'type': 'object', 'properties': {'a': False}, 'required': ['a']}",
    "a value that contains itself": ("{'type': 'object', 'properties': {'a': {'$ref': '#'}}, 'required': ['a']}"),
}


@pytest.mark.parametrize("name", UNSATISFIABLE)
def test_schema_that_nothing_satisfies(name: str, tmp_path: Path) -> None:
    check(f"try_out({UNSATISFIABLE[name]})", tmp_path, "UnsatisfiableSchemaError")


REFERENCES = {
    "dangling": ("{'properties': {'a': {'$ref': '#/$defs/none'}}}", "/properties/a/$ref"),
    "dangling anchor": ("{'$ref': '#none'}", "/$ref"),
    "to another document": ("{'$ref': 'https://example.com/schema.json'}", "/$ref"),
    "that is a number": ("{'$ref': 1}", "/$ref"),
    "into a number": ("{'$defs': {'a': {'maximum': 3}}, '$ref': '#/$defs/a/maximum'}", "/$ref"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_reference_that_leads_nowhere(name: str, tmp_path: Path) -> None:
    schema, pointer = REFERENCES[name]
    check(f"try_out({schema})", tmp_path, "SchemaError UnsupportedSchemaError", pointer)


@pytest.mark.parametrize(
    "schema",
    [
        "{'$ref': '#'}",
        "{'$defs': {'a': {'$ref': '#/$defs/b'}, 'b': {'$ref': '#/$defs/a'}}, '$ref': '#/$defs/a'}",
        "{'anyOf': [{'$ref': '#'}]}",
        "{'allOf': [{'type': 'string'}, {'$ref': '#'}]}",
    ],
)
def test_reference_cycle_without_a_value(schema: str, tmp_path: Path) -> None:
    check(f"try_out({schema})", tmp_path, "SchemaError UnsatisfiableSchemaError UnsupportedSchemaError")


@pytest.mark.parametrize("pattern", ["(", "[b-a]", "a{2,1}", "*a", "\\p{None}", "(?<a>x)(?<a>y)", "\\", "a)"])
def test_invalid_pattern(pattern: str, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    check(f"try_out({schema!r})", tmp_path, "PatternError SchemaError", "/properties/a/pattern")


HUGE = {
    "maxLength": "finish(try_out({'type': 'string', 'maxLength': 10**9}))",
    "minLength": "try_out({'type': 'string', 'minLength': 10**9})",
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
    "a count of a billion": "try_out({'type': 'string', 'pattern': '^a{1000000000}$'})",
    "bounds of 1,000 digits": "try_out({'type': 'integer', 'minimum': 10**1000, 'maximum': 10**1000 + 7})",
    "a multiple of a prime": "finish(try_out({'type': 'integer', 'multipleOf': 2**61 - 1}))",
    "a tiny multiple": "finish(try_out({'type': 'number', 'multipleOf': 1e-300}))",
    "10,000 branches": "finish(try_out({'anyOf': [{'type': 'string', 'minLength': i} for i in range(10_000)]}))",
    "allOf of 30 choices": (
        "parts = [{'anyOf': [{'minLength': i}, {'maxLength': i}]} for i in range(30)]\n"
        "finish(try_out({'allOf': parts, 'type': 'string'}))"
    ),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_input_works_or_meets_a_named_limit(name: str, tmp_path: Path) -> None:
    check(HUGE[name], tmp_path, "works LimitError UnsupportedSchemaError PatternError")


@pytest.mark.parametrize("name", ["maxLength", "maxItems", "enum of 100,000 strings"])
def test_huge_bounds_work(name: str, tmp_path: Path) -> None:
    check(HUGE[name], tmp_path, WORKS)


EXPONENTS = {
    "of a bound": ('{"properties": {"a": {"maximum": -1e99999999999}}}', "LimitError", "/properties/a/maximum"),
    "of a length": ('{"items": {"minLength": 1e99999999}}', "LimitError", "/items/minLength"),
    "of a value": ('{"items": {"enum": [1e9999, 1]}}', "LimitError", "/items"),
    "beyond all arithmetic": ('{"const": 1e999999999999999999999}', "SchemaError", None),
    "of a tiny divisor": ('{"multipleOf": 1e-99999999999999999999999}', "SchemaError", None),
}


@pytest.mark.parametrize("name", EXPONENTS)
def test_exponents_that_take_too_long_to_reckon_with_are_refused_by_place(name: str, tmp_path: Path) -> None:
    text, error, pointer = EXPONENTS[name]
    check(f"try_out({text!r})", tmp_path, error, pointer)


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


@pytest.mark.parametrize("name", DEEP)
def test_deep_input_works_or_meets_a_named_limit(name: str, tmp_path: Path) -> None:
    check(DEEP[name], tmp_path, "works SchemaError LimitError PatternError")


@pytest.mark.parametrize("size", [0, 3, 10, 24, 1_000, 100_000, 1_000_000])
def test_truncated_model(size: int, tmp_path: Path) -> None:
    with demo_model().open("rb") as whole:
        (tmp_path / "short.gguf").write_bytes(whole.read(size))
    check("constrain.Vocabulary.from_gguf(folder + '/short.gguf')", tmp_path, "ModelError")
    check("constrain.Model(folder + '/short.gguf')", tmp_path, "ModelError")


def test_model_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model at all\n" * 1000)
    (tmp_path / "lengths.gguf").write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 4000)
    for path in ("/text.gguf", "/lengths.gguf", "/missing.gguf", ""):
        check(f"constrain.Vocabulary.from_gguf(folder + {path!r})", tmp_path, "ModelError")
        check(f"constrain.Model(folder + {path!r})", tmp_path, "ModelError")


@pytest.mark.parametrize("missing", ["0123456789", "4", "5-", "0"])
def test_vocabulary_that_cannot_spell_what_the_schema_asks_for(missing: str, tmp_path: Path) -> None:
    code = f"""
tokens = [bytes([byte]) for byte in range(256) if chr(byte) not in {missing!r}]
vocab = constrain.Vocabulary.from_tokens([*tokens, b"14", b""], eos=[len(tokens) + 1])
constrain.compile({{'const': 40}} if {missing!r} != "5-" else {{'const': -5}}, vocab)"""
    check(code, tmp_path, "ModelError GrammarError")


@pytest.mark.parametrize(
    "tokens",
    [
        "[], eos=[]",
        "[b'a'], eos=[]",
        "[b'a'], eos=[1]",
        "[b'a'], eos=[-1]",
        "['a', b''], eos=[1]",
        "[b'', b''], eos=[1]",
    ],
)
def test_vocabulary_that_cannot_be_one(tokens: str, tmp_path: Path) -> None:
    check(f"constrain.Vocabulary.from_tokens({tokens})", tmp_path, "ModelError")


@pytest.mark.parametrize("token", ["-1", "vocab.n_vocab", "2**31", "2**40", "2**70", "-2**40"])
@pytest.mark.parametrize("method", ["accept({})", "accept_many([{}])", "explain({})"])
def test_token_id_out_of_range(method: str, token: str, tmp_path: Path) -> None:
    code = f"try_out(True).matcher().{method.format(token)}"
    outcome = run_apart(code, tmp_path)
    assert outcome.error in ("IndexError", "ValueError"), outcome
    assert "id" in outcome.message, outcome


BITMASKS = {
    "of signed long words": "np.zeros(words, np.int64)",
    "of floats": "np.zeros(words, np.float32)",
    "of long words": "np.zeros(words, np.uint64)",
    "of booleans": "np.zeros(vocab.n_vocab, bool)",
    "too short": "np.zeros(words - 1, np.uint32)",
    "too long": "np.zeros(words + 1, np.uint32)",
    "empty": "np.zeros(0, np.uint32)",
    "of two dimensions": "np.zeros((1, words), np.uint32)",
    "with gaps": "np.zeros(2 * words, np.uint32)[::2]",
    "backwards": "np.zeros(words, np.uint32)[::-1]",
    "that cannot be written": "np.frombuffer(bytes(4 * words), np.uint32)",
    "of the other byte order": "np.zeros(words, np.dtype('>u4'))",
    "that is a list": "[0] * words",
    "that is none": "None",
}


@pytest.mark.parametrize("name", BITMASKS)
def test_wrong_bitmask(name: str, tmp_path: Path) -> None:
    code = f"words = (vocab.n_vocab + 31) // 32\ntry_out(True).matcher().fill_bitmask({BITMASKS[name]})"
    outcome = run_apart(code, tmp_path)
    assert outcome.error in ("TypeError", "ValueError"), outcome
    assert "bitmask" in outcome.message, outcome


def test_bitmask_of_signed_words_is_taken_as_other_engines_have_it(tmp_path: Path) -> None:
    code = "try_out(True).matcher().fill_bitmask(np.zeros((vocab.n_vocab + 31) // 32, np.int32))"
    check(code, tmp_path, WORKS)


@pytest.mark.parametrize("count", ["1", "-1", "2**40"])
def test_rollback_beyond_the_start(count: str, tmp_path: Path) -> None:
    check(f"try_out(True).matcher().rollback({count})", tmp_path, "ValueError IndexError")


def test_batch_of_negative_size(tmp_path: Path) -> None:
    check("try_out(True).allocate_bitmask(-1)", tmp_path, "ValueError")


@pytest.mark.parametrize(
    "option",
    ["whitespace='loose'", "property_order='sorted'", "formats='maybe'", "numbers='all'", "whitespace=None"],
)
def test_unknown_policy(option: str, tmp_path: Path) -> None:
    check(f"try_out(True, {option})", tmp_path, "ValueError SchemaError")
