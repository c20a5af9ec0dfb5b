"""Rows of a batch are followed by their tokens, in whatever order they come."""

from __future__ import annotations

import numpy as np
import pytest

import constrain
from constrain.integrations.rows import Row, move_rows, shared_tokens
from tests.support import byte_vocabulary

VOCABULARY = byte_vocabulary()
END = 256


@pytest.fixture(scope="module")
def colours() -> constrain.Constraint:
    return constrain.compile({"enum": ["red", "green", "grey"]}, VOCABULARY, cache=False)


@pytest.fixture(scope="module")
def number() -> constrain.Constraint:
    return constrain.compile({"type": "integer"}, VOCABULARY, cache=False)


def start(*constraints: constrain.Constraint | None) -> list[Row | None]:
    return [None if constraint is None else Row(constraint.matcher()) for constraint in constraints]


def require_masks(rows: list[Row | None], texts: list[list[int]]) -> None:
    """Each row has the mask of a new matcher that has read its tokens."""
    for row, tokens in zip(rows, texts, strict=True):
        assert row is not None
        constraint = row.matcher.constraint
        found, expected = constraint.allocate_bitmask(2)
        row.matcher.fill_bitmask(found)
        fresh = constraint.matcher()
        assert fresh.accept_many(tokens) == len(tokens) == row.taken
        fresh.fill_bitmask(expected)
        assert np.array_equal(found, expected)


def test_beams_that_change_places_or_are_copied(colours: constrain.Constraint) -> None:
    rows = start(colours, colours, colours)
    for texts in ([b"", b"", b""], [b'"', b'"', b'"'], [b'"r', b'"g', b'"g'], [b'"gr', b'"re', b'"gr']):
        rows = move_rows(rows, [list(text) for text in texts])
        require_masks(rows, [list(text) for text in texts])
    answers = [list(b'"gre'), list(b'"gre'), list(b'"gre')]
    rows = move_rows(rows, answers)
    require_masks(rows, answers)
    answers = [list(b'"gree'), list(b'"grey'), list(b'"gree')]
    rows = move_rows(rows, answers)
    require_masks(rows, answers)


def test_tokens_that_are_taken_back(colours: constrain.Constraint) -> None:
    rows = start(colours)
    for text in (b'"gre', b'"grey"', b'"r', b"", b'"green"'):
        rows = move_rows(rows, [list(text)])
        require_masks(rows, [list(text)])


def test_a_row_takes_no_row_of_another_constraint(colours: constrain.Constraint, number: constrain.Constraint) -> None:
    rows = move_rows(start(colours, number, None), [list(b'"r'), list(b"12"), [1, 2]])
    rows = move_rows(rows, [list(b'"re'), list(b"123"), [1, 2, 3]])
    require_masks(rows[:2], [list(b'"re'), list(b"123")])
    assert rows[2] is None


def test_an_answer_that_has_ended_stays_so(colours: constrain.Constraint) -> None:
    (row,) = move_rows(start(colours), [list(b'"red"')])
    assert row is not None
    assert not row.has_ended  # nothing else may follow, but the loop has not ended it
    for more in ([END], [END, 0], [END, 0, 0]):
        (row,) = move_rows([row], [[*b'"red"', *more]])
        assert row is not None
        assert row.has_ended
        assert row.refused is None
    (row,) = move_rows([row], [list(b'"re')])
    assert row is not None
    assert not row.has_ended


def test_after_a_complete_text_only_padding_may_follow() -> None:
    padding = constrain.Vocabulary.from_tokens(
        [bytes([byte]) for byte in range(256)] + [b"", b""], eos=[256], special=[257]
    )
    constraint = constrain.compile({"const": "a"}, padding, cache=False)
    for after, ended, refused in (([257, 7], True, None), ([999], True, None), ([97], False, 97)):
        (row,) = move_rows(start(constraint), [[*b'"a"', *after]])
        assert row is not None
        assert (row.has_ended, row.refused) == (ended, refused)
        (row,) = move_rows([row], [[*b'"a"', END]])
        assert row is not None
        assert (row.has_ended, row.refused, row.taken) == (True, None, 4)


def test_a_refused_token_is_kept_until_it_is_taken_back(colours: constrain.Constraint) -> None:
    (row,) = move_rows(start(colours), [list(b'"x')])
    for tokens in (list(b'"xy'), list(b'"xyz"')):
        assert row is not None
        assert row.refused == ord("x")
        assert "fails at byte 0" in row.why_refused()
        (row,) = move_rows([row], [tokens])
    (row,) = move_rows([row], [list(b'"r')])
    require_masks([row], [list(b'"r')])
    (row,) = move_rows([row], [[*b'"r', 999]])
    assert row is not None
    assert row.why_refused() == "token 999 is beyond the 257 tokens of the vocabulary"


def test_a_beam_with_a_refused_token_goes_on_beside_others(colours: constrain.Constraint) -> None:
    rows = move_rows(start(colours, colours), [list(b'"g'), list(b'"x')])
    rows = move_rows(rows, [list(b'"xa'), list(b'"gr')])
    assert [row is not None and row.refused for row in rows] == [ord("x"), None]
    rows = move_rows(rows, [list(b'"gra'), list(b'"gre')])
    assert [row is not None and row.refused for row in rows] == [ord("a"), None]
    require_masks(rows[1:], [list(b'"gre')])


@pytest.mark.parametrize(("one", "other", "count"), [([], [1], 0), ([1, 2], [1, 2, 3], 2), ([1, 2], [1, 3], 1)])
def test_shared_tokens(one: list[int], other: list[int], count: int) -> None:
    assert shared_tokens(one, other) == shared_tokens(other, one) == count
