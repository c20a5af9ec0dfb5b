"""The answers of a batch on disk: a journal while it runs, and files for its client at its end.

The journal is that of ``constrain batch``: each answer is in it once or not at all, even after a crash.

    record.json        the batch (``record``)
    input.jsonl        its requests: the client's file under a second name, so that the client may delete it
    answers.jsonl      answers, in the order they finished, each with the number of its line
    failures.jsonl     errors, in the same form
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.batch.files import BatchFiles
from constrain.batch.lines import read_lines
from constrain.server.batches.lines import name_of
from constrain.server.batches.record import Usage, write_record
from constrain.system import flush_folder

if TYPE_CHECKING:
    from pathlib import Path

    from constrain.server.batches.files import FileStore
    from constrain.server.batches.record import BatchRecord

_NUMBER = re.compile(rb'\{"line": (\d+), ')
"""The beginning of a line of the journal."""

_REASONS = {
    "expired": ("batch_expired", "This request could not be answered before the completion window was over."),
    "cancelled": ("batch_cancelled", "This request was not answered, because the batch was cancelled."),
}
"""Codes and messages of requests without an answer, by the state that the batch ends in."""


class Journal:
    """The files of a batch in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "input.jsonl"
        self.answers = folder / "answers.jsonl"
        self.failures = folder / "failures.jsonl"

    def create(self, source: Path, record: BatchRecord) -> None:
        """Makes the folder, with the input and the record, or nothing. Raises ``OSError``."""
        self.folder.mkdir(mode=0o700)
        try:
            os.link(source, self.input)
            write_record(self.folder, record)
            flush_folder(self.folder.parent)
        except OSError:
            shutil.rmtree(self.folder)
            raise

    def count(self) -> tuple[int, int]:
        """Returns the number of answers and of errors. Raises ``OSError``."""
        return _count_lines(self.answers), _count_lines(self.failures)

    def open(self, record: BatchRecord) -> BatchFiles:
        """Opens the journal to go on with the requests that have neither answer nor error. Raises ``OSError``."""
        settings = {"endpoint": record.endpoint, "input_file_id": record.input_file_id}
        try:
            return BatchFiles(self.answers, self.failures, settings, restart=False, keeps_errors=True)
        except ValueError as error:
            raise OSError(str(error)) from error

    def finish(self, record: BatchRecord, store: FileStore, longest: int) -> dict[str, Any]:
        """Makes the files of answers and errors, in the order of the input; returns facts for the record.

        May be called again after an interruption: the files have the same ids then. Raises ``OSError``. ``longest``:
        bytes of a line.
        """
        usage = Usage()
        answered = self._sort(self.answers, "output.new", usage)
        failed = self._sort(self.failures, "errors.new", None) - answered
        if record.reason in _REASONS:
            failed |= self._add_unanswered(record, answered | failed, longest)
        made: dict[str, str | None] = {"output": None, "error": None}
        for kind, file_id, numbers, name in (
            ("output", record.output_file_id, answered, "output.new"),
            ("error", record.error_file_id, failed, "errors.new"),
        ):
            if numbers and file_id is not None:
                shown = f"{record.id}_{kind}.jsonl"
                store.add_output(file_id, record.owner, shown, self.folder / name, record.keep_seconds)
                made[kind] = file_id
        return {
            "output_file_id": made["output"],
            "error_file_id": made["error"],
            "total": max(record.total, len(answered) + len(failed)),
            "completed": len(answered),
            "failed": len(failed),
            "usage": usage.describe(),
        }

    def remove(self) -> None:
        """Removes everything but the record, once the batch has ended."""
        for path in self.folder.iterdir():
            if path.name != "record.json":
                path.unlink(missing_ok=True)

    def _sort(self, source: Path, name: str, usage: Usage | None) -> set[int]:
        """Writes the lines of a journal in the order of the input, without their numbers; returns the numbers.

        A last line that was not written whole is left out.
        """
        places: dict[int, tuple[int, int]] = {}
        source.touch()
        with source.open("rb") as file, (self.folder / name).open("wb") as output:
            while (line := file.readline()).endswith(b"\n"):
                found = _NUMBER.match(line)
                if found is None:
                    raise OSError(f"{source}: this is not a line of a journal: {line[:80]!r}")
                places[int(found[1])] = (file.tell() - len(line), len(line))
                if usage is not None:
                    usage.add(json.loads(line)["response"]["body"].get("usage") or {})
            for number in sorted(places):
                begin, length = places[number]
                file.seek(begin)
                output.write(_NUMBER.sub(b"{", file.read(length), count=1))
        return set(places)

    def _add_unanswered(self, record: BatchRecord, known: set[int], longest: int) -> set[int]:
        """Adds an error for each request that has neither an answer nor an error; returns their numbers."""
        code, message = _REASONS[record.reason]
        added = set()
        with (self.folder / "errors.new").open("ab") as file:
            for number, text in read_lines(self.input, longest):
                if number in known:
                    continue
                error = {"code": code, "message": message}
                file.write(json.dumps(outcome(name_of(text), None, error)).encode() + b"\n")
                added.add(number)
        return added


def _count_lines(path: Path) -> int:
    """Returns the number of whole lines of a file; 0 if it is not there. Raises ``OSError``."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(partial(file.read, 1 << 20), b""))


def outcome(custom_id: str, response: dict[str, Any] | None, error: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the line that a client reads for one of its requests."""
    name = f"batch_req_{secrets.token_hex(12)}"
    return {"id": name, "custom_id": custom_id, "response": response, "error": error}
