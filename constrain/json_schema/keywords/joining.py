"""Functions that join two values of one keyword into one with the meaning of both; ``None`` if there is none."""

from __future__ import annotations

import json


def same_json(a: object, b: object) -> bool:
    """Returns whether two parsed JSON values are written alike; unlike with ``==``, true is not 1."""
    return a is b or (a == b and json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))


def types_of(value: object) -> list[str] | None:
    """Returns the value of ``type`` as a list; ``None`` if it is malformed."""
    types = [value] if isinstance(value, str) else value
    if isinstance(types, list) and all(isinstance(name, str) for name in types):
        return types
    return None


def both_types(a: object, b: object) -> object:
    """Returns the types that two values of ``type`` share."""
    one, other = types_of(a), types_of(b)
    if one is None or other is None:
        return None
    both = [name for name in one if name in other or (name == "integer" and "number" in other)]
    both += ["integer" for name in other if name == "integer" and "number" in one and "integer" not in one]
    return None if not both else both[0] if len(both) == 1 else both


def both_enums(a: object, b: object) -> object:
    """Returns the values that two lists of values share."""
    if not (isinstance(a, list) and isinstance(b, list)):
        return None
    allowed = {json.dumps(value, sort_keys=True) for value in b}
    return [value for value in a if json.dumps(value, sort_keys=True) in allowed] or None


def both_properties(a: object, b: object) -> object:
    """Returns the properties of two objects; one that both declare satisfies both schemas."""
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return None
    result = dict(a)
    for key, schema in b.items():
        result[key] = both_schemas(a[key], schema) if key in a else schema
    return result


def both_schemas(a: object, b: object) -> object:
    """Returns a schema with the meaning of two."""
    return a if same_json(a, b) else {"allOf": [a, b]}


def both_lists(a: object, b: object) -> object:
    """Returns the entries of two lists, each once."""
    return [*a, *(item for item in b if item not in a)] if isinstance(a, list) and isinstance(b, list) else None


def chained(a: object, b: object) -> object:
    """Returns the entries of two lists."""
    return [*a, *b] if isinstance(a, list) and isinstance(b, list) else None


def greater(a: object, b: object) -> object:
    """Returns the greater of two numbers."""
    return max(a, b) if _is_number(a) and _is_number(b) else None  # type: ignore[call-overload]


def lesser(a: object, b: object) -> object:
    """Returns the lesser of two numbers."""
    return min(a, b) if _is_number(a) and _is_number(b) else None  # type: ignore[call-overload]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def either(a: object, b: object) -> object:
    """Returns whether one of two different booleans is true."""
    return True if isinstance(a, bool) and isinstance(b, bool) else None
