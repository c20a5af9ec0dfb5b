"""Result types: what a ``schema=`` argument means for the prompt, and the conversion of answers to its type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from constrain.errors import OutputValidationError, SchemaError, pointer_to
from constrain.language.grammar import Grammar
from constrain.language.schema_text import parse_schema, plain_schema, schema_text
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


@dataclass(frozen=True, slots=True)
class ResultType:
    """How an answer for one ``schema=`` argument is shown to the model, and how its text becomes the value.

    Attributes:
        document: the JSON Schema as a parsed JSON value; ``None`` without a schema: then the value is the text.
        adapter: turns the text into the caller's type; ``None`` for parsed JSON or plain text.
        source: the source of the grammar instead of a JSON Schema, if the prompt can show it.
        may_quote: whether the document of a type names the keyword of quotes; false for other schemas.
        quotes: finds the quotes of answers; ``None`` if the schema has none.
        exact: replaces the adapter for a type with decimals, and keeps all their digits.
    """

    document: object | None
    adapter: TypeAdapter[Any] | None
    source: Source | None = None
    may_quote: bool = False
    quotes: Restoring | None = field(default=None, compare=False)
    exact: ExactValidator | None = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        if self.adapter is not None:
            from constrain.types.exact_decimals import ExactValidator, holds_decimals

            if holds_decimals(self.adapter):
                object.__setattr__(self, "exact", ExactValidator(self.adapter.core_schema))

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
            return (self.exact or self.adapter).validate_json(text)
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
        return ResultType(schema, None)
    if isinstance(schema, str):
        document = plain_schema(parse_schema(schema_text(schema)))  # numbers need not be exact, but printable
        return ResultType(document, None)
    validator = vars(schema).get("__pydantic_validator__") if isinstance(schema, type) else None
    return _of_type(schema) if validator is None else _of_class(schema, validator)


def _of_type(kind: Any) -> ResultType:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic_core import PydanticSerializationError

    refuse_instance(kind)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        document = adapter.json_schema()
        return ResultType(document, adapter, may_quote="x-quote" in repr(document))
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
