"""The files of a batch: answers, errors, and a note of the settings behind the answers.

Each answer is in its file once or not at all, even after an interruption: a line is one write that reaches the disk
before the next write begins, and reopening a file cuts off a half-written last line. What stores promise instead is
said in ``stores.parts``.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from constrain.batch.disk import write_durably
from constrain.batch.locations import key_of, size_of
from constrain.batch.notes import compare_note, note_text, read_finished
from constrain.batch.records import json_line, last_certificate, line_number
from constrain.batch.stores.parts import StoredAnswers, StoredErrors, parts_folder
from constrain.certificates.certificate import chain
from constrain.system import flush_folder, lock_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import BinaryIO

    from typing_extensions import Self

    from constrain.batch.inputs import Input
    from constrain.batch.locations import Location
    from constrain.batch.notes import Finished


class Lines(Protocol):
    """Lines of answers or errors that a batch writes."""

    def append(self, record: Mapping[str, object]) -> None:
        """Writes a record."""

    def flush_due(self) -> None:
        """Uploads what has waited long enough. Raises ``OSError``."""

    def flush(self) -> None:
        """Uploads all records. Raises ``OSError``."""

    def read(self) -> Iterator[bytes]:
        """Yields the lines of all records, each once, in the order they were written."""

    def close(self) -> None:
        """Ends the writing. Raises ``OSError``."""


class AnswerLines(Lines, Protocol):
    """Lines of answers, with a note of their settings.

    Attributes:
        answered: numbers of the lines that had an answer when the batch began.
        count: number of answers.
        finished: facts about the output that was made of the answers, if there is one.
    """

    answered: set[int]
    count: int
    finished: Finished | None

    def note_finished(self, finished: Finished) -> None:
        """Notes that an output was made of the answers. Raises ``OSError``."""


class BatchFiles:
    """The files that the answers of a batch go to. One process at a time may have them open.

    Args:
        output: file of answers: one JSON object per line, with the number of the prompt's line as ``line``. For a file
            of a store, the answers go into parts next to it.
        errors: file of failed lines in the same form. Opening it empties it, since lines without an answer are tried
            again, unless ``keeps_errors`` (on this machine only).
        settings: settings that the answers depend on, as JSON values; kept in a file next to the output.
        restart: whether existing answers are thrown away.
        prompts: input, if existing answers may be those to its first rows; the settings have its digest as ``input``.

    Attributes:
        answers, errors: lines written.
        answered, failed: numbers of the lines that had an answer, or a kept error, when the files were opened.

    Raises ``ValueError`` if the existing answers were made with other settings or are malformed, and ``OSError`` if a
    file cannot be written.
    """

    def __init__(
        self,
        output: Location,
        errors: Location,
        settings: Mapping[str, object],
        *,
        restart: bool,
        keeps_errors: bool = False,
        prompts: Input | None = None,
    ) -> None:
        self._writing = threading.Lock()
        self._last: str | None = None  # the hash of the last certificate
        self._knows_last = False
        with contextlib.ExitStack() as opened:
            self.answers: AnswerLines = (
                AnswerFile(output, settings, restart=restart, prompts=prompts)
                if isinstance(output, Path)
                else StoredAnswers(output, settings, restart=restart, prompts=prompts)
            )
            opened.callback(self.answers.close)
            self.errors: Lines = (
                ErrorFile(errors, keeps=keeps_errors) if isinstance(errors, Path) else StoredErrors(errors)
            )
            opened.callback(self.errors.close)
            for folder in {each.parent for each in (output, errors) if isinstance(each, Path)}:
                flush_folder(folder)
            opened.pop_all()
        self.answered = self.answers.answered
        self.failed = self.errors.failed if isinstance(self.errors, ErrorFile) else set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failures = [failure for lines in (self.answers, self.errors) if (failure := _close(lines)) is not None]
        if failures and not isinstance(error, OSError):  # else the same cause is told already
            raise failures[0]

    def answer(self, record: Mapping[str, object]) -> None:
        """Writes one answer; on return it is on the disk, if the output is a file. Any thread may call it.

        Raises ``OSError``.
        """
        with self._writing:
            self.answers.append(self._chain(record))

    def _chain(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns a record whose certificate, if there is one, names the one before it in the file."""
        if "certificate" not in record:
            return record
        if not self._knows_last:
            self._last, self._knows_last = last_certificate(self.answers.read()), True
        certificate = chain(record["certificate"], self._last)
        self._last = certificate["sha256"]
        return {**record, "certificate": certificate}

    def error(self, record: Mapping[str, object]) -> None:
        """Writes the reason why one line has no answer, as ``answer``."""
        with self._writing:
            self.errors.append(record)

    def flush_due(self) -> None:
        """Uploads what has waited long enough, if the output is in a store. Raises ``OSError``."""
        with self._writing:
            self.answers.flush_due()
            self.errors.flush_due()

    def flush(self) -> None:
        """Uploads everything, if the output is in a store. Raises ``OSError``."""
        with self._writing:
            self.answers.flush()
            self.errors.flush()


class AnswerFile:
    """A file of answers on this machine. Arguments and errors are those of ``BatchFiles``."""

    def __init__(
        self, output: Path, settings: Mapping[str, object], *, restart: bool, prompts: Input | None = None
    ) -> None:
        self._output, self._note, self._settings = output, note_path(output), settings
        self.answered: set[int] = set()
        self.finished: Finished | None = None
        with contextlib.ExitStack() as opened:
            self._file = opened.enter_context(output.open("ab", buffering=0))
            _lock(self._file, output)
            if restart:
                self._file.truncate(0)
            note = None
            if self._file.seek(0, os.SEEK_END):
                note = self._note.read_bytes() if self._note.exists() else None
                self._settings = compare_note(note, settings, str(output), str(self._note), prompts)
                self.answered = _resume(self._file, output)
                self.finished = read_finished(note or b"{}")
            if note != (text := note_text(self._settings, self.finished)):
                write_durably(self._note, text)
            opened.pop_all()
        self.count = len(self.answered)

    def append(self, record: Mapping[str, object]) -> None:
        """Writes one answer; on return it is on the disk. Raises ``OSError``."""
        _append(self._file, record)
        self.count += 1

    def flush_due(self) -> None:
        """Does nothing: each answer is on the disk."""

    flush = flush_due

    def read(self) -> Iterator[bytes]:
        """Yields the lines of all answers."""
        with self._output.open("rb") as file:
            yield from file

    def note_finished(self, finished: Finished) -> None:
        """Notes that an output was made of the answers. Raises ``OSError``."""
        self.finished = finished
        write_durably(self._note, note_text(self._settings, finished))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class ErrorFile:
    """A file of errors on this machine; an empty one is removed at the end. Arguments and errors: ``BatchFiles``.

    ``failed``: numbers of the lines whose errors were kept.
    """

    def __init__(self, path: Path, *, keeps: bool = False) -> None:
        self._path = path
        self.failed: set[int] = set()
        self._file = path.open("a+b", buffering=0)
        try:
            _lock(self._file, path)
            if keeps:
                self.failed = _resume(self._file, path)
            else:
                self._file.truncate(0)
        except BaseException:
            self._file.close()
            raise

    def append(self, record: Mapping[str, object]) -> None:
        """Writes one error; on return it is on the disk. Raises ``OSError``."""
        _append(self._file, record)

    def flush_due(self) -> None:
        """Does nothing: each error is on the disk."""

    flush = flush_due

    def read(self) -> Iterator[bytes]:
        """Yields the lines of all errors, also if the file was moved meanwhile."""
        with os.fdopen(os.dup(self._file.fileno()), "rb") as file:
            file.seek(0)
            yield from file

    def close(self) -> None:
        """Closes the file. One that was moved meanwhile stays, and so does another one in its place."""
        with self._file:
            own = os.fstat(self._file.fileno())
            if own.st_size == 0 and self._path.exists() and os.path.samestat(own, self._path.stat()):
                self._path.unlink(missing_ok=True)


def check_locations(prompts: Location, written: Iterable[Location], *, read: Iterable[Path]) -> None:
    """Raises ``ValueError`` if two locations name the same file, or if the prompts cannot be read more than once.

    ``written``: all files that are written, the output first; ``read``: other files that are read.
    """
    written = list(written)
    if size_of(prompts) is None:
        is_there = isinstance(prompts, Path) and prompts.exists()
        raise ValueError(f"{prompts} is not a file" if is_there else f"{prompts}: there is no such file")
    others = {key_of(path) for path in read}
    seen: set[str] = set()
    for location in (prompts, *written):
        key = key_of(location)
        if key in seen or key in others:
            raise ValueError(f"{key if isinstance(location, Path) else location} is named for two purposes")
        seen.add(key)
    for location in written:
        if isinstance(location, Path) and location.exists() and not location.is_file():
            raise ValueError(f"{location} is not a file")


def note_path(output: Path) -> Path:
    """Returns the path of the note that records the settings of an output."""
    return output.with_name(output.name + ".run.json")


def notes_of(lines: Location) -> Location:
    """Returns the file or folder that belongs to lines of answers: the note, or the folder of parts with it."""
    return note_path(lines) if isinstance(lines, Path) else parts_folder(lines)


def _close(lines: Lines) -> OSError | ValueError | None:
    """Closes lines; returns the error of their last upload, or that of a lock which is none any more."""
    try:
        lines.close()
    except (OSError, ValueError) as error:
        return error
    return None


def _lock(file: BinaryIO | Any, path: Path) -> None:
    """Locks a file until it is closed; the end of the process closes it, too."""
    try:
        lock_file(file)
    except BlockingIOError as error:
        raise ValueError(f"another process is writing {path}") from error


def _resume(file: BinaryIO | Any, path: Path) -> set[int]:
    """Returns the numbers of a file's lines, and cuts off a half-written last line. Raises ``ValueError``."""
    answered: set[int] = set()
    end = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                break
            found = line_number(line)
            if found is None or found in answered:
                problem = "is not an answer" if found is None else f"answers line {found} a second time"
                raise ValueError(f"line {number} of {path} {problem}; repair it, or start over with --restart")
            answered.add(found)
            end += len(line)
    file.truncate(end)
    return answered


def _append(file: Any, record: Mapping[str, object]) -> None:
    data = json_line(record)
    handle = file.fileno()
    end = os.fstat(handle).st_size
    try:
        written = file.write(data)
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, end)
        raise
    if written != len(data):
        os.ftruncate(handle, end)  # so that the next line does not stand behind half of this one
        raise OSError(f"{file.name}: a line was not written whole; is the disk full?")
