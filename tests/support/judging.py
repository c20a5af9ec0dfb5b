"""An independent judge of texts against schemas: jsonschema, with numbers read every way that readers read them.

Tests and benchmarks share it. It differs from jsonschema in six points:

- A text is judged in three readings, see ``READINGS``. It is valid if it is valid in all of them.
- A number is a multiple of a divisor if the integer it is, or its shortest decimal, is one: jsonschema divides doubles,
  so that 0.3 is no multiple of 0.1. A double is one, too, if its exact value is.
- No format but those of patterns and JSON Pointers has a line break in it: for jsonschema, an email address
  may end in one.
- Patterns are those of ECMA-262, not Python's.
- Items that must be unique are compared in pairs: jsonschema sorts them, and 1 and true are neighbours then.
- ``unevaluatedItems``, ``unevaluatedProperties``, ``additionalItems`` are implemented here: jsonschema takes Python's
  patterns for them, and fails beside ``items`` that is true or false.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import Any

import jsonschema
import regress
from jsonschema._utils import equal
from jsonschema_specifications import REGISTRY
from referencing.jsonschema import lookup_recursive_ref

DRAFT_2020 = jsonschema.Draft202012Validator

MAX_EXPONENT = 10_000
"""The greatest exponent of a number that is judged as an exact decimal; with more, integers do not fit into memory."""

PLAIN_DIGITS = 15
"""Digits with which decimals and their doubles are in the same order and are the same multiples."""

_FORMATS_OF_LINES = {"regex", "json-pointer", "relative-json-pointer"}
"""Formats whose texts may have line breaks."""

_LONG_NUMBER = re.compile(rf"[0-9.]{{{PLAIN_DIGITS + 1}}}|[0-9][eE]")
"""Finds a number of more than ``PLAIN_DIGITS`` digits, or with an exponent (in strings, too: that costs time only)."""


# Texts of schemas and values.


def written(schema: object) -> str:
    """JSON text of a schema whose numbers may be decimals."""
    if isinstance(schema, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {written(value)}" for key, value in schema.items()) + "}"
    if isinstance(schema, list):
        return "[" + ", ".join(map(written, schema)) + "]"
    return str(schema) if isinstance(schema, Decimal) else json.dumps(schema)


def exact(text: str) -> Decimal:
    """The decimal that a number with a fraction or an exponent is."""
    number = Decimal(text)
    if abs(number.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"the exponent of {text:.40} is too large to be judged")
    return number


class Double(Decimal):
    """The shortest decimal with the same double as a number."""


def double(text: str) -> int | Decimal:
    """What a reader of doubles has: an integer, or the shortest decimal with the same double."""
    value = float(text)
    return int(value) if value.is_integer() else Double(repr(value))


READINGS: dict[str, dict[str, Any]] = {
    "decimals": {"parse_float": exact},
    "doubles": {"parse_float": double, "parse_int": double},
    "integers and doubles": {},
}
"""How the numbers of a schema and of a text are read: exactly, as JavaScript reads them, as Python's ``json`` does."""


def read(text: str, reading: str, *, keys_may_repeat: bool = False) -> Any:
    """The value of a text. Raises ValueError if it is no JSON, or an object has a key twice."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    pairs = dict if keys_may_repeat else _no_key_twice
    return json.loads(text, object_pairs_hook=pairs, parse_constant=refuse, **READINGS[reading])


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError(f"a key twice: {pairs}")
    return dict(pairs)


def is_plain(text: str) -> bool:
    """Whether all readings of a text are the same for a judge: decimals of few digits, without exponents."""
    return _LONG_NUMBER.search(text) is None


# The judge.


class Judge:
    """A schema, ready to judge many texts. ``formats``: whether formats are asserted, which they are in every draft."""

    def __init__(self, schema: object, *, formats: bool = True, keys_may_repeat: bool = False) -> None:
        """``schema``: its text, or its value; floats in it stand for their shortest decimals."""
        text = schema if isinstance(schema, str) else written(schema)
        self.keys_may_repeat = keys_may_repeat
        self.validators = {
            reading: _validator(read(text, reading, keys_may_repeat=True), formats) for reading in READINGS
        }
        base = self.validators["decimals"].__class__
        is_by_spelling = not base.TYPE_CHECKER.is_type(Decimal("2.0"), "integer")  # draft 4
        self.needs_all = is_by_spelling or not is_plain(text)

    def errors(self, text: str) -> dict[str, str]:
        """What is against a text, by reading; empty if nothing is. Raises ValueError if it is no JSON."""
        found = {}
        for reading, validator in self.validators.items():
            value = read(text, reading, keys_may_repeat=self.keys_may_repeat)
            error = next(validator.iter_errors(value), None)
            if error is not None:
                found[reading] = f"{error.json_path}, read as {reading}: {error.message}"
            if not self.needs_all and is_plain(text):
                return dict.fromkeys(READINGS, found[reading]) if found else {}
        return found

    def error(self, text: str) -> str | None:
        """What is against a text in the first reading in which anything is."""
        return next(iter(self.errors(text).values()), None)


@lru_cache(maxsize=32)
def _judge(text: str) -> Judge:
    return Judge(text)


def validation_error(schema: object, text: bytes) -> str | None:
    """What the judge has against a text, formats asserted; None if it is valid in every reading."""
    return _judge(written(schema)).error(text.decode("utf-8"))


def require_valid(schema: object, text: str) -> None:
    """Requires that a text is valid in every reading."""
    error = validation_error(schema, text.encode())
    assert error is None, f"{text}: {error}"


def _validator(schema: Any, formats: bool) -> Any:
    base = jsonschema.validators.validator_for(schema, default=DRAFT_2020)
    checker = _format_checker() if formats else None
    return _validator_class(base)(schema, format_checker=checker, registry=REGISTRY)


@cache
def _format_checker() -> jsonschema.FormatChecker:
    checker = jsonschema.FormatChecker(())
    checker.checkers = dict(DRAFT_2020.FORMAT_CHECKER.checkers)
    for name in checker.checkers.keys() - _FORMATS_OF_LINES:
        check, raises = checker.checkers[name]
        checker.checkers[name] = partial(_is_line_and, check), raises
    return checker


def _is_line_and(check: Any, instance: object) -> bool:
    return not (isinstance(instance, str) and "\n" in instance) and bool(check(instance))


@cache
def _validator_class(base: Any) -> Any:
    checker = base.TYPE_CHECKER.redefine("number", _is_number)
    if base is not jsonschema.Draft4Validator:
        checker = checker.redefine("integer", _is_integer)
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
    }
    if "additionalItems" in base.VALIDATORS:
        keywords["additionalItems"] = _additional_items
    if "unevaluatedItems" in base.VALIDATORS:
        unevaluated = {"unevaluatedItems": _unevaluated_items, "unevaluatedProperties": _unevaluated_properties}
        keywords.update(unevaluated)
    return jsonschema.validators.extend(base, keywords, type_checker=checker)


# Keywords.


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> regress.Regex:
    try:
        return regress.Regex(pattern, "u")
    except regress.RegressError:  # escapes that mean the character itself, which only the older syntax has
        return regress.Regex(pattern)


def finds(pattern: str, text: str) -> bool:
    """Whether a pattern matches somewhere. A lone surrogate is taken as U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _regex(pattern).find(text) is not None


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not finds(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    for pattern, schema in patterns.items() if isinstance(instance, dict) else ():
        for key, value in instance.items():
            if finds(pattern, key):
                yield from validator.descend(value, schema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, additional: Any, instance: Any, schema: Any) -> Iterator[Any]:
    patterns = schema.get("patternProperties", ())
    for key, value in instance.items() if isinstance(instance, dict) else ():
        if key not in schema.get("properties", ()) and not any(finds(pattern, key) for pattern in patterns):
            yield from validator.descend(value, additional, path=key)


def _multiple_of(_validator: Any, divisor: Any, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if _is_number(None, instance) and not is_multiple(instance, divisor):
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {divisor}")


def is_multiple(value: float | Decimal, divisor: float | Decimal) -> bool:
    """Whether a number is a multiple: the integer it is, its shortest decimal, or the double it is exactly."""
    if not is_finite(value):
        return False
    step = _fraction(divisor)
    if _fraction(value) % step == 0:
        return True
    return isinstance(value, float | Double) and Fraction(float(value)) % step == 0


def _fraction(value: float | Decimal) -> Fraction:
    if isinstance(value, float):
        return Fraction(int(value)) if value.is_integer() else Fraction(repr(value))
    return Fraction(value)


def is_finite(value: float | Decimal) -> bool:
    """Whether a number is none of the infinities, as which doubles read what is too large for them."""
    return isinstance(value, int) or (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value))


def _unique_items(_validator: Any, is_unique: Any, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if is_unique and isinstance(instance, list) and any(equal(one, two) for one, two in combinations(instance, 2)):
        yield jsonschema.ValidationError(f"{instance} has items that are equal")


def _additional_items(validator: Any, additional: Any, instance: Any, schema: Any) -> Iterator[Any]:
    items = schema.get("items")
    if isinstance(instance, list) and isinstance(items, list):
        for index, item in enumerate(instance[len(items) :], start=len(items)):
            yield from validator.descend(item, additional, path=index)


def _unevaluated_items(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, list):
        evaluated = _evaluated(validator, instance, _without(schema, "unevaluatedItems"))
        for index, item in enumerate(instance):
            if index not in evaluated:
                yield from validator.descend(item, inner, path=index)


def _unevaluated_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        evaluated = _evaluated(validator, instance, _without(schema, "unevaluatedProperties"))
        for key, value in instance.items():
            if key not in evaluated:
                yield from validator.descend(value, inner, path=key)


def _without(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != keyword}


def _evaluated(validator: Any, instance: Any, schema: Any) -> set[Any]:
    """The keys or indices of an instance, valid under a schema, that the schema says something about."""
    if isinstance(schema, bool):
        return set()
    items = _evaluated_items if isinstance(instance, list) else _evaluated_keys
    found = items(validator, instance, schema)
    for inner, other in _in_place(validator, instance, schema):
        if inner.is_valid(instance):
            found |= _evaluated(inner, instance, other)
    return found


def _in_place(validator: Any, instance: Any, schema: Any) -> Iterator[tuple[Any, Any]]:
    """The schemas that apply to the same instance, each with its validator. They need not hold."""
    resolver = validator._resolver
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            is_recursive = keyword == "$recursiveRef"
            found = lookup_recursive_ref(resolver) if is_recursive else resolver.lookup(schema[keyword])
            yield validator.evolve(schema=found.contents, _resolver=found.resolver), found.contents
    others = [each for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword, ())]
    if "if" in schema:
        others.append(schema["if"])
        branch = "then" if validator.evolve(schema=schema["if"]).is_valid(instance) else "else"
        others += [schema[branch]] if branch in schema else []
    dependent = schema.get("dependentSchemas", {}) if isinstance(instance, dict) else {}
    others += [inner for key, inner in dependent.items() if key in instance]
    for other in others:
        yield validator.evolve(schema=other), other


def _evaluated_items(validator: Any, instance: Any, schema: Any) -> set[Any]:
    prefix, items = schema.get("prefixItems", ()), schema.get("items")
    everything = "unevaluatedItems" in schema
    if validator.META_SCHEMA["$id"] == jsonschema.Draft201909Validator.META_SCHEMA["$id"]:
        prefix, items = (items, schema.get("additionalItems")) if isinstance(items, list) else ((), items)
        contains = None
    else:
        contains = schema.get("contains")
    if everything or items is not None:
        return set(range(len(instance)))
    found = set(range(len(prefix)))
    if contains is not None:
        matches = validator.evolve(schema=contains).is_valid
        found |= {index for index, item in enumerate(instance) if matches(item)}
    return found


def _evaluated_keys(_validator: Any, instance: Any, schema: Any) -> set[Any]:
    if not isinstance(instance, dict):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    patterns = schema.get("patternProperties", ())
    return {
        key for key in instance if key in schema.get("properties", ()) or any(finds(each, key) for each in patterns)
    }


def _is_number(_checker: Any, instance: Any) -> bool:
    return isinstance(instance, int | float | Decimal) and not isinstance(instance, bool)


def _is_integer(_checker: Any, instance: Any) -> bool:
    return _is_number(_checker, instance) and is_finite(instance) and instance == int(instance)
