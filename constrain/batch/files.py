"""The files of a batch: prompts, answers, errors, and a note of the settings behind the answers.

Each answer is in its file once or not at all, even after an interruption: a line is one write that reaches the disk
before the next write begins, and reopening a file cuts off a half-written last line.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import BinaryIO

    from typing_extensions import Self

_NOT_AS_IS = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that JSON output escapes: some programs read them as line ends, and UTF-8 cannot encode surrogates."""


class BatchFiles:
    """The files that the answers of a batch go to. One process at a time may have them open.

    Args:
        output: file of answers: one JSON object per line, with the number of the prompt's line as ``line``.
        errors: file of failed lines in the same form. Opening it empties it, since lines without an answer are tried
            again.
        settings: settings that the answers depend on, as JSON values; kept in a file next to the output.
        restart: whether existing answers are thrown away.

    Attributes:
        answered: numbers of the lines that have an answer.

    Raises ``ValueError`` if the existing answers were made with other settings or are malformed, and ``OSError`` if a
    file cannot be written.
    """

    def __init__(self, output: Path, errors: Path, settings: Mapping[str, object], *, restart: bool) -> None:
        self._output, self._note = output, note_path(output)
        self._writing = threading.Lock()
        self.answered: set[int] = set()
        with contextlib.ExitStack() as opened:
            self._answers = opened.enter_context(output.open("ab", buffering=0))
            _lock(self._answers, output)
            if restart:
                self._answers.truncate(0)
            if self._answers.seek(0, os.SEEK_END):
                self._compare(settings)
                self._resume()
            else:
                write_durably(self._note, json.dumps(settings, indent=2).encode() + b"\n")
            self._errors = opened.enter_context(errors.open("wb", buffering=0))
            for folder in {output.parent, errors.parent}:
                flush_folder(folder)
            opened.callback(_remove_if_empty, errors)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def answer(self, record: Mapping[str, object]) -> None:
        """Writes one answer; on return it is on the disk. Any thread may call it. Raises ``OSError``."""
        with self._writing:
            _append(self._answers, record)

    def error(self, record: Mapping[str, object]) -> None:
        """Writes the reason why one line has no answer; on return it is on the disk. As ``answer``."""
        with self._writing:
            _append(self._errors, record)

    def _compare(self, settings: Mapping[str, object]) -> None:
        try:
            former = json.loads(self._note.read_bytes())
        except FileNotFoundError:
            former = None
        except ValueError as error:
            raise ValueError(f"{self._note} cannot be read ({error}); --restart overwrites {self._output}") from error
        if not isinstance(former, dict):
            raise ValueError(  # noqa: TRY004 - the file is wrong, not an argument's type
                f"{self._output} exists, but {self._note.name}, which records its settings, does not; "
                f"name another output, or overwrite this one with --restart"
            )
        changed = [
            key if isinstance(settings.get(key), dict) else f"{key} (it was {_describe_setting(former, key)})"
            for key in {**settings, **former}
            if former.get(key) != settings.get(key)
        ]
        if changed:
            raise ValueError(
                f"{self._output} was made with another {', another '.join(changed)}; restore the former settings, "
                f"name another output, or overwrite this one with --restart"
            )

    def _resume(self) -> None:
        """Reads the numbers of the answered lines and cuts off a half-written last line."""
        end = 0
        with self._output.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                self.answered.add(self._answered_line(number, line))
                end += len(line)
        self._answers.truncate(end)

    def _answered_line(self, number: int, line: bytes) -> int:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        found = record.get("line") if isinstance(record, dict) else None
        if not isinstance(found, int) or found in self.answered:
            problem = "is not an answer" if not isinstance(found, int) else f"answers line {found} a second time"
            raise ValueError(f"line {number} of {self._output} {problem}; repair it, or start over with --restart")
        return found


def check_paths(prompts: Path, written: tuple[Path, Path], *, read: Iterable[Path]) -> None:
    """Raises ``ValueError`` if two paths name the same file, or if the prompts cannot be read more than once."""
    if not prompts.is_file():
        raise ValueError(f"{prompts} is not a file" if prompts.exists() else f"{prompts}: there is no such file")
    roles = [prompts, *written, note_path(written[0]), *read]
    seen: set[Path] = set()
    for path in (each.resolve() for each in roles[:4]):
        if path in seen or path in {each.resolve() for each in roles[4:]}:
            raise ValueError(f"{path} is named for two purposes")
        seen.add(path)
    for path in written:
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is not a file")


def note_path(output: Path) -> Path:
    """Returns the path of the note that records the settings of an output."""
    return output.with_name(output.name + ".run.json")


def _describe_setting(settings: dict[str, Any], key: str) -> str:
    value = settings.get(key)
    return "not given" if value is None else json.dumps(value)


def _lock(file: BinaryIO | Any, path: Path) -> None:
    """Locks a file until it is closed; the end of the process closes it, too."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(f"another process is writing {path}") from error


def _append(file: Any, record: Mapping[str, object]) -> None:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    data = _NOT_AS_IS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"
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


def write_durably(path: Path, data: bytes) -> None:
    """Writes a file atomically, in place of an older one: it appears whole or not at all, and is then on the disk."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    flush_folder(path.parent)


def _remove_if_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        path.unlink()


def flush_folder(folder: Path) -> None:
    """Flushes a folder to the disk, so that the names of new files survive a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
