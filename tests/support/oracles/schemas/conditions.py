"""Random conditions on which keys an object has, and on a few of their values, with keys in any order.

The bound names the keys, whose values are 0 and 1, and may let in a class of one or two undeclared keys. ::

    python -m tests.support.oracles.schemas.conditions FIRST LAST
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from random import Random
from typing import Any

import jsonschema_rs

from tests.support.oracles.schemas.cases import Case, compare
from tests.support.oracles.schemas.generator import Universe, spellings

VALUES: tuple[Any, ...] = (
    True,
    False,
    {"const": 0},
    {"const": 1},
    {"enum": [0, 1]},
    {"minimum": 1},
    {"not": {"const": 1}},
)


class Conditions:
    """Makes schemas that constrain objects with these keys."""

    def __init__(self, rng: Random, keys: list[str], *, undeclared: bool, sizes: bool) -> None:
        self.rng = rng
        self.keys = keys
        self.undeclared = undeclared
        self.sizes = sizes

    def some(self, most: int = 3) -> list[str]:
        return self.rng.sample(self.keys, self.rng.randint(1, min(most, len(self.keys))))

    def leaf(self) -> dict[str, Any]:
        rng, key = self.rng, self.rng.choice(self.keys)
        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: {"required": self.some()},
            lambda: {"required": self.some()},
            lambda: {"properties": {key: rng.choice(VALUES) for key in self.some(2)}},
            lambda: {"properties": {key: rng.choice(VALUES)}, "required": [key]},
            lambda: {"dependentRequired": {key: self.some(2) for key in self.some(2)}},
        ]
        if self.sizes:
            kinds += [lambda: {"minProperties": rng.randint(1, 4)}, lambda: {"maxProperties": rng.randint(1, 4)}]
        if self.undeclared:
            kinds += [
                lambda: {"patternProperties": {"^[xy]$": rng.choice(VALUES)}},
                lambda: {"properties": dict.fromkeys(self.some(), True), "additionalProperties": rng.choice(VALUES)},
            ]
        return rng.choice(kinds)()

    def schema(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.leaf()

        def several(most: int) -> list[Any]:
            return [self.schema(depth - 1) for _ in range(rng.randint(2, most))]

        def conditional(*keywords: str) -> dict[str, Any]:
            return {keyword: self.schema(depth - 1) for keyword in keywords}

        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: conditional("not"),
            lambda: {"anyOf": several(4)},
            lambda: {"oneOf": several(3)},
            lambda: {"allOf": several(4)},
            lambda: conditional("if", "then"),
            lambda: conditional("if", "then", "else"),
            lambda: {"dependentSchemas": {rng.choice(self.keys): self.schema(depth - 1)}},
        ]
        return rng.choice(kinds)()


def make_case(seed: int) -> Case:
    rng = Random(f"conditions {seed}")
    undeclared = rng.random() < 0.5
    keys = list("abc" if undeclared else "abcd"[: rng.randint(2, 4)])
    conditions = Conditions(rng, keys, undeclared=undeclared, sizes=rng.random() < 0.4)
    schema = conditions.schema(rng.randint(1, 3))
    values = {"enum": [0, 1]}
    bound: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(keys, values), "additionalProperties": False}
    names = list(keys)
    if undeclared:
        more = rng.choice(("x", "xy"))
        bound["patternProperties"] = {f"^[{more}]$": values}
        names += more
    if rng.random() < 0.2:
        bound["required"] = [rng.choice(keys)]
    if rng.random() < 0.15:
        bound["maxProperties"] = rng.randint(1, 4)
    schema = {"allOf": [bound, schema]}
    judge = jsonschema_rs.Draft202012Validator(schema)
    valid, invalid = [], []
    for number in range(len(names) + 1):
        for chosen in combinations(names, number):
            for items in product((0, 1), repeat=number):
                value = dict(zip(chosen, items, strict=True))
                (valid if judge.is_valid(value) else invalid).append(value)
    texts = sorted(text.encode() for value in valid for text in spellings(value, any_order=True))
    others = [next(spellings(value, any_order=True)).encode() for value in rng.sample(invalid, min(len(invalid), 40))]
    universe = Universe(integers=2, strings=(), simple=(), keys=tuple(names), most_items=0, depth=1)
    return Case(schema, universe, "any", texts, others, disputed=False)


def check(seed: int) -> str:
    """Compares everything about one seed; returns "" or the reason of a refusal. AssertionError where they differ."""
    case = make_case(seed)
    try:
        return compare(case, Random(f"walk {seed}"))
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error}\n{json.dumps(case.schema)}") from error


if __name__ == "__main__":
    print(Counter(check(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))))
