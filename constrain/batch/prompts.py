"""The prompt of a row: the text or the messages in a column, or a template with columns in braces."""

from __future__ import annotations

import string
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.batch.lines import LineError, known_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from constrain.batch.lines import Id

Row: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The columns that ``--prompt`` and ``--id-column`` name.

    Attributes:
        prompt: column or template of the prompt; with it, columns that are not named are ignored. ``None`` takes all
            columns as fields of a line.
        id_column: column that names the rows; ``None`` for the field ``id``, or for no names with ``prompt``.
    """

    prompt: str | None = None
    id_column: str | None = None

    def check(self, columns: Collection[str]) -> None:
        """Raises ``ValueError`` for columns that a table does not have."""
        check_column("--id-column", self.id_column, columns)
        if self.prompt is not None:
            check_prompt("--prompt", self.prompt, columns)
        elif not {"prompt", "messages"} & {*columns}:
            raise ValueError(
                f"the table has the columns {', '.join(columns)}, and neither prompt nor messages; name the column or "
                "the template of the prompt with --prompt"
            )
        elif self.id_column not in (None, "id") and "id" in columns:
            raise ValueError(f"--id-column is {self.id_column!r}, and the table has a column id, too; leave one out")

    def needed(self, columns: Collection[str]) -> list[str]:
        """Returns the columns that are read."""
        if self.prompt is None:
            return list(columns)
        found = prompt_columns(self.prompt, columns)
        return list(dict.fromkeys([*found, *([] if self.id_column is None else [self.id_column])]))

    @property
    def name_column(self) -> str | None:
        """Column of the ids of rows; ``None`` if rows have none."""
        return self.id_column or (None if self.prompt is not None else "id")

    def id_of(self, row: object) -> Id:
        """Returns the id of a row, if it is known."""
        return known_id({"id": row.get(self.name_column)}) if isinstance(row, dict) else None

    def fields(self, row: Row) -> dict[str, Any]:
        """Returns the fields of a line for a row. Raises ``LineError``."""
        if self.prompt is None and self.id_column is None:
            return {**row}
        named: dict[str, Any] = {}
        if self.id_column is not None:
            if self.id_column not in row:
                raise LineError(f"there is no {self.id_column!r}, which --id-column names")
            if row[self.id_column] is not None:
                named["id"] = row[self.id_column]
        if self.prompt is None:
            others = {name: value for name, value in row.items() if name != self.id_column}
            if "id" in others:
                raise LineError(f"--id-column is {self.id_column!r}, and there is an id, too", id=known_id(others))
            return {**others, **named}
        prompt = prompt_of(self.prompt, row, known_id(named))
        return {**named, ("prompt" if isinstance(prompt, str) else "messages"): prompt}


def check_names(columns: Collection[str]) -> None:
    """Raises ``ValueError`` if two columns of a table have one name."""
    name, count = max(Counter(columns).items(), key=itemgetter(1), default=("", 0))
    if count > 1:
        raise ValueError(f"two columns are called {name!r}; rename one")


def check_column(place: str, column: str | None, columns: Collection[str]) -> None:
    """Raises ``ValueError`` if a table does not have a column, which ``place`` names."""
    if column is not None and column not in columns:
        raise ValueError(f"{place} is {column!r}; the table has the columns {', '.join(columns)}")


def check_prompt(place: str, prompt: str, columns: Collection[str]) -> None:
    """Raises ``ValueError`` if a prompt is neither a column of a table nor a template with its columns."""
    if prompt in columns:
        return
    named = template_columns(prompt)
    if not named:
        raise ValueError(
            f"{place} is {prompt!r:.80}, which is neither a column nor a template with columns in braces; "
            f"the table has the columns {', '.join(columns)}"
        )
    for column in named:
        if column not in columns:
            raise ValueError(
                f"{place} has {{{column}}}, and the table has the columns {', '.join(columns)}; write other braces "
                "twice"
            )


def prompt_columns(prompt: str, columns: Collection[str]) -> list[str]:
    """Returns the columns of a table that a prompt is made of."""
    return [prompt] if prompt in columns else template_columns(prompt)


def prompt_of(prompt: str, row: Row, name: Id) -> str | list[dict[str, Any]]:
    """Returns the text or the messages of a row. Raises ``LineError``, with the name of the row."""
    if prompt in row or not (columns := template_columns(prompt)):
        if prompt not in row:
            raise LineError(f"there is no {prompt!r}, which has the prompt", id=name)
        return require_prompt(row[prompt], name)
    for column in columns:
        value = row.get(column)
        if value is None:
            problem = "is null" if column in row else "is missing"
            raise LineError(f"the column {column!r}, which the prompt needs, {problem}", id=name)
        if isinstance(value, bytes):
            raise LineError(f"the column {column!r}, which the prompt needs, has bytes in place of a text", id=name)
    return prompt.format_map(row)


def require_prompt(found: Any, name: Id) -> str | list[dict[str, Any]]:
    """Returns a prompt that is a text or a list of messages; of messages, members that are null are left out.

    Raises ``LineError`` for other values.
    """
    if isinstance(found, str):
        return found
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        return [{key: value for key, value in each.items() if value is not None} for each in found]
    raise LineError(f"the prompt is {found!r:.80}; it must be a text or a list of messages", id=name)


def template_columns(template: str) -> list[str]:
    """Returns the columns in the braces of a template. Raises ``ValueError`` for a template that cannot be read."""
    found = []
    for _, column, form, conversion in string.Formatter().parse(template):
        if column is None:
            continue
        if not column.isidentifier() or form or conversion:
            raise ValueError(f"prompt has {{{column}}}; braces hold the name of a column; write other braces twice")
        found.append(column)
    return found
