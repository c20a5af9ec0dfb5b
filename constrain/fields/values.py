"""Members of an object with their types and ranges, and OpenAI's words for their errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from constrain.generation.exclusions import broken_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class FieldError(ValueError):
    """A field with a wrong value, or without one that it must have.

    Attributes:
        message: one or more sentences for the author of the object.
        param: place of the field, such as ``stop[2]``.
        code: name of the error for programs, as at OpenAI.
    """

    def __init__(self, message: str, *, param: str, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.message, self.param, self.code)


def _unpickle(message: str, param: str, code: str) -> FieldError:
    return FieldError(message, param=param, code=code)


def refuse_together(**given: object) -> None:
    """Raises ``FieldError`` for the first rule of fields that options break; ``given``: as for ``broken_rules``."""
    for rule, message in broken_rules("field", given):
        raise FieldError(message, param=rule.option.partition(" ")[0], code=rule.code)


_CONTAINERS = (dict, list)


def is_nested_deeper(value: object, levels: int) -> bool:
    """Returns whether a JSON value has more than ``levels`` levels of objects and arrays, without recursion."""
    containers = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(levels):
        containers = [
            inner
            for outer in containers
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS)
        ]
        if not containers:
            return False
    return bool(containers)


def type_name(value: object) -> str:
    """Returns the name of a JSON value's type for a sentence."""
    if isinstance(value, bool):
        return "a boolean"
    if value is None:
        return "null"
    names = {str: "a string", int: "an integer", float: "a decimal", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def invalid(param: str, problem: str) -> FieldError:
    """Returns the error for a wrong value. ``problem``: the rest of the sentence, and maybe more."""
    return FieldError(f"Invalid '{param}': {problem}", param=param)


def wrong_type(param: str, expected: str, value: object) -> FieldError:
    """Returns the error for a value of a wrong type."""
    return FieldError(
        f"Invalid type for '{param}': expected {expected}, but got {type_name(value)} instead.",
        param=param,
        code="invalid_type",
    )


def one_of(value: object, supported: Sequence[str], param: str) -> str:
    """Returns the value if it is one of the supported texts; otherwise raises ``FieldError``."""
    if not isinstance(value, str) or value not in supported:
        raise wrong_value(param, value, supported)
    return value


def kind_of(document: Mapping[str, Any], supported: Sequence[str], place: str) -> str:
    """Returns the ``type`` of an object if it is one of the supported texts; otherwise raises ``FieldError``."""
    if document.get("type") is None:
        raise missing(f"{place}.type")
    return one_of(document["type"], supported, f"{place}.type")


def optional_text(body: Mapping[str, Any], key: str, place: str = "") -> str | None:
    """Returns a string, or ``None`` if it is null or missing. Raises ``FieldError`` for any other value."""
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise wrong_type(f"{place}{key}", "a string", value)
    return value


def required_text(body: Mapping[str, Any], key: str, place: str = "") -> str:
    """Returns a string. Raises ``FieldError`` if it is missing or another value."""
    if key not in body:
        raise missing(f"{place}{key}")
    value = body[key]
    if not isinstance(value, str):
        raise wrong_type(f"{place}{key}", "a string", value)
    return value


def wrong_value(param: str, value: object, supported: Sequence[str]) -> FieldError:
    """Returns the error for a value that is not among the supported ones."""
    listed = ", ".join(f"'{each}'" for each in supported)
    shown = f"'{value}'" if isinstance(value, str) else type_name(value)
    return FieldError(f"Invalid value for '{param}': {shown:.80}. Supported values are: {listed}.", param=param)


def missing(param: str) -> FieldError:
    """Returns the error for a missing value."""
    return FieldError(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def integer(body: Mapping[str, Any], name: str, low: int | None = None, high: int | None = None) -> int | None:
    """Returns an integer in a range; None if it is null or missing. Raises ``FieldError``."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, "an integer", value)
    _require_range("integer", name, value, low, high)
    return value


def number(body: Mapping[str, Any], name: str, low: float | None = None, high: float | None = None) -> float | None:
    """Returns a number in a range; None if it is null or missing. Raises ``FieldError``."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(name, "a decimal", value)
    if not _is_finite(value):
        raise not_finite(name, value)
    _require_range("decimal", name, value, low, high)
    return float(value)


def boolean(body: Mapping[str, Any], name: str, place: str = "") -> bool | None:
    """Returns true or false; None if it is null or missing. Raises ``FieldError``."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong_type(place + name, "a boolean", value)
    return value


def mapping(value: object, param: str) -> dict[str, Any]:
    """Returns an object. Raises ``FieldError``."""
    if not isinstance(value, dict):
        raise wrong_type(param, "an object", value)
    return value


def array(value: object, param: str, most: int | None = None) -> list[Any]:
    """Returns an array of at most ``most`` items. Raises ``FieldError``."""
    if not isinstance(value, list):
        raise wrong_type(param, "an array", value)
    if most is not None and len(value) > most:
        raise too_long(param, most, len(value))
    return value


def too_long(param: str, most: int, length: int) -> FieldError:
    """Returns the error for an array with more than ``most`` items."""
    return FieldError(
        f"Invalid '{param}': array too long. Expected an array with maximum length {most}, but got an array with "
        f"length {length} instead.",
        param=param,
        code="array_above_max_length",
    )


def not_finite(param: str, value: float) -> FieldError:
    """Returns the error for a number beyond the range of a decimal."""
    return FieldError(
        f"Invalid '{param}': the decimal is too large. Expected a finite number.",
        param=param,
        code=f"decimal_{'above_max' if value > 0 else 'below_min'}_value",
    )


def out_of_range(param: str, kind: str, sign: str, limit: float, value: float) -> FieldError:
    """Returns the error for a number below its least value (``sign`` is ``">="``) or above its greatest (``"<="``).

    ``kind``: ``"integer"`` or ``"decimal"``.
    """
    side = {">=": "below_min", "<=": "above_max"}[sign]
    words = {">=": "below minimum", "<=": "above maximum"}[sign]
    return FieldError(
        f"Invalid '{param}': {kind} {words} value. Expected a value {sign} {limit}, but got {str(value)[:40]} instead.",
        param=param,
        code=f"{kind}_{side}_value",
    )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _require_range(kind: str, name: str, value: float, low: float | None, high: float | None) -> None:
    if low is not None and value < low:
        raise out_of_range(name, kind, ">=", low, value)
    if high is not None and value > high:
        raise out_of_range(name, kind, "<=", high, value)
