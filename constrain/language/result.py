"""What a caller asks for: what of it the prompt can show, and the way from the text to a value of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.errors import OutputValidationError, SchemaError
from constrain.language.grammar import Grammar
from constrain.language.schema_text import parse_schema
from constrain.language.source import Source
from constrain.remembering import remembered
from constrain.types.answer_text import read_answer, require_shallow

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    from constrain.types.exact_decimals import ExactValidator


TYPE_BYTES = 64 << 20
"""Bytes that the remembered validators of types may take together, by the length of their schemas."""


@dataclass(frozen=True, slots=True)
class ResultType:
    """What ``schema=`` asks for.

    Attributes:
        document: the JSON Schema as a parsed JSON value; ``None`` if there is none: then the value is the text.
        adapter: turns the text into the caller's type; ``None`` for parsed JSON or plain text.
        source: what says in place of a JSON Schema what the text is, where it can be shown.
        exact: takes the adapter's place for a type with decimals, whose digits all count.
    """

    document: object | None
    adapter: TypeAdapter[Any] | None
    source: Source | None = None
    exact: ExactValidator | None = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        if self.adapter is not None:
            from constrain.types.exact_decimals import ExactValidator, holds_decimals

            if holds_decimals(self.adapter):
                object.__setattr__(self, "exact", ExactValidator(self.adapter))

    def parse(self, text: str) -> Any:
        """The value that a finished text stands for. Raises ``OutputValidationError``."""
        if self.adapter is None:
            return text if self.document is None else read_answer(text)
        from pydantic import ValidationError

        require_shallow(text)
        try:
            return (self.exact or self.adapter).validate_json(text)
        except ValidationError as error:
            message, pointer = _explain(error, text)
            raise OutputValidationError(message, text=text, pointer=pointer) from error


def result_type(schema: object) -> ResultType:
    """What a ``schema=`` argument asks for. Raises ``SchemaError``."""
    if schema is None or isinstance(schema, Grammar):
        return ResultType(None, None)
    if isinstance(schema, Source):
        return ResultType(None, None, schema)
    if isinstance(schema, (dict, bool)):
        return ResultType(schema, None)
    if isinstance(schema, str):
        parse_schema(schema)  # for its errors; here numbers need not be exact, but something that can be shown
        return ResultType(json.loads(schema), None)
    try:
        hash(schema)
    except TypeError:
        return _of_type(schema)
    return _of_hashable_type(schema)


def _of_type(kind: Any) -> ResultType:
    from pydantic import PydanticUserError, TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        return ResultType(adapter.json_schema(), adapter)
    except PydanticUserError as error:
        raise SchemaError(f"no JSON Schema can be made of {kind!r}: {error}") from error


@remembered(256, TYPE_BYTES, lambda _: 0, lambda result: 100 * len(json.dumps(result.document)))
def _of_hashable_type(kind: Any) -> ResultType:
    return _of_type(kind)


def _explain(error: ValidationError, text: str) -> tuple[str, str]:
    """Message and JSON Pointer of the first complaint."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    if details[0]["type"] == "json_invalid":  # what is written is JSON; Pydantic reads about 200 levels of it
        return f"Pydantic cannot read the text: {details[0]['msg']}; the text is {text}", ""
    place: Any = read_answer(text)
    pointer = ""
    # A location also names union branches and validators; only what is in the value belongs to the pointer.
    for part in details[0]["loc"]:
        if isinstance(place, dict) and part in place:
            pointer += "/" + str(part).replace("~", "~0").replace("/", "~1")
        elif isinstance(place, list) and isinstance(part, int) and 0 <= part < len(place):
            pointer += f"/{part}"
        else:
            continue
        place = place[part]
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return f"{details[0]['msg']}{more}; the text is {text}", pointer
