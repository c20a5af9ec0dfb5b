r"""``escapes="any"``: a text is accepted if and only if its canonical spelling is under ``escapes="canonical"``."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

import pytest

import constrain
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.emission.arguments import JSON_ARGUMENTS, PYTHON_ARGUMENTS
from constrain.language.tree import ANY_JSON_CHAR
from constrain.regex.string_spellings import MAX_BRANCHINGS, spelled_class
from tests.soundness.schemas import random_schema
from tests.soundness.values import Values
from tests.support import LONG, allowed, byte_vocabulary, for_each, small_vocabulary
from tests.support.judging import validation_error, written
from tests.support.regex.derivative_matcher import matches

WORD = {"type": "string", "minLength": 2, "maxLength": 2}
PROPERTY = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
UNIQUE = {"type": "array", "uniqueItems": True}
SMILE = "\U0001f600"

ACCEPTED: tuple[tuple[Any, str], ...] = (
    ({"type": "string"}, r'"\u0061\/\u000A\u000a\n\""'),
    ({"type": "string"}, r'"\ud83d\uDE00"'),
    (True, r'["\u0061", {"\u0061": "\/"}]'),
    ({"const": f"a/{SMILE}\n"}, r'"\u0061\/\uD83D\ude00\u000a"'),
    ({"const": {"é": "/"}}, r'{"\u00E9": "\/"}'),
    ({"enum": ["ab", "ac", 1, None]}, r'"\u0061c"'),
    ({"enum": ["ab", "ac", 1, None]}, "null"),
    ({"enum": ['"', "\\", "\\u0061"]}, r'"\u005cu0061"'),
    ({"enum": ['"', "\\", "\\u0061"]}, r'"\u0022"'),
    (WORD, rf'"\u0061{SMILE}"'),
    (WORD, r'"\ud83d\ude00\ud83d\ude00"'),
    ({"type": "string", "pattern": r"^\w[/\n]$"}, r'"\u0062\/"'),
    ({"not": {"enum": ["a", "b"]}}, r'"\u0063"'),
    ({"type": "string", "format": "date"}, r'"2024\u002d01-01"'),
    ({"type": "string", "format": "hostname"}, r'"\u0061.example"'),
    ({"type": "string", "format": "idn-email"}, r'"\u00e9@\u0061.example"'),
    (PROPERTY, r'{"\u0061": 1, "\u0062": 2}'),
    ({"patternProperties": {"^x": {"type": "integer"}}}, r'{"\u0078y": 1}'),
    ({"propertyNames": {"maxLength": 1}, "type": "object"}, r'{"\ud83d\ude00": 1}'),
    (UNIQUE, r'["\u0061", "b", ["b"], ["\u0063"]]'),
)

REJECTED: tuple[tuple[Any, str], ...] = (
    ({"type": "string"}, r'"\ud83d"'),
    ({"type": "string"}, r'"\ude00\ud83d"'),
    ({"type": "string"}, r'"\ud83da"'),
    ({"type": "string"}, r'"\u006"'),
    ({"type": "string"}, r'"\U0061"'),
    ({"type": "string"}, r'"\a"'),
    ({"type": "string"}, '"\n"'),
    ({"enum": ["ab", "ac", 1, None]}, r"\u0031"),
    ({"enum": ["ab", "ac", 1, None]}, r'"\u0061d"'),
    ({"enum": ["true", True]}, r"\u0074rue"),
    (WORD, r'"\ud83d\ude00"'),
    ({"type": "string", "pattern": r"^\w[/\n]$"}, r'"\/\/"'),
    ({"not": {"enum": ["a", "b"]}}, r'"\u0061"'),
    ({"type": "string", "format": "idn-email"}, '"' + r"\u00e9" * 33 + '@a.example"'),
    (PROPERTY, r'{"\u0061": "b"}'),
    (PROPERTY, r'{"a": 1, "\u0061": 1}'),
    (PROPERTY, r'{"a": 1, "b": 1, "\u0062": 1}'),
    ({"type": "object"}, r'{"\u0062": 1, "b": 1}'),
    ({**PROPERTY, "additionalProperties": {"type": "null"}}, r'{"\u0061": null}'),
    ({"patternProperties": {"^x": {"type": "integer"}}}, r'{"\u0078y": "a"}'),
    ({"propertyNames": {"maxLength": 1}, "type": "object"}, r'{"\u0061b": 1}'),
    (UNIQUE, r'["a", "\u0061"]'),
    (UNIQUE, r'["\u0061", "a"]'),
    (UNIQUE, r'[["\/"], ["/"]]'),
    (UNIQUE, r'[{"a": 1, "b": 2}, {"b": 2, "\u0061": 1}]'),
    ({**UNIQUE, "items": {"enum": ["a", "b"]}}, r'["\u0061", "b", "a"]'),
)


def accepts(schema: object, text: str, **policies: Any) -> bool:
    return constrain.compile(schema, byte_vocabulary(), **policies).accepts(text)


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "text"), ACCEPTED)
def test_what_is_spelled_is_judged(schema: Any, text: str) -> None:
    assert accepts(schema, text, escapes="any")
    assert accepts(schema, json.dumps(json.loads(text), ensure_ascii=False))


@for_each("schema, text", REJECTED)
def test_what_is_no_spelling_of_a_valid_value(schema: Any, text: str) -> None:
    assert not accepts(schema, text, escapes="any")


def test_one_spelling_by_default() -> None:
    for text in (r'"\u0061"', r'"\/"', r'"\u000a"', r'"\ud83d\ude00"'):
        assert not accepts({"type": "string"}, text)
        assert accepts({"type": "string"}, text, escapes="any")
    assert accepts({"type": "string"}, r'"a/\n\u001f"')


def test_the_policy_is_reported_and_belongs_to_schemas() -> None:
    report = constrain.compile({"type": "string"}, byte_vocabulary(), escapes="any").report
    assert report.policies["escapes"] == "any"
    assert constrain.compile({"type": "string"}, byte_vocabulary()).report.policies["escapes"] == "canonical"
    with pytest.raises(ValueError, match="escapes must be one of 'canonical', 'any', not 'all'"):
        constrain.compile({"type": "string"}, byte_vocabulary(), escapes="all")
    with pytest.raises(ValueError, match="escapes applies to JSON Schemas"):
        constrain.compile(constrain.Regex("a"), byte_vocabulary(), escapes="any")


def test_the_compared_strings_are_part_of_a_grammar_and_its_file(tmp_path: Any) -> None:
    constraint = constrain.compile(UNIQUE, byte_vocabulary(), escapes="any", cache=tmp_path)
    assert compile_schema(UNIQUE, escapes="any").grammar.strings_by_value
    assert not compile_schema(UNIQUE).grammar.strings_by_value
    assert constraint.precompute().file is not None
    kept = constrain.compile(UNIQUE, constrain.Vocabulary.from_tokens(BYTES, eos=[256]), escapes="any", cache=tmp_path)
    assert not kept.accepts(r'["a", "\u0061"]')
    assert kept.accepts(r'["a", "\u0062"]')
    assert not accepts(UNIQUE, r'["a", "\u0062"]', cache=tmp_path)


def test_arguments_written_as_in_python_stay_canonical() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert compile_schema(schema, arguments=JSON_ARGUMENTS, escapes="any").grammar.strings_by_value
    grammar = compile_schema(schema, arguments=PYTHON_ARGUMENTS, escapes="any").grammar
    assert not grammar.strings_by_value
    written = constrain.compile(grammar, byte_vocabulary())
    assert written.accepts('a="/"')
    assert not written.accepts(r'a="\/"')


BYTES = [bytes([byte]) for byte in range(256)] + [b""]


def test_every_character_has_all_its_spellings() -> None:
    edges = [0, 8, 0x0B, 0x1F, 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    for code in edges:
        one, others = spelled_class(((code, code),)), spelled_class(((0, code - 1), (code + 1, 0x10FFFF)))
        spellings = {encode_basestring(chr(code))[1:-1], escaped(code, str.lower), escaped(code, str.upper)}
        for text in spellings | ({r"\/"} if code == 0x2F else set()):
            assert matches(one, text.encode())
            assert matches(spelled_class(ANY_JSON_CHAR.ranges), text.encode())
            assert not matches(others, text.encode())


def escaped(code: int, case: Any) -> str:
    units = chr(code).encode("utf-16-be")
    return "".join(rf"\u{case(units[i : i + 2].hex())}" for i in range(0, len(units), 2))


def test_constants_that_begin_alike_however_often() -> None:
    values = ["x" * length + end for length in range(2 * MAX_BRANCHINGS) for end in ("y", "z/")]
    constraint = constrain.compile({"enum": values}, byte_vocabulary(), escapes="any")
    others = constrain.compile({"type": "string", "not": {"enum": values}}, byte_vocabulary(), escapes="any")
    for value in values[::17]:
        text = "".join(escaped(ord(each), str.lower) for each in value)
        assert constraint.accepts(f'"{text}"')
        assert not constraint.accepts(f'"{text}x"')
        assert not others.accepts(f'"{text}"')
    pairs = [f'"{escaped(ord(value[0]), str.upper)}{value[1:]}": 0'.replace("z/", r"z\/") for value in values]
    keys = constrain.compile({"type": "object"}, byte_vocabulary(), escapes="any")
    assert keys.accepts(f"{{{', '.join(pairs)}}}")
    assert not keys.accepts(f'{{{", ".join(pairs)}, "{values[-1]}": 0}}')


@pytest.mark.slow
def test_constants_with_too_many_characters() -> None:
    half = "a" * 350_000
    schema = {"properties": {"a": {"const": half}, "b": {"enum": [half, "b"]}}}
    with pytest.raises(constrain.LimitError, match=r"MAX_COMPILE_WORK = 2000000; with escapes") as caught:
        compile_schema(schema, escapes="any")
    assert caught.value.pointer == "/properties/b"
    assert compile_schema(schema).warnings == ()


def respelled(text: str, spell: Callable[[str], str]) -> str:
    """The same JSON text, each string spelled by a function; keys stay twice."""
    result, inside = "", 0
    for place, character in enumerate(text):
        if place < inside:
            continue
        if character == '"':
            value, inside = json.decoder.scanstring(text, place + 1)
            result += spell(value)
        else:
            result += character
    return result


def canonical_text(text: str) -> str:
    return respelled(text, encode_basestring)


def spelled_character(character: str, rng: random.Random, share: float) -> str:
    if rng.random() >= share:
        return encode_basestring(character)[1:-1]
    if character == "/" and rng.random() < 0.5:
        return r"\/"
    return escaped(ord(character), rng.choice((str.lower, str.upper)))


@pytest.mark.slow
@pytest.mark.parametrize("whitespace", ["flexible", "any"])
def test_texts_are_accepted_as_their_canonical_spelling_is(whitespace: str) -> None:
    vocabulary, accepted, compiled = byte_vocabulary(), 0, 0
    for seed in range(3_000 if LONG else 40):
        rng = random.Random(f"{whitespace} {seed}")
        schema = random_schema(rng) | ({"uniqueItems": True} if rng.random() < 0.4 else {})
        text, policies = written(schema), {"property_order": "any", "whitespace": whitespace}
        try:
            canonical = constrain.compile(text, vocabulary, cache=False, **policies)
        except constrain.ConstrainError as error:
            with pytest.raises(type(error)):
                constrain.compile(text, vocabulary, escapes="any", cache=False, **policies)
            continue
        compiled += 1
        any_escapes = constrain.compile(text, vocabulary, escapes="any", cache=False, **policies)
        values = Values(rng, schema, plainly=True)
        for _ in range(20):
            share = rng.choice((0.2, 0.5, 1))
            spelled = respelled(
                values.text(),
                lambda value: f'"{"".join(spelled_character(each, rng, share) for each in value)}"',  # noqa: B023
            )
            wanted = canonical.accepts(canonical_text(spelled))
            accepted += wanted
            assert any_escapes.accepts(spelled) == wanted, f"seed {seed}: {spelled} against {text}"
    assert accepted > compiled > 20


WALKED: dict[str, Any] = {
    "strings": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 2, "maxItems": 4},
    "patterns": {"type": "string", "pattern": f"^[a-c/{SMILE}]{{2,6}}$"},
    "keys": {
        "type": "object",
        **PROPERTY,
        "minProperties": 3,
        "maxProperties": 5,
        "additionalProperties": {"enum": ["x", "y/"]},
    },
    "few keys": {
        "type": "object",
        "patternProperties": {"^[a-c]$": {"const": 1}},
        "additionalProperties": False,
        "minProperties": 3,
    },
    "few values": {**UNIQUE, "items": {"enum": ["a", "b", "c", 1]}, "minItems": 3},
    "groups": {**UNIQUE, "items": {"type": "array", "items": {"enum": ["a", "b/"]}, "maxItems": 2}, "minItems": 3},
}


def escaping_vocabulary() -> constrain.Vocabulary:
    """A small vocabulary with pieces of escapes."""
    pieces = [
        *(r"\u", r"\u0", r"\u00", r"\u006", r"\u0061", "0061", '0062"', r"\/", r"\/\u", "6", r"\ud83d", r"\uDE", r'a"'),
        r'"\u',
    ]
    tokens = [each.encode() for each in pieces]
    small = small_vocabulary(more=300)
    tokens = [small.token_bytes(token) for token in range(small.n_vocab - 1)] + tokens
    return constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])


def compiled(name: str, vocabulary: constrain.Vocabulary, escapes: str) -> constrain.Constraint:
    return constrain.compile(WALKED[name], vocabulary, escapes=escapes, property_order="any", cache=False)


@pytest.mark.slow(only=("keys",))
@pytest.mark.parametrize("name", WALKED)
def test_budgets_are_kept(name: str) -> None:
    vocabulary = escaping_vocabulary()
    constraint, canonical = compiled(name, vocabulary, "any"), compiled(name, byte_vocabulary(), "canonical")
    least = constraint.matcher().min_tokens_left
    assert least == compiled(name, vocabulary, "canonical").matcher().min_tokens_left
    row, escapes = constraint.allocate_bitmask()[0], 0
    for more, seed in itertools.product((0, 1, 4, 20), range(20 if LONG else 2)):
        rng = random.Random(f"{name} {more} {seed}")
        matcher, text = constraint.matcher(max_tokens=least + more), b""
        for _ in range(least + more + 1):
            ids = allowed(matcher, row)
            assert len(ids), f"nothing is allowed after {text!r}"
            token = int(rng.choice(ids))
            assert matcher.accept(token)
            text += vocabulary.token_bytes(token)
            if matcher.is_finished:
                break
        assert matcher.is_finished, f"{text!r} takes more than {least + more} tokens"
        escapes += text.count(b"\\u")
        assert canonical.accepts(canonical_text(text.decode())), text
        assert validation_error(WALKED[name], text) is None
    assert escapes > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", WALKED)
def test_masks_are_exact(name: str) -> None:
    vocabulary = escaping_vocabulary()
    constraint, canonical = compiled(name, vocabulary, "any"), compiled(name, byte_vocabulary(), "canonical")
    row = constraint.allocate_bitmask()[0]
    for seed in range(40 if LONG else 3):
        rng = random.Random(f"{name} {seed}")
        matcher, text = constraint.matcher(), b""
        for _ in range(25):
            ids = set(allowed(matcher, row).tolist())
            for token in range(vocabulary.n_vocab - 1):
                taken = matcher.fork()
                assert taken.accept(token) == (token in ids), (text, vocabulary.token_bytes(token))
            ids -= set(vocabulary.eos)
            if not ids:
                break
            written = [token for token in ids if b"u" in vocabulary.token_bytes(token)]
            token = rng.choice(written if written and rng.random() < 0.5 else sorted(ids))
            assert matcher.accept(token)
            text += vocabulary.token_bytes(token)
            whole = (text + bytes(matcher.shortest_completion())).decode()
            assert canonical.accepts(canonical_text(whole)), whole
