"""The body of ``POST /v1/files``: a form with a file, read within limits."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from constrain.fields.values import integer, missing, one_of, wrong_type
from constrain.server.batches.files import INPUT, MONTH
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.requests.body import FORM, body_pieces
from constrain.server.requests.limits import MAX_FILE_NAME, SHORTEST_KEEPING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from typing import BinaryIO

    from starlette.requests import Request

_MAX_FIELDS = 16
"""Fields of a form besides the file: 16, more than any client sends."""

_ANCHOR, _SECONDS = "expires_after[anchor]", "expires_after[seconds]"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a client sends.

    Attributes:
        filename: name that the client gave it.
        content: its content.
        seconds: how long it is kept.
    """

    filename: str
    content: BinaryIO
    seconds: int


@contextlib.asynccontextmanager
async def read_upload(request: Request, limit: int) -> AsyncGenerator[Upload, None]:
    """Reads a form; its content is there until the end of the context.

    Raises ``ApiError``, and ``ClientDisconnect`` if the client leaves. ``limit``: bytes of the body.
    """
    async with contextlib.aclosing(body_pieces(request, limit, FORM)) as pieces:
        first = await anext(pieces, b"")  # refuses other media types before the parser looks for a boundary
        parser = MultiPartParser(request.headers, _chain(first, pieces), max_files=1, max_fields=_MAX_FIELDS)
        try:
            form = await parser.parse()
        except MultiPartException as error:
            raise ApiError(f"The form cannot be read: {error.message}", code="invalid_value") from error
    try:
        yield _read_form(form)
    finally:
        await form.close()


async def _chain(first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for piece in pieces:
        yield piece


@convert_field_errors()
def _read_form(form: Mapping[str, Any]) -> Upload:
    """Checks the fields of a form. Raises ``ApiError``."""
    file = form.get("file")
    if file is None:
        raise missing("file")
    if not isinstance(file, UploadFile):
        raise wrong_type("file", "a file with a name", file)
    if "purpose" not in form:
        raise missing("purpose")
    one_of(form["purpose"], (INPUT,), "purpose")
    name = file.filename or "upload"
    if len(name) > MAX_FILE_NAME:
        raise ApiError(
            f"Invalid 'file': its name has {len(name)} characters, and may have {MAX_FILE_NAME}.",
            param="file",
            code="string_above_max_length",
        )
    expiry = None
    if _ANCHOR in form or _SECONDS in form:
        seconds: Any = form.get(_SECONDS)
        expiry = {
            "anchor": form.get(_ANCHOR),
            "seconds": int(seconds) if isinstance(seconds, str) and _is_number(seconds) else seconds,
        }
    return Upload(name, file.file, read_expiry(expiry, "expires_after"))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < len(str(MONTH)) + 1


def read_expiry(given: object, place: str) -> int:
    """Reads when a file expires: seconds after its creation; by default 30 days. Raises ``FieldError``."""
    if given is None:
        return MONTH
    if not isinstance(given, dict):
        raise wrong_type(place, "an object", given)
    one_of(given.get("anchor"), ("created_at",), f"{place}.anchor")
    name = f"{place}.seconds"
    seconds = integer({name: given.get("seconds")}, name, SHORTEST_KEEPING, MONTH)
    if seconds is None:
        raise missing(name)
    return seconds
