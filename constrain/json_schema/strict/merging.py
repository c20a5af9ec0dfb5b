"""Two schema objects merged into one with the meaning of both, if there is one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from constrain.json_schema.documents.keyword_sets import ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

Schema = dict[str, object]

OWN_PLACE = frozenset(
    ("$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment")
)
"""Keywords that belong to the place of a schema, and stay there when the rest is merged elsewhere."""

_OBJECT_KEYWORDS = frozenset(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"))
_ARRAY_KEYWORDS = frozenset(
    ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains")
)
_CONDITIONAL_KEYWORDS = frozenset(("if", "then", "else"))
_UNEVALUATED_KEYWORDS = frozenset(("unevaluatedProperties", "unevaluatedItems"))


def merged(outer: Schema, inner: Schema) -> Schema | None:
    """Returns one schema object with the meaning of ``outer`` and ``inner``; ``None`` if there is none.

    Annotations of ``outer`` win. Two schemas for one property become ``{"allOf": [..., ...]}``.

    >>> merged({"minLength": 1, "title": "Name"}, {"type": "string", "minLength": 3, "title": "Text"})
    {'minLength': 3, 'title': 'Name', 'type': 'string'}
    """
    inner = {keyword: value for keyword, value in inner.items() if keyword not in OWN_PLACE}
    if _entangled(outer, inner):
        return None
    result = dict(outer)
    for keyword, value in inner.items():
        if keyword not in result:
            result[keyword] = value
        elif keyword in ANNOTATIONS or same_json(result[keyword], value):
            continue
        else:
            combine = _COMBINATIONS.get(keyword)
            combined = None if combine is None else combine(result[keyword], value)
            if combined is None:
                return None
            result[keyword] = combined
    return result


def same_json(a: object, b: object) -> bool:
    """Returns whether two parsed JSON values are written alike; unlike with ``==``, true is not 1."""
    return a is b or (a == b and json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))


def _entangled(outer: Schema, inner: Schema) -> bool:
    """Returns whether keywords of one side change the meaning of keywords of the other."""
    if not _UNEVALUATED_KEYWORDS.isdisjoint(inner) and not ANNOTATIONS.issuperset(outer):
        return True
    if not (_CONDITIONAL_KEYWORDS.isdisjoint(outer) or _CONDITIONAL_KEYWORDS.isdisjoint(inner)):
        return True
    outer_array, inner_array = _ARRAY_KEYWORDS & outer.keys(), _ARRAY_KEYWORDS & inner.keys()
    if outer_array and inner_array and not outer_array == inner_array == {"items"}:
        return True
    if any(isinstance(side.get(f"exclusive{end}"), bool) for side in (outer, inner) for end in ("Minimum", "Maximum")):
        return True  # draft 4: it belongs to the minimum or maximum beside it
    outer_object, inner_object = _OBJECT_KEYWORDS & outer.keys(), _OBJECT_KEYWORDS & inner.keys()
    return bool(outer_object and inner_object) and not (_closed_alike(outer, inner) and _closed_alike(inner, outer))


def _closed_alike(one: Schema, other: Schema) -> bool:
    """Returns whether ``one`` allows every key that ``other`` declares, and does not depend on who declares it."""
    if "patternProperties" in one or "unevaluatedProperties" in one:
        return False
    if "additionalProperties" not in one:
        return True
    if one["additionalProperties"] is not False:
        return False
    own, theirs = one.get("properties", {}), other.get("properties", {})
    return isinstance(own, dict) and isinstance(theirs, dict) and own.keys() >= theirs.keys()


def types_of(value: object) -> list[str] | None:
    """Returns the value of ``type`` as a list; ``None`` if it is malformed."""
    types = [value] if isinstance(value, str) else value
    if isinstance(types, list) and all(isinstance(name, str) for name in types):
        return types
    return None


def _both_types(a: object, b: object) -> object:
    one, other = types_of(a), types_of(b)
    if one is None or other is None:
        return None
    both = [name for name in one if name in other or (name == "integer" and "number" in other)]
    both += ["integer" for name in other if name == "integer" and "number" in one and "integer" not in one]
    return None if not both else both[0] if len(both) == 1 else both


def _both_enums(a: object, b: object) -> object:
    if not (isinstance(a, list) and isinstance(b, list)):
        return None
    allowed = {json.dumps(value, sort_keys=True) for value in b}
    return [value for value in a if json.dumps(value, sort_keys=True) in allowed] or None


def _both_properties(a: object, b: object) -> object:
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return None
    result = dict(a)
    for key, schema in b.items():
        result[key] = _both_schemas(a[key], schema) if key in a else schema
    return result


def _both_schemas(a: object, b: object) -> object:
    return a if same_json(a, b) else {"allOf": [a, b]}


def _both_lists(a: object, b: object) -> object:
    return [*a, *(item for item in b if item not in a)] if isinstance(a, list) and isinstance(b, list) else None


def _chained(a: object, b: object) -> object:
    return [*a, *b] if isinstance(a, list) and isinstance(b, list) else None


def _greater(a: object, b: object) -> object:
    return max(a, b) if _is_number(a) and _is_number(b) else None  # type: ignore[call-overload]


def _lesser(a: object, b: object) -> object:
    return min(a, b) if _is_number(a) and _is_number(b) else None  # type: ignore[call-overload]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _either(a: object, b: object) -> object:
    return True if isinstance(a, bool) and isinstance(b, bool) else None  # they differ, so one is true


_COMBINATIONS: dict[str, Callable[[object, object], object]] = {
    "type": _both_types,
    "enum": _both_enums,
    "properties": _both_properties,
    "required": _both_lists,
    "allOf": _chained,
    "items": _both_schemas,
    "uniqueItems": _either,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _greater),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _lesser),
}
"""Functions that combine two values of a keyword; ``None`` if they do not combine. Other keywords must be equal."""
