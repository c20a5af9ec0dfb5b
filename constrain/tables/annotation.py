"""``OneOf``: marks strings, numbers, booleans and dates in Python types as values of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.bounds import field_pointer
from constrain.language.stages import GIVEN
from constrain.tables.keyword import ONE_OF, OneOfKeyword
from constrain.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


class OneOf:
    """An annotation: ``Annotated[str, OneOf(names)]`` is one of the names, of which there may be a million.

    The model cannot write anything else there. The values are read once, when the annotation is made. Other constraints
    of the field, such as its type, a pattern or bounds, leave out the values that they do not allow.

    Args:
        values: strings, numbers, booleans or dates, equal ones count once; or a ``Table``, with ``column``.
        column: name of the column; it may be left out if there is only one.
        table: in place of ``values``, the name of a table that ``tables=`` gives to each call, so that new values need
            no new type.
        given: with ``table``, another column, and the field of the answer with its value in the same row, as in
            ``given={"country": "country"}``. The field is a key of the same object, or a JSON Pointer as in
            ``AtLeast``; the model writes it first.

    Raises TypeError, ValueError, SchemaError and LimitError for values that cannot be.

    >>> import pydantic
    >>> from typing import Annotated
    >>> pydantic.TypeAdapter(Annotated[str, OneOf(["Ada", "Grace"])]).json_schema()["x-one-of"]["size"]
    2
    >>> pydantic.TypeAdapter(Annotated[str, OneOf(table="customers", column="name")]).json_schema()
    {'type': 'string', 'x-one-of': {'column': 'name', 'table': 'customers'}}
    """

    def __init__(
        self,
        values: Iterable[Any] | Table | None = None,
        column: str | None = None,
        *,
        table: str | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        if (values is None) == (table is None):
            raise TypeError("OneOf needs values, or the name of a table, as in OneOf(table='customers', column='name')")
        if given is not None and table is None:
            raise TypeError("given needs the name of a table, as in OneOf(table='places', column='city', given=...)")
        self._given = {GIVEN: {name: field_pointer(field) for name, field in given.items()}} if given else {}
        if values is None:
            self._keyword = OneOfKeyword(table, column)
        else:
            self._keep(values if isinstance(values, Table) else Table(values), column)

    @classmethod
    def sqlite(cls, path: str | PathLike[str], table: str, column: str) -> OneOf:
        """Returns the values of a column of an SQLite database."""
        return cls._of(Table.sqlite(path, table, [column]), column, table)

    @classmethod
    def sql(cls, url: str, table: str, column: str) -> OneOf:
        """Returns the values of a column of any database that SQLAlchemy knows (extra ``sql``)."""
        return cls._of(Table.sql(url, table, [column]), column, table)

    @classmethod
    def file(cls, path: str | PathLike[str], column: str) -> OneOf:
        """Returns the values of a column of a CSV file, or of a Parquet file (extra ``tables``)."""
        return cls._of(Table.file(path, [column]), column, Path(path).name)

    @classmethod
    def _of(cls, table: Table, column: str, name: str) -> OneOf:
        made = cls.__new__(cls)
        made._given = {}
        made._keep(table, column, name)
        return made

    def _keep(self, table: Table, column: str | None, name: str | None = None) -> None:
        self._column = table.column(column)
        if not len(self._column):
            where = OneOfKeyword(name, column)
            raise ValueError(f"{where} has no values; OneOf needs one at least")
        self._keyword = OneOfKeyword(name, column, self._column.digest, len(self._column))

    def __repr__(self) -> str:
        """Returns the names and the number of values."""
        size = self._keyword.size
        return f"OneOf(<{self._keyword}{'' if size is None else f', {size} values'}>)"

    def keyword(self) -> dict[str, Any]:
        """Returns the value of ``x-one-of`` in a JSON Schema."""
        return {**self._keyword.value(), **self._given}

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler | None = None
    ) -> dict[str, Any]:
        """Adds the keyword to the schema of a field. Raises ``TypeError`` for the class in place of an instance."""
        if handler is None:  # Pydantic called the class itself, with two arguments
            raise TypeError("OneOf is a class; write Annotated[str, constrain.OneOf(values)]")
        schema = handler.resolve_ref_schema(handler(core_schema))
        branches = schema.get("anyOf", ())
        if {"type": "null"} in branches:  # the values of str | None are those of the table, and null
            kept = [each if each == {"type": "null"} else {**each, ONE_OF: self.keyword()} for each in branches]
            return {**schema, "anyOf": kept}
        return {**schema, ONE_OF: self.keyword()}
