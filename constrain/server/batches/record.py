"""A batch: what is known of it, its states, and the JSON object that clients see.

    validating --> in_progress --> finalizing --> completed
        |               |               |
        |               |               +-------> expired       its time was up
        |               +--> cancelling --> cancelled           its client does not want it any more

``validating`` may become ``cancelling``, too, and any state that has not ended may become ``failed``: the file is
wrong, or the server had a fault. A change of the state is on the disk before anything depends on it, except a fault
that cannot be written: the next server then runs the batch again.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from openai.types import Batch as BatchObject

from constrain.batch.disk import write_durably

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger("constrain.server")

_NAME = "record.json"

Status = Literal["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"]

ENDED: tuple[Status, ...] = ("failed", "completed", "expired", "cancelled")
"""States in which nothing happens any more."""


@dataclass(slots=True)
class Usage:
    """Tokens of all answers of a batch."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, usage: dict[str, Any]) -> None:
        """Adds the member ``usage`` of a response of any endpoint."""
        self.input_tokens += usage.get("input_tokens", usage.get("prompt_tokens", 0))
        self.output_tokens += usage.get("output_tokens", usage.get("completion_tokens", 0))
        read = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
        written = usage.get("output_tokens_details") or usage.get("completion_tokens_details") or {}
        self.cached_tokens += read.get("cached_tokens") or 0
        self.reasoning_tokens += written.get("reasoning_tokens") or 0

    def describe(self) -> dict[str, Any]:
        """Returns the member ``usage`` of a batch."""
        return {
            "input_tokens": self.input_tokens,
            "input_tokens_details": {"cached_tokens": self.cached_tokens},
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens + self.output_tokens,
        }


@dataclass(slots=True)
class BatchRecord:
    """A batch. Times are seconds since 1970; ``None`` for what has not happened.

    Attributes:
        id: name for clients, and of the folder of the batch.
        owner: name of the owner in files (see ``BatchFolder.tag``).
        endpoint: path that all requests go to.
        input_file_id: file that it was made from, which may be deleted since.
        completion_window: time to answer all requests, as the client wrote it.
        created_at, expires_at: begin and end of that time.
        metadata: facts that the client attached to it.
        keep_seconds: how long the files of answers and errors are kept.
        status: its state.
        reason: state that follows ``finalizing`` and ``cancelling``.
        model: the model that all requests name, if it is one.
        total, completed, failed: number of requests, of answers, and of errors.
        errors: wrong lines of the file, or the fault that ended the batch.
        output_file_id, error_file_id: files of answers and errors.
        usage: tokens of all answers, known at the end.
    """

    id: str
    owner: str
    endpoint: str
    input_file_id: str
    completion_window: str
    created_at: int
    expires_at: int
    metadata: dict[str, str] | None
    keep_seconds: int
    status: Status = "validating"
    reason: Status = "completed"
    model: str | None = None
    total: int = 0
    completed: int = 0
    failed: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    output_file_id: str | None = None
    error_file_id: str | None = None
    usage: dict[str, Any] | None = None
    in_progress_at: int | None = None
    finalizing_at: int | None = None
    completed_at: int | None = None
    failed_at: int | None = None
    expired_at: int | None = None
    cancelling_at: int | None = None
    cancelled_at: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing happens any more."""
        return self.status in ENDED

    def entering(self, status: Status, now: float, **facts: Any) -> BatchRecord:
        """Returns the batch in another state, with the time and other facts."""
        facts[f"{status}_at"] = int(now)
        return replace(self, status=status, **facts)

    def become(self, other: BatchRecord) -> None:
        """Takes over all facts of another record of the same batch."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))

    def describe(self) -> dict[str, Any]:
        """Returns the batch as a JSON object for clients."""
        hidden = ("owner", "keep_seconds", "reason", "total", "completed", "failed", "errors")
        facts = {name: value for name, value in asdict(self).items() if name not in hidden}
        if not self.has_ended:  # the files are named before they are made
            facts["output_file_id"] = facts["error_file_id"] = None
        counts = {"total": self.total, "completed": self.completed, "failed": self.failed}
        errors = {"object": "list", "data": self.errors} if self.errors else None
        described = BatchObject.model_validate({**facts, "object": "batch", "request_counts": counts, "errors": errors})
        return described.model_dump(mode="json")


def new_batch_id() -> str:
    """Returns the id of a new batch."""
    return f"batch_{secrets.token_hex(12)}"


def write_record(folder: Path, record: BatchRecord) -> None:
    """Writes the record of a batch to its folder. On return it is on the disk. Raises ``OSError``."""
    write_durably(folder / _NAME, json.dumps(asdict(record)).encode())


def read_records(folder: Path) -> list[BatchRecord]:
    """Reads all batches in a folder, oldest first.

    A batch whose record was never written does not exist: its folder is removed. One whose record is damaged is left
    as it is, with an entry in the log.
    """
    found = []
    for each in list(folder.iterdir()):
        path = each / _NAME
        if not each.is_dir():
            continue
        if not path.exists():
            shutil.rmtree(each)
        elif (record := _read_record(path)) is not None:
            found.append(record)
    return sorted(found, key=lambda each: (each.created_at, each.id))


def _read_record(path: Path) -> BatchRecord | None:
    try:
        return BatchRecord(**json.loads(path.read_bytes()))
    except (ValueError, TypeError):
        _log.exception("%s is damaged; its batch is not there any more", path)
        return None
