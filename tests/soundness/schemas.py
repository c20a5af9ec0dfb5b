"""Random schemas of five drafts, over all keywords that the compiler takes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

DRAFTS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
KEYS = ("a", "b", "ab", "c", "", "é", 'q"', "a b")

PATTERNS: dict[str, tuple[str, ...]] = {
    "^a": ("a", "ab", "aa b"),
    "b$": ("b", "ab", "éb"),
    "^[ab]*$": ("", "a", "abba"),
    "^.$": ("a", "é", "😀"),
    "a.*b": ("ab", "xaéb"),
    "^(?!a)": ("", "b", "ba"),
    "[^a]": ("b", "ab", "é"),
    "^$": ("",),
    r"^\d{2,3}$": ("12", "007"),
    r"\w+\s\w+": ("a b", "x y z"),
    "^(ab|c)+$": ("ab", "c", "abcab"),
    "^[a-c]{1,4}(-[0-9]+)?$": ("a", "abc-1", "cc-40"),
}
"""Patterns, with texts that match."""

FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2024-02-29", "1999-12-31"),
    "time": ("12:00:00Z", "23:59:59.5+01:00"),
    "date-time": ("2024-02-29T12:00:00Z", "1999-12-31T23:59:59.123-05:00"),
    "ipv4": ("127.0.0.1", "255.255.255.255"),
    "ipv6": ("::1", "2001:db8::1"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
    "email": ("a@b.example", "joe.bloggs@example.com"),
    "duration": ("P1D", "PT5M", "P3Y6M4DT12H30M5S"),
}
"""Formats, with texts that have them."""


def decimals(text: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, text.split()))


NUMBERS = decimals("0 1 2 3 -1 10 100 7 0.5 1.5 2.5 -0.5 0.1 0.3 0.01 4.2")
EDGES = decimals(
    "9007199254740991 9007199254740992 9007199254740993 -9007199254740993 1234567890123456789 9223372036854775807 "
    "18446744073709551616 1e22 1e23 1e300 1e308 1.7976931348623157e308 5e-324 2.5e-310 1e-7 2.2250738585072014e-308 "
    "0.30000000000000004 0.1000000000000000055 0.3000000000000000000001 123456.789 9007199254740993.5 1e-30 "
    "99999999999999999999 0.99999999999999999999 4503599627370496.5 -1e23"
)
"""Constants near the limits of doubles."""

DIVISORS = decimals("0.1 0.01 3 2 0.5 7 1 0.3 1.5 1000 10 0.25 1e-7 12")

RARELY = 0.12
"""The share of number constants that are from ``EDGES``."""


def plain(number: Decimal) -> Decimal | int:
    """An integer where a number is one and is written as such."""
    return int(number) if number == number.to_integral_value() and number.adjusted() < 25 else number


class Schemas:
    """Makes schemas of one draft."""

    def __init__(self, rng: Random, draft: int) -> None:
        self.rng = rng
        self.draft = draft
        self.definitions = "$defs" if draft >= 2019 else "definitions"
        self.names = ["d", "e"] if rng.random() < 0.5 else []

    def document(self) -> dict[str, Any]:
        """A whole schema, with definitions that may refer to themselves."""
        rng = self.rng
        schema = self.schema(rng.choice((1, 2, 2, 3)))
        found: dict[str, Any] = {"$schema": DRAFTS[self.draft]}
        if self.names:
            found[self.definitions] = {name: self.definition() for name in self.names}
        if isinstance(schema, dict) and not ("$ref" in schema and self.draft <= 7):
            return {**found, **schema}
        return {**found, "allOf": [schema]}

    def definition(self) -> Any:
        """A schema that may contain itself, under a key or as an item."""
        rng = self.rng
        if rng.random() < 0.5:
            return self.schema(1)
        itself = {"$ref": f"#/{self.definitions}/{rng.choice(self.names)}"}
        kind = rng.choice(
            (
                {"type": "object", "properties": {"a": itself, "b": self.schema(0)}},
                {"type": "array", "items": itself, "maxItems": rng.randint(1, 3)},
                {"anyOf": [self.schema(0), {"type": "array", "items": itself}]},
                {
                    "type": ["object", "null"],
                    "properties": {"a": itself},
                    "required": ["a"],
                    "additionalProperties": False,
                },
            )
        )
        return dict(kind)

    def schema(self, depth: int) -> Any:
        rng = self.rng
        if rng.random() < 0.05:
            return {} if self.draft == 4 else rng.random() < 0.75
        if rng.random() < 0.45:
            return self.of_one_type(depth)
        schema: dict[str, Any] = {}
        for _ in range(rng.choice((1, 1, 2, 3))):
            schema.update(self.keywords(depth))
        return schema

    def several(self, depth: int, most: int = 3) -> list[Any]:
        return [self.schema(depth) for _ in range(self.rng.randint(1, most))]

    # Numbers

    def number(self) -> Decimal | int:
        rng = self.rng
        return plain(rng.choice(EDGES if rng.random() < RARELY else NUMBERS))

    def bounds(self) -> dict[str, Any]:
        """One or two bounds, in ascending order most times."""
        rng = self.rng
        low, high = sorted((self.number(), self.number()))
        if rng.random() < 0.1:
            low, high = high, low
        if self.draft == 4:
            found: dict[str, Any] = {"minimum": low, "maximum": high}
            if rng.random() < 0.4:
                found["exclusiveMinimum"] = rng.random() < 0.7
            if rng.random() < 0.4:
                found["exclusiveMaximum"] = rng.random() < 0.7
            return found
        names = [rng.choice(("minimum", "exclusiveMinimum")), rng.choice(("maximum", "exclusiveMaximum"))]
        found = dict(zip(names, (low, high), strict=True))
        if rng.random() < 0.5:
            found.pop(rng.choice(names))
        return found

    def numeric(self) -> dict[str, Any]:
        rng = self.rng
        found = self.bounds() if rng.random() < 0.75 else {}
        if not found or rng.random() < 0.25:
            found["multipleOf"] = plain(rng.choice(DIVISORS))
        return found

    # Values

    def value(self, depth: int = 1) -> Any:
        rng = self.rng
        kind = rng.random()
        if depth and kind < 0.15:
            return [self.value(depth - 1) for _ in range(rng.randrange(3))]
        if depth and kind < 0.3:
            return {key: self.value(depth - 1) for key in rng.sample(KEYS, rng.randrange(3))}
        if kind < 0.65:
            return self.number()
        texts = ("", "a", "b", "ab", "é", "12", "\n", 'q"', "😀", "2024-02-29")
        return rng.choice((None, True, False, *texts))

    # Keywords

    def of_one_type(self, depth: int) -> dict[str, Any]:
        """A schema as people write them: a type, and keywords for it."""
        rng = self.rng
        kind = rng.choice(("integer", "number", "number", "string", "array", "object", "object"))
        found: dict[str, Any] = {"type": kind if rng.random() < 0.85 else [kind, rng.choice(TYPES[:2])]}
        if kind in ("integer", "number"):
            return {**found, **self.numeric()}
        if kind == "string":
            return {**found, **self.text()}
        for _ in range(rng.choice((1, 2, 2, 3))):
            found.update(self.array(depth) if kind == "array" else self.object(depth))
        return found

    def text(self) -> dict[str, Any]:
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            low = rng.randrange(4)
            return rng.choice(({"minLength": low}, {"maxLength": low}, {"minLength": low, "maxLength": low + 2}))
        if kind < 0.8:
            found: dict[str, Any] = {"pattern": rng.choice(tuple(PATTERNS))}
            return {**found, "maxLength": rng.randint(1, 6)} if rng.random() < 0.3 else found
        return {"format": rng.choice(tuple(FORMATS))}

    def keywords(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        kind = rng.random()
        if depth == 0 or kind < 0.35:
            return self.leaf()
        if kind < 0.6:
            return self.combination(depth)
        return self.array(depth) if kind < 0.75 else self.object(depth)

    def leaf(self) -> dict[str, Any]:
        rng = self.rng
        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: {"type": rng.choice(TYPES)},
            lambda: {"type": rng.sample(TYPES, rng.randint(2, 3))},
            lambda: {"enum": self.distinct([self.value() for _ in range(rng.randint(1, 5))])},
            self.numeric,
            self.numeric,
            self.text,
            lambda: {"minItems": rng.randrange(3)},
            lambda: {"required": rng.sample(KEYS, rng.randint(1, 2))},
            lambda: {"maxProperties": rng.randrange(3)},
        ]
        if self.draft > 4:
            kinds.append(lambda: {"const": self.value()})
        if self.names:
            kinds.append(lambda: {"$ref": f"#/{self.definitions}/{rng.choice(self.names)}"})
        return rng.choice(kinds)()

    def distinct(self, values: list[Any]) -> list[Any]:
        """Values of which no two are equal, as metaschemas want those of ``enum``."""
        return list({repr(value): value for value in values}.values())

    def combination(self, depth: int) -> dict[str, Any]:
        rng = self.rng

        def inner() -> Any:
            return self.schema(depth - 1)

        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: {"anyOf": self.several(depth - 1)},
            lambda: {"oneOf": self.several(depth - 1)},
            lambda: {"allOf": self.several(depth - 1)},
            lambda: {"not": inner()},
        ]
        if self.draft >= 7:
            kinds += [
                lambda: {"if": inner(), "then": inner()},
                lambda: {"if": inner(), "else": inner()},
                lambda: {"if": inner(), "then": inner(), "else": inner()},
            ]
        return rng.choice(kinds)()

    def array(self, depth: int) -> dict[str, Any]:
        rng, draft = self.rng, self.draft
        depth = max(depth, 1)

        def inner() -> Any:
            return self.schema(depth - 1)

        def prefix() -> dict[str, Any]:
            schemas = self.several(depth - 1)
            found = {"prefixItems" if draft >= 2020 else "items": schemas}
            if rng.random() < 0.5:
                found["items" if draft >= 2020 else "additionalItems"] = inner() if rng.random() < 0.6 else self.none()
            return found

        def contains() -> dict[str, Any]:
            found = {"contains": inner()}
            if draft >= 2019:
                for name in rng.sample(("minContains", "maxContains"), rng.randrange(3)):
                    found[name] = rng.randrange(3)
            return found

        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: {"items": inner()},
            lambda: {"items": inner()},
            lambda: {"minItems": rng.randrange(3)},
            lambda: {"maxItems": rng.randrange(4)},
            lambda: {"minItems": 1, "maxItems": rng.randint(1, 3)},
            lambda: {"uniqueItems": True},
            lambda: {"uniqueItems": True, "items": self.schema(0)},
            prefix,
            prefix,
        ]
        if draft > 4:
            kinds += [contains, contains]
        if draft >= 2019:
            kinds += [
                lambda: {"unevaluatedItems": rng.choice((False, inner()))},
                lambda: {"anyOf": [{**prefix()}, inner()], "unevaluatedItems": False},
            ]
        return rng.choice(kinds)()

    def none(self) -> Any:
        return False if self.draft > 4 else {"not": {}}

    def object(self, depth: int) -> dict[str, Any]:
        rng, draft = self.rng, self.draft
        depth = max(depth, 1)

        def inner() -> Any:
            return self.schema(depth - 1)

        def some(most: int) -> list[str]:
            return rng.sample(KEYS, rng.randint(1, most))

        def properties() -> dict[str, Any]:
            return {"properties": {key: inner() for key in some(4)}}

        def required() -> dict[str, Any]:
            found = properties()
            names = list(found["properties"])
            return {**found, "required": rng.sample(names, rng.randint(1, len(names)))}

        kinds: list[Callable[[], dict[str, Any]]] = [
            properties,
            required,
            required,
            lambda: {**required(), "additionalProperties": False},
            lambda: {"additionalProperties": inner()},
            lambda: {"patternProperties": {each: inner() for each in rng.sample(tuple(PATTERNS), rng.randint(1, 2))}},
            lambda: {"minProperties": rng.randint(1, 2)},
            lambda: {"maxProperties": rng.randrange(4)},
        ]
        if draft > 4:
            kinds.append(lambda: {"propertyNames": rng.choice((self.text(), {"enum": some(3)}, inner()))})
        if draft <= 7:
            kinds.append(lambda: {"dependencies": {key: rng.choice((some(2), inner())) for key in some(2)}})
        if draft >= 2019:
            kinds += [
                lambda: {"dependentRequired": {key: some(2) for key in some(2)}},
                lambda: {"dependentSchemas": {key: inner() for key in some(2)}},
                lambda: {"unevaluatedProperties": rng.choice((False, inner()))},
                lambda: {"anyOf": [properties(), inner()], "unevaluatedProperties": False},
                lambda: {"if": inner(), "then": properties(), "else": inner(), "unevaluatedProperties": False},
            ]
        return rng.choice(kinds)()


def random_schema(rng: Random) -> dict[str, Any]:
    """A schema of a random draft."""
    return Schemas(rng, rng.choice(tuple(DRAFTS))).document()
