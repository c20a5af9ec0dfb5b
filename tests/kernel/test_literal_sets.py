"""Sets of literals, few or many: their order, and masks where trie and texts are followed side by side."""

from __future__ import annotations

import json
import pickle
import random
from functools import cache
from pathlib import Path

import pytest

import constrain
from constrain import kernel
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.language.tree import (
    Alternation,
    ByteClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Repetition,
)
from tests.kernel.test_storage import aligned
from tests.support import byte_vocabulary, for_each
from tests.support.matching import accepted_by_forks, mask_of

LETTERS = 'ab1"\\\n\x00é€😀'
MARK = Literal(b"!")


def grammar_of(*terminals: Expression) -> Grammar:
    """Any one of the terminals, and then the mark."""
    builder = GrammarBuilder()
    start = builder.rule("start")
    mark = builder.terminal("mark", MARK)
    builder.define(start, [[builder.terminal(f"T{i}", each), mark] for i, each in enumerate(terminals)])
    return builder.build(self_delimiting=True)


def random_values(rng: random.Random, count: int, letters: str = LETTERS) -> list[str]:
    return ["".join(rng.choices(letters, k=rng.randint(1, 7))) for _ in range(count)]


def spelled(values: list[str]) -> list[bytes]:
    return sorted({json.dumps(value, ensure_ascii=False)[1:-1].encode() for value in values})


@cache
def vocabulary() -> constrain.Vocabulary:
    """Single bytes, parts of values with what may stand around them, and tokens that hold several values."""
    rng = random.Random(3)
    pieces = {bytes([byte]) for byte in range(256)}
    for text in spelled(random_values(rng, 300)) + spelled(random_values(rng, 300, "ab")):
        begin, end = sorted(rng.choices(range(len(text) + 1), k=2))
        pieces |= {text[begin:end], text + b"!", text + b'"!', b'"' + text, text[begin:] + b"aab!"}
    tokens = sorted(pieces - {b""})
    return constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])


def random_terminal(rng: random.Random) -> Expression:
    letters = rng.choice([LETTERS, "ab", "ab"])
    values = random_values(rng, rng.choice([1, 2, 5, 40, 300]), letters)
    made: Expression = (
        LiteralTable.of(kernel.Texts(values)) if rng.random() < 0.5 else LiteralSet(tuple(spelled(values)))
    )
    kind = rng.choice(["alone", "quoted", "quoted", "before", "twice", "without", "either"])
    if kind == "quoted":
        return Concatenation((Literal(b'"'), made, Literal(b'"')))
    if kind == "before":  # the byte behind a text may also go on with other texts
        return Concatenation((made, Repetition(LiteralSet((b"a", b"ba", b"1")), rng.randint(0, 1), None)))
    if kind == "twice":
        return Concatenation((made, LiteralSet((b"", b"a", b"aab", b"b"))))
    if kind == "without":
        return Intersection((made, Complement(LiteralSet(tuple(spelled(rng.sample(values, len(values) // 2)))))))
    if kind == "either":
        return Alternation(
            (made, Concatenation((LiteralSet(tuple(spelled(random_values(rng, 3, letters)))), Literal(b"b"))))
        )
    return made


@for_each("seed", range(3))
def test_masks_allow_what_stepping_through_each_token_allows(seed: int) -> None:
    check_masks(random.Random(seed))


@pytest.mark.slow
@for_each("seed", range(3, 150))
def test_masks_of_many_sets_allow_what_stepping_through_each_token_allows(seed: int) -> None:
    check_masks(random.Random(seed))


def check_masks(rng: random.Random) -> None:
    terminals = [random_terminal(rng) for _ in range(rng.randint(1, 2))]
    try:
        constraint = constrain.compile(grammar_of(*terminals), vocabulary())
    except constrain.GrammarError:  # no text is left
        assert all(map(kernel.is_empty, terminals))
        return
    for _ in range(2):
        matcher = constraint.matcher()
        while not matcher.is_finished:
            wanted = accepted_by_forks(matcher)
            assert mask_of(matcher) == wanted
            tokens = [token for token, fits in enumerate(wanted) if fits]
            assert matcher.accept(rng.choice(tokens))


@for_each("seed", range(20))
def test_texts_are_sorted_without_equals_whatever_they_have_in_common(seed: int) -> None:
    rng = random.Random(seed)
    prefixes = ["", "a" * rng.randint(1, 20), "b" * 8, "\x00" * 9]
    values = [rng.choice(prefixes) + value for value in random_values(rng, rng.choice([1, 15, 200, 1000]))] + [""]
    texts = kernel.Texts(iter(values))
    assert list(texts) == spelled(values)
    assert texts.lines() == b"".join(text + b"\n" for text in spelled(values))
    assert len(texts) == len(spelled(values))
    assert LiteralTable.of(pickle.loads(pickle.dumps(texts))) == LiteralTable.of(texts)
    zeros = {b"\0" * count for count in range(40)} | {b"a", b"a\0", b"a\0b"}
    assert set(kernel.list_matches(LiteralSet(tuple(rng.sample(sorted(zeros), len(zeros)))), 100) or ()) == zeros


@for_each("seed", range(20))
def test_a_table_keeps_the_values_that_an_expression_matches(seed: int) -> None:
    rng = random.Random(seed)
    values = random_values(rng, 300, "ab")
    expression = Concatenation((Repetition(LiteralSet((b"a", b"bb")), 1, None), LiteralSet((b"", b"b"))))
    left = [text for text in spelled(values) if kernel.matches(expression, text)]
    assert list(kernel.Texts(values).matching(expression)) == left


@for_each("seed", range(10))
def test_the_shortest_value_that_goes_on_completes_an_answer(seed: int) -> None:
    rng = random.Random(seed)
    values = [f"{rng.randint(0, 99):02}" + "x" * rng.randint(1, 30) for _ in range(3000)]
    constraint = constrain.compile(grammar_of(LiteralTable.of(kernel.Texts(values))), byte_vocabulary())
    beginning = rng.choice(values)[: rng.randint(0, 3)]
    matcher = constraint.matcher()
    assert all(map(matcher.accept, beginning.encode()))
    least = min(len(value) for value in values if value.startswith(beginning))
    assert len(matcher.shortest_completion()) == least - len(beginning) + 1
    assert constraint.report.min_tokens == min(map(len, values)) + 1


def test_grammars_with_a_table_share_its_memory_and_keep_it_through_storage() -> None:
    table = LiteralTable.of(kernel.Texts(f"value {number}" for number in range(20_000)))
    compiled = [
        kernel.CompiledGrammar(grammar_of(table, end), byte_vocabulary()._core) for end in (MARK, Literal(b"?"))
    ]
    assert all(each.stats()["memory_bytes"] < table.texts.memory_bytes for each in compiled)
    stored = bytearray(compiled[0].store())
    assert len(stored) > table.texts.memory_bytes
    assert len(repr(table)) < 200


@pytest.mark.slow
def test_what_is_restored_or_equal_shares_the_memory_of_a_table_in_use() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    values = [f"{number} is a value of some length" for number in range(300_000)]
    table = LiteralTable.of(kernel.Texts(values))
    compiled = kernel.CompiledGrammar(grammar_of(table), byte_vocabulary()._core)
    stored, lines = aligned(compiled.store()), pickle.dumps(table.texts)
    kept: list[object] = [kernel.CompiledGrammar.restore(stored, byte_vocabulary()._core), pickle.loads(lines)]
    before = resident()
    for _ in range(4):
        kept += [kernel.CompiledGrammar.restore(stored, byte_vocabulary()._core), pickle.loads(lines)]
        kept.append(table.texts.matching(Repetition(ByteClass(((0, 255),)), 0, None)))
    assert resident() - before < 2 * table.texts.memory_bytes


@pytest.mark.parametrize(
    ("values", "error", "says"),
    [
        (["a", 1], TypeError, "must be strings.*int"),
        (["\ud800"], UnicodeEncodeError, "surrogates"),
        (3, TypeError, "iter"),
    ],
)
def test_other_values_are_refused(values: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        kernel.Texts(values)  # type: ignore[arg-type]
