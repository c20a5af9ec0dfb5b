"""Patterns: tables of accepted and rejected texts, and random patterns compared with other engines."""

from __future__ import annotations

import gc
import json
import random
import re
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
import regress

from constrain import kernel
from constrain.errors import PatternError
from constrain.language import tree
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
from constrain.work import MAX_COUNTER, MAX_PATTERN_NESTING
from tests.support import LONG, check_each, each_row, for_each, tomllib
from tests.support.regex.derivative_matcher import matches

_DATA = Path(__file__).parent / "data"


def _cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = tomllib.loads((_DATA / name).read_text(encoding="utf-8"))["case"]
    return cases


@for_each("spelled", [False, True])
@for_each("name", ["whole.toml", "rust.toml", "search.toml"])
def test_patterns_match_exactly(name: str, spelled: bool) -> None:
    check_each(_cases(name), lambda case: _require_texts(case, spelled=spelled))


def _require_texts(case: dict[str, Any], *, spelled: bool) -> None:
    anchored = case.get("anchored", False)
    expression = parse_pattern(case["pattern"], case["dialect"], json=spelled, anchored=anchored)

    def accepts(text: str) -> bool:
        return matches(expression, (json.dumps(text, ensure_ascii=False)[1:-1] if spelled else text).encode())

    assert [text for text in case["accepted"] if not accepts(text)] == []
    assert [text for text in case["rejected"] if accepts(text)] == []


def test_errors_name_column_and_cause() -> None:
    def check(case: dict[str, Any]) -> None:
        with pytest.raises(PatternError, match=re.escape(case["message"])) as caught:
            parse_pattern(case["pattern"], case["dialect"])
        assert caught.value.column == case["column"]

    check_each(_cases("errors.toml"), check)


_INTERESTING = sorted(
    {
        *range(0x250),
        *(0x345, 0x37F, 0x3B1, 0x3C2, 0x410, 0x5D0, 0x661, 0x966, 0x1E9E, 0x1F88, 0x2000, 0x2028, 0x200D, 0x203F),
    }
    | {
        *(0x212A, 0x2160, 0x2460, 0x3000, 0x3042, 0x4E00, 0xAC00, 0xFB01, 0xFEFF, 0xFF21, 0x10400, 0x1D400, 0x1F600),
        0x10FFFF,
    }
)


@for_each(
    "pattern",
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", "[^a-z]", r"[\w-.]", r"\p{L}", r"\P{Lu}", r"\p{Script=Greek}"),
    *(r"\p{scx=Greek}", r"\p{Alphabetic}", r"\p{White_Space}", r"\p{Nd}", r"\p{ID_Start}", r"\p{Emoji}"),
    *(r"\p{Any}", r"(?i:[a-z])", "(?i:ss|k)", "(?i:ß)", r"(?i:\w)", r"(?i:[^x])", r"(?s:.)"),
)
def test_ecma_classes_agree_with_regress(pattern: str) -> None:
    lenient = pattern == r"[\w-.]"  # an error with the flag u
    oracle = regress.Regex(f"^(?:{pattern})$", "" if lenient else "u")
    expression = parse_pattern(pattern, "ecma")
    points = [point for point in _INTERESTING if not lenient or point < 0x10000]
    wrong = [
        hex(point)
        for point in points
        if matches(expression, chr(point).encode()) != (oracle.find(chr(point)) is not None)
    ]
    assert wrong == []


@for_each(
    "pattern",
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", "[^a-z]", r"(?a)\w", r"(?a)\s", "(?i)[a-z]", "(?i)k"),
    *("(?i)[^k]", "(?s).", r"[\w.-]", "(?i)ß", "(?i)ı", r"\x41|\u0042|\U00000043|\103|[\1\b]"),
)
def test_python_classes_agree_with_re(pattern: str) -> None:
    oracle = re.compile(pattern)
    expression = parse_pattern(pattern, "python")
    wrong = [
        hex(point)
        for point in _INTERESTING
        if matches(expression, chr(point).encode()) != (oracle.fullmatch(chr(point)) is not None)
    ]
    assert wrong == []


def test_counts_are_never_unrolled() -> None:
    expression = parse_pattern("[a-z]{3,1000000}", "ecma")
    assert repr(expression) == repr(tree.Repetition(tree.CharClass(((97, 122),)), 3, 1_000_000))


def test_runs_of_characters_are_one_literal() -> None:
    assert parse_pattern(r"a\.b(?:cd)[e]\x66", "ecma") == tree.Literal(b"a.bcdef")
    assert parse_pattern('"\n\x01', "ecma", json=True) == tree.Literal(b'\\"\\n\\u0001')


def test_groups_nested_to_the_limit_work_and_deeper_ones_are_refused() -> None:
    deepest = "(?:a" * MAX_PATTERN_NESTING + ")*" * MAX_PATTERN_NESTING
    assert matches(parse_pattern(deepest, "ecma"), b"aaa")
    for opening in ("(", "(?:a|", "(?=", "((?:^"):
        with pytest.raises(PatternError):
            parse_pattern(opening * 10_000 + ")" * 10_000, "ecma")


@pytest.mark.slow
@each_row(
    "pattern",
    "a" * 200000,
    "a?" * 20000,
    "(a|b)" * 8000,
    "|".join(f"k{i}" for i in range(20000)),
    ".*a.{1000}",
    "^" * 380,
    "(?:^a|b)" * 380,
    "|".join(["^a$"] * 5000),
    r"\p{L}" * 5000,
    "(?i)" + "straße" * 5000,
    ids=lambda pattern: pattern[:12],
)
def test_long_patterns_take_little_time(pattern: str) -> None:
    dialect = "rust" if pattern.startswith("(?i)") else "ecma"
    gc.disable()  # the objects that thousands of other tests have left are not the parser's to look through
    try:
        start = time.thread_time()
        parse_pattern(pattern, dialect, anchored=False)  # type: ignore[arg-type]
        seconds = time.thread_time() - start
    finally:
        gc.enable()
    assert seconds < 2


def test_counts_beyond_the_limit_are_refused() -> None:
    parse_pattern(f"a{{0,{MAX_COUNTER}}}", "ecma")
    with pytest.raises(PatternError, match="MAX_COUNTER"):
        parse_pattern(f"a{{0,{MAX_COUNTER + 1}}}", "ecma")
    with pytest.raises(PatternError, match="MAX_COUNTER"):
        parse_pattern("a{" + "9" * 5000 + "}", "ecma")


def test_patterns_of_more_parts_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.regex.parsing.parser.MAX_PATTERN_PARTS", 7)
    parse_pattern("(a|b)?[cd]{2}plain.", "ecma")
    with pytest.raises(PatternError, match="MAX_PATTERN_PARTS"):
        parse_pattern("(a|b)?[cd]{2}plain.|", "ecma")


def _error_column(pattern: str, dialect: str, rng: random.Random) -> int | None:
    """The column of the error, or None if the pattern is read."""
    try:
        parse_pattern.__wrapped__(pattern, dialect, json=rng.random() < 0.5, anchored=rng.random() < 0.5)
    except PatternError as error:
        return error.column or -1
    return None


@pytest.mark.slow
def test_random_syntax_parses_or_raises_pattern_error_with_a_column() -> None:
    rng = random.Random(7)
    pieces = [*"()[]{}|*+?^$.\\-,:=!<>&~#/ab19 ", "(?", "[[:", ":]", "\\p{", "\\u{", "&&", "\\x", "(?P<", "\ud800", "é"]
    read = 0
    for _ in range(200_000 if LONG else 2_000):
        pattern = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 9)))
        for dialect in ("ecma", "rust", "python"):
            column = _error_column(pattern, dialect, rng)
            assert column is None or 1 <= column <= len(pattern) + 1, pattern
            read += column is None
    assert read > 100


@pytest.mark.slow
def test_random_syntax_that_ecma_accepts_is_read_as_regress_reads_it() -> None:
    rng = random.Random(11)
    pieces = [*"()[]{}|*+?^$.-,:ab1", "\\d", "\\-", "\\w", "[^", "{1}", "{,2}", "a-b", "\\]", "(?:"]
    texts = ["", "a", "b", "ab", "1", "-", "]", "{", "}", "a1", "aa", "{,2}", ":", ",", "a-", "[", "^", "(", ")", "."]
    compared = 0
    for _ in range(200_000 if LONG else 2_000):
        pattern = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 7)))
        if _error_column(pattern, "ecma", rng) is not None:
            continue
        expression = parse_pattern.__wrapped__(pattern, "ecma", anchored=False)
        oracle = regress.Regex(pattern)
        wrong = [text for text in texts if matches(expression, text.encode()) != (oracle.find(text) is not None)]
        assert wrong == [], pattern
        compared += 1
    assert compared > 300


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
