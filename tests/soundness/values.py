"""Texts for a schema: values made to fit it, or nearly, and spelled in many ways."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from random import Random
from typing import Any

from tests.soundness.schemas import FORMATS, KEYS, NUMBERS, PATTERNS

_SHORT = Context(prec=25)

MAX_DIGITS = 400
"""Digits of the longest number that is written in full; with an exponent beyond."""

MAX_MANTISSA = 18
"""Digits of the longest number that is written with an exponent."""


def constants(schema: Any) -> Iterator[Decimal]:
    """All numbers in a schema, the sizes of strings, arrays and objects among them."""
    if isinstance(schema, dict):
        for value in schema.values():
            yield from constants(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from constants(value)
    elif isinstance(schema, int | Decimal) and not isinstance(schema, bool):
        yield Decimal(schema)


def near(rng: Random, number: Decimal) -> Decimal:
    """A number near another, near its double, or near the end of what reads as that."""
    with localcontext() as context:
        context.prec = 120
        kind = rng.random()
        if kind < 0.35:
            return number
        if kind < 0.5:
            return number + rng.choice((-1, 1, Decimal("0.5"), Decimal("-0.1")))
        here = float(number)
        if not math.isfinite(here) or (not number and kind < 0.72):
            return number
        below, above = math.nextafter(here, -math.inf), math.nextafter(here, math.inf)
        if kind < 0.75 and math.isfinite(below) and math.isfinite(above):
            exact = [Decimal(here), Decimal(below), Decimal(above)]
            ends = [(exact[0] + exact[1]) / 2, (exact[0] + exact[2]) / 2]
            shortest = [Decimal(repr(here)), Decimal(repr(below)), Decimal(repr(above))]
            found = rng.choice((*exact, *ends, *shortest, *shortest))
            return found if len(found.as_tuple().digits) < 60 else _SHORT.plus(found)
        digits = rng.choice((1, 2, 5, 14, 15, 16, 17, 18, 20, 25, 30))
        return number + rng.choice((-1, 1)) * _unit(number, digits)


def _unit(number: Decimal, digits: int) -> Decimal:
    return Decimal(10) ** (number.adjusted() - digits if number else -digits)


def number_text(rng: Random, number: Decimal, *, plainly: bool) -> str:
    """A spelling of a number; ``plainly``: as ``json.dumps`` writes an integer, or a decimal without exponent."""
    if abs(number.adjusted()) > MAX_DIGITS:
        return str(number)
    whole = number == number.to_integral_value()
    if number.is_zero():
        text = "0"
    elif whole:
        text = f"{number.to_integral_value():f}"
    else:
        text = f"{number.normalize():f}"
    if plainly:
        return text
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    if len(digits) > MAX_MANTISSA or number.is_zero():
        return rng.choice((text, f"{text}0" if "." in text else f"{text}.0"))
    mantissa = ("-" if number < 0 else "") + "".join(map(str, digits))
    ways = [text if "." in text else f"{text}.0", f"{text}0" if "." in text else f"{text}.00", f"{number:e}", text]
    ways += [f"{text}e0", f"{mantissa}e{exponent}", f"{mantissa}00E{exponent - 2}", f"{mantissa}0e{exponent - 1:+}"]
    return rng.choice(ways)


class Values:
    """Makes values and texts for one schema."""

    def __init__(self, rng: Random, schema: dict[str, Any], *, plainly: bool) -> None:
        """``plainly``: with the spellings that every policy allows, but for some of the numbers."""
        self.rng = rng
        self.document = schema
        self.plainly = plainly
        self.constants = [*constants(schema), *NUMBERS[:6]]

    def text(self) -> str:
        """The text of a value that fits or nearly, or of any."""
        rng = self.rng
        kind = rng.random()
        value = self.fitting(self.document, 4) if kind < 0.8 else self.anything(2)
        if kind > 0.45:
            for _ in range(rng.randint(1, 2)):
                value = self.changed(value)
        return self.spelled(value)

    # Spellings

    def spelled(self, value: Any) -> str:
        rng = self.rng
        comma, colon = (", ", ": ") if self.plainly or rng.random() < 0.7 else (",", ":")
        if isinstance(value, dict):
            members = [f"{json.dumps(k, ensure_ascii=False)}{colon}{self.spelled(v)}" for k, v in value.items()]
            if not self.plainly and rng.random() < 0.3:
                rng.shuffle(members)
            return "{" + comma.join(members) + "}"
        if isinstance(value, list):
            return "[" + comma.join(map(self.spelled, value)) + "]"
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return number_text(rng, Decimal(value), plainly=rng.random() < (0.9 if self.plainly else 0.6))
        return json.dumps(value, ensure_ascii=False)

    # Values

    def number(self) -> Decimal:
        rng = self.rng
        if rng.random() < 0.1:
            return Decimal(rng.randrange(10 ** rng.randrange(1, 20))) / rng.choice((1, 1, 10, 100, 8))
        return near(rng, rng.choice(self.constants))

    def string(self) -> str:
        rng = self.rng
        pool = rng.choice(
            (("", "a", "b", "ab", "é", "\n", "\r", "😀", 'q"', "\\", "a b"), *PATTERNS.values(), *FORMATS.values())
        )
        return rng.choice(pool)

    def anything(self, depth: int) -> Any:
        rng = self.rng
        kind = rng.random()
        if depth and kind < 0.2:
            return [self.anything(depth - 1) for _ in range(rng.randrange(4))]
        if depth and kind < 0.4:
            return {key: self.anything(depth - 1) for key in rng.sample(KEYS, rng.randrange(4))}
        if kind < 0.7:
            return self.number()
        return rng.choice((None, True, False, self.string(), self.string(), self.string()))

    def changed(self, value: Any) -> Any:
        """The value with something in it replaced, added, left out or doubled."""
        rng = self.rng
        if isinstance(value, list) and value and rng.random() < 0.85:
            at = rng.randrange(len(value))
            return rng.choice(
                (
                    [*value[:at], self.changed(value[at]), *value[at + 1 :]],
                    [*value[:at], self.changed(value[at]), *value[at + 1 :]],
                    [*value[:at], *value[at + 1 :]],
                    [*value[:at], value[at], *value[at:]],
                    [*value, self.anything(1)],
                )
            )
        if isinstance(value, dict) and rng.random() < 0.85:
            key = rng.choice(list(value) or KEYS)
            rest = {name: item for name, item in value.items() if name != key}
            return rng.choice(
                (
                    {**value, key: self.changed(value.get(key))},
                    {**value, key: self.changed(value.get(key))},
                    rest,
                    {**value, rng.choice(KEYS): self.anything(1)},
                )
            )
        if isinstance(value, str) and rng.random() < 0.6:
            return rng.choice((value + "a", value[1:], value + "1", value.upper(), value + "\n"))
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and rng.random() < 0.8:
            return near(rng, Decimal(value))
        return self.anything(1)

    # Values that fit

    def fitting(self, schema: Any, depth: int) -> Any:
        rng = self.rng
        if isinstance(schema, bool) or not schema or depth < 0:
            return self.anything(max(0, min(depth, 1)))
        if "$ref" in schema:
            return self.fitting(self.resolved(schema["$ref"]), depth - 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                rest = {name: value for name, value in schema.items() if name != keyword}
                return self.fitting(merged(rest, rng.choice(schema[keyword])), depth)
        if "allOf" in schema:
            rest = {name: value for name, value in schema.items() if name != "allOf"}
            for each in schema["allOf"]:
                refers = isinstance(each, dict) and "$ref" in each
                rest = merged(rest, self.resolved(each["$ref"]) if refers else each)
            return self.fitting(rest, depth - 1)
        if "if" in schema:
            rest = {name: value for name, value in schema.items() if name not in ("if", "then", "else")}
            if rng.random() < 0.5:
                return self.fitting(merged(merged(rest, schema["if"]), schema.get("then", {})), depth)
            return self.fitting(merged(rest, schema.get("else", {})), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        return self.of_type(schema, depth)

    def resolved(self, reference: str) -> Any:
        found: Any = self.document
        for part in reference.split("/")[1:]:
            found = found[part]
        return found

    def of_type(self, schema: dict[str, Any], depth: int) -> Any:
        rng = self.rng
        kinds = schema.get("type")
        if kinds is None:
            hints = [kind for kind, names in _HINTS.items() if names & schema.keys()]
            kinds = hints or list(_HINTS)
        kind = kinds if isinstance(kinds, str) else rng.choice(kinds)
        if kind in ("integer", "number"):
            return self.fitting_number(schema, whole=kind == "integer")
        if kind == "string":
            return self.fitting_string(schema)
        if kind == "array":
            return self.fitting_array(schema, depth)
        if kind == "object":
            return self.fitting_object(schema, depth)
        return None if kind == "null" else rng.random() < 0.5

    def fitting_number(self, schema: dict[str, Any], *, whole: bool) -> Decimal:
        rng = self.rng
        bounds = [Decimal(schema[name]) for name in _BOUNDS if not isinstance(schema.get(name, True), bool)]
        with localcontext() as context:
            context.prec = 800
            number = near(rng, rng.choice(bounds)) if bounds else self.number()
            if len(bounds) > 1 and rng.random() < 0.5:
                number = (min(bounds) + max(bounds)) / 2
            if "multipleOf" in schema and rng.random() < 0.9:
                step = Decimal(schema["multipleOf"])
                number = (number / step).to_integral_value() * step + rng.choice((-1, 0, 0, 0, 1)) * step
            elif whole and rng.random() < 0.9:
                number = number.to_integral_value()
            elif len(number.as_tuple().digits) > 40:
                number = _SHORT.plus(number)
        return number

    def fitting_string(self, schema: dict[str, Any]) -> str:
        rng = self.rng
        if "pattern" in schema:
            text = rng.choice(PATTERNS[schema["pattern"]])
        elif "format" in schema:
            text = rng.choice(FORMATS[schema["format"]])
        else:
            text = self.string()
            text += "ab😀c"[: max(0, int(schema.get("minLength", 0)) - len(text))]
        return text[: int(schema["maxLength"])] if "maxLength" in schema and rng.random() < 0.8 else text

    def fitting_array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        rng = self.rng
        items = schema.get("items", {})
        prefix = schema.get("prefixItems", items if isinstance(items, list) else [])
        more = schema.get("additionalItems", {}) if isinstance(items, list) else items
        least = int(schema.get("minItems", 0))
        most = int(schema.get("maxItems", max(least, len(prefix)) + 2))
        if more is False:
            most = min(most, len(prefix))
        schemas = [*prefix, *[more] * 4][: rng.randint(least, max(least, most))]
        if schemas and "contains" in schema:
            for _ in range(int(schema.get("minContains", 1)) or rng.randrange(2)):
                at = rng.randrange(len(schemas))
                schemas[at] = merged(schemas[at], schema["contains"])
        return [self.fitting(each, depth - 1) for each in schemas]

    def fitting_object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        rng = self.rng
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        required = schema.get("required", [])
        names = [name for name in properties if name in required or rng.random() < 0.5]
        names += [name for name in required if name not in properties]
        for name in list(names):
            names += schema.get("dependentRequired", {}).get(name, ())
        value = {name: self.fitting(properties.get(name, {}), depth - 1) for name in names}
        for pattern, inner in patterns.items():
            if rng.random() < 0.5:
                value.setdefault(rng.choice(PATTERNS[pattern]), self.fitting(inner, depth - 1))
        more = schema.get("additionalProperties", schema.get("unevaluatedProperties", {}))
        while more is not False and (len(value) < int(schema.get("minProperties", 0)) or rng.random() < 0.3):
            value.setdefault(rng.choice(KEYS), self.fitting(more, depth - 1))
        return value


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

_HINTS = {
    "number": {*_BOUNDS, "multipleOf"},
    "string": {"minLength", "maxLength", "pattern", "format"},
    "array": {
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
        "unevaluatedItems",
    },
    "object": {
        *("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
        *("propertyNames", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    },
}
"""The keywords that are about values of a type."""


def merged(one: Any, other: Any) -> Any:
    """A schema with the keywords of both: those of ``other`` where one must give way."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other if isinstance(one, bool) or other is False else one
    found = {**one, **other}
    for name in ("properties", "patternProperties"):
        if name in one and name in other:
            found[name] = {**one[name], **other[name]}
    for name in ("required", "allOf"):
        if name in one and name in other:
            found[name] = [*one[name], *other[name]]
    return found
