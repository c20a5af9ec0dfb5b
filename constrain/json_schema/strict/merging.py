"""Two schema objects merged into one with the meaning of both, if there is one."""

from __future__ import annotations

from constrain.json_schema.keywords.joining import same_json
from constrain.json_schema.keywords.table import KEYWORDS

Schema = dict[str, object]

OWN_PLACE = frozenset(
    ("$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment")
)
"""Keywords that belong to the place of a schema, and stay there when the rest is merged elsewhere."""

_OBJECT_KEYWORDS = frozenset(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"))
_ARRAY_KEYWORDS = KEYWORDS.names(lambda each: each.about == "array" and (each.holds or each.read_by))
_CONDITIONAL_KEYWORDS = KEYWORDS.names(lambda each: "if" in (each.name, each.read_by))
_UNEVALUATED_KEYWORDS = KEYWORDS.names(lambda each: each.vocabulary == "unevaluated")


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
        elif keyword not in KEYWORDS.annotations and not same_json(result[keyword], value):
            record = KEYWORDS.records.get(keyword)
            joined = record.merge(result[keyword], value) if record is not None and record.merge is not None else None
            if joined is None:
                return None
            result[keyword] = joined
    return result


def _entangled(outer: Schema, inner: Schema) -> bool:
    """Returns whether keywords of one side change the meaning of keywords of the other."""
    if not _UNEVALUATED_KEYWORDS.isdisjoint(inner) and not KEYWORDS.annotations.issuperset(outer):
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
