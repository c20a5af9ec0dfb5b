"""Schemas in one line: ``name, age int, tags list[str], level: low|high``.

An item is a key, perhaps a type, and perhaps words after a colon. The words describe the key for the model; words with
``|`` between them are the values that the key may have. Keys are separated by commas, or by line breaks where there are
any; only then may words contain commas.
"""

from __future__ import annotations

import re
from typing import Any

from constrain.errors import SchemaError

_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "datetime": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "email": {"type": "string", "format": "email"},
    "url": {"type": "string", "format": "uri"},
}
_SAME = {  # other names of types
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "none": "null",
    "uri": "url",
}

_JSON_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")

_ITEM = re.compile(r"(?P<key>[^\W\d][\w-]*)(?P<optional>\?)?(?:\s+(?P<type>[^:]*?))?\s*(?::(?P<words>.*))?", re.DOTALL)
_LIST = re.compile(r"list\[(.*)\]", re.DOTALL)

MAX_LIST_NESTING = 20
"""Lists within each other in one type of a schema in one line. Beyond: SchemaError."""


def is_short(text: str) -> bool:
    """Returns whether a text is meant as a schema in one line rather than as JSON."""
    return re.match(r"\s*[^\W\d]", text) is not None and text.strip() not in ("true", "false", "null")


def read_short(text: str) -> dict[str, Any]:
    """Returns the JSON Schema of an object: all keys are required but those with ``?``, and there are no others.

    >>> read_short("name, age int, level?: low|high")["properties"]
    {'name': {'type': 'string'}, 'age': {'type': 'integer'}, 'level': {'enum': ['low', 'high']}}

    Raises ``SchemaError`` with line and column for what is no such schema.
    """
    properties: dict[str, Any] = {}
    required = []
    for item, line, column in _items(text):
        found = _ITEM.fullmatch(item)
        if found is None:
            message = f"{item!r:.80} is no key with a type, such as age int or level: low|high"
            raise SchemaError(message, line=line, column=column)
        key = found["key"]
        if key == "type" and not found["type"] and (found["words"] or "").strip() in _JSON_TYPES:
            message = "this reads like YAML, and a schema is JSON; a key named type is written type str"
            raise SchemaError(message, line=line, column=column)
        if key in properties:
            raise SchemaError(f"the key {key!r} occurs twice", line=line, column=column)
        try:
            properties[key] = _schema(found["type"] or "str", found["words"])
        except SchemaError as error:
            raise SchemaError(f"{key!r}: {error.message}", line=line, column=column) from error
        if not found["optional"]:
            required.append(key)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _items(text: str) -> list[tuple[str, int, int]]:
    """Returns the items with the line and column of each, from 1."""
    separator = "\n" if "\n" in text.strip() else ","
    items = []
    place = 0
    for part in text.split(separator):
        item = part.strip()
        if item:
            begin = place + part.index(item)
            items.append((item, text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin)))
        elif separator == ",":
            raise SchemaError("a key is missing beside a comma", line=text.count("\n", 0, place) + 1, column=place + 1)
        place += len(part) + 1
    return items


def _schema(name: str, words: str | None) -> dict[str, Any]:
    words = " ".join(words.split()) if words else ""
    values = [value.strip() for value in words.split("|")]
    if len(values) > 1:
        return _one_of(name, values)
    return {**_type(name), "description": words} if words else _type(name)


def _type(name: str, depth: int = 0) -> dict[str, Any]:
    if depth > MAX_LIST_NESTING:
        raise SchemaError(f"lists are nested more than {MAX_LIST_NESTING} deep")
    parts = [part.strip() for part in _outside_brackets(name)]
    if len(parts) > 1:
        return {"anyOf": [_type(part, depth + 1) for part in parts]}
    if found := _LIST.fullmatch(parts[0]):
        return {"type": "array", "items": _type(found[1], depth + 1)}
    if parts[0] == "list":
        return {"type": "array"}
    known = _TYPES.get(_plain(parts[0]))
    if known is None:
        raise SchemaError(f"unknown type {name!r:.80}; the types are {', '.join(_TYPES)}, list[...] and a|b of these")
    return dict(known)


def _plain(name: str) -> str:
    return _SAME.get(name.lower(), name.lower())


def _outside_brackets(name: str) -> list[str]:
    """Returns the parts of a type between ``|`` outside brackets."""
    parts, depth = [""], 0
    for character in name:
        depth += (character == "[") - (character == "]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _one_of(name: str, values: list[str]) -> dict[str, Any]:
    """Returns the schema of one of the listed values, or of a list of them."""
    if "" in values:
        raise SchemaError("a value is missing beside |")
    found = _LIST.fullmatch(name)
    inner = _plain((found[1] if found else name).strip())
    read = {"str": str, "int": int, "float": float}.get(inner)
    if read is None:
        raise SchemaError(f"values cannot be listed for the type {name!r:.80}; they can for str, int and float")
    try:
        schema = {"enum": list(dict.fromkeys(map(read, values)))}
    except ValueError as error:
        raise SchemaError(f"a listed value is no {inner}: {error}") from error
    return {"type": "array", "items": schema} if found else schema
