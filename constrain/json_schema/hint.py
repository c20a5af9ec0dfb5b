"""Short descriptions of JSON Schemas for the prompt, which show a small model the form to fill in.

Objects and arrays look like their values, with types in place of values and descriptions as comments:

    {
      "name": string,  // the family name first
      "age"?: integer (0 to 120),
      "tags": [string, ...]
    }

A definition that is used once is written in place; the others get a name. The text is a hint for the model, not the
constraint: keywords without a short spelling are left out; a bound by another field names that. So is ``maxItems``, up
to which small models fill an array.
"""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.stages.pointers import data_pointer

_MOST_VALUES = 40
"""Values of an enumeration that are written out; the rest is a count, since small models lose track of longer lists."""

_DEEPEST = 12
"""Levels of nesting that are written out; below, a value is "any JSON"."""

_FAR = 10_000
"""Absolute value from which a bound of a number is not shown; small models write numbers like the bounds they see."""

_SIZES = {"characters": "Length", "items": "Items", "members": "Properties"}

_INSTRUCTION = "Answer with JSON in this format"


def describe(schema: object) -> str:
    """Returns the instruction that is added to the prompt for a schema (a parsed JSON value)."""
    return f"{_INSTRUCTION}:\n{render(schema)}"


def render(schema: object) -> str:
    """Returns a schema (a parsed JSON value) in the short form for the prompt that the module describes.

    Definitions with names of their own come on further lines.
    """
    writer = _Writer(schema)
    text = writer.value(schema, 0, 0)
    return "\n".join([text, *writer.definitions()])


class _Writer:
    """Writes one schema; knows the definitions with names of their own."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._uses: Counter[str] = Counter()
        self._count_references(root)
        self._named: dict[str, str] = {}
        self._open: list[str] = []

    def _count_references(self, value: object) -> None:
        pending = [value]
        while pending:
            part = pending.pop()
            if isinstance(part, dict):
                reference = part.get("$ref")
                if isinstance(reference, str):
                    self._uses[reference] += 1
                pending.extend(part.values())
            elif isinstance(part, list):
                pending.extend(part)

    def definitions(self) -> list[str]:
        """Returns the named definitions, each written once; writing one may name others."""
        lines: list[str] = []
        written: set[str] = set()
        while rest := [reference for reference in self._named if reference not in written]:
            for reference in rest:
                written.add(reference)
                lines.append(f"{self._named[reference]} = {self.value(self._resolve(reference), 0, 0)}")
        return lines

    def _resolve(self, reference: str) -> object:
        """Returns the target of a local reference; ``True`` (anything) for other references."""
        if not reference.startswith("#"):
            return True
        place: Any = self._root
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and key in place:
                place = place[key]
            elif isinstance(place, list) and key.isdecimal() and int(key) < len(place):
                place = place[int(key)]
            else:
                return True
        return place

    def value(self, schema: object, indent: int, depth: int) -> str:
        """Returns one schema as text; ``indent``: level of the line it stands on."""
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return "any JSON"
        if isinstance(reference := schema.get("$ref"), str):
            return self._reference(reference, indent, depth)
        related = {key: pointer for key, value in schema.items() if isinstance(pointer := data_pointer(value), str)}
        if related:
            own = self.value({key: schema[key] for key in schema if key not in related}, indent, depth)
            notes = ", ".join(_relation(keyword, pointer) for keyword, pointer in related.items())
            return f"{own[:-1]}, {notes})" if own.endswith(")") else f"{own} ({notes})"
        if "const" in schema:
            return _json(schema["const"])
        if isinstance(values := schema.get("enum"), list):
            return _values(values)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list):
                return self._alternatives([self.value(branch, indent, depth + 1) for branch in branches])
        if isinstance(parts := schema.get("allOf"), list) and not schema.keys() & {"type", "properties"}:
            if len(parts) == 1:
                return self.value(parts[0], indent, depth + 1)
            return " and ".join(self.value(part, indent, depth + 1) for part in parts)
        kinds = schema.get("type", _guess(schema))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return self._alternatives([self._typed(kind, schema, indent, depth) for kind in kinds])

    def _reference(self, reference: str, indent: int, depth: int) -> str:
        if reference in self._named:
            return self._named[reference]
        if self._uses[reference] == 1 and reference not in self._open:
            self._open.append(reference)
            text = self.value(self._resolve(reference), indent, depth + 1)
            self._open.pop()
            return text
        name = reference.rsplit("/", 1)[-1] if "/" in reference else "Root"
        while name in self._named.values():
            name += "_"
        self._named[reference] = name
        return name

    def _alternatives(self, texts: list[str]) -> str:
        return " or ".join(dict.fromkeys(texts)) or "any JSON"

    def _typed(self, kind: object, schema: dict[str, Any], indent: int, depth: int) -> str:
        if kind == "object":
            return self._object(schema, indent, depth)
        if kind == "array":
            return self._array(schema, indent, depth)
        if kind in ("number", "integer"):
            bounds = {name: schema.get(name) for name in ("minimum", "maximum")}
            near = {name: bound for name, bound in bounds.items() if not _is_far(bound)}
            return _noted(str(kind), "number", schema, _range(near, "minimum", "maximum"))
        if kind == "string":
            name = "date" if schema.get("format") == "date" else kind
            return _noted(name, "string", schema, _range(schema, "minLength", "maxLength", unit=" characters"))
        return kind if kind in ("boolean", "null") else "any JSON"

    def _object(self, schema: dict[str, Any], indent: int, depth: int) -> str:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        required = [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
        members: list[tuple[str, str, str]] = []
        for key, child in {**properties, **{key: True for key in required if key not in properties}}.items():
            mark = "" if key in required else "?"
            note = child.get("description", "") if isinstance(child, dict) else ""
            text = self.value(child, indent + 1, depth + 1)
            members.append((f"{_json(key)}{mark}: {text}", ",", note if isinstance(note, str) else ""))
        others = schema.get("additionalProperties")
        if isinstance(others, dict) or (others is True and not members):
            members.append((f"[any key]: {self.value(others, indent + 1, depth + 1)}", "", ""))
        if not members:
            return _noted("object" if others is not False else "{}", "object", schema, "")
        inner = "  " * (indent + 1)
        lines = ["{"]
        for number, (text, comma, note) in enumerate(members, 1):
            comment = f"  // {' '.join(note.split())}" if note else ""
            lines.append(f"{inner}{text}{comma if number < len(members) else ''}{comment}")
        lines.append("  " * indent + "}")
        return _noted("\n".join(lines), "object", schema, "")

    def _array(self, schema: dict[str, Any], indent: int, depth: int) -> str:
        items = schema.get("items", True)
        prefix = schema.get("prefixItems", items if isinstance(items, list) else [])
        parts = [self.value(item, indent, depth + 1) for item in prefix] if isinstance(prefix, list) else []
        most = schema.get("maxItems")
        if not isinstance(items, list) and items is not False and not (isinstance(most, int) and most <= len(parts)):
            parts += [self.value(items, indent, depth + 1), "..."]
        least, most = schema.get("minItems"), schema.get("maxItems")
        shown = {"minItems": least, "maxItems": most if most == least else None}
        return _noted(f"[{', '.join(parts)}]", "array", schema, _range(shown, "minItems", "maxItems", unit=" items"))


def _guess(schema: dict[str, Any]) -> str:
    """Returns the most likely type of a schema without ``type``."""
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        return "object"
    return "array" if schema.keys() & {"items", "prefixItems"} else ""


def _is_far(bound: object) -> bool:
    """Returns whether a bound of a number is one at which small models aim."""
    return isinstance(bound, int | float | Decimal) and not -_FAR < bound < _FAR


def _noted(text: str, kind: str, schema: dict[str, Any], bounds: str) -> str:
    """Returns a type with the notes of the keywords about its values, and with bounds."""
    notes = [
        each.hint(schema[name])
        for name, each in KEYWORDS.records.items()
        if each.about in (kind, "any") and each.hint is not None and name in schema
    ]
    notes = [note for note in [*notes, bounds] if note]
    return f"{text} ({', '.join(notes)})" if notes else text


def _range(schema: dict[str, Any], low: str, high: str, *, unit: str = "") -> str:
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        return f"{least}{unit}" if least == most else f"{least} to {most}{unit}"
    if least is not None and least != 0:
        return f"at least {least}{unit}"
    return f"at most {most}{unit}" if most is not None else ""


def _relation(keyword: str, pointer: str) -> str:
    """Returns the note on a bound by another field, by the name of that field."""
    name = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    if keyword in ("const", "enum"):
        return f"{'the same as' if keyword == 'const' else 'one of'} {name}"
    is_lower = keyword.startswith("min") or keyword.endswith("inimum")
    if keyword.startswith("format"):
        is_open = "Exclusive" in keyword
        return f"{'' if is_open else 'not '}{'after' if is_lower == is_open else 'before'} {name}"
    if "xclusive" in keyword:
        return f"{'above' if is_lower else 'below'} {name}"
    unit = next((f" {noun}" for noun in ("characters", "items", "members") if keyword[3:] == _SIZES[noun]), "")
    return f"at {'least' if is_lower else 'most'} {name}{unit}"


def _values(values: list[Any]) -> str:
    shown = " | ".join(_json(value) for value in values[:_MOST_VALUES])
    return shown if len(values) <= _MOST_VALUES else f"{shown} | ... ({len(values)} values)"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
