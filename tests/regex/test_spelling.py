"""Expressions spelled as the content of JSON strings, and back, leaf by leaf: none changes its meaning."""

from __future__ import annotations

import json
from random import Random

import pytest

from constrain import kernel
from constrain.language.tree import (
    ANY_BYTE,
    ANY_BYTES,
    ANY_CHAR,
    ByteClass,
    CharClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Multiple,
    Repetition,
    Window,
)
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.spelling import in_json, out_of_json

ALPHABET = 'ab"\\\n\t\x01\x7f€ 1'

_TEXT = Repetition(ANY_CHAR, 0, None)

EXPRESSIONS: dict[str, Expression] = {
    "pattern": parse_pattern(r'(a|"b\\)*[^\n]?', "rust"),
    "class": Repetition(parse_pattern(r"[\x00-\x20]", "rust"), 1, 3),
    "unicode": parse_pattern(r"\w+€?", "rust"),
    "literal": Literal('a"\n\\€'.encode()),
    "literals": LiteralSet((b'"', b"\\\\", b"\x01b", "€".encode())),
    "complement": Intersection((_TEXT, Complement(parse_pattern(r'.*".*', "rust")))),
    "bytes": Intersection((parse_pattern(r'[ab"€]*', "rust"), Repetition(ANY_BYTE, 1, None))),
    "beginnings": Intersection((_TEXT, Concatenation((ByteClass(((9, 10), (34, 97), (0xE2, 0xE2))), ANY_BYTES)))),
    "lengths": Window(parse_pattern(r'("a)*b*', "rust"), ANY_CHAR, 2, 5),
    "numbers": Intersection((Multiple(11), parse_pattern("[0-9]+", "rust"))),
}


def texts(seed: int) -> list[str]:
    """All short texts of the alphabet, and some longer ones."""
    rng = Random(seed)
    short = ["", *ALPHABET, *(one + two for one in ALPHABET for two in ALPHABET)]
    return [*short, *("".join(rng.choices(ALPHABET, k=rng.randint(3, 6))) for _ in range(300))]


def spelled(text: str) -> bytes:
    """A text within a JSON string, by the standard library, which escapes all that the policy does."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_spelled_expression_matches_the_spelled_texts(name: str) -> None:
    expression = EXPRESSIONS[name]
    inside = in_json(expression)
    for text in texts(1):
        assert kernel.matches(inside, spelled(text)) == kernel.matches(expression, text.encode()), text
    for other in (b'"', b"\\", b"\\u0061", b"\\/", b"\n", b"\\u001F"):
        assert not kernel.matches(inside, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_spelling_and_decoding_undo_each_other(name: str) -> None:
    back = out_of_json(in_json(EXPRESSIONS[name]))
    for text in texts(2):
        assert kernel.matches(back, text.encode()) == kernel.matches(EXPRESSIONS[name], text.encode()), text


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r'^[^"]*\\d+$', r"^(?!a)\\w+", r"(?<=a)b", r"\\u20ac|\\n"])
def test_expressions_of_string_schemas_are_decoded(pattern: str) -> None:
    content = parse_pattern(pattern.replace("\\\\", "\\"), "ecma", json=True, anchored=False)
    decoded = out_of_json(content)
    for text in texts(3):
        assert kernel.matches(decoded, text.encode()) == kernel.matches(content, spelled(text)), text


def test_shared_parts_stay_shared() -> None:
    part: Expression = CharClass(((97, 98),))
    for _ in range(60):
        part = Concatenation((part, part))
    inside = in_json(part)
    assert isinstance(inside, Concatenation)
    assert inside.parts[0] is inside.parts[1]
