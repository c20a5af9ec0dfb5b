"""The log on standard error: lines to read, or JSON objects for programs; one line per request.

Log lines may contain texts of clients (paths, texts in errors), but only escaped: no control character and no line
break passes unchanged. Keys, headers and bodies are never logged.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from constrain.server.http.account import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

    from constrain.server.config import LogFormat
    from constrain.server.http.account import Account

_events = logging.getLogger("constrain.server")
_requests = logging.getLogger("constrain.server.requests")

_INDENT = "    "
"""Indent of each further line of an entry: only the first line of an entry begins without it."""

_LOGGED_PATH = 200
"""Characters of a path that are logged; the rest is cut off."""


def log_config(form: LogFormat) -> dict[str, Any]:
    """Returns the configuration for ``logging.config.dictConfig``: all entries go to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"request": {"()": _RequestFilter}},
        "formatters": {"text": {"()": TextLines}, "json": {"()": JsonLines}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": form,
                "filters": ["request"],
            }
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {name: {"level": "INFO"} for name in ("constrain.llama", "constrain.server", "uvicorn")},
    }


def log_event(event: str, message: str, **facts: Any) -> None:
    """Logs an event of the server."""
    _events.info("%s", message, extra={"event": event, **facts})


def log_request(account: Account, scope: Scope) -> None:
    """Logs how a request was answered."""
    client = scope.get("client")
    seconds = round(time.monotonic() - account.begun, 3)
    facts = {
        "event": "request",
        "request_id": account.id,
        "method": scope["method"],
        "path": scope["path"][:_LOGGED_PATH],
        "status": account.status or None,
        "model": account.model,
        "seconds": seconds,
        "reason": account.reason,
        "prompt_tokens": account.prompt_tokens,
        "completion_tokens": account.completion_tokens,
        "limited_masks": account.limited_masks,
        "limits_met": list(account.limits_met),
        "client": client[0] if client else None,
    }
    pieces = [f"{facts['method']} {facts['path']} {account.status or 'left'} in {seconds:.3f} s"]
    if account.model is not None:
        pieces.append(f"{account.model}: {account.prompt_tokens} + {account.completion_tokens} tokens")
    if account.limited_masks:
        pieces.append(f"{account.limited_masks} masks limited by {' and '.join(account.limits_met)}")
    elif account.limits_met:
        pieces.append(f"limits met: {' and '.join(account.limits_met)}")
    pieces.append(f"from {facts['client']}")
    if account.reason is not None:
        pieces.append(f"because: {account.reason}")
    _requests.info("%s", ", ".join(pieces), extra=facts)


def escape_line(text: str) -> str:
    """Escapes characters that do not print as themselves, for one line of a log."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class TextLines(logging.Formatter):
    """Formats an entry as ``2026-11-22 21:43:09 INFO message (request)``; tracebacks follow, indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats an entry; see ``logging.Formatter``."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        entry = f"{when} {record.levelname:7} {record.getMessage()}"
        if request_id := getattr(record, "request_id", None):
            entry += f" ({request_id})"
        lines = [escape_line(entry)]
        if record.exc_info:
            lines += [_INDENT + escape_line(line) for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join(lines)


class JsonLines(JsonFormatter):
    """Formats an entry as a JSON object on one line: ``time``, ``level``, ``event``, ``message``, and further facts."""

    def __init__(self) -> None:
        # uvicorn's coloured texts and asyncio's task names are left out
        super().__init__("%(message)s", reserved_attrs=[*RESERVED_ATTRS, "color_message", "taskName"])

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: Mapping[str, Any]) -> None:
        """Adds the fields of an entry; see ``JsonFormatter``."""
        log_data["time"] = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        log_data["level"] = record.levelname.lower()
        log_data["event"] = "message"
        super().add_fields(log_data, record, dict(message_dict))


class _RequestFilter(logging.Filter):
    """Adds the id of the current request, if any, to log entries."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Adds the id; see ``logging.Filter``."""
        account = current.get(None)
        if account is not None:
            record.request_id = account.id
        return True
