"""The page of the playground: its files, with headers that let it load nothing else and talk to nobody else."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from constrain.server.playground.exporting import EXPORT, MEDIA_TYPES, export_template, read_assets

if TYPE_CHECKING:
    from starlette.requests import Request

PAGE = "/"

FILES = "/playground/"
"""Path under which the files of the page are."""

API_FILES = f"{FILES}api/"
"""Path under which the endpoint is, which needs a key where there are keys."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def is_open(path: str) -> bool:
    """Returns whether a path needs no key: the page itself, which has no data of anybody."""
    return path == PAGE or (path.startswith(FILES) and not path.startswith(API_FILES))


def page_routes() -> list[Route]:
    """Returns the routes of the page and its files."""
    return [Route(PAGE, _show_page), Route(f"{FILES}{{name:path}}", _show_file)]


async def _show_page(request: Request) -> Response:
    return _file(request, "index.html")


async def _show_file(request: Request) -> Response:
    return _file(request, request.path_params["name"])


def _file(request: Request, name: str) -> Response:
    """Returns a file, or 304 for a browser that has it. Raises ``HTTPException`` for one that is not there."""
    if name not in read_assets():
        raise HTTPException(404)
    data, tag = _tagged(name)
    headers = {**_HEADERS, "etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=MEDIA_TYPES[PurePosixPath(name).suffix], headers=headers)


@cache
def _tagged(name: str) -> tuple[bytes, str]:
    """Returns the contents of a file and its entity tag."""
    data = export_template().encode() if name == EXPORT else read_assets()[name]
    return data, f'"{sha256(data).hexdigest()[:32]}"'
