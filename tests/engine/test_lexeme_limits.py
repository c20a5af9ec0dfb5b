"""Soft limits on the tokens of one string and one number: what runs on comes to its end, and stays valid."""

from __future__ import annotations

import json
import re
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.language import tree
from constrain.language.grammar import Grammar, GrammarBuilder, Kind
from tests.support import LONG, allowed, maskbench_that_compiles, real_vocabulary
from tests.support.judging import validation_error

GRACE = 8
"""Tokens by which a word may go on beyond the limit."""

POINT: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tag": {"type": "string"}},
    "required": ["id", "tag"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, tuple[Any, dict[str, Any]]] = {
    "anything": (True, {}),
    "strings": ({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4}, {}),
    "numbers": ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 4}, {}),
    "all spellings": ({"type": "array", "items": {"type": "number"}, "maxItems": 3}, {"numbers": "any"}),
    "point": (POINT, {}),
    "free keys": ({"type": "object", "minProperties": 2, "maxProperties": 3}, {}),
    "long strings": ({"type": "string", "minLength": 40}, {}),
    "lengths": ({"type": "string", "minLength": 20, "maxLength": 70}, {}),
    "words": ({"type": "string", "pattern": "^[a-z]+( [a-z]+){5,}$"}, {}),
    "a pattern within lengths": ({"type": "string", "pattern": "[0-9]{3}-[0-9]{4}", "maxLength": 60}, {}),
    "a pattern that leaves out": ({"type": "string", "pattern": "^(?!.*foo)[a-z]{5,40}bar$"}, {}),
    "beyond ASCII": ({"type": "string", "pattern": "^[é€\U0001f600]{9,}$"}, {}),
    "escapes": ({"type": "string", "pattern": r'^[\u0001"\\]{4,}$'}, {}),
    "dates": ({"type": "string", "format": "date-time"}, {}),
    "addresses": ({"type": "string", "format": "email"}, {}),
    "large": ({"type": "integer", "minimum": 10**12}, {}),
    "multiples": ({"type": "integer", "multipleOf": 97, "minimum": 5000}, {}),
    "decimals": ({"type": "number", "multipleOf": 0.01, "minimum": 3, "maximum": 1000}, {}),
    "unique": ({"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 3, "maxItems": 4}, {}),
    "unique objects": ({"type": "array", "items": POINT, "uniqueItems": True, "minItems": 2, "maxItems": 2}, {}),
    "a constant beside": ({"anyOf": [{"const": "a" * 30}, {"type": "string", "pattern": "^a{3,9}b*$"}]}, {}),
}


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


@pytest.mark.slow(but=("6-None-a constant beside", "1-1-decimals", "1-1-a constant beside"))
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize(("string", "number"), [(1, 1), (6, 4), (None, 4), (6, None)])
def test_any_walk_over_the_masks_ends_strings_and_numbers(name: str, string: int | None, number: int | None) -> None:
    schema, _ = SCHEMAS[name]
    constraint = compiled(name)
    limits = {"max_string_tokens": string, "max_number_tokens": number}
    for seed in range(12 if LONG else 3):
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
            for token in rng.sample(range(279), 40):
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
    for seed in range(20):
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


def test_no_string_is_much_longer_than_its_limit() -> None:
    counts = tokens_of_values(compiled("strings"), "strings", max_string_tokens=20)
    most = max(count for _, count in counts)
    assert 20 < most <= 20 + GRACE + len("u0000")  # an escape may be under way


def test_no_number_is_longer_than_its_limit() -> None:
    counts = tokens_of_values(compiled("numbers"), "numbers", max_number_tokens=20)
    assert max(count for _, count in counts) in (20, 21)  # there may be no digit yet after the point


def test_a_string_may_go_on_a_little_beyond_its_limit_and_then_ends() -> None:
    constraint = compiled("strings")
    matcher, row = constraint.matcher(max_string_tokens=4), constraint.allocate_bitmask()[0]
    assert matcher.accept_many(b'["a foo') == 7
    ids = set(allowed(matcher, row))
    assert {
        ord("x"),
        ord('"'),
        ord("."),
        ord(" "),
        256,
    } <= ids  # without spaces, words would be glued
    assert matcher.lexeme == (Kind.TEXT, b'"', 6, 0, GRACE - 2)
    assert matcher.accept_many(b"xyzxyzxyz") == GRACE - 2  # of them, two stand beyond the limit already
    assert set(allowed(matcher, row)) == {ord('"'), 259, 260, 261, 262}


@pytest.mark.parametrize("max_tokens", [None, 500])
def test_forks_and_rollbacks_know_what_was_counted(max_tokens: int | None) -> None:
    for name in SCHEMAS:
        constraint = compiled(name)
        limits = {"max_tokens": max_tokens, "max_string_tokens": 6, "max_number_tokens": 4}
        matcher, row = constraint.matcher(**limits), constraint.allocate_bitmask()[0]
        rng = Random(name)
        tokens: list[int] = []
        masks: list[Any] = []
        counts: list[int] = []
        while not matcher.is_finished and len(tokens) < 60:
            ids = allowed(matcher, row)
            masks.append(row.copy())
            counts.append(matcher.n_shortened)
            token = run_on(matcher, ids, rng)
            if token in vocabulary().eos:
                break
            assert matcher.accept(token)
            tokens.append(token)
        for back in (1, 3, len(tokens)):
            fork = matcher.fork()
            fork.rollback(back)
            for at in range(len(tokens) - back, len(tokens)):
                if rng.random() < 0.7:  # accept must not need the mask
                    fork.fill_bitmask(row)
                    assert np.array_equal(row, masks[at]), (name, back, at)
                    assert fork.n_shortened == counts[at]
                assert fork.accept(tokens[at])
        matcher.reset()
        assert not matcher.is_narrowed
        assert matcher.accept_many(tokens) == len(tokens)
        again = constraint.matcher(**limits)
        assert again.accept_many(tokens) == len(tokens)


@pytest.mark.slow(only=("free keys", "long strings", "unique", "unique objects"))
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_limit_and_a_tight_budget_hold_together(name: str) -> None:
    schema, _ = SCHEMAS[name]
    constraint = compiled(name)
    least = constraint.matcher().min_tokens_left
    for more in (0, 1, 2, 3, 5, 8, 13, 21, 60):
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


@pytest.mark.parametrize("max_tokens", [None, 300])
def test_a_text_can_be_completed_from_everywhere(max_tokens: int | None) -> None:
    for name in SCHEMAS:
        constraint = compiled(name)
        matcher = constraint.matcher(max_tokens, max_string_tokens=3, max_number_tokens=2)
        row, rng = constraint.allocate_bitmask()[0], Random(name)
        for _ in range(40):
            fork = matcher.fork()
            tokens = fork.completion_tokens()
            assert fork.accept_many(tokens) == len(tokens), name
            assert fork.is_accepting
            token = run_on(matcher, allowed(matcher, row), rng)
            if token in vocabulary().eos or not matcher.accept(token) or matcher.is_finished:
                break


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


def loud_words() -> Grammar:
    """Words of letters with blanks between, then an exclamation mark."""
    letters = tree.Repetition(tree.ByteClass(((97, 122),)), 1, None)
    builder = GrammarBuilder()
    word = builder.terminal("word", letters, kind=Kind.STRING)
    bang = builder.terminal("bang", tree.Literal(b"!"))
    builder.ignore(builder.terminal("blank", tree.Literal(b" ")))
    start = builder.rule("start")
    builder.define(start, [[word, bang], [word, start]])
    return builder.build()


def test_any_grammar_may_have_limits() -> None:
    constraint = constrain.compile(loud_words(), vocabulary())
    matcher, row = constraint.matcher(max_string_tokens=3), constraint.allocate_bitmask()[0]
    assert matcher.accept_many(b"abc") == 3
    assert set(allowed(matcher, row)) == {ord(" "), ord("!"), 256, 258, 278}
    assert matcher.accept_many(b" d") == 2
    assert ord("e") in allowed(matcher, row)


@pytest.mark.slow(only=("gemma-4",))
@pytest.mark.parametrize("name", ["llama-bpe", "gemma-4"])
def test_limits_hold_with_real_vocabularies(name: str) -> None:
    constraint = constrain.compile(POINT, real_vocabulary(name), whitespace="compact")
    matcher, row = constraint.matcher(400, max_string_tokens=12, max_number_tokens=6), constraint.allocate_bitmask()[0]
    rng, text, tokens = Random(name), b"", 0
    token_bytes = constraint.vocabulary.token_bytes
    while not matcher.is_finished:
        ids = allowed(matcher, row)
        token = run_on(matcher, rng.sample(list(ids), min(2000, len(ids))), rng)
        if token in constraint.vocabulary.eos:
            break
        assert matcher.accept(token)
        text += token_bytes(token)
        tokens += 1
    assert json.loads(text).keys() == {"id", "tag"}
    assert tokens < 60
    assert matcher.n_shortened == 2


@pytest.mark.slow
def test_texts_of_real_schemas_validate() -> None:
    real = real_vocabulary("llama-bpe")
    wrong = []
    for entry, constraint in maskbench_that_compiles(real, seed=23, count=300 if LONG else 25):
        max_tokens = max(300, constraint.matcher().min_tokens_left)
        for seed in range(3 if LONG else 1):
            rng = Random(f"{entry['id']} {seed}")
            matcher = constraint.matcher(max_tokens, max_string_tokens=1 + 6 * seed, max_number_tokens=3)
            row, tokens = constraint.allocate_bitmask()[0], 0
            text = b""
            while not matcher.is_finished:
                ids = list(allowed(matcher, row))
                assert ids, (entry["id"], text)
                token = run_on(matcher, rng.sample(ids, min(300, len(ids))), rng)
                if token in real.eos:
                    break
                assert matcher.accept(token), (entry["id"], text, token)
                text += real.token_bytes(token)
                tokens += 1
            assert tokens <= max_tokens
            error = validation_error(entry["schema"], text)
            if error is not None:
                wrong.append((entry["id"], error, text))
    assert not wrong
