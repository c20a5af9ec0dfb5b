"""Schemas in one line: ``name, age int, tags list[str], level: low|high``.

An item is a key, perhaps a type, and perhaps words after a colon. The words describe the key for the model; words with
``|`` between them are the values that the key may have. Keys are separated by commas, or by line breaks where there are
any; only then may words contain commas.
"""

from __future__ import annotations

import re
from typing import Any

from constrain.errors import SchemaError
from constrain.language.wrong_schema import describe_no_json
from constrain.suggestions import did_you_mean
from constrain.work import MAX_NESTING

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

_ALONE = ("str", "int", "float", "bool", "list", "string", "integer", "number", "boolean", "array", "object")
"""Names of types that are no key if they are the whole text."""

_CONSTANTS = ("true", "false", "null", "NaN", "Infinity")
"""Texts that JSON, or Python's reader of it, reads as values."""

_CLASS = re.compile(r"(?:[a-z_][\w.]*:)?(?=[A-Z\d_]*[a-z])[A-Z]\w*")
"""The name of a class as Python's style guide wants it, perhaps behind a module."""

_ITEM = re.compile(r"(?P<key>[^\W\d][\w-]*)(?P<optional>\?)?(?:\s+(?P<type>[^:]*))?(?::(?P<words>.*))?", re.DOTALL)
_LIST = re.compile(r"list\[(.*)\]", re.DOTALL)


def is_short(text: str) -> bool:
    """Returns whether a text is meant as a schema in one line rather than as JSON."""
    return re.match(r"\s*[^\W\d]", text) is not None and text.strip() not in _CONSTANTS


def read_short(text: str) -> dict[str, Any]:
    """Returns the JSON Schema of an object: all keys are required but those with ``?``, and there are no others.

    >>> read_short("name, age int, level?: low|high")["properties"]
    {'name': {'type': 'string'}, 'age': {'type': 'integer'}, 'level': {'enum': ['low', 'high']}}

    Raises ``SchemaError`` with line and column for what is no such schema.
    """
    properties: dict[str, Any] = {}
    required = []
    if (alone := text.strip()).lower() in _ALONE:
        instead = f"write a key before it (answer {alone}), or pass the type of Python itself, without quotation marks"
        raise SchemaError(f"{alone!r} is a type without a key; {instead}")
    if _CLASS.fullmatch(alone):
        key = alone.rpartition(":")[2]
        instead = f"pass the class itself, without quotation marks, or write a key with a type ({key:.80} str)"
        raise SchemaError(f"{alone!r:.80} names a class; {instead}")
    for item, line, column in _items(text):
        found = _ITEM.fullmatch(item)
        if found is None:
            known = "is no key with a type, such as age int or level: low|high"
            message = f"{item!r:.80} {known}{describe_no_json(text)}"
            raise SchemaError(message, line=line, column=column)
        key, kind = found["key"], (found["type"] or "").strip()
        if not kind and found["words"] is not None and (problem := _why_not_words(key, found["words"].strip())):
            raise SchemaError(problem, line=line, column=column)
        if key in properties:
            raise SchemaError(f"the key {key!r} occurs twice", line=line, column=column)
        try:
            properties[key] = _schema(kind or "str", found["words"])
        except SchemaError as error:
            raise SchemaError(f"{key!r}: {error.message}", line=line, column=column) from error
        if not found["optional"]:
            required.append(key)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _why_not_words(key: str, words: str) -> str | None:
    """Returns why the words after a colon are no description of a key without a type; None if they may be one."""
    if not words:
        return f"{key!r}: there is nothing behind the colon; YAML is no schema here, write JSON"
    if words[0] in "\"'/[{=:":
        schema = "a schema is JSON, or keys such as age int; Lark(...) or --lark takes a grammar"
        return f"{key!r}: this reads like a grammar or YAML; {schema}"
    parts = [part.strip() for part in words.split("|")]
    if all(_is_type(part) for part in parts):
        fix = f"{key} {words}"
        return f"{key!r}: a type stands before the colon: write {fix:.80}, or {key} str: {words:.80} for a description"
    return None


def _is_type(name: str) -> bool:
    return _plain(name) in _TYPES or name == "object" or name == "array" or _LIST.fullmatch(name) is not None


def _items(text: str) -> list[tuple[str, int, int]]:
    """Returns the items with the line and column of each, from 1."""
    separator = "\n" if "\n" in text.strip() else ","
    items = []
    line, column = 1, 1
    for part in text.split(separator):
        item = part.strip()
        before = part[: part.index(item)] if item else part
        rows = before.count("\n")
        begin = len(before) - before.rfind("\n") if rows else column + len(before)
        if item:
            items.append((item, line + rows, begin))
        elif separator == ",":
            raise SchemaError("a key is missing beside a comma", line=line, column=column)
        if separator == "\n":
            line, column = line + 1, 1
        else:
            line, column = line + part.count("\n"), begin + len(part) - len(before) + 1
    return items


def _schema(name: str, words: str | None) -> dict[str, Any]:
    words = " ".join(words.split()) if words else ""
    values = [value.strip() for value in words.split("|")]
    if len(values) > 1:
        return _one_of(name, values)
    return {**_type(name), "description": words} if words else _type(name)


def _type(name: str, depth: int = 0) -> dict[str, Any]:
    if depth > MAX_NESTING:
        raise SchemaError(f"lists are nested more than {MAX_NESTING} deep (MAX_NESTING)")
    parts = [part.strip() for part in _outside_brackets(name)]
    if len(parts) > 1:
        return {"anyOf": [_type(part, depth + 1) for part in parts]}
    if found := _LIST.fullmatch(parts[0]):
        return {"type": "array", "items": _type(found[1], depth + 1)}
    if parts[0] == "list":
        return {"type": "array"}
    known = _TYPES.get(_plain(parts[0]))
    if known is None:
        close = did_you_mean(name[:80], (*_TYPES, *_SAME))
        there = f"the types are {', '.join(_TYPES)}, list[...] and a|b of these"
        raise SchemaError(f"unknown type {name!r:.80}{close}; {there}")
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
