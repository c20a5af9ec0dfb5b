"""The incremental reader finds the values of sources, wherever the text is cut, as ``json.loads`` does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from constrain.json_schema.stages import reader
from constrain.json_schema.stages.pointers import ITEM, Path
from tests.support import for_each

SOURCES: dict[Path, int] = {
    ("a",): 0,
    ("b", "c"): 1,
    ("xs", ITEM, "a"): 2,
    ("xs", ITEM, "ys", ITEM): 3,
    ("ys", 0): 4,
    ("ys", ITEM, "a"): 5,
    ("ü",): 6,
}
NODE = reader.make_node(SOURCES, {("ys",): 2}, {})


def value(rng: Random, depth: int = 0) -> Any:
    match rng.randrange(6 if depth < 4 else 4):
        case 0:
            return rng.choice([0, -1.5, 1e300, 12345, True, False, None])
        case 1 | 2 | 3:
            return rng.choice(["", "a", 'q"\\', "\\", "]}", "üß\n", "\U0001f600", ",:"])
        case 4:
            return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
        case _:
            keys = rng.sample(["a", "b", "c", "xs", "ys", "ü", 'k"'], rng.randrange(5))
            return {key: value(rng, depth + 1) for key in keys}


def expected(found: Any, path: Path = (), indices: tuple[int, ...] = ()) -> list[tuple[int, tuple[int, ...], Any]]:
    """The sources in a value, in the order in which they end."""
    inner: list[tuple[int, tuple[int, ...], Any]] = []
    if path not in SOURCES:
        for step, each in (
            found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        ):
            is_item = isinstance(step, int) and step >= (2 if path == ("ys",) else 0)
            inner += expected(each, (*path, ITEM if is_item else step), (*indices, step) if is_item else indices)
        return inner
    return [(SOURCES[path], indices, found)]


def test_all_sources_are_found_wherever_a_text_is_cut() -> None:
    rng = Random(5)
    seen = 0
    for _ in range(150):
        whole = {key: value(rng) for key in ("a", "b", "xs", "ys", "ü") if rng.random() < 0.7}
        text = json.dumps(whole, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2])).encode()
        state, found = reader.begin(NODE), []
        at = 0
        while at < len(text):
            step = rng.choice([1, 2, 3, 9])
            state, ended = reader.read(state, text[at : at + step])
            at += step
            found += ended
        assert [(number, indices, json.loads(raw)) for number, indices, raw in found] == expected(whole), text
        seen += len(found)
    assert seen > 200


def test_every_prefix_has_the_values_that_are_complete() -> None:
    text = b'{"a": 12, "b": {"c": "x\\"y"}, "xs": [{"a": [1, {"q": "]"}]}, {"a": true}], "ys": [ 7 ]}'
    ends = {}
    state = reader.begin(NODE)
    for at in range(len(text)):
        state, found = reader.read(state, text[at : at + 1])
        for number, indices, raw in found:
            ends[number, indices] = text[: at + 1][-len(raw) - 1 :], raw
    assert ends == {
        (0, ()): (b"12,", b"12"),
        (1, ()): (b' "x\\"y"', b'"x\\"y"'),
        (2, (0,)): (b' [1, {"q": "]"}]', b'[1, {"q": "]"}]'),
        (2, (1,)): (b"true}", b"true"),
        (4, ()): (b"7 ", b"7"),
    }


def test_ends_of_arrays_are_told() -> None:
    state = reader.begin(reader.make_node({("xs", ITEM, "a"): 3}, {}, {("xs",): 3}))
    for text, ended in ((b'{"ys": [], "xs": [', []), (b"]", [(3, (), b"")]), (b', "zs": [1]', [])):
        state, found = reader.read(state, text)
        assert found == ended


@for_each(
    "text, number, begun",
    (b'{"a": "x', 0, 1),
    (b'{"a"', 0, 1),
    (b'{"a": 12', 0, 1),
    (b'{"ys": [', 4, 1),
    (b'{"ys": [1,', -1, 1),
    (b'{"a": "x"', -1, 1),
    (b'{"a', -1, 0),
    (b'{"q": "x', -1, 0),
    (b'{"xs": [{"a": ["p", "q', 2, 2),
    (b'{"b": {"c": 1', 1, 1),
)
def test_where_a_text_ends(text: bytes, number: int, begun: int) -> None:
    state, _ = reader.read(reader.begin(NODE), text)
    assert reader.source_inside(state) == number
    assert state[-1] == begun
