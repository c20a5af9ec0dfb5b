"""Votes on JSON values: majorities by field, lists lined up by content, and the agreement on each part."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from constrain.voting.alignment import align_lists
from constrain.voting.ballots import read_ballot, write_ballot
from constrain.voting.election import agreement_with, elect, nearest
from constrain.voting.similarity import similarity
from tests.support import LONG, for_each
from tests.support.processor_time import finishes_within


def vote(*values: Any) -> Any:
    return json.loads(write_ballot(elect([read_ballot(json.dumps(value)) for value in values])))


@for_each(
    "values, winner",
    ([1, 2, 2], 2),
    (["a", "b", "a"], "a"),
    ([True, True, 1], True),
    ([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 2, "b": 3}], {"a": 1, "b": 3}),
    ([{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}], {"a": 1, "b": 2}),
    ([{"a": 1}, {"a": 1}, {"a": 1, "b": 2}], {"a": 1}),
    ([None, {"a": 1}, {"a": 2}, {"a": 2}], {"a": 2}),
    ([["x", "y"], ["y"], ["x", "y", "z"]], ["x", "y"]),
    ([[{"n": "pen", "p": 1}, {"n": "ink", "p": 5}], [{"n": "ink", "p": 5}], []], [{"n": "ink", "p": 5}]),
    (["The cat sat.", "A cat sat.", "The cat sat down."], "The cat sat."),
)
def test_winners(values: list[Any], winner: Any) -> None:
    assert vote(*values) == winner


def test_numbers_keep_their_spelling_and_are_equal_by_value() -> None:
    ballots = [read_ballot(text) for text in ("1.10", "1.1", "2")]
    assert write_ballot(elect(ballots)) == "1.10"
    assert agreement_with(elect(ballots), ballots) == {(): pytest.approx(2 / 3)}


def test_agreement_is_told_by_path() -> None:
    ballots = [read_ballot(json.dumps(each)) for each in ({"a": [1, 2], "b": 1}, {"a": [1, 2]}, {"a": [1], "b": 2})]
    winner = elect(ballots)
    assert json.loads(write_ballot(winner)) == {"a": [1, 2], "b": 1}
    thirds = {path: round(3 * share) for path, share in agreement_with(winner, ballots).items()}
    assert thirds == {("a", 0): 3, ("a", 1): 2, ("a",): 2, ("b",): 1, (): 1}
    assert nearest(ballots, winner) == 0


def random_value(rng: Random, depth: int = 3) -> Any:
    kind = rng.random()
    if depth and kind < 0.4:
        return {key: random_value(rng, depth - 1) for key in rng.sample("abcd", rng.randint(0, 3))}
    if depth and kind < 0.6:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice((1, 2.5, True, None, "red", "red cat", "blue"))


@pytest.mark.parametrize("seed", range(200 if LONG else 60))
def test_random_values(seed: int) -> None:
    rng = Random(seed)
    values = [random_value(rng) for _ in range(rng.randint(1, 6))]
    ballots = [read_ballot(json.dumps(value)) for value in values]
    for value, ballot in zip(values, ballots, strict=True):
        assert write_ballot(ballot) == json.dumps(value)
        assert write_ballot(ballot, compact=True) == json.dumps(value, separators=(",", ":"))
        assert elect([ballot, ballot, *ballots[:1]]) == ballot
        assert similarity(ballot, ballot) == 1
        for other in ballots:
            assert 0 <= similarity(ballot, other) <= 1
            assert similarity(ballot, other) == pytest.approx(similarity(other, ballot))
    agreement = agreement_with(elect(ballots), ballots)
    assert all(0 <= share <= 1 for share in agreement.values())
    if len({json.dumps(value) for value in values}) == 1:
        assert set(agreement.values()) == {1.0}


def test_items_are_lined_up_in_order() -> None:
    lists = [["a", "b", "c"], ["b", "c"], ["a", "x", "c"]]
    columns = align_lists(lists)
    assert [{number: column[number] for number in sorted(column)} for column in columns] == [
        {0: "a", 2: "a"},
        {0: "b", 1: "b"},
        {2: "x"},
        {0: "c", 1: "c", 2: "c"},
    ]


def test_long_lists_are_compared_by_position() -> None:
    long = list(range(150))
    assert vote(long, long, long[1:]) == long


def test_deeply_nested_values_are_voted_on() -> None:
    deep: Any = 1
    for level in range(400):
        deep = [deep] if level % 2 else {"a": deep}
    other = json.loads(json.dumps(deep).replace("1", "2"))
    assert vote(deep, deep, other) == deep
    ballots = [read_ballot(json.dumps(each)) for each in (deep, other)]
    assert similarity(*ballots) == 0
    assert nearest(ballots, ballots[1]) == 1
    wide: Any = [[[[["x", "y"]] * 3] * 3] * 3] * 3
    assert vote(wide, wide[:2], wide) == wide


def test_keys_are_in_an_order_that_all_samples_have() -> None:
    samples = [{"a": 1, "c": 1}, {"c": 1}, {"b": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1}]
    assert list(vote(*samples)) == ["b", "c"] or list(vote(*samples)) == ["b"]
    assert list(vote({"a": 1, "c": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1})) == ["a", "b", "c"]
    assert list(vote({"b": 1, "a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1})) in (["a", "b"], ["b", "a"])


@for_each(
    "values, winner",
    ([1, 2, "a", "a"], "a"),
    (["a", "a", 1, 2], "a"),
    ([None, None, {"a": 1}, {"a": 2}], None),
    ([{"a": 1}, {"a": 1}, None, None], {"a": 1}),
    ([False, 0, 0], 0),
    ([[], [], ["a"]], []),
    ([["a", "a"], ["a", "a"], ["a"]], ["a", "a"]),
    ([["a"], ["a"], ["a", "a"]], ["a"]),
    ([[1.0, 2], [1, 2.00], [3]], [1.0, 2]),
    ([[["x"], ["y"]], [["x"]], [["x"], ["y"]]], [["x"], ["y"]]),
    (["猫が好きです", "犬が嫌いだ", "猫が好きだ"], "猫が好きだ"),
)
def test_ties_nulls_and_duplicates(values: list[Any], winner: Any) -> None:
    found = vote(*values)
    assert (type(found), found) == (type(winner), winner)


def test_items_in_another_order_count() -> None:
    samples = [["a", "b"], ["a", "b"], ["b", "a"], ["b", "a"], ["c"]]
    winner = vote(*samples)
    assert sorted(winner) == ["a", "b"]
    ballots = [read_ballot(json.dumps(each)) for each in samples]
    agreement = agreement_with(read_ballot(json.dumps(winner)), ballots)
    assert agreement == {(): 0.4, (0,): 0.8, (1,): 0.8}


def test_lists_of_one_length_can_keep_it() -> None:
    ballots = [read_ballot(text) for text in ("[1, 5]", "[2, 5]", "[1, 6]", "[3, 5]")]
    assert write_ballot(elect(ballots)) == "[5]"
    assert write_ballot(elect(ballots, keeps_length=True)) == "[1, 5]"
    others = [read_ballot(text) for text in ("[1, 5]", "[5]", "[1, 5]")]
    assert elect(others, keeps_length=True) == elect(others) == others[0]


def test_an_equal_sample_is_nearer_than_one_of_the_same_words() -> None:
    ballots = [read_ballot(text) for text in ('["a", "b"]', '["b", "a"]')]
    assert nearest(ballots, ballots[1]) == 1


@pytest.mark.slow
def test_lists_of_lists_take_little_time() -> None:
    rng = Random(0)
    samples = [[[rng.randrange(9) for _ in range(40)] for _ in range(40)] for _ in range(4)]
    with finishes_within(30):
        ballots = [read_ballot(json.dumps(each)) for each in samples]
        agreement_with(elect(ballots), ballots)


def test_halves_of_characters_are_written_as_escapes() -> None:
    assert write_ballot(read_ballot(r'{"\ud800": "a\udfff😀"}')) == r'{"\ud800": "a\udfff😀"}'


def test_weights_decide_and_count() -> None:
    ballots = [read_ballot(json.dumps(each)) for each in ({"a": 1, "b": [1]}, {"a": 2}, {"a": 2, "b": [1, 2]})]
    winner = elect(ballots, [5.0, 1.0, 2.0])
    assert json.loads(write_ballot(winner)) == {"a": 1, "b": [1]}
    assert agreement_with(winner, ballots, [5.0, 1.0, 2.0]) == {
        (): 5 / 8, ("a",): 5 / 8, ("b",): 5 / 8, ("b", 0): 7 / 8
    }  # fmt: skip
    assert elect(ballots) == elect(ballots, [1.0, 1.0, 1.0])
