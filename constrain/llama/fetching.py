"""Fetching a model from Hugging Face: one GGUF file by its name, and only when a caller asks for it.

    FOLDER/OWNER/REPOSITORY/NAME.gguf                  a whole file, whose SHA-256 is the one that the hub states
    FOLDER/OWNER/REPOSITORY/NAME.gguf.HASH.part        the beginning of a file, from which the next call goes on

FOLDER is ``finding.fetched_folder()``; HASH begins the SHA-256 of the whole file. The variables ``HF_ENDPOINT``,
``HF_TOKEN``, ``HF_TOKEN_PATH`` and ``HF_HUB_OFFLINE`` count as for Hugging Face's own programs.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, Field, ValidationError

from constrain.errors import ModelError
from constrain.llama.finding import FOLDERS, fetched_folder, hub_home
from constrain.llama.hashes import file_sha256
from constrain.llama.names import HubName, read_hub_name
from constrain.private_folders import find_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    Report = Callable[[str, float], None]

_TRIES = 5
"""Connections for one file; beyond, the error says that the next call goes on where this one stopped."""

_SECONDS = httpx2.Timeout(30, connect=10)
"""Seconds without a byte from the hub: 30, and 10 for a connection; beyond, the connection counts as broken."""


class _Content(BaseModel):
    """The bytes of a file, as the hub states them."""

    size: int
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _File(BaseModel):
    """A file of a repository; small ones have no ``lfs``."""

    rfilename: str
    lfs: _Content | None = None


class _Repository(BaseModel):
    """A repository: its commit and its files."""

    sha: str
    siblings: list[_File]


def fetch_model(name: str, report: Report) -> Path:
    """Fetches the model with a name like ``OWNER/REPOSITORY:FILE``, unless it is there; returns the path of its file.

    ``report``: called with a step in words and the share of it that is done, 0 to 1. Raises ``ModelError``.
    """
    hub = read_hub_name(name)
    if hub is None:
        raise ModelError(
            f"{name!r:.100} is no name of a model on Hugging Face; write OWNER/REPOSITORY, or OWNER/REPOSITORY:FILE "
            "with a file or quantization, such as Qwen/Qwen3-0.6B-GGUF:Q8_0"
        )
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelError("HF_HUB_OFFLINE is set, so nothing is fetched; unset it to fetch a model")
    token = _token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    folder = fetched_folder() / hub.repository
    with httpx2.Client(headers=headers, timeout=_SECONDS, follow_redirects=True) as client:
        found = _list_files(client, hub)
        chosen = _choose({PurePosixPath(each.rfilename): each.lfs for each in found.siblings if each.lfs}, hub)
        try:
            wanted = {path: content for path, content in chosen.items() if not _is_whole(folder / path, content)}
            _require_room(folder, wanted)
            for path, content in reversed(wanted.items()):  # so that the first part, if there, has all others
                url = f"{_endpoint()}/{hub.repository}/resolve/{quote(found.sha, safe='')}/{quote(str(path))}"
                _download(client, url, hub, folder / path, content, report)
        except OSError as error:
            raise ModelError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}; what was fetched stays; "
                f"make room, or set {FOLDERS} to a folder that you may write"
            ) from error
    return folder / next(iter(chosen))


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _token() -> str:
    """Returns the token of the variable ``HF_TOKEN``, or the one that ``hf auth login`` has stored; empty for none."""
    if token := os.environ.get("HF_TOKEN", "").strip():
        return token
    with suppress(OSError):
        return Path(os.environ.get("HF_TOKEN_PATH") or hub_home() / "token").read_text("utf-8").strip()
    return ""


def _list_files(client: httpx2.Client, hub: HubName) -> _Repository:
    try:
        response = client.get(f"{_endpoint()}/api/models/{hub.repository}", params={"blobs": "true"})
        response.raise_for_status()
        return _Repository.model_validate_json(response.content)
    except httpx2.HTTPStatusError as error:
        raise _refusal(error, hub) from error
    except ValidationError as error:
        raise ModelError(f"{_endpoint()} does not answer as Hugging Face does; check HF_ENDPOINT") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelError(
            f"{_endpoint()} cannot be reached: {error}; check the network, HTTPS_PROXY and HF_ENDPOINT, or bring a "
            "GGUF file to this machine in another way and pass its path"
        ) from error


def _refusal(error: httpx2.HTTPStatusError, hub: HubName) -> ModelError:
    page, status = f"{_endpoint()}/{hub.repository}", error.response.status_code
    if status not in (401, 403, 404):
        return ModelError(f"{page} answers with status {status}; try again later")
    return ModelError(
        f"Hugging Face has no model {hub.repository}, or shows it to nobody without permission (status {status}): "
        f"check the name; if {page} asks for consent, give it there, and set HF_TOKEN to a token of yours"
    )


def _choose(files: dict[PurePosixPath, _Content], hub: HubName) -> dict[PurePosixPath, _Content]:
    """Returns the file that a name means, or all its parts, the first one first. Raises ``ModelError``."""
    found = hub.pick(files)
    if len(found) != 1:
        every = found or HubName(hub.repository, "").pick(files)
        if not every:
            raise ModelError(f"{hub.repository} has no GGUF files; a repository with the ending -GGUF may have them")
        shown = ", ".join(f"{each} ({files[each].size / 2**30:.1f} GiB)" for each in every)
        many = f"several files match {hub.which}" if hub.which else "there are several files"
        raise ModelError(
            f"{hub.repository}: {many if found else f'no file matches {hub.which}'}; write {hub.repository}:FILE with "
            f"the name of a file, or with the quantization at the end of one: {shown}"
        )
    paths = found
    if split := re.fullmatch(r"(.*)-00001-of-(\d{5})\.gguf", str(found[0])):
        paths = [PurePosixPath(f"{split[1]}-{n:05}-of-{split[2]}.gguf") for n in range(1, int(split[2]) + 1)]
    if missing := [str(path) for path in paths if path not in files]:
        raise ModelError(f"{hub.repository} has no {missing[0]}, a part of {found[0]}; fetch another file")
    if found[0].is_absolute() or ".." in found[0].parts or re.search(r"[\\:\0]", str(found[0])):
        raise ModelError(f"{hub.repository} has a file named {str(found[0])!r}, which is not safe to write")
    return {path: files[path] for path in paths}


def _is_whole(path: Path, content: _Content) -> bool:
    """Returns whether a file is there already, with the content that the hub states."""
    is_there = path.is_file() and path.stat().st_size == content.size
    return is_there and file_sha256(path, find_directory()) == content.sha256


def _part(path: Path, content: _Content) -> Path:
    return path.with_name(f"{path.name}.{content.sha256[:8]}.part")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _require_room(folder: Path, wanted: dict[PurePosixPath, _Content]) -> None:
    """Raises ``ModelError`` if the disk has no room for files."""
    folder.mkdir(parents=True, exist_ok=True)
    needed = sum(content.size - _size(_part(folder / path, content)) for path, content in wanted.items())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ModelError(
            f"the disk of {folder} has {free / 2**30:.1f} GiB left, and the model needs {needed / 2**30:.1f}; make "
            f"room, or set {FOLDERS} to a folder on another disk"
        )


def _download(client: httpx2.Client, url: str, hub: HubName, target: Path, content: _Content, report: Report) -> None:
    """Fetches a file, from where an earlier call stopped. Raises ``ModelError`` and ``OSError``."""
    place = _part(target, content)
    place.parent.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(_TRIES)):
        try:
            _receive(client, url, place, content.size, partial(report, f"Fetching {target.name}"))
            break
        except httpx2.HTTPStatusError as error:
            raise _refusal(error, hub) from error
        except httpx2.HTTPError as error:
            if not left:
                raise ModelError(
                    f"the connection broke after {_size(place)} of {content.size} bytes of {target.name}: {error}; run "
                    "the same command again, which goes on from there"
                ) from error
    found = file_sha256(place, None)
    if found != content.sha256:
        place.unlink()
        raise ModelError(
            f"{target.name} was damaged on its way: its SHA-256 is {found}, and Hugging Face states {content.sha256}; "
            "it was removed; run the same command again"
        )
    place.replace(target)


def _receive(client: httpx2.Client, url: str, place: Path, size: int, report: Callable[[float], None]) -> None:
    """Receives what is missing of a file, in one connection. Raises ``httpx2.HTTPError`` if it breaks."""
    done = _size(place)
    if done >= size:
        return
    report(done / size)
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={done}-"}
    with client.stream("GET", url, headers=headers) as response:
        response.raise_for_status()
        continues = response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        with place.open("ab" if continues else "wb") as file:
            for block in response.iter_bytes():
                file.write(block)
                report(file.tell() / size)
    if _size(place) < size:
        raise httpx2.RemoteProtocolError("the file ended too early")
