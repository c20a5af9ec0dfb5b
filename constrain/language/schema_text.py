"""Schemas as JSON text, written from callers' arguments and read with exact numbers.

A request's schema is written out once, where the request is read; all later stages get the text. Each of them asks
``parse_schema`` for the document, and the first one parses it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from constrain.arguments import without_mark
from constrain.errors import SchemaError
from constrain.language.short_schema import is_short, read_short
from constrain.language.wrong_schema import describe_no_json, describe_no_type, refuse_instance, refuse_value
from constrain.remembering import MANY, remembered

PARSED_BYTES = 16 << 20
"""Bytes that the parsed schemas of the latest requests may take together: 16 MiB, those of some 1,200 tools; beyond it,
the least recently used are dropped."""

_BYTES = {"{": 200, "[": 90, ",": 112, '"': 28}
"""Bytes of a parsed schema for each such character of its text, at most: small objects, arrays, decimals, strings."""


_ESCAPED_ASCII = re.compile(r"\\u00[2-7]")
"""An escape of JSON that may stand for a character of a keyword."""


def may_have_keyword(schema: str, keyword: str) -> bool:
    """Returns whether the text of a schema may have a keyword."""
    return keyword in schema or _ESCAPED_ASCII.search(schema) is not None


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A caller's JSON Schema as it is compiled: its text, and whether the validator of a type reads the answers."""

    text: str
    is_typed: bool = False


def read_schema(schema: object, adapter: Any = None) -> JsonSchema:
    """Returns a schema as it is compiled. Raises SchemaError. ``adapter``: that of a type, if it is made already."""
    if isinstance(schema, JsonSchema):
        return schema
    return JsonSchema(schema_text(schema, tightened=True, adapter=adapter), not isinstance(schema, str | dict | bool))


def schema_text(schema: object, *, tightened: bool = False, adapter: Any = None) -> str:
    """Returns a schema (dict, bool, JSON text, type for ``pydantic.TypeAdapter``) as JSON text. Raises SchemaError.

    A text may also be a schema in one line (``short_schema``); JSON text is returned unchanged, whether valid or not. A
    type's schema is Pydantic's, or, with ``tightened``, narrowed to the values that the type's validators accept.
    """
    if isinstance(schema, str):
        return json.dumps(read_short(schema)) if is_short(schema) else schema
    if not isinstance(schema, dict | bool):
        import pydantic
        from pydantic_core import PydanticSerializationError

        from constrain.types.schema import type_schema

        refuse_instance(schema)
        try:
            adapter = adapter or pydantic.TypeAdapter(schema)  # type: ignore[arg-type]
            schema = type_schema(adapter) if tightened else adapter.json_schema()
        except (pydantic.errors.PydanticUserError, PydanticSerializationError) as error:
            raise SchemaError(describe_no_type(schema, error)) from error
        except RecursionError as error:  # Pydantic recurs for each level
            raise SchemaError("the type is nested too deeply for Pydantic to make a JSON Schema of it") from error
    try:
        return _to_json(schema)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the schema contains a value that JSON cannot express: {error}") from error
    except RecursionError as error:
        raise SchemaError("the schema is nested too deeply to be read") from error


def _to_json(schema: object) -> str:
    try:
        return json.dumps(schema)
    except TypeError:
        return json.dumps(schema, default=refuse_value)  # its error names the value


def document_bytes(text: str) -> int:
    """Returns the bytes that a parsed schema takes, and somewhat more, by its text."""
    return 500 + len(text) + sum(size * text.count(sign) for sign, size in _BYTES.items())


@remembered(MANY, PARSED_BYTES, document_bytes)
def parse_schema(text: str) -> object:
    """Returns the schema in a JSON text; numbers keep their exact value. Raises SchemaError with line and column.

    Equal texts give the same document as long as it is remembered, so a request parses its schema once in each process
    that it passes through. Nobody may change the document; ``plain_schema`` returns a copy for callers.
    """
    try:
        return json.loads(without_mark(text), parse_float=_decimal, parse_constant=_not_json, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}{describe_no_json(text)}"
        raise SchemaError(message, line=error.lineno, column=error.colno) from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise SchemaError(f"a number in the schema is too long: {error}") from error
    except RecursionError as error:
        raise SchemaError("the schema is nested too deeply to be read") from error


def plain_schema(document: object) -> Any:
    """Returns a copy of a parsed schema, with Python's floats in place of exact decimals."""
    root = [document]
    pending: list[Any] = [root]
    while pending:  # no recursion: schemas may be deeper than Python's stack
        copied = pending.pop()
        for key, value in copied.items() if isinstance(copied, dict) else enumerate(copied):
            if isinstance(value, dict | list):
                copied[key] = value.copy()
                pending.append(copied[key])
            elif isinstance(value, Decimal):
                copied[key] = float(value)
    return root[0]


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(members)
    if len(result) < len(members):
        seen: set[str] = set()
        twice = next(key for key, _ in members if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise SchemaError(f"the key {json.dumps(twice)} occurs twice in one object of the schema")
    return result


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise SchemaError(f"a number in the schema has too large an exponent: {text:.80}") from error


def _not_json(name: str) -> object:
    raise SchemaError(f"{name} is not a JSON number")
