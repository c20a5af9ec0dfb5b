"""``OneOf``: marks strings in Python types as values of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.tables.keyword import ONE_OF, OneOfKeyword
from constrain.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


class OneOf:
    """An annotation: ``Annotated[str, OneOf(names)]`` is one of the names, of which there may be a million.

    The model cannot write anything else there. The values are read once, when the annotation is made. Other constraints
    of the string, such as a pattern, leave out the values that they do not allow.

    Args:
        values: strings, or dates for ``Annotated[date, OneOf(days)]``; equal ones count once.

    Raises TypeError, ValueError and LimitError for values that cannot be.

    >>> import pydantic
    >>> from typing import Annotated
    >>> pydantic.TypeAdapter(Annotated[str, OneOf(["Ada", "Grace"])]).json_schema()["x-one-of"]["size"]
    2
    """

    def __init__(self, values: Iterable[str] | Iterable[date]) -> None:
        self._table = Table(values)
        if not len(self._table):
            raise ValueError("OneOf needs a value at least")

    def __repr__(self) -> str:
        """Returns the number of values."""
        return f"OneOf(<{len(self._table)} values>)"

    def keyword(self) -> dict[str, Any]:
        """Returns the value of ``x-one-of`` in a JSON Schema."""
        return OneOfKeyword(self._table.digest, len(self._table))._asdict()

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler | None = None
    ) -> dict[str, Any]:
        """Adds the keyword to the schema of a string. Raises ``TypeError`` for the class in place of an instance."""
        if handler is None:  # Pydantic called the class itself, with two arguments
            raise TypeError("OneOf is a class; write Annotated[str, constrain.OneOf(values)]")
        schema = handler(core_schema)
        return {**handler.resolve_ref_schema(schema), ONE_OF: self.keyword()}
