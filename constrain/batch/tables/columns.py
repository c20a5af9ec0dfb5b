"""The columns that answers add to a table: their Arrow types, and the records of answers in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from constrain.batch.records import answer_object, error_object, json_text
from constrain.chat.reading.reply import Refusal, Reply
from constrain.generation.completion import Completion
from constrain.generation.options import is_json_schema
from constrain.language.schema_text import parse_schema, read_schema
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.batch.lines import LineError
    from constrain.errors import ConstrainError

_SCALARS = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "null": pa.null(),
}

_PLAIN = frozenset(
    ("$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description", "examples", "title")
)
"""Keywords that say nothing about values."""

_OF_OBJECTS = frozenset(
    ("additionalProperties", "maxProperties", "minProperties", "properties", "propertyNames", "required")
)
_OF_ARRAYS = frozenset(("items", "maxItems", "minItems", "uniqueItems"))

_USAGE = pa.struct(
    [
        pa.field("prompt_tokens", pa.int64()),
        pa.field("completion_tokens", pa.int64()),
        pa.field("draft_tokens", pa.int64()),
    ]
)
"""Numbers of tokens; those from the cache are left out, as they depend on other rows."""

_ERROR = pa.struct([pa.field(name, pa.string()) for name in ("error", "message", "pointer", "text")])


MAX_COLUMN_NESTING = 32
"""Levels of the type of a column: 32. The values of a schema with more, or of one that contains itself, are JSON."""


MAX_COLUMN_PARTS = 10_000
"""Parts of a schema that are read for the type of a column: 10,000; a part counts for each reference that leads to it.
Beyond, values are JSON.
"""


class ValueTypeError(ValueError):
    """A value that its column cannot hold."""


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The columns of answers.

    Attributes:
        value: type of the column ``value``, if it follows a schema; ``None`` for text: the answer, or JSON.
        is_json: whether the content of an answer is JSON.
        has_samples: whether a row has several answers, each with its number in the column ``sample``.
        has_certificates: whether answers have certificates, each as JSON in the column ``certificate``.
    """

    value: pa.DataType | None
    is_json: bool
    has_samples: bool = False
    has_certificates: bool = False

    def schema(self) -> pa.Schema:
        """Returns names and types of the columns."""
        fields: dict[str, pa.DataType] = {"sample": pa.int64()} if self.has_samples else {}
        fields |= {
            "value": pa.string() if self.value is None else self.value,
            "text": pa.string(),
            "finish_reason": pa.string(),
            "usage": _USAGE,
            "confidence": pa.float64(),
            "details": pa.string(),
            **({"certificate": pa.string()} if self.has_certificates else {}),
            "error": _ERROR,
        }
        return pa.schema(list(fields.items()))

    def record(self, outcome: Completion | ConstrainError | LineError, sample: int = 0) -> dict[str, Any]:
        """Returns the values of the columns for one answer, or for an error in its place."""
        found: dict[str, Any] = dict.fromkeys(self.schema().names)
        if self.has_samples:
            found["sample"] = sample
        if not isinstance(outcome, Completion):
            return {**found, "error": error_object(outcome)}
        whole: dict[str, Any] = answer_object(outcome)
        value = outcome.value
        if isinstance(value, Reply) and self.is_json and whole["value"]["content"] is not None:
            whole["value"]["content"] = read_answer(value.text)
        return {**found, **self.fill(whole, mixed=isinstance(value, Reply | Refusal))}

    def fill(self, answer: Mapping[str, Any], *, mixed: bool) -> dict[str, Any]:
        """Returns the values of the columns for an answer as a batch writes it.

        ``mixed``: whether the value is one of several kinds, such as a reply with calls. It is then JSON.
        """
        found: dict[str, Any] = {name: answer[name] for name in ("text", "finish_reason")}
        found["usage"] = {name: answer["usage"][name] for name in _USAGE.names}
        certificate = answer.get("certificate")
        if self.has_certificates:
            found["certificate"] = None if certificate is None else json_text(certificate)
        known = {*found, "certificate", "value", "line", "id"}
        others = {name: value for name, value in answer.items() if name not in known}
        found["confidence"] = others.get("fields", {}).get("", {}).get("probability")
        found["details"] = json_text(others) if others else None
        found["error"] = None
        try:
            found["value"] = json_text(answer["value"]) if mixed else self._value(answer["text"])
        except ValueTypeError as error:
            found |= {"value": None, "error": {"error": "ValueTypeError", "message": str(error)}}
        return found

    def _value(self, text: str) -> Any:
        """Returns the value of an answer as the column has it. Raises ``ValueTypeError``."""
        if self.value is None:
            return text
        found = json.loads(text)
        try:
            pa.array([found], self.value)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            raise ValueTypeError(
                f"the value does not fit into a column of the type {self.value} ({error}); set bounds for the numbers "
                "of the schema, or read the column text"
            ) from error
        return found


def answer_columns(
    schema: object, *, has_tools: bool, has_samples: bool, has_certificates: bool = False
) -> AnswerColumns:
    """Returns the columns for answers with a schema or grammar of any kind; ``None`` stands for free text."""
    is_json = is_json_schema(schema)
    if not is_json or has_tools:
        return AnswerColumns(None, is_json, has_samples, has_certificates)
    document = parse_schema(read_schema(schema).text)
    return AnswerColumns(_Types(document).find(document), is_json, has_samples, has_certificates)


class _Types:
    """Finds the Arrow types of the parts of a schema, whose document is ``root``."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = MAX_COLUMN_PARTS

    def find(self, schema: Any, levels: int = MAX_COLUMN_NESTING) -> pa.DataType | None:
        """Returns the Arrow type of the values of a schema; ``None`` if they have no type in common.

        ``levels``: levels of objects, arrays, choices and references that the type may have.
        """
        self._left -= 1
        if not isinstance(schema, dict) or levels == 0 or self._left < 0:
            return None
        if isinstance(schema.get("$ref"), str):
            found = _resolve(schema["$ref"], self._root)
            return None if schema.keys() - _PLAIN - {"$ref"} else self.find(found, levels - 1)
        if "const" in schema or "enum" in schema:
            return _scalar_of([schema["const"]] if "const" in schema else schema["enum"])
        choices = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(choices, list):
            types = {self.find(each, levels - 1) for each in choices if each != {"type": "null"}}
            others = schema.keys() - _PLAIN - {"anyOf", "oneOf"}
            return types.pop() if len(types) == 1 and not others else None
        names = schema.get("type")
        named = [name for name in ([names] if isinstance(names, str) else names or ()) if name != "null"]
        if len(named) != 1:
            return _SCALARS["null"] if names in ("null", ["null"]) else None
        return self._find_named(named[0], schema, levels)

    def _find_named(self, name: str, schema: dict[str, Any], levels: int) -> pa.DataType | None:
        """Returns the Arrow type of objects, arrays or scalars, as ``type`` names them."""
        if name == "object":
            if schema.keys() - _PLAIN - _OF_OBJECTS - {"type"} or schema.get("additionalProperties"):
                return None
            types = {key: self.find(each, levels - 1) for key, each in schema.get("properties", {}).items()}
            return pa.struct(list(types.items())) if types and None not in types.values() else None
        if name == "array":
            if schema.keys() - _PLAIN - _OF_ARRAYS - {"type"}:
                return None
            item = self.find(schema.get("items"), levels - 1)
            return None if item is None else pa.list_(item)
        return _SCALARS.get(name)


def _scalar_of(values: list[Any]) -> pa.DataType | None:
    """Returns the type that some values have in common; null is of every type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float, Decimal}:
        kinds = kinds if kinds <= {int} else {float}
    if len(kinds) != 1:
        return None
    return {
        str: _SCALARS["string"],
        int: _SCALARS["integer"],
        float: _SCALARS["number"],
        bool: _SCALARS["boolean"],
    }.get(kinds.pop())


def _resolve(reference: str, root: Any) -> Any:
    """Returns the schema that a reference within the document names; ``None`` for another reference."""
    found = root
    for part in reference.removeprefix("#").split("/")[1:] if reference.startswith("#/") else ["", ""]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
