"""Exact decimals, read digit by digit from the text of an answer.

Pydantic's JSON parser turns numbers with a fraction into floats, and floats into decimals, so
``12345678901234567890.12`` would lose its last digits. Here each ``decimal`` of a type's core schema gets the text of
the number instead. The float of Pydantic's parser identifies the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pydantic
from pydantic_core import SchemaValidator, core_schema

from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NO_SCHEMAS = frozenset(("metadata", "serialization", "config", "default", "expected", "members", "cls"))
"""Entries of a core schema that contain no core schemas, but possibly anything else."""

_numbers: ContextVar[Mapping[float, list[str]]] = ContextVar("_numbers")
"""The spellings of each number in the current text, by its float; numbers of equal floats have several."""


_USE_PREBUILT = "_use_prebuilt"
"""The argument of ``SchemaValidator`` (since Pydantic 2.12) that lets models keep validators of their own."""

_HAS_PREBUILT = pydantic.VERSION.startswith("2.11.")
"""Whether models always keep validators of their own, which read floats."""


class ExactValidator:
    """A validator of JSON texts for the core schema of a type with decimals.

    ``config``: Pydantic's configuration for the parts of the schema without one of their own.
    """

    def __init__(self, schema: Any, config: Any = None) -> None:
        has_choice = _USE_PREBUILT in (SchemaValidator.__text_signature__ or "")
        self._validator = SchemaValidator(_exact(schema), config, **({_USE_PREBUILT: False} if has_choice else {}))

    def validate_json(self, text: str) -> Any:
        """Returns the value of a text. Raises ``pydantic.ValidationError``."""
        numbers: dict[float, list[str]] = {}

        def note(spelled: str) -> float:
            known = numbers.setdefault(float(spelled), [])
            if all(Decimal(spelled) != Decimal(other) for other in known):
                known.append(spelled)
            return 0.0

        read_answer(text, decimal=note)
        token = _numbers.set(numbers)
        try:
            return self._validator.validate_json(text)
        finally:
            _numbers.reset(token)


def holds_decimals(adapter: TypeAdapter[Any]) -> bool:
    """Returns whether a type reads a decimal anywhere."""
    return any(part.get("type") == "decimal" for part in parts_of(adapter.core_schema))


def reads_exactly(adapter: TypeAdapter[Any]) -> bool:
    """Returns whether ``ExactValidator`` reaches all decimals of a type, except in models that build themselves."""
    return not any(
        part.get("custom_init") or (_HAS_PREBUILT and part.get("type") in ("model", "dataclass"))
        for part in parts_of(adapter.core_schema)
    )


def parts_of(schema: object) -> Iterator[Mapping[str, Any]]:
    """Yields a core schema and all core schemas within it."""
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            yield part
            pending += [value for key, value in part.items() if key not in NO_SCHEMAS]
        elif isinstance(part, list | tuple):
            pending += part


def _exact(part: Any) -> Any:
    """Returns a core schema, or a part of one, whose decimals are read from the text."""
    if isinstance(part, list | tuple):
        return type(part)(map(_exact, part))
    if not isinstance(part, Mapping):
        return part
    if part.get("type") != "decimal":
        return {key: value if key in NO_SCHEMAS else _exact(value) for key, value in part.items()}
    own: Any = dict(part)
    spelled = core_schema.chain_schema([core_schema.no_info_plain_validator_function(_spelled), own])
    return core_schema.tagged_union_schema({"number": spelled, "other": own}, _kind)


def _kind(value: object) -> str:
    return "number" if isinstance(value, float) else "other"


def _spelled(value: float) -> Decimal:
    """Returns the number in the text of which Pydantic's parser made this float."""
    spellings = _numbers.get().get(value, [repr(value)])  # a number outside the text comes from a validator
    if len(spellings) > 1:
        raise ValueError(
            f"the answer has {' and '.join(spellings)}, which Pydantic reads as one float, so their decimals cannot be "
            "told apart; limit the digits of the type (max_digits=15, and decimal_places)"
        )
    return Decimal(spellings[0])
