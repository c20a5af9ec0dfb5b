"""Answers and errors of a batch in a store: lines in numbered parts, which are uploaded now and then.

    answers.jsonl.parts/run.json               settings behind the answers
    answers.jsonl.parts/lock.json              the command that writes
    answers.jsonl.parts/000001-3fa4c1d2-51e8b4a0.jsonl  answers: a number, the owner of the lock, a digest of settings

A part is there whole or not at all, and is never written twice, so that two writers cannot overwrite each other. After
``kill -9``, at most the answers of the last ``PART_SECONDS`` are missing; they are answered again. A line that two
writers answered is read once. Parts of other settings are not read: a command without its lock may leave some.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from typing import TYPE_CHECKING

from constrain.batch.notes import FIRST_INPUT, compare_note, note_text, read_finished
from constrain.batch.records import json_line, line_number
from constrain.batch.stores.locks import StoreLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.batch.inputs import Input
    from constrain.batch.locations import StoredFile
    from constrain.batch.notes import Finished

PART_SECONDS = 30
"""Seconds that an answer waits for its upload, at most."""

PART_ANSWERS = 1_000
"""Answers of one part, at most."""

PART_BYTES = 16 << 20
"""Bytes of the answers after which a part is uploaded."""

_PART = re.compile(r"(\d{6,})-[0-9a-f]{8}(?:-([0-9a-f]{8}))?\.jsonl")
"""Names of parts; those of earlier versions have no digest."""


def parts_folder(target: StoredFile) -> StoredFile:
    """Returns the folder of the parts of a file in a store."""
    return target.with_name(target.name + ".parts")


class Parts:
    """Lines that go into numbered parts of a folder.

    ``writer``: end of the names of new parts; ``digest``: digest of the settings of the parts, for their names.
    """

    def __init__(self, folder: StoredFile, writer: str, digest: str | None = None) -> None:
        self._folder, self._writer, self.digest = folder, writer, digest
        found = [_PART.fullmatch(each.name) for each in folder.children()]
        self._number = max((int(each[1]) for each in found if each is not None), default=0)
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._since = 0.0

    def append(self, record: Mapping[str, object]) -> None:
        """Takes a record, which the next part will have."""
        if not self._waiting:
            self._since = time.monotonic()
        line = json_line(record)
        self._waiting.append(line)
        self._bytes += len(line)

    def is_due(self) -> bool:
        """Returns whether it is time to upload a part."""
        return bool(self._waiting) and (
            len(self._waiting) >= PART_ANSWERS
            or self._bytes >= PART_BYTES
            or time.monotonic() - self._since >= PART_SECONDS
        )

    def is_empty(self) -> bool:
        """Returns whether no record waits."""
        return not self._waiting

    def upload(self) -> None:
        """Uploads the records that wait. Raises ``StoreError``; they wait on then.

        A second attempt has another number: the first one may have been broken off after the part was there.
        """
        self._number += 1
        end = self._writer if self.digest is None else f"{self._writer}-{self.digest}"
        part = self._folder.child(f"{self._number:06}-{end}.jsonl")
        part.write(b"".join(self._waiting))
        self._waiting, self._bytes = [], 0

    def files(self) -> list[StoredFile]:
        """Returns the parts in the store, in order."""
        return [each for each in self._folder.children() if _PART.fullmatch(each.name)]

    def read(self) -> Iterator[tuple[StoredFile, bytes]]:
        """Yields the lines of the parts with these settings. A last line that was not written whole is left out."""
        for part in self.files():
            found = _PART.fullmatch(part.name)
            if found is None or found[2] not in (None, self.digest):
                continue
            with part.open_read() as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield part, line

    def clear(self) -> None:
        """Deletes the parts. Raises ``StoreError``."""
        for part in self.files():
            part.delete()


class StoredAnswers:
    """Answers in a store. Arguments and errors are those of ``BatchFiles``."""

    def __init__(
        self, output: StoredFile, settings: Mapping[str, object], *, restart: bool, prompts: Input | None = None
    ) -> None:
        folder = parts_folder(output)
        self._output, self._note, self._settings = output, folder.child("run.json"), settings
        self._prompts, self._failed = prompts, False
        self.answered: set[int] = set()
        self.finished: Finished | None = None
        folder.require_folder()
        self._lock = StoreLock(folder.child("lock.json"))
        try:
            self._parts = Parts(folder, self._lock.token, _digest(settings))
            if restart:
                self._lock.require()
                if self._note.size() is not None:
                    self._note.delete()  # first, so that parts which are left are not taken for answers of this run
                self._parts.clear()
            self._begin(restart=restart)
        except BaseException:
            self._lock.release()
            raise
        self.count = len(self.answered)

    def append(self, record: Mapping[str, object]) -> None:
        """Takes an answer; uploads a part if it is time. Raises ``StoreError``."""
        self._parts.append(record)
        self.count += 1
        self.flush_due()

    def flush_due(self) -> None:
        """Uploads a part if it is time. Raises ``StoreError``."""
        if self._parts.is_due():
            self.flush()

    def flush(self) -> None:
        """Uploads all answers. Raises ``StoreError``, also if another command has taken over the output."""
        if self._parts.is_empty():
            return
        try:
            self._lock.require()
            self._parts.upload()
        except OSError:
            self._failed = True
            raise

    def read(self) -> Iterator[bytes]:
        """Yields the lines of all answers that were uploaded, each once."""
        self._lock.require()
        seen: set[int] = set()
        for part, line in self._parts.read():
            number = self._number_of(part, line)
            if number not in seen:
                seen.add(number)
                yield line
        self._lock.require()  # before an output that is made of the lines takes the place of another one

    def note_finished(self, finished: Finished) -> None:
        """Notes that an output was made of the answers. Raises ``StoreError``."""
        self._lock.require()
        self.finished = finished
        self._note.write(note_text(self._settings, finished))

    def close(self) -> None:
        """Uploads the answers that wait, unless an upload has failed, and gives up the lock. Raises ``StoreError``."""
        try:
            if not self._failed:
                self.flush()
        finally:
            if self._failed:  # the store is gone, and each attempt takes seconds
                self._lock.abandon()
            else:
                self._lock.release()

    def _begin(self, *, restart: bool) -> None:
        note = self._note.read()
        if self._parts.files():
            self._settings = compare_note(note, self._settings, str(self._output), str(self._note), self._prompts)
            self._parts.digest = _digest(self._settings)
            for part, line in self._parts.read():
                self.answered.add(self._number_of(part, line))
            self.finished = read_finished(note or b"{}")
            if note != (text := note_text(self._settings, self.finished)):
                self._lock.require()
                self._note.write(text)
            return
        if note is None and not restart and self._output.size() is not None:
            compare_note(None, self._settings, str(self._output), str(self._note))
        self._lock.require()
        self._note.write(note_text(self._settings))

    def _number_of(self, part: StoredFile, line: bytes) -> int:
        found = line_number(line)
        if found is None:
            raise ValueError(f"{part}: this has a line that is not an answer; repair it, or start over with --restart")
        return found


def _digest(settings: Mapping[str, object]) -> str:
    """Returns a digest of settings, with the first input; one that is ``None`` counts as missing, as in notes."""
    given = {key: value for key, value in settings.items() if value is not None}
    given["input"] = given.pop(FIRST_INPUT, given.get("input"))
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:8]


class StoredErrors:
    """Errors in a store. Those of an earlier run are deleted at the beginning."""

    def __init__(self, errors: StoredFile) -> None:
        folder = parts_folder(errors)
        folder.require_folder()
        self._parts = Parts(folder, secrets.token_hex(4))
        self._parts.clear()
        self._failed = False

    def append(self, record: Mapping[str, object]) -> None:
        """Takes an error; uploads a part if it is time. Raises ``StoreError``."""
        self._parts.append(record)
        self.flush_due()

    def flush_due(self) -> None:
        """Uploads a part if it is time. Raises ``StoreError``."""
        if self._parts.is_due():
            self.flush()

    def flush(self) -> None:
        """Uploads all errors. Raises ``StoreError``."""
        if self._parts.is_empty():
            return
        try:
            self._parts.upload()
        except OSError:
            self._failed = True
            raise

    def read(self) -> Iterator[bytes]:
        """Yields the lines of all errors that were uploaded."""
        for _, line in self._parts.read():
            yield line

    def clear(self) -> None:
        """Deletes the parts, once the errors are in their file. Raises ``StoreError``."""
        self._parts.clear()

    def close(self) -> None:
        """Uploads the errors that wait, unless an upload has failed. Raises ``StoreError``."""
        if not self._failed:
            self.flush()
