"""Token budgets: whoever follows the masks ends in time with a whole text, whatever is picked."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest

import constrain
from constrain.chat.answers.choices import FunctionCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.generation.plan import Language
from constrain.language import tree
from constrain.language.grammar import Grammar, GrammarBuilder, Kind
from constrain.regex.source import Regex
from tests.support import (
    LONG,
    allowed,
    byte_vocabulary,
    for_each,
    maskbench_that_compiles,
    real_vocabulary,
    small_vocabulary,
)
from tests.support.chat.forms import TAGS
from tests.support.engine.schemas import SCHEMAS
from tests.support.judging import validation_error


@cache
def vocabulary() -> constrain.Vocabulary:
    return small_vocabulary()


def walk(constraint: constrain.Constraint, max_tokens: int, rng: Random) -> tuple[bytes, constrain.Matcher]:
    """A text of tokens picked uniformly from the masks."""
    matcher, row = constraint.matcher(max_tokens=max_tokens), constraint.allocate_bitmask()[0]
    text = b""
    for taken in range(max_tokens + 1):
        ids = allowed(matcher, row)
        assert len(ids), f"nothing is allowed after {text!r}, {taken} of {max_tokens} tokens"
        token = int(rng.choice(ids))
        if token in constraint.vocabulary.eos:
            return text, matcher
        assert matcher.accept(token), (text, token)
        text += constraint.vocabulary.token_bytes(token)
        if matcher.is_finished:
            return text, matcher
    raise AssertionError(f"{text!r} goes on after {max_tokens} tokens")


@pytest.mark.slow(but=("point", "escapes"))
@pytest.mark.parametrize("name", SCHEMAS)
def test_any_walk_over_the_masks_ends_complete_within_its_tokens(name: str) -> None:
    schema, policies = SCHEMAS[name]
    constraint = constrain.compile(schema, vocabulary(), **policies)
    least = constraint.matcher().min_tokens_left
    for more in (0, 1, 2, 5, 10, 30, 200) if LONG else (0, 1, 5, 30):
        for seed in range(8 if LONG else 1):
            text, _ = walk(constraint, least + more, Random(f"{name} {more} {seed}"))
            assert constraint.accepts(text), text
            assert validation_error(schema, text) is None


def test_a_unique_item_is_completed_within_the_budget_though_the_shortest_is_taken() -> None:
    items = {"type": "array", "items": {"const": "a"}, "maxItems": 2}
    schema = {"type": "array", "uniqueItems": True, "items": items, "minItems": 2}
    constraint = constrain.compile(schema, byte_vocabulary(), cache=False)
    matcher, row = constraint.matcher(max_tokens=len(b'[[],["a"]]')), constraint.allocate_bitmask()[0]
    assert matcher.accept_many(list(b"[[],[")) == 5
    for byte in b'"a"]]':
        assert allowed(matcher, row).tolist() == [byte]  # no space, with which it would take longer
        assert matcher.accept(byte)
    assert matcher.is_finished


def test_a_token_over_two_unique_items_is_judged_by_the_budget_though_all_others_fit() -> None:
    schema = {"type": "array", "uniqueItems": True, "prefixItems": [{"enum": ["a", "b"]}] * 2}
    schema |= {"items": {"type": "string", "minLength": 100}}
    tokens = [*(bytes([byte]) for byte in range(256)), b"", b'","b",']
    constraint = constrain.compile(schema, constrain.Vocabulary.from_tokens(tokens, eos=[256]), cache=False)
    for max_tokens, fits in ((60, False), (200, True)):
        matcher, row = constraint.matcher(max_tokens=max_tokens), constraint.allocate_bitmask()[0]
        assert matcher.accept_many(b'["a') == 3
        assert (257 in allowed(matcher, row)) == fits


@for_each("name", SCHEMAS)
def test_too_few_tokens_are_refused_with_the_number_that_suffices(name: str) -> None:
    schema, policies = SCHEMAS[name]
    constraint = constrain.compile(schema, vocabulary(), **policies)
    with pytest.raises(ValueError, match="max_tokens is -1"):
        constraint.matcher(max_tokens=-1)
    with pytest.raises(constrain.BudgetError, match="max_tokens is 0") as caught:
        constraint.matcher(max_tokens=0)
    least = caught.value.needed
    assert least == constraint.matcher().min_tokens_left == constraint.report.min_tokens
    if least > 1:
        with pytest.raises(constrain.BudgetError) as caught:
            constraint.matcher(max_tokens=least - 1)
        assert caught.value.needed == least
    matcher = constraint.matcher(max_tokens=least)
    tokens = matcher.completion_tokens()
    assert len(tokens) == least
    assert matcher.accept_many(tokens) == least
    assert matcher.is_accepting
    assert matcher.is_finished


# Against brute force: a tiny vocabulary, and all ways on


TOKENS = [b"a", b"b", b"c", b"ab", b"bc", b"abc", b"aa", b",", b",a", b""]
EOS = len(TOKENS) - 1


def lists(least: int) -> Grammar:
    """Words ``a+ b* c`` with commas between them, at least ``least`` of them."""
    builder = GrammarBuilder()
    a, b, c = (tree.Literal(text) for text in (b"a", b"b", b"c"))
    word = builder.terminal("word", tree.Concatenation((tree.Repetition(a, 1, None), tree.Repetition(b, 0, None), c)))
    comma = builder.terminal("comma", tree.Literal(b","))
    start, more = builder.rule("start"), builder.rule("more")
    builder.define(start, [[word, *[comma, word] * (least - 1), more]])
    builder.define(more, [[], [comma, word, more]])
    return builder.build()


def completes(matcher: constrain.Matcher, row: np.ndarray, tokens: int) -> bool:
    """Whether some way on from here ends within ``tokens`` tokens."""
    if matcher.is_accepting:
        return True
    if tokens == 0:
        return False
    for token in allowed(matcher, row).tolist():
        assert matcher.accept(token)
        found = completes(matcher, row, tokens - 1)
        matcher.rollback(1)
        if found:
            return True
    return False


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("more", [0, 1, 3, 6])
def test_every_token_of_a_mask_can_be_completed_in_the_tokens_left(least: int, more: int) -> None:
    constraint = constrain.compile(lists(least), constrain.Vocabulary.from_tokens(TOKENS, eos=[EOS]))
    row = constraint.allocate_bitmask()[0]
    max_tokens = constraint.matcher().min_tokens_left + more
    for seed in range(12 if LONG else 4):
        rng, free, matcher = Random(seed), constraint.matcher(), constraint.matcher(max_tokens=max_tokens)
        for taken in range(max_tokens):
            without = set(allowed(free, row).tolist())
            ids = allowed(matcher, row).tolist()
            assert ids
            assert set(ids) <= without
            assert (EOS in ids) == free.is_accepting
            for token in ids:
                if token != EOS:
                    assert free.accept(token)
                    assert completes(free, row, max_tokens - taken - 1), (seed, taken, token)
                    free.rollback(1)
            token = rng.choice(ids)
            if token == EOS:
                break
            assert matcher.accept(token)
            assert free.accept(token)


def test_the_way_to_finish_stays_allowed_where_another_shortest_text_takes_more_tokens() -> None:
    builder = GrammarBuilder()
    a, bc, dg, ef = (builder.terminal(text, tree.Literal(text.encode())) for text in ("a", "bc", "dg", "ef"))
    start, first, last = map(builder.rule, ("start", "first", "last"))
    builder.define(start, [[a, first, ef], [a, bc, last]])
    builder.define(first, [[bc]])
    builder.define(last, [[dg]])
    vocabulary = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in b"abcdefg"), b"ef", b""], eos=[8])
    constraint = constrain.compile(builder.build(), vocabulary, cache=False)
    matcher, row = constraint.matcher(max_tokens=4), constraint.allocate_bitmask()[0]  # a, b, c, ef
    assert matcher.accept(0)
    assert allowed(matcher, row).tolist() == [1]


def test_a_budget_that_is_ample_changes_no_mask() -> None:
    for name, (schema, policies) in SCHEMAS.items():
        constraint = constrain.compile(schema, vocabulary(), **policies)
        rng = Random(name)
        row, other = constraint.allocate_bitmask(2)
        free, matcher = constraint.matcher(), constraint.matcher(max_tokens=1_000_000)
        for _ in range(20):
            matcher.fill_bitmask(row)
            free.fill_bitmask(other)
            assert np.array_equal(row, other), name
            token = int(rng.choice(allowed(free, other)))
            assert free.accept(token)
            assert matcher.accept(token)
            if token in vocabulary().eos or matcher.is_finished:
                break
        assert not matcher.is_narrowed


TAGGED = AnswerLanguage(
    TAGS,
    tools=(FunctionCalls("look", '{"type": "object"}'),),
    content=Regex("[a-z]{1,8}"),
    reasoning=Reasoning.OPTIONAL,
)


@pytest.mark.slow(but=("point", "tree", "strings"))
@pytest.mark.parametrize("name", [*SCHEMAS, "tagged"])
def test_masks_do_not_depend_on_what_was_asked_before(name: str) -> None:
    schema, policies = (TAGGED, {}) if name == "tagged" else SCHEMAS[name]
    constraint = Language(schema, policies).compile(vocabulary(), cache=False)
    least = constraint.matcher().min_tokens_left

    def masks(seed: int) -> list[bytes]:
        matcher, row, rng = constraint.matcher(max_tokens=least + seed), constraint.allocate_bitmask()[0], Random(seed)
        found: list[bytes] = []
        while not matcher.is_finished:
            token = rng.choice(allowed(matcher, row).tolist())
            found.append(row.tobytes())
            if token in vocabulary().eos:
                break
            assert matcher.accept(token)
        return found

    first = [masks(seed) for seed in (1, 9)]
    assert [masks(seed) for seed in (1, 9)] == first


def test_the_matcher_tells_whether_the_budget_narrowed_the_mask() -> None:
    constraint = constrain.compile({"type": "string"}, vocabulary())
    matcher, row = constraint.matcher(max_tokens=6), constraint.allocate_bitmask()[0]
    matcher.fill_bitmask(row)
    assert matcher.accept(ord('"'))
    for _ in range(4):
        matcher.fill_bitmask(row)
        assert matcher.accept(ord("x"))
    matcher.fill_bitmask(row)
    assert matcher.is_narrowed
    assert b'"' in {vocabulary().token_bytes(token) for token in allowed(matcher, row).tolist()}
    assert not matcher.accept(ord("x"))
    assert "leaves too little of max_tokens" in matcher.explain(ord("x"))
    assert "is allowed" in matcher.explain(ord('"'))
    matcher.rollback(5)
    assert not matcher.is_narrowed
    for text in b'""':
        assert matcher.accept(text)
    assert matcher.is_accepting


def test_near_the_end_a_string_may_go_on_until_it_must_be_closed() -> None:
    constraint = constrain.compile({"type": "array", "items": {"type": "string"}}, vocabulary())
    matcher, row = constraint.matcher(max_tokens=90), constraint.allocate_bitmask()[0]
    assert matcher.accept_many(b'["') == 2
    free = set(allowed(matcher, row).tolist())
    assert not matcher.near_limit
    while 90 - matcher.n_accepted > matcher.min_tokens_left:
        assert ord(" ") in allowed(matcher, row), "a space would be missed, and the next word glued to this one"
        matcher.fill_bitmask(row, unlimited=True)
        assert set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()) == free
        assert matcher.accept(ord(" "))
    assert matcher.near_limit
    assert ord(" ") not in allowed(matcher, row)
    assert matcher.lexeme[:4] == (Kind.TEXT, b'"', matcher.n_accepted - 1, 0)


@pytest.mark.slow
def test_texts_of_real_schemas_end_in_time_and_validate() -> None:
    real = real_vocabulary("llama-bpe")
    wrong = []
    for entry, constraint in maskbench_that_compiles(real, seed=11, count=300 if LONG else 6):
        least = constraint.matcher().min_tokens_left
        for more in range(21) if LONG else (0, 1, 9):
            text, _ = walk(constraint, least + more, Random(f"{entry['id']} {more}"))
            error = validation_error(entry["schema"], text)
            if error is not None:
                wrong.append((entry["id"], more, error, text))
        for max_tokens in (64, 256):
            if max_tokens >= least:
                text, _ = walk(constraint, max_tokens, Random(f"{entry['id']} {max_tokens}"))
                assert constraint.accepts(text)
    assert not wrong
