"""Result types: what a ``schema=`` argument means for the prompt, and the conversion of answers to its type."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from constrain.errors import OutputValidationError, SchemaError, pointer_to
from constrain.language.grammar import Grammar
from constrain.language.schema_text import JsonSchema, parse_schema, plain_schema, read_schema
from constrain.language.source import Source
from constrain.language.wrong_schema import describe_no_type, refuse_instance
from constrain.remembering import remembered
from constrain.types.answer_text import read_answer, require_shallow

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    from constrain.types.exact_decimals import ExactValidator


TYPE_BYTES = 64 << 20
"""Bytes of cached result types of classes, measured by the length of their schemas; beyond it, the least recently used
are dropped."""


class Restoring(Protocol):
    """The quotes of an answer: ``constrain.quotes.places.Quotes``."""

    def restored(self, text: str) -> str:
        """Returns a finished answer with the spelling that its value has."""
        ...


@dataclass(frozen=True)
class ResultType:
    """How an answer for one ``schema=`` argument is shown to the model, and how its text becomes the value.

    Attributes:
        document: the JSON Schema as a parsed JSON value; ``None`` without a schema: then the value is the text.
        adapter: turns the text into the caller's type; ``None`` for parsed JSON or plain text.
        source: the source of the grammar instead of a JSON Schema, if the prompt can show it.
        given: the JSON Schema or type as it was given; ``None`` for others.
        quotes: finds the quotes of answers; ``None`` if the schema has none.
    """

    document: object | None
    adapter: TypeAdapter[Any] | None
    source: Source | None = None
    given: object = field(default=None, compare=False, repr=False)
    quotes: Restoring | None = field(default=None, compare=False)

    @cached_property
    def schema(self) -> JsonSchema:
        """The JSON Schema as it is compiled. Raises ``SchemaError``."""
        return read_schema(self.given, self.adapter)

    @cached_property
    def _validator(self) -> ExactValidator | TypeAdapter[Any]:
        """The reader of the caller's type; of one with decimals, a reader that keeps all their digits."""
        from constrain.types.exact_decimals import ExactValidator, holds_decimals

        assert self.adapter is not None
        return ExactValidator(self.adapter.core_schema) if holds_decimals(self.adapter) else self.adapter

    def spelled(self, text: str) -> str:
        """Returns a finished text as callers get it: folded quotes have their source's spelling."""
        return text if self.quotes is None or not text else self.quotes.restored(text)

    def parse(self, text: str) -> Any:
        """Returns the value of a finished text, as ``spelled`` returns it. Raises ``OutputValidationError``."""
        if self.adapter is None:
            return text if self.document is None else read_answer(text)
        from pydantic import ValidationError

        require_shallow(text)
        try:
            return self._validator.validate_json(text)
        except ValidationError as error:
            message, pointer = _explain(error, text)
            raise OutputValidationError(message, text=text, pointer=pointer) from error


def result_type(schema: object) -> ResultType:
    """Returns how an answer with this ``schema=`` is shown to the model and turned into a value.

    Raises ``SchemaError`` for text that is not a JSON Schema, and for a type that has none.
    """
    if schema is None or isinstance(schema, Grammar):
        return ResultType(None, None)
    if isinstance(schema, Source):
        return ResultType(None, None, schema)
    if isinstance(schema, (dict, bool)):
        return ResultType(schema, None, given=schema)
    if isinstance(schema, str):
        read = read_schema(schema)  # numbers in prompts need not be exact, but printable
        return ResultType(plain_schema(parse_schema(read.text)), None, given=read)
    validator = vars(schema).get("__pydantic_validator__") if isinstance(schema, type) else None
    return _of_type(schema) if validator is None else _of_class(schema, validator)


def _of_type(kind: Any) -> ResultType:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic_core import PydanticSerializationError

    refuse_instance(kind)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        return ResultType(adapter.json_schema(), adapter, given=kind)
    except (PydanticUserError, PydanticSerializationError) as error:
        raise SchemaError(describe_no_type(kind, error)) from error


@remembered(256, TYPE_BYTES, lambda *_: 0, lambda result: 100 * len(repr(result.document)))
def _of_class(kind: Any, _validator: object) -> ResultType:
    """Returns the result type of a class that keeps its validator, such as a model; a rebuilt class has a new one.

    Other types are made for each call: ``Union[A, B]`` and ``Union[B, A]`` are equal, and read values differently.
    """
    return _of_type(kind)


def _explain(error: ValidationError, text: str) -> tuple[str, str]:
    """Returns the message of Pydantic's first error, and the JSON Pointer of the rejected part of the answer."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    if details[0]["type"] == "json_invalid":  # the text is JSON; Pydantic reads about 200 levels
        return f"Pydantic cannot read the text: {details[0]['msg']}; the text is {text}", ""
    place: Any = read_answer(text)
    steps: list[str | int] = []
    # A location also names union branches and validators; the pointer keeps only steps into the value.
    for part in details[0]["loc"]:
        if isinstance(place, dict) and part in place:
            place = place[str(part)]
        elif isinstance(place, list) and isinstance(part, int) and 0 <= part < len(place):
            place = place[part]
        else:
            continue
        steps.append(part)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return f"{details[0]['msg']}{more}; the text is {text}", pointer_to(steps)
