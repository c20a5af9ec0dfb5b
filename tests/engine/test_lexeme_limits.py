"""Soft limits on the tokens of one string and one number: what runs on comes to its end, and stays valid."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

import pytest

import constrain
from constrain.language.grammar import Kind
from tests.support import LONG, allowed
from tests.support.engine.schemas import SCHEMAS
from tests.support.judging import validation_error
from tests.support.matching import require_protocol

GRACE = 8
"""Tokens by which a word may go on beyond the limit."""


@cache
def vocabulary() -> constrain.Vocabulary:
    words = [b" foo", b"bar", b" a", b'a"', b' b"', b'",', b'","', b'"]', b"12", b"345", b"1,", b"-1", b".5", b"e1"]
    parts = ["é".encode(), b"\xa9\xc3", b"\xe2\x82", b"\\u", b"\\u00", b"01", b'\\"', b"\\\\", b"    "]
    return constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + words + parts + [b""], eos=[279])


def compiled(name: str) -> constrain.Constraint:
    schema, policies = SCHEMAS[name]
    return constrain.compile(schema, vocabulary(), **policies)


def run_on(matcher: constrain.Matcher, ids: Any, rng: Random) -> int:
    """A token that a model might take which does not come to an end."""
    texts = [(int(token), matcher.constraint.vocabulary.token_bytes(int(token))) for token in ids]
    going_on = [token for token, text in texts if re.fullmatch(rb"[ a-z0-9.\\\x80-\xff-]+", text)]
    return rng.choice(going_on if going_on and rng.random() < 0.95 else [token for token, _ in texts])


def lexeme_under_way(text: bytes) -> tuple[str, int] | None:
    """Whether a JSON text ends within a string or a number, and where that begins."""
    found = re.search(rb'(?:^|[^\\"0-9eE.+-])(-?[0-9][0-9eE.+-]*|-)$', text)
    strings = list(re.finditer(rb'"(?:[^"\\]|\\.)*("|\\?$)', text, re.DOTALL))
    if strings and strings[-1].end() == len(text) and strings[-1][1] != b'"':
        return "string", strings[-1].start()
    return ("number", found.start(1)) if found else None


@pytest.mark.slow(but=("1-1-decimals", "1-1-a constant beside"))
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize(("string", "number"), [(1, 1), (6, 4)] + LONG * [(None, 4), (6, None)])
def test_any_walk_over_the_masks_ends_strings_and_numbers(name: str, string: int | None, number: int | None) -> None:
    schema, _ = SCHEMAS[name]
    constraint = compiled(name)
    limits = {"max_string_tokens": string, "max_number_tokens": number}
    for seed in range(12 if LONG else 1):
        rng = Random(f"{name} {limits} {seed}")
        free, matcher = constraint.matcher(), constraint.matcher(**limits)
        row = constraint.allocate_bitmask()[0]
        text = b""
        ends: list[int] = []  # of the tokens
        while not matcher.is_finished:
            known = {int(token) for token in allowed(free, row)}
            ids = [int(token) for token in allowed(matcher, row)]
            assert ids, text
            assert set(ids) <= known
            lexeme = lexeme_under_way(text)
            count = 0 if lexeme is None else sum(end > lexeme[1] for end in ends)
            limit = None if lexeme is None else string if lexeme[0] == "string" else number
            if limit is None or count < limit:
                assert set(ids) == known, (text, count)
            for token in known - set(ids):
                assert lexeme_under_way(text + vocabulary().token_bytes(token)) is not None
            for token in rng.sample(range(279), 20):
                assert matcher.fork().accept(token) == (token in ids), (text, token)
            if len(ids) == 1 and ids[0] in vocabulary().eos:
                break
            token = run_on(matcher, ids, rng)
            if token in vocabulary().eos:
                break
            assert matcher.accept(token)
            assert free.accept(token)
            text += vocabulary().token_bytes(token)
            ends.append(len(text))
            if string is not None and number is not None:
                assert len(text) < 900, text
            elif len(text) > 900:
                matcher.accept_many(matcher.completion_tokens())
                break
        if constraint.accepts(text):
            assert validation_error(schema, text) is None
        else:
            assert len(text) > 900


def tokens_of_values(constraint: constrain.Constraint, name: str, **limits: Any) -> list[tuple[str, int]]:
    """Kind and number of tokens of each string and number in texts that run on."""
    found = []
    for seed in range(8):
        rng = Random(f"{name} {seed}")
        matcher, row = constraint.matcher(**limits), constraint.allocate_bitmask()[0]
        text, count, start = b"", 0, -1
        while not matcher.is_finished and len(text) < 5000:
            token = run_on(matcher, allowed(matcher, row), rng)
            if token in constraint.vocabulary.eos:
                break
            assert matcher.accept(token)
            text += constraint.vocabulary.token_bytes(token)
            under_way = lexeme_under_way(text)
            if under_way is None:
                continue
            kind, begins = under_way
            count = count + 1 if begins == start else 1
            start = begins
            found.append((kind, count))
    return found


def test_no_string_is_much_longer_than_its_limit_and_no_number_longer() -> None:
    counts = tokens_of_values(compiled("strings"), "strings", max_string_tokens=20)
    most = max(count for _, count in counts)
    assert 20 < most <= 20 + GRACE + len("u0000")  # an escape may be under way
    counts = tokens_of_values(compiled("numbers"), "numbers", max_number_tokens=20)
    assert max(count for _, count in counts) in (20, 21)  # there may be no digit yet after the point


def test_a_string_may_go_on_a_little_beyond_its_limit_and_then_ends() -> None:
    constraint = compiled("strings")
    matcher, row = constraint.matcher(max_string_tokens=4), constraint.allocate_bitmask()[0]
    assert matcher.accept_many(b'["a foo') == 7
    ids = set(allowed(matcher, row))
    assert {ord("x"), ord('"'), ord("."), ord(" "), 256} <= ids  # without spaces, words would be glued
    assert matcher.lexeme == (Kind.TEXT, b'"', 6, 0, GRACE - 2)
    assert matcher.accept_many(b"xyzxyzxyz") == GRACE - 2  # of them, two stand beyond the limit already
    assert set(allowed(matcher, row)) == {ord('"'), 259, 260, 261, 262}


@pytest.mark.slow(but=("point",))
@pytest.mark.parametrize("name", SCHEMAS)
def test_matchers_keep_the_protocol_where_limits_are_met(name: str) -> None:
    constraint, rng = compiled(name), Random(name)
    for max_tokens in (None, 500):
        matcher = constraint.matcher(max_tokens, max_string_tokens=3, max_number_tokens=2)
        row = constraint.allocate_bitmask()[0]
        for step in range(9):
            if step % 4 == 0:
                require_protocol(matcher, rng)
            token = run_on(matcher, allowed(matcher, row), rng)
            if token in vocabulary().eos or matcher.is_finished:
                break
            assert matcher.accept(token)


@pytest.mark.slow(but=("point", "lengths", "escapes"))
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_limit_and_a_tight_budget_hold_together(name: str) -> None:
    schema, _ = SCHEMAS[name]
    constraint = compiled(name)
    least = constraint.matcher().min_tokens_left
    for more in (0, 1, 2, 3, 5, 8, 13, 21, 60) if LONG else (0, 1, 3, 13):
        rng = Random(f"{name} {more}")
        limits = {"max_string_tokens": 5, "max_number_tokens": 3}
        matcher, row = constraint.matcher(least + more, **limits), constraint.allocate_bitmask()[0]
        budgeted, limited = constraint.matcher(least + more), constraint.matcher(**limits)
        text, taken = b"", 0
        while not matcher.is_finished:
            ids = [int(token) for token in allowed(matcher, row)]
            assert ids, text
            assert all(budgeted.fork().accept(token) for token in ids if token not in vocabulary().eos)
            budgeted.fill_bitmask(row)
            if not budgeted.is_narrowed:
                assert set(ids) <= {int(token) for token in allowed(limited, row)}
            for token in rng.sample(range(279), 20):
                taken_by = (matcher.fork().accept(token), budgeted.fork().accept(token))
                assert taken_by in ((True, True), (False, False), (False, True))
                assert taken_by[0] or token not in ids
            token = run_on(matcher, ids, rng)
            if token in vocabulary().eos:
                break
            assert matcher.accept(token)
            assert budgeted.accept(token)
            limited = limited if limited.accept(token) else constraint.matcher(**limits)
            text += vocabulary().token_bytes(token)
            taken += 1
        assert taken <= least + more
        assert constraint.accepts(text), text
        assert validation_error(schema, text) is None


def test_keys_and_constants_have_no_limit() -> None:
    schema = {
        "type": "object",
        "properties": {"a very long key of this object": {"enum": ["a long constant", "another long one"]}},
        "required": ["a very long key of this object"],
        "additionalProperties": False,
    }
    constraint = constrain.compile(schema, vocabulary(), whitespace="compact")
    matcher = constraint.matcher(max_string_tokens=1, max_number_tokens=1)
    text = b'{"a very long key of this object":"another long one"}'
    assert matcher.accept_many(text) == len(text)
    assert not matcher.is_narrowed


def test_the_matcher_tells_whether_a_limit_narrowed_the_mask() -> None:
    constraint = compiled("strings")
    matcher, row = constraint.matcher(500, max_string_tokens=4), constraint.allocate_bitmask()[0]
    for text, count in ((b'["abcdefghijk', 0), (b'",', 1), (b'"', 1), (b"xyzxyzxyzxy", 1)):
        assert matcher.accept_many(text) == len(text)
        assert matcher.n_shortened == count
    matcher.fill_bitmask(row)
    assert matcher.n_shortened == 2
    assert matcher.is_narrowed
    assert not matcher.is_narrowed_by_budget
    assert "a limit on the tokens of the lexeme leaves it out" in matcher.explain(256)
    assert "is allowed" in matcher.explain(ord('"'))
    assert "fails at byte 0" in matcher.explain(0)
    matcher.rollback(5)
    assert matcher.n_shortened == 1


@pytest.mark.parametrize("name", ["max_string_tokens", "max_number_tokens"])
def test_a_limit_is_at_least_one_token(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        compiled("point").matcher(**{name: 0})
