"""Rows of a table become tasks: the prompt, the name of the row, its seed, and the texts that it quotes from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.batch.lines import LineError, Task
from constrain.batch.prompts import (
    Row,
    check_column,
    check_names,
    check_prompt,
    prompt_columns,
    prompt_of,
    require_prompt,
)
from constrain.batch.tables.cells import drop_nulls
from constrain.llama.decoding.ranges import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from constrain.batch.lines import Id
    from constrain.batch.tables.cells import RawRow
    from constrain.generation.options import ChatOptions

PromptOf: TypeAlias = "str | Callable[[Row], Any]"
"""A column with texts or lists of messages; a template with columns in braces; or a function of a row."""


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes the task of a row.

    Attributes:
        prompt: where the prompt of a row comes from.
        id_column: column that names the rows; ``None`` names a row by its prompt.
        source_columns: columns with the texts to quote from, by name of the source.
        schema: schema or grammar of all answers.
        options: options of all answers; ``seed`` is that of the row with the name 0.
        voters: number of answers that vote; ``None`` without a vote.
        n: number of answers to a row.
    """

    prompt: PromptOf
    id_column: str | None
    source_columns: Mapping[str, str]
    schema: object
    options: ChatOptions
    voters: int | None = None
    n: int = 1

    def check(self, columns: Collection[str]) -> None:
        """Raises ``ValueError`` for columns that are not there, and for two of one name."""
        check_names(columns)
        check_column("id_column", self.id_column, columns)
        for name, column in self.source_columns.items():
            check_column(f"source_columns[{name!r}]", column, columns)
        if isinstance(self.prompt, str):
            check_prompt("prompt", self.prompt, columns)

    def needed(self, columns: Collection[str]) -> list[str]:
        """Returns the columns that are read: all of them for a function, which may look at any."""
        if callable(self.prompt):
            return list(columns)
        named = [] if self.id_column is None else [self.id_column]
        return list(dict.fromkeys([*prompt_columns(self.prompt, columns), *named, *self.source_columns.values()]))

    def read(self, row: RawRow) -> Task:
        """Returns the task of a row. Raises ``LineError``."""
        if isinstance(row, LineError):
            raise row
        if not callable(self.prompt):  # a function gets the row as it is
            row = {column: drop_nulls(value) for column, value in row.items()}
        name = None if self.id_column is None else self._name(row[self.id_column])
        prompt = self._read_prompt(row, name)
        seed = self.options.get("seed") or 0
        options: ChatOptions = {**self.options}
        options["seed"] = seed_of(
            seed, number_of(_identity(prompt) if name is None else name) * (self.voters or self.n)
        )
        if self.source_columns:
            own = {each: self._source(row, column, name) for each, column in self.source_columns.items()}
            options["sources"] = {**(options.get("sources") or {}), **own}
        return Task(0, name, prompt, self.schema, options, self.voters)

    def _name(self, given: object) -> Id:
        if isinstance(given, str | int | float) and not isinstance(given, bool):
            return given
        raise LineError(f"the column {self.id_column!r} has {given!r:.80}; the name of a row is a text or a number")

    def _read_prompt(self, row: Row, name: Id) -> Any:
        if not callable(self.prompt):
            return prompt_of(self.prompt, row, name)
        try:
            found = self.prompt(row)
        except Exception as error:
            raise LineError(f"prompt raised {type(error).__name__}: {error}", id=name) from error
        return require_prompt(found, name)

    def _source(self, row: Row, column: str, name: Id) -> Any:
        found = row[column]
        texts = [found] if isinstance(found, str) else found
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            return found
        raise LineError(f"the column {column!r} has {found!r:.80}; a source is a text or a list of texts", id=name)


def number_of(name: Id) -> int:
    """Returns the number of a row, which changes its seed: an integer itself, for another name one of 64 bits."""
    if isinstance(name, int):
        return name
    return int.from_bytes(hashlib.sha256(json.dumps(name).encode()).digest()[:8], "big")


def _identity(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True, default=repr)
