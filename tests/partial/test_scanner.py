"""The scanner finds every value of a JSON text, however the text is cut into pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from constrain.partial.scanner import Path, Scanned, Scanner
from tests.support import for_each

KEYS = ("a", "b", 'k"y', "\\", "é😀", "x")
SCALARS = (1, -2.5, 1e30, True, False, None, "", "abc", '"\\/\n', "😀é", "\\ud83d", "😀x😀")


def random_value(rng: Random, depth: int = 4) -> Any:
    kind = rng.random()
    if depth and kind < 0.25:
        return {rng.choice(KEYS): random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    if depth and kind < 0.5:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice(SCALARS)


def parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from parts(item, (*path, step))


def scanned(text: str, rng: Random) -> list[Scanned]:
    scanner, found, at = Scanner(), [], 0
    while at < len(text):
        length = rng.choice((1, 1, 2, 3, 7, 50))
        found += scanner.feed(text[at : at + length])
        at += length
    found += scanner.finish()
    assert scanner.is_complete
    return found


@for_each("seed", range(300))
def test_all_values_are_found_in_random_texts(seed: int) -> None:
    rng = Random(seed)
    value = random_value(rng)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1)))
    complete: dict[Path, Any] = {}
    grown: dict[Path, str] = {}
    begun: list[Path] = []
    for each in scanned(text, rng):
        assert each.path not in complete
        if each.kind == "begin":
            begun.append(each.path)
        elif each.kind == "grow":
            grown[each.path] = grown.get(each.path, "") + each.text
        else:
            complete[each.path] = json.loads(text[each.begin : each.end])
    wanted = dict(parts(value))
    assert complete == wanted
    assert grown == {path: each for path, each in wanted.items() if isinstance(each, str) and each}
    assert sorted(map(str, begun)) == sorted(map(str, wanted))


def test_escapes_are_not_given_out_by_halves() -> None:
    scanner = Scanner()
    pieces = [
        [each.text for each in scanner.feed(character) if each.kind == "grow"] for character in r'"a\ud83d\ude00\n"'
    ]
    assert [text for found in pieces for text in found] == ["a", "😀", "\n"]


@for_each("seed", range(300))
def test_texts_that_are_not_json_are_refused(seed: int) -> None:
    rng = Random(seed)
    text = list(json.dumps(random_value(rng)))
    for _ in range(rng.randint(1, 2)):
        text[rng.randrange(len(text))] = rng.choice('{}[],:"\\0atx ')
    broken = "".join(text)
    try:
        json.loads(broken)
        is_json = True
    except ValueError:
        is_json = False
    scanner = Scanner()
    try:
        scanner.feed(broken)
        scanner.finish()
        assert scanner.is_complete == is_json
    except ValueError:
        assert not is_json


def test_the_error_names_the_place() -> None:
    with pytest.raises(ValueError, match=r"character 7 cannot stand here \(near '\{\"a\": 1x\}'\)"):
        Scanner().feed('{"a": 1x}')
