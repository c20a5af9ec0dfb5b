"""The requests in the file of a batch, one per line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.batch.lines import read_lines
from constrain.fields.values import FieldError, mapping, one_of, required_text
from constrain.server.requests.limits import MAX_BATCH_REQUESTS, MAX_CUSTOM_ID
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from pathlib import Path

MAX_ERRORS = 100
"""Wrong lines that a batch lists; after the last of them, the rest of the file is not checked."""

_SHOWN = 300
"""Characters of a message about a wrong line: 300. A line may have millions."""

_FIELDS = ("custom_id", "method", "url", "body")


@dataclass(frozen=True, slots=True)
class LineRequest:
    """One request of a batch.

    Attributes:
        line: number of its line, from 1.
        custom_id: name that the client gave it.
        model: name of the model that it asks.
        body: its body, JSON.
    """

    line: int
    custom_id: str
    model: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a file.

    Attributes:
        total: number of requests.
        model: the model that all requests name; ``None`` if they name several.
        errors: wrong lines, as a batch lists them, at most ``MAX_ERRORS``.
    """

    total: int
    model: str | None
    errors: list[dict[str, Any]]


def read_request(number: int, text: bytes, endpoint: str, longest: int) -> LineRequest:
    """Reads a line. Raises ``FieldError``.

    Args:
        number: number of the line, from 1.
        text: its bytes.
        endpoint: path that the batch was made for.
        longest: bytes that a line may have.
    """
    if len(text) > longest:
        raise FieldError(f"This line has more than {longest} bytes.", param="", code="invalid_json_line")
    try:
        found = json.loads(text.decode())
        json.dumps(found, ensure_ascii=False).encode()  # a lone surrogate is no text
    except (ValueError, RecursionError) as error:
        raise FieldError(f"This line is not JSON: {error}.", param="", code="invalid_json_line") from error
    if not isinstance(found, dict):
        raise FieldError("This line is not a JSON object.", param="", code="invalid_json_line")
    if unknown := found.keys() - set(_FIELDS):
        name = min(unknown)
        problem = f"This line has {unknown_names('fields', (name[:_SHOWN],), _FIELDS)}."
        raise FieldError(problem, param=name, code="unknown_field")
    custom_id = required_text(found, "custom_id")
    if not 1 <= len(custom_id) <= MAX_CUSTOM_ID:
        raise FieldError(
            f"Invalid 'custom_id': expected 1 to {MAX_CUSTOM_ID} characters, but got {len(custom_id)}.",
            param="custom_id",
            code="invalid_value",
        )
    one_of(required_text(found, "method"), ("POST",), "method")
    one_of(required_text(found, "url"), (endpoint,), "url")
    body = mapping(found.get("body"), "body")
    model = required_text(body, "model", "body.")
    if body.get("stream"):
        raise FieldError(
            "Invalid 'body.stream': a batch has no streams; leave it out.", param="body.stream", code="invalid_value"
        )
    try:
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except RecursionError as error:
        raise FieldError("Invalid 'body': it is nested too deeply.", param="body", code="invalid_value") from error
    return LineRequest(number, custom_id, model, content)


def name_of(text: bytes) -> str:
    """Returns the ``custom_id`` of a line that cannot be read as a request; ``""`` if it has none."""
    try:
        found = json.loads(text.decode()).get("custom_id")
        found.encode()
    except (ValueError, RecursionError, AttributeError):
        return ""
    return f"{found}"


def check_file(path: Path, endpoint: str, longest: int) -> Checked:
    """Checks all lines of a file, for requests to an endpoint. Raises ``OSError``. ``longest``: bytes of a line."""
    first: dict[str, int] = {}
    models: set[str] = set()
    errors: list[dict[str, Any]] = []

    def refuse(message: str, code: str, line: int | None = None, param: str | None = None) -> None:
        place = f"{param:.{_SHOWN}}" if param else None
        errors.append({"code": code, "line": line, "message": f"{message:.{_SHOWN}}", "param": place})

    for number, text in read_lines(path, longest):
        try:
            request = read_request(number, text, endpoint, longest)
        except FieldError as error:
            refuse(error.message, error.code or "invalid_value", number, error.param)
        else:
            models.add(request.model)
            if (before := first.setdefault(request.custom_id, number)) != number:
                message = f"The custom_id {request.custom_id:.80} is that of line {before}, too."
                refuse(message, "duplicate_custom_id", number, "custom_id")
        if len(first) > MAX_BATCH_REQUESTS:
            refuse(f"The file has more than {MAX_BATCH_REQUESTS} requests.", "too_many_requests", number)
        if len(errors) >= MAX_ERRORS or len(first) > MAX_BATCH_REQUESTS:
            break
    if not first and not errors:
        refuse("The file has no requests.", "empty_file")
    return Checked(len(first), models.pop() if len(models) == 1 else None, errors)
