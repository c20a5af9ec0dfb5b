"""Random schemas whose values all lie in a small universe, which is listed without the engine.

A schema is ``{"allOf": [bound, anything]}``: the bound admits the values of the universe and no others, so that the
valid texts can be listed, and it names all keys first, so that they come in its order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from random import Random
from typing import Any, NamedTuple

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

KEYS = ("a", "b", "ab", "c")
STRINGS = ("", "a", "b", "ab")
PATTERNS = ("^a", "b", "^[ab]$", "[^a]$", "^.{1}$", "^(ab|c)$", "^(?!a)")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


class Universe(NamedTuple):
    """Scalars, and arrays and objects of them up to ``depth`` levels. ``keys`` are in the order of the schema."""

    integers: int
    strings: tuple[str, ...]
    simple: tuple[Any, ...]
    keys: tuple[str, ...]
    most_items: int
    depth: int

    def scalars(self) -> list[Any]:
        return [*self.simple, *range(self.integers), *self.strings]

    def values(self, depth: int | None = None) -> list[Any]:
        """All values."""
        depth = self.depth if depth is None else depth
        found = self.scalars()
        if depth > 0:
            inner = self.values(depth - 1)
            for length in range(self.most_items + 1):
                found += map(list, product(inner, repeat=length))
            for length in range(len(self.keys) + 1):
                for keys in combinations(self.keys, length):
                    found += (dict(zip(keys, items, strict=True)) for items in product(inner, repeat=length))
        return found

    def bounds(self) -> dict[str, Any]:
        """A definition per depth: the schema whose values are those of the universe."""
        scalars: list[Any] = []
        if self.integers:
            scalars.append({"type": "integer", "minimum": 0, "maximum": self.integers - 1})
        if self.strings:
            scalars.append({"enum": list(self.strings)})
        scalars += ({"const": value} for value in self.simple)
        found: dict[str, Any] = {}
        for depth in range(self.depth + 1):
            branches = list(scalars)
            if depth > 0:
                inner = {"$ref": f"#/$defs/bound{depth - 1}"}
                branches.append({"type": "array", "items": inner, "maxItems": self.most_items})
                properties = dict.fromkeys(self.keys, inner)
                branches.append({"type": "object", "properties": properties, "additionalProperties": False})
            found[f"bound{depth}"] = {"anyOf": branches}
        return found


def random_universe(rng: Random) -> Universe:
    """One of three kinds: flat and with long arrays, flat and with many keys, or nested."""
    kind = rng.choice(("arrays", "objects", "nested"))
    integers = rng.randint(1, 2 if kind == "nested" else 4)
    strings = tuple(rng.sample(STRINGS, rng.randint(0, 1 if kind == "nested" else 2)))
    simple = tuple(rng.sample((None, True, False), rng.randint(0, 1)))
    keys = tuple(rng.sample(KEYS, {"arrays": 1, "objects": 3, "nested": 2}[kind]))
    most_items = {"arrays": rng.randint(2, 3), "objects": 1, "nested": 2}[kind]
    return Universe(integers, strings, simple, keys, most_items, 2 if kind == "nested" else 1)


class Generator:
    """Random subschemas about the values of a universe."""

    def __init__(self, rng: Random, universe: Universe, *, draft_7: bool) -> None:
        self.rng = rng
        self.universe = universe
        self.draft_7 = draft_7

    def schema(self, depth: int, *, refer: bool = True) -> Any:
        """``refer``: may it refer to the definition that is being made, without descending into the value?"""
        rng = self.rng
        if rng.random() < 0.06:
            return rng.random() < 0.6
        schema: dict[str, Any] = {}
        for _ in range(rng.choice((1, 1, 2, 3))):
            schema.update(self.keywords(depth, refer=refer))
        return schema

    def keywords(self, depth: int, *, refer: bool) -> dict[str, Any]:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            if refer and rng.random() < 0.15:
                return {"$ref": "#/$defs/node"}
            return rng.choice(self.leaves())()
        about = rng.random()
        if about < 0.3:
            return rng.choice(self.combinations(lambda: self.schema(depth - 1, refer=refer)))()
        arrays = self.universe.most_items > 1 and (len(self.universe.keys) == 1 or rng.random() < 0.5)
        pool = self.array_keywords if arrays else self.object_keywords
        return rng.choice(pool(lambda: self.schema(depth - 1), lambda: self.schema(depth - 1, refer=refer)))()

    def scalar(self) -> Any:
        return self.rng.choice(self.universe.scalars())

    def value(self) -> Any:
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            return self.scalar()
        if kind < 0.8:
            return [self.scalar() for _ in range(rng.randint(0, 2))]
        return {key: self.scalar() for key in self.keys(2)}

    def keys(self, most: int) -> list[str]:
        return self.rng.sample(self.universe.keys, self.rng.randint(0, min(most, len(self.universe.keys))))

    def some_keys(self, most: int) -> list[str]:
        return self.keys(most) or [self.rng.choice(self.universe.keys)]

    def leaves(self) -> list[Callable[[], dict[str, Any]]]:
        rng = self.rng
        return [
            lambda: {"type": rng.choice(TYPES)},
            lambda: {"type": rng.sample(TYPES, 3)},
            lambda: {"enum": [self.value() for _ in range(rng.randint(1, 4))]},
            lambda: {"const": self.value()},
            lambda: {"minimum": rng.choice((0, 1, 1.5))},
            lambda: {"maximum": rng.choice((0, 1, 2))},
            lambda: {"multipleOf": rng.choice((0.5, 2, 3))},
            lambda: {"minLength": rng.randint(0, 2)},
            lambda: {"maxLength": rng.randint(0, 2)},
            lambda: {"pattern": rng.choice(PATTERNS)},
        ]

    def combinations(self, inner: Callable[[], Any]) -> list[Callable[[], dict[str, Any]]]:
        """Keywords by which schemas apply to the same value."""
        rng = self.rng

        def several() -> list[Any]:
            return [inner() for _ in range(rng.randint(1, 3))]

        def conditional() -> dict[str, Any]:
            branches = rng.choice((("then",), ("else",), ("then", "else")))
            return {"if": inner(), **{branch: inner() for branch in branches}}

        return [
            lambda: {"not": inner()},
            lambda: {"anyOf": several()},
            lambda: {"oneOf": several()},
            lambda: {"allOf": several()},
            conditional,
        ]

    def array_keywords(self, inner: Callable[[], Any], beside: Callable[[], Any]) -> list[Callable[[], dict[str, Any]]]:
        """Keywords for arrays; ``beside`` makes schemas that apply to the array itself."""
        rng = self.rng

        def contains() -> dict[str, Any]:
            bounds = {} if self.draft_7 else {"minContains": rng.randint(0, 2), "maxContains": rng.randint(0, 2)}
            return {"contains": inner(), **{name: bounds[name] for name in bounds if rng.random() < 0.5}}

        def prefix() -> dict[str, Any]:
            schemas = [inner() for _ in range(rng.randint(1, 3))]
            return {"items": schemas} if self.draft_7 else {"prefixItems": schemas}

        found: list[Callable[[], dict[str, Any]]] = [
            lambda: {"items": inner()},
            lambda: {"minItems": rng.randint(0, 3)},
            lambda: {"maxItems": rng.randint(0, 3)},
            lambda: {"uniqueItems": True},
            lambda: {"uniqueItems": True, "minItems": rng.randint(1, 2)},
            prefix,
            lambda: {**prefix(), "additionalItems" if self.draft_7 else "items": inner()},
            lambda: {**prefix(), "uniqueItems": True},
            contains,
            contains,
        ]
        if not self.draft_7:
            found += [
                lambda: {"unevaluatedItems": inner()},
                lambda: {"anyOf": [beside(), prefix()], "unevaluatedItems": rng.choice((False, inner()))},
                lambda: {**contains(), **prefix(), "unevaluatedItems": False},
            ]
        return found

    def object_keywords(
        self, inner: Callable[[], Any], beside: Callable[[], Any]
    ) -> list[Callable[[], dict[str, Any]]]:
        """Keywords for objects; ``beside`` makes schemas that apply to the object itself."""
        rng = self.rng

        def properties() -> dict[str, Any]:
            return {"properties": {key: inner() for key in self.some_keys(3)}}

        def names() -> dict[str, Any]:
            return rng.choice(({"maxLength": 1}, {"pattern": rng.choice(PATTERNS)}, {"enum": self.keys(2)}, inner()))

        def required_by() -> dict[str, Any]:
            return {key: self.keys(2) for key in self.some_keys(2)}

        def schemas_by() -> dict[str, Any]:
            return {key: beside() for key in self.some_keys(2)}

        found: list[Callable[[], dict[str, Any]]] = [
            properties,
            properties,
            lambda: {"required": self.keys(2)},
            lambda: {"additionalProperties": inner()},
            lambda: {**properties(), "additionalProperties": inner()},
            lambda: {"patternProperties": {pattern: inner() for pattern in rng.sample(PATTERNS, rng.randint(1, 2))}},
            lambda: {"propertyNames": names()},
            lambda: {"minProperties": rng.randint(0, 3)},
            lambda: {"maxProperties": rng.randint(0, 3)},
        ]
        if self.draft_7:
            return [*found, lambda: {"dependencies": {**required_by(), **schemas_by()}}]
        return [
            *found,
            lambda: {"dependentRequired": required_by()},
            lambda: {"dependentSchemas": schemas_by()},
            lambda: {"unevaluatedProperties": inner()},
            lambda: {"anyOf": [beside(), properties()], "unevaluatedProperties": rng.choice((False, inner()))},
            lambda: {"if": beside(), "then": properties(), "unevaluatedProperties": False},
        ]


def random_schema(rng: Random, universe: Universe) -> dict[str, Any]:
    """A schema whose values are some of the universe."""
    draft_7 = rng.random() < 0.15
    generator = Generator(rng, universe, draft_7=draft_7)
    schema = generator.schema(2)
    definitions = universe.bounds()
    definitions["node"] = generator.schema(1, refer=False)
    return {
        "$schema": DRAFT_7 if draft_7 else DRAFT_2020,
        "$defs": definitions,
        "allOf": [{"$ref": f"#/$defs/bound{universe.depth}"}, schema],
    }


def spellings(value: Any, *, any_order: bool) -> Iterator[str]:
    """The texts of a value without white space, with keys in the order they have, or in every order."""
    if isinstance(value, dict):
        for keys in permutations(value) if any_order else (tuple(value),):
            members = (list(spellings(value[key], any_order=any_order)) for key in keys)
            for texts in product(*members):
                yield "{" + ",".join(f'"{key}":{text}' for key, text in zip(keys, texts, strict=True)) + "}"
    elif isinstance(value, list):
        for texts in product(*(list(spellings(item, any_order=any_order)) for item in value)):
            yield "[" + ",".join(texts) + "]"
    elif isinstance(value, str):
        yield f'"{value}"'
    else:
        yield json.dumps(value)
