"""Whether a text is a JSON value that a schema allows: jsonschema, with exact numbers and patterns of ECMA-262.

Walks write numbers of hundreds of digits, more than a float holds. Python has another idea of what white space, digits
and letters are. Only ``unevaluatedProperties`` still looks at names with Python's expressions.
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import regress
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend, validator_for
from jsonschema_specifications import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_DIGITS = 10_000
"""Of a number with an exponent; far above what else an answer holds."""


def flaw(schema: Any, text: bytes) -> str:
    """Why a text is no value of the schema, formats included; empty if it is one."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        value = json.loads(text.decode(), parse_constant=refuse, parse_float=exact)
    except ValueError as why:
        return f"incomplete: {why}"
    rules = json.loads(json.dumps(schema), parse_float=Decimal)
    draft = validator_for(schema, default=Draft202012Validator)
    types = draft.TYPE_CHECKER.redefine("integer", is_integer)
    validator = extend(draft, KEYWORDS, type_checker=types)(
        rules, format_checker=draft.FORMAT_CHECKER, registry=REGISTRY
    )
    return next((f"invalid: {error.message[:200]}" for error in validator.iter_errors(value)), "")


def exact(text: str) -> Decimal:
    """A number that is not written as an integer."""
    number = Decimal(text)
    if abs(number.adjusted()) > MOST_DIGITS:
        raise ValueError(f"{text} is too large to be checked")
    return number


def is_integer(_: Any, value: Any) -> bool:
    """By value."""
    return value == value.to_integral_value() if isinstance(value, Decimal) else type(value) is int


def multiple_of(_: Any, of: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and Fraction(value) % Fraction(of):
        yield ValidationError(f"{value} is not a multiple of {of}")


@lru_cache(maxsize=1024)
def expression(pattern: str) -> regress.Regex:
    try:
        return regress.Regex(pattern, "u")
    except regress.RegressError:  # needless escapes, which only the older syntax has
        return regress.Regex(pattern)


def finds(pattern: str, text: str) -> bool:
    """Does the pattern match somewhere? A lone surrogate is taken as U+FFFD."""
    return expression(pattern).find(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")) is not None


def has_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not finds(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def pattern_properties(validator: Any, patterns: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    for pattern, schema in patterns.items() if isinstance(value, dict) else ():
        for name in value:
            if finds(pattern, name):
                yield from validator.descend(value[name], schema, path=name, schema_path=pattern)


def additional_properties(validator: Any, more: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    for name in value if isinstance(value, dict) else ():
        known = any(finds(pattern, name) for pattern in schema.get("patternProperties", ()))
        if not known and name not in schema.get("properties", ()):
            yield from validator.descend(value[name], more, path=name)


KEYWORDS = {
    "additionalProperties": additional_properties,
    "multipleOf": multiple_of,
    "pattern": has_pattern,
    "patternProperties": pattern_properties,
}
