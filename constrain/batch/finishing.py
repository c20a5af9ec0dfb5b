"""The end of a batch: its output is made of the lines that were kept while it ran.

A local file of JSON Lines is its own output. The lines of a table ``answers.parquet`` are in ``answers.parquet.jsonl``;
those of a file in a store are in parts.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from constrain.batch.files import notes_of
from constrain.batch.inputs import table_kind
from constrain.batch.locations import StoredFile, open_read, remove, require_pyarrow, size_of, write_whole
from constrain.batch.notes import compare_note
from constrain.batch.records import is_error
from constrain.batch.stores.parts import StoredErrors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from constrain.batch.files import BatchFiles
    from constrain.batch.locations import Location
    from constrain.batch.scanning import Scan
    from constrain.language.source import Source

_LONGEST_ERROR = 64 << 20
"""Bytes of a first line that are read to see whether it is an error."""


@dataclass(frozen=True, slots=True)
class Target:
    """A file that answers or errors go to in the end.

    Attributes:
        location: file.
        table: ``"parquet"`` or ``"csv"``; ``None`` for JSON Lines.
        lines: file, or file in a store, whose lines or parts are kept while the batch runs.
    """

    location: Location
    table: str | None
    lines: Location

    def written(self) -> list[Location]:
        """Returns the files that are written: the target itself, its lines, and what belongs to them."""
        own = [self.location] if self.lines == self.location else [self.location, self.lines]
        return [*own, notes_of(self.lines)]

    def require_known(self, *, restart: bool) -> None:
        """Raises ``ValueError`` for a table that is there, and that no batch has made."""
        if self.lines == self.location or restart:
            return
        if size_of(self.location) is not None and size_of(notes_of(self.lines)) is None:
            compare_note(None, {}, str(self.location), str(notes_of(self.lines)))

    def require_errors(self) -> None:
        """Raises ``ValueError`` for a file with a content that is not the errors of a batch: it would be lost."""
        for location in self.written()[:-1]:
            if not size_of(location):
                continue
            if location == self.location and self.table is not None:
                from constrain.batch.tables.writing import has_errors

                known = has_errors(location, self.table)
            else:
                with open_read(location) as file:
                    known = is_error(file.readline(_LONGEST_ERROR))
            if not known:
                fix = "name another file with --errors, or delete this one"
                raise ValueError(f"{location} exists, and has no errors of a batch; {fix}")


def target_of(location: Location) -> Target:
    """Returns the target in a file. Raises ``MissingExtraError`` for a table without pyarrow, and ``ValueError``."""
    if isinstance(location, StoredFile) and location.is_folder():
        raise ValueError(f"{location} is not a file")
    kind = table_kind(location)
    if kind is not None:
        require_pyarrow(str(location))
    lines = location.with_name(location.name + ".jsonl") if kind and isinstance(location, Path) else location
    return Target(location, kind, lines)


def errors_beside(output: Location) -> Location:
    """Returns the file of errors for an output: JSON Lines also for a table, whose name it has as a whole."""
    if table_kind(output):
        return output.with_name(f"{output.name}.errors.jsonl")
    return output.with_name(f"{output.stem}.errors{output.suffix}")


def finish(files: BatchFiles, output: Target, errors: Target, schema: str | Source | None, scan: Scan) -> None:
    """Makes the files of answers and errors of the lines that were kept; one that is current stays as it is.

    Args:
        files: files of the batch, which are open.
        output: target of the answers.
        errors: target of the errors; without errors, it is removed.
        schema: schema or grammar of most answers.
        scan: facts about the input.

    Raises ``OSError``.
    """
    files.flush()
    _finish_answers(files, output, schema, scan)
    _finish_errors(files, errors)


def _finish_answers(files: BatchFiles, output: Target, schema: str | Source | None, scan: Scan) -> None:
    if output.table is None and isinstance(output.location, Path):
        return
    answers = files.answers
    size = size_of(output.location)
    if size is not None and answers.finished == {"answers": answers.count, "bytes": size}:
        return
    if output.table is None:
        count = _join(output.location, answers.read())
    else:
        from constrain.batch.tables.writing import write_answers

        with _open_lines(output.lines, answers.read()) as lines:
            own = scan.own_languages
            count = write_answers(lines, output.location, output.table, None if own else schema, own=own, scan=scan)
    answers.count = count
    answers.note_finished({"answers": count, "bytes": size_of(output.location) or 0})


def _finish_errors(files: BatchFiles, errors: Target) -> None:
    if errors.table is None and isinstance(errors.location, Path):
        return
    lines = files.errors.read()
    first = next(lines, None)
    if first is None:
        remove(errors.location)
    elif errors.table is None:
        _join(errors.location, _chain(first, lines))
    else:
        from constrain.batch.tables.writing import write_errors

        with _open_lines(errors.lines, _chain(first, lines)) as file:
            write_errors(file, errors.location, errors.table)
    if isinstance(files.errors, StoredErrors):
        files.errors.clear()


def _chain(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _join(target: Location, lines: Iterable[bytes]) -> int:
    """Writes lines into one file; returns their number."""
    count = 0
    with write_whole(target) as file:
        for line in lines:
            file.write(line)
            count += 1
    return count


@contextlib.contextmanager
def _open_lines(kept: Location, lines: Iterable[bytes]) -> Iterator[BinaryIO]:
    """Yields the lines as a file in which one can seek; those of a store are copied to this machine.

    So are those of a file that was moved meanwhile.
    """
    if isinstance(kept, Path) and kept.is_file():
        with kept.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as copy:
        copy.writelines(lines)
        copy.seek(0)
        yield copy
