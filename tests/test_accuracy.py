"""How answers are judged (``tests/support/accuracy``): calls by BFCL's rules, documents leaf by leaf."""

from __future__ import annotations

from typing import Any

from tests.support import for_each
from tests.support.accuracy.calls import is_right
from tests.support.accuracy.documents import count_right, leaves

ACCEPT: list[dict[str, Any]] = [
    {"name": "book", "arguments": {"city": ["New York", "NYC"], "nights": [2], "price": [9.5, 10.0], "note": ["", "x"]}}
]
RIGHT = {"city": "New York", "nights": 2, "price": 9.5}


@for_each(
    "arguments, expected",
    (RIGHT, True),
    ({**RIGHT, "city": "new-york."}, True),
    ({**RIGHT, "city": "NYC"}, True),
    ({**RIGHT, "city": "Boston"}, False),
    ({**RIGHT, "price": 10}, True),
    ({**RIGHT, "nights": 2.0}, False),
    ({**RIGHT, "nights": "2"}, False),
    ({**RIGHT, "nights": True}, False),
    ({**RIGHT, "note": "X"}, True),
    ({**RIGHT, "note": "y"}, False),
    ({**RIGHT, "other": 1}, False),
    ({"city": "NYC", "nights": 2}, False),
    ([RIGHT], False),
    (None, False),
)
def test_calls_are_judged_by_their_accepted_values(arguments: object, expected: bool) -> None:
    assert is_right("book", arguments, ACCEPT) is expected
    assert not is_right("look", arguments, ACCEPT)


def test_members_of_objects_and_items_of_lists_have_accepted_values_of_their_own() -> None:
    accept = [{"name": "f", "arguments": {"a": [{"b": [1], "c": ["", 2]}], "d": [[1, 2], ["x"]]}}]
    assert is_right("f", {"a": {"b": 1}, "d": [1, 2]}, accept)
    assert is_right("f", {"a": {"b": 1, "c": 2}, "d": ["X"]}, accept)
    assert not is_right("f", {"a": {"c": 2}, "d": [1, 2]}, accept)
    assert not is_right("f", {"a": {"b": 1}, "d": [2, 1]}, accept)


def test_documents_are_judged_leaf_by_leaf() -> None:
    truth = {"name": "Ada  Lovelace", "born": 1815, "works": ["notes", {"year": 1843}], "none": [], "is_known": True}
    assert len(list(leaves(truth))) == 6
    assert count_right(truth, truth) == (6, 6)
    assert count_right({**truth, "name": "ada lovelace", "born": 1815.0}, truth) == (6, 6)
    assert count_right({**truth, "works": [{"year": 1843}, "notes"]}, truth) == (4, 6)
    assert count_right({**truth, "is_known": 1, "none": None}, truth) == (4, 6)
    assert count_right({"extra": 1}, truth) == (0, 6)
    assert count_right(None, truth) == (0, 6)
