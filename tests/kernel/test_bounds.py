"""Limits on what is remembered and on the proof of lexing; other threads go on while the kernel computes."""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
from collections.abc import Callable

import pytest

import constrain
from constrain import kernel
from constrain.engine import compiling as _compiling
from constrain.engine import remembered
from constrain.engine.remembered import Remembered
from constrain.language.grammar import Edge, Grammar, Rule, Terminal
from constrain.language.tree import Intersection, LiteralSet
from constrain.regex.parsing.parser import parse_pattern
from tests.support.processor_time import finishes_within

BYTES = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def words(count: int) -> list[str]:
    drawn = random.Random(7)
    return sorted({"".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=drawn.randint(4, 9))) for _ in range(count)})


def alternatives(patterns: list[str]) -> Grammar:
    """One or more lexemes, each of one of the patterns."""
    terminals = [Terminal(pattern, parse_pattern(pattern, "rust")) for pattern in patterns]
    edges = tuple(Edge(0, index, 1) for index in range(len(patterns)))
    edges += tuple(Edge(1, index, 1) for index in range(len(patterns)))
    return Grammar(tuple(terminals), (Rule("start", edges, (1,)),))


@pytest.mark.slow
def test_thousands_of_terminals_that_begin_alike_take_a_moment() -> None:
    grammar = alternatives([f"x{index}[0-9]*y" for index in range(1500)])
    with finishes_within(5):
        constraint = constrain.compile(grammar, BYTES, cache=False)
    assert constraint.accepts("x1yx1499yx12777y")
    assert not constraint.accepts("x1yx")


@pytest.mark.parametrize("count", [50, 150])
def test_a_lexeme_that_reads_too_far_is_refused_however_many_terminals_there_are(count: int) -> None:
    patterns = [f"x{index}y" for index in range(count)]
    constrain.compile(alternatives(patterns), BYTES, cache=False)
    with pytest.raises(constrain.GrammarError, match=r"terminal x0y may follow terminal x7y\b"):
        constrain.compile(alternatives([*patterns, "x7yx?"]), BYTES, cache=False)


@pytest.mark.slow
def test_patterns_that_cannot_be_told_apart_soon_meet_a_named_limit() -> None:
    patterns = [f"[a-z]*{word}[a-z]*;" for word in words(1000)]
    seconds = 30 if "LD_PRELOAD" in os.environ else 10  # a sanitizer's kernel is slow
    with finishes_within(seconds), pytest.raises(constrain.LimitError, match=r"MAX_(PROOF|COMPILE)_WORK = \d+ "):
        constrain.compile(alternatives(patterns), BYTES, cache=False)


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> Remembered:
    empty = Remembered()
    monkeypatch.setattr(_compiling, "remembered_constraints", empty)
    return empty


def enum(number: int, size: int = 2000) -> dict[str, object]:
    return {"enum": [f"{number}-{index:06d}-abcdefgh" for index in range(size)]}


def test_the_least_recently_used_large_constraints_are_dropped_first(
    empty_cache: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = constrain.compile(enum(0), BYTES, cache=False)
    (kept,) = empty_cache.values()
    monkeypatch.setattr(remembered, "CACHED_BYTES", int(2.5 * kept.memory_bytes))
    second = constrain.compile(enum(1), BYTES, cache=False)
    assert constrain.compile(enum(0), BYTES, cache=False) is first
    constrain.compile(enum(2), BYTES, cache=False)
    assert constrain.compile(enum(0), BYTES, cache=False) is first
    assert constrain.compile(enum(1), BYTES, cache=False) is not second
    assert second.accepts('"1-000003-abcdefgh"')


@pytest.mark.usefixtures("empty_cache")
def test_a_constraint_larger_than_the_limit_drops_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    small = constrain.compile({"type": "null"}, BYTES, cache=False)
    monkeypatch.setattr(remembered, "CACHED_BYTES", 200_000)
    large = constrain.compile(enum(0, 5000), BYTES, cache=False)
    assert constrain.compile(enum(0, 5000), BYTES, cache=False) is not large
    assert constrain.compile({"type": "null"}, BYTES, cache=False) is small


def test_memory_that_constraints_grow_by_counts(empty_cache: Remembered, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = constrain.compile(enum(0), BYTES, cache=False)
    small = constrain.compile({"type": "null"}, BYTES, cache=False)
    monkeypatch.setattr(remembered, "CACHED_BYTES", sum(kept.memory_bytes for kept in empty_cache.values()))
    grown.precompute(max_masks=200)
    grown.matcher().fill_bitmask(grown.allocate_bitmask()[0])
    for _ in range(remembered.CALLS_BETWEEN_COUNTS):
        assert constrain.compile({"type": "null"}, BYTES, cache=False) is small
    assert [kept.constraint for kept in empty_cache.values()] == [small]


def large_grammar(texts: int = 200_000) -> Grammar:
    terminals = (Terminal("value", LiteralSet(tuple(b"%07d-abcdefghijklmnop" % index for index in range(texts)))),)
    return Grammar(terminals, (Rule("start", (Edge(0, 0, 1),), (1,)),))


def deciding() -> Callable[[], object]:
    ends = [parse_pattern(f"[ab]*{letter}[ab]{{12}}", "rust") for letter in "ab"]
    return lambda: kernel.is_empty(Intersection(tuple(ends)))


def compiling() -> Callable[[], object]:
    grammar = large_grammar()
    return lambda: kernel.CompiledGrammar(grammar, BYTES._core)


def proving() -> Callable[[], object]:
    grammar = alternatives([f"[a-z]*{word}[a-z]*;" for word in words(400)])

    def prove() -> None:
        with pytest.raises(constrain.LimitError):
            kernel.CompiledGrammar(grammar, BYTES._core)

    return prove


def restoring() -> Callable[[], object]:
    stored = kernel.CompiledGrammar(large_grammar(), BYTES._core).store()
    return lambda: kernel.CompiledGrammar.restore(stored, BYTES._core)


def summing() -> Callable[[], object]:
    data = bytes(512 << 20)  # zeros that are read only: they take next to no memory
    return lambda: kernel.checksum(data)


def a_vocabulary() -> Callable[[], object]:
    tokens = [b"%x" % index for index in range(400_000)]
    return lambda: kernel.Vocabulary(tokens, [], [0])


TRIES = 5


def looks_while(compute: Callable[[], object]) -> int:
    """How often this thread ran while another one computed."""
    began, ended = threading.Event(), threading.Event()
    span: list[float] = []
    made: list[object] = []  # is let go after the time is taken

    def work() -> None:
        began.wait()
        span.append(time.monotonic())
        try:
            made.append(compute())
        finally:
            span.append(time.monotonic())
            ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    looks: list[float] = []
    began.set()
    while not ended.is_set():
        looks.append(time.monotonic())
        ended.wait(0.0005)
    thread.join()
    return sum(span[0] < look < span[1] for look in looks)


@pytest.mark.slow(only=("proving", "restoring"))
@pytest.mark.parametrize("prepare", [deciding, compiling, proving, restoring, summing, a_vocabulary])
def test_other_threads_go_on_while_the_kernel_computes(prepare: Callable[[], Callable[[], object]]) -> None:
    compute = prepare()
    assert any(looks_while(compute) > 3 for _ in range(TRIES))


@pytest.mark.slow
def test_a_call_that_keeps_the_lock_would_be_noticed() -> None:
    keeping = ctypes.PyDLL(None).usleep  # unlike CDLL
    looks = sorted(looks_while(lambda: keeping(50_000)) for _ in range(TRIES))
    assert looks[TRIES // 2] <= 3, "a busy machine may take the lock from the thread before its call begins, but rarely"
