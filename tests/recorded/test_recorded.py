"""Every recorded call and request is answered as it was."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.recorded.asking import Labels, answer, difference, rows, tables
from tests.support import check_each, for_each


@contextlib.contextmanager
def steady() -> Iterator[None]:
    """Seeds that nobody gives are the same in every run, the cache is empty, and warnings are not shown."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("CONSTRAIN_CACHE", folder)
        patch.setattr("secrets.randbelow", lambda _: 5)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("table", tables())
def test_the_answer_is_the_recorded_one(table: str) -> None:
    def check(row: dict[str, Any]) -> None:
        changed = difference(answer(row), row["got"])
        assert not changed, changed

    with steady():
        check_each(rows(table), check)


@for_each(
    "found, recorded, changed",
    ([1, 0.50001], [1, 0.5], False),
    ([1, 0.6], [1, 0.5], True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ([1], [1, 2], True),
    ([True], [1], True),
    ("a", "b", True),
)
def test_a_change_is_told(found: Any, recorded: Any, changed: bool) -> None:
    assert bool(difference(found, recorded)) is changed


def test_ids_are_numbered_and_times_left_out() -> None:
    labels = Labels()
    first, second = "msg_" + 24 * "a", "call_" + 24 * "b"
    given = {"id": first, "created": 17, "to": [second, first], "seconds": 0.5, "share": 0.123456789}
    assert labels.on(given) == {
        "id": "msg_#0.",
        "created": 0,
        "to": ["call_#1.", "msg_#0."],
        "seconds": 0,
        "share": 0.12346,
    }
    assert labels.undo("msg_#0.") == first
