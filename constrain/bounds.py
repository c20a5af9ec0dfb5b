"""``AtLeast`` and its like: annotations that bound a field of a type by another field of the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from constrain.errors import SchemaError, pointer_to
from constrain.language.stages import REFERS, UNIQUE_BY

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

__all__ = ["Above", "AtLeast", "AtMost", "Below", "ItemOf", "SameAs", "UniqueBy"]

_MOMENTS = ("date", "time", "date-time")
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}


def field_pointer(field: str) -> str:
    """Returns the JSON Pointer to another field; ``field``: as ``FieldBound`` has it."""
    return field if re.match(r"/|\d+(?:/|$)", field) else f"1{pointer_to([field])}"


@dataclass(frozen=True, slots=True)
class FieldBound:
    """An annotation that bounds a field by another one, which the model writes first.

    Attributes:
        field: the other field's key in the JSON object that has both (its alias, if it has one); or a JSON Pointer,
            absolute (``/period/start``) or relative (``2/limit``: two levels up from the value).
    """

    field: str

    _side: ClassVar[str] = ""
    _is_open: ClassVar[bool] = False

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler | None = None
    ) -> dict[str, Any]:
        """Adds the keyword to the schema of the field. Raises ``TypeError`` for the class in place of an instance."""
        if handler is None:  # Pydantic called the class itself, with two arguments
            raise TypeError('a bound needs its field: write Annotated[..., AtLeast("field")]')
        return self._bounded(handler.resolve_ref_schema(handler(core_schema)))

    def _bounded(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Returns the schema with the keyword, in the schema of the value itself if that may be null."""
        if "anyOf" in schema:
            others = [each for each in schema["anyOf"] if each.get("type") != "null"]
            if len(others) != 1:
                raise self._error("a union of several types")
            return schema | {"anyOf": [self._bounded(each) if each is others[0] else each for each in schema["anyOf"]]}
        return schema | {self._keyword(schema): self._value()}

    def _value(self) -> object:
        """Returns the keyword's value."""
        return {"$data": field_pointer(self.field)}

    def _keyword(self, schema: dict[str, Any]) -> str:
        """Returns the keyword of the bound on values of a schema."""
        kind, name = schema.get("type"), schema.get("format")
        side = f"Exclusive{self._side}" if self._is_open else self._side
        if kind in ("integer", "number"):
            return side[0].lower() + side[1:]
        if kind == "string" and name in _MOMENTS:
            return f"format{side}"
        if kind in _SIZES and not self._is_open and name is None:
            return f"{self._side[:3].lower()}{_SIZES[kind]}"
        raise self._error(f"the format {name}" if name else f"the type {kind}")

    def _error(self, what: str) -> SchemaError:
        return SchemaError(
            f"{type(self).__name__}({self.field!r}) bounds int, float, date, time and datetime, and AtLeast and "
            f"AtMost also the sizes of str, list and dict, but not {what}"
        )


class AtLeast(FieldBound):
    """An annotation: ``Annotated[date, AtLeast("start")]`` is not before the field ``start`` of the same object.

    The model cannot write an earlier date, or a smaller number; of a string, a list or a dictionary, it writes at least
    as many characters, items or members as the other field says.

    >>> import pydantic
    >>> from typing import Annotated
    >>> from constrain.bounds import AtLeast
    >>> pydantic.TypeAdapter(Annotated[int, AtLeast("low")]).json_schema()
    {'minimum': {'$data': '1/low'}, 'type': 'integer'}
    """

    _side = "Minimum"


class AtMost(FieldBound):
    """An annotation: ``Annotated[int, AtMost("total")]`` is not above the field ``total``; see ``AtLeast``."""

    _side = "Maximum"


class Above(FieldBound):
    """An annotation: ``Annotated[date, Above("start")]`` is after the field ``start``; see ``AtLeast``."""

    _side = "Minimum"
    _is_open = True


class Below(FieldBound):
    """An annotation: ``Annotated[int, Below("total")]`` is below the field ``total``; see ``AtLeast``."""

    _side = "Maximum"
    _is_open = True


class SameAs(FieldBound):
    """An annotation: ``Annotated[str, SameAs("name")]`` repeats the field ``name``: a string, integer or boolean."""

    def _keyword(self, schema: dict[str, Any]) -> str:  # noqa: ARG002
        return "const"


class ItemOf(FieldBound):
    """An annotation: ``Annotated[str, ItemOf("names")]`` is one of the items of the field ``names``, a list.

    With ``*`` for any item, an absolute JSON Pointer names a field of the items: ``ItemOf("/steps/*/id")``.
    """

    def _keyword(self, schema: dict[str, Any]) -> str:  # noqa: ARG002
        return REFERS if self._has_pattern else "enum"

    def _value(self) -> object:
        return self.field if self._has_pattern else FieldBound._value(self)

    @property
    def _has_pattern(self) -> bool:
        return self.field.startswith("/") and "*" in self.field.split("/")


class UniqueBy(FieldBound):
    """An annotation: the items of ``Annotated[list[Order], UniqueBy("id")]`` have different values in the field ``id``.

    ``id`` is a string, integer or boolean; a JSON Pointer names a field inside of another one (``/key/code``).
    """

    def _keyword(self, schema: dict[str, Any]) -> str:
        if schema.get("type") != "array":
            raise SchemaError(f"UniqueBy({self.field!r}) is for lists, not for the type {schema.get('type')}")
        return UNIQUE_BY

    def _value(self) -> object:
        return self.field if self.field.startswith("/") else pointer_to([self.field])
