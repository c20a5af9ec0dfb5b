"""Decimals read from the text of an answer, digit by digit.

Pydantic's JSON parser makes floats of numbers with a fraction, and decimals of the floats: ``12345678901234567890.12``
would lose its last digits. Here each ``decimal`` of a type's core schema gets the text of the number instead. The text
is found by the float that Pydantic's parser makes of it.
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
"""Entries of a core schema that hold no core schemas, but may hold anything."""

_numbers: ContextVar[Mapping[float, list[str]]] = ContextVar("_numbers")
"""The spellings of each number of the text that is validated, by their float; a float of several values has each."""


_USE_PREBUILT = "_use_prebuilt"
"""The argument of ``SchemaValidator`` (since Pydantic 2.12) that lets models keep validators of their own."""

_HAS_PREBUILT = pydantic.VERSION.startswith("2.11.")
"""Whether models always keep validators of their own, which read floats."""


class ExactValidator:
    """Validates JSON texts for a type that holds decimals."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        has_choice = _USE_PREBUILT in (SchemaValidator.__text_signature__ or "")
        self._validator = SchemaValidator(
            _exact(adapter.core_schema), None, **({_USE_PREBUILT: False} if has_choice else {})
        )

    def validate_json(self, text: str) -> Any:
        """The value of a text. Raises ``pydantic.ValidationError``."""
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
    """Whether a decimal is read anywhere in a type."""
    return any(part.get("type") == "decimal" for part in _parts(adapter))


def reads_exactly(adapter: TypeAdapter[Any]) -> bool:
    """Whether ``ExactValidator`` reaches all decimals of a type: not those of models that build themselves."""
    return not any(
        part.get("custom_init") or (_HAS_PREBUILT and part.get("type") in ("model", "dataclass"))
        for part in _parts(adapter)
    )


def _parts(adapter: TypeAdapter[Any]) -> Iterator[Mapping[str, Any]]:
    pending: list[Any] = [adapter.core_schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            yield part
            pending += [value for key, value in part.items() if key not in NO_SCHEMAS]
        elif isinstance(part, list | tuple):
            pending += part


def _exact(part: Any) -> Any:
    """A core schema, or a part of one, whose decimals are read from the text."""
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
    """The number of the text that is validated, of which Pydantic's parser made a float."""
    spellings = _numbers.get().get(value, [repr(value)])  # another number than those of the text is a validator's own
    if len(spellings) > 1:
        raise ValueError(f"{' and '.join(spellings)} are the same as floats, so that neither can be read exactly")
    return Decimal(spellings[0])
