"""Fetching a model from Hugging Face: one GGUF file by its name, and only when a caller asks for it.

    FOLDER/OWNER/REPOSITORY/NAME.gguf                  a whole file, whose SHA-256 is the one that the hub states
    FOLDER/OWNER/REPOSITORY/NAME.gguf.HASH.part        the beginning of a file, from which the next call goes on

FOLDER is ``finding.fetched_folder()``; HASH begins the SHA-256 of the whole file. The variables ``HF_ENDPOINT``,
``HF_TOKEN``, ``HF_TOKEN_PATH`` and ``HF_HUB_OFFLINE`` count as for Hugging Face's own programs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import httpx2

from constrain.errors import ModelError
from constrain.llama.finding import FOLDERS, fetched_folder, hub_home
from constrain.llama.hashes import file_sha256
from constrain.llama.names import HubName, read_hub_name
from constrain.private_folders import find_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_BLOCK = 1 << 20
"""Bytes that are read at once: 1 MiB."""

_TRIES = 5
"""Connections for one file; beyond, the error says that the next call goes on where this one stopped."""

_SHOWN_FILES = 40
"""Files that an error names, of those that a name may mean."""

_SECONDS = httpx2.Timeout(30, connect=10)
"""Seconds without a byte from the hub: 30, and 10 for a connection; beyond, the connection counts as broken."""


class RemoteFile(NamedTuple):
    """A file of a repository: its path there, its size in bytes, and its SHA-256 in hexadecimal."""

    path: PurePosixPath
    size: int
    sha256: str


def fetch_model(name: str, report: Callable[[str, int, int], None]) -> Path:
    """Fetches the model with a name like ``OWNER/REPOSITORY:FILE``, unless it is there; returns the path of its file.

    ``report``: called with the name of a file, the number of its bytes that are there, and its size. Raises
    ``ModelError``.
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
        commit, files = _list_files(client, hub)
        chosen = _choose(files, hub)
        wanted = [each for each in chosen if not _is_whole(folder / each.path, each)]
        try:
            _require_room(folder, wanted)
            for each in wanted:
                url = f"{_endpoint()}/{hub.repository}/resolve/{commit}/{quote(str(each.path))}"
                _download(client, url, hub, each, report)
        except OSError as error:
            place = error.filename or folder
            raise ModelError(f"{place} cannot be written: {error.strerror or error}; what is there stays") from error
    return folder / chosen[0].path


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _token() -> str:
    """Returns the token of the variable ``HF_TOKEN``, or the one that ``hf auth login`` has stored; empty for none."""
    if token := os.environ.get("HF_TOKEN", "").strip():
        return token
    with suppress(OSError):
        return Path(os.environ.get("HF_TOKEN_PATH") or hub_home() / "token").read_text("utf-8").strip()
    return ""


def _list_files(client: httpx2.Client, hub: HubName) -> tuple[str, list[RemoteFile]]:
    """Returns the commit of a repository, and its files that have a SHA-256."""
    try:
        response = client.get(f"{_endpoint()}/api/models/{hub.repository}", params={"blobs": "true"})
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelError(
            f"{_endpoint()} cannot be reached: {error}; check the network, HTTPS_PROXY and HF_ENDPOINT, or bring a "
            "GGUF file to this machine in another way and pass its path"
        ) from error
    if response.status_code != httpx2.codes.OK:
        raise _refusal(response.status_code, hub)
    try:
        found: Any = response.json()
        files = [
            RemoteFile(PurePosixPath(each["rfilename"]), int(each["lfs"]["size"]), _hash(each["lfs"]["sha256"]))
            for each in found["siblings"]
            if each.get("lfs")
        ]
        commit = quote(found["sha"], safe="")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{response.url} does not answer as Hugging Face does; check HF_ENDPOINT") from error
    return commit, files


def _hash(stated: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", stated):
        raise ValueError(stated)
    return stated


def _refusal(status: int, hub: HubName) -> ModelError:
    page = f"{_endpoint()}/{hub.repository}"
    if status in (401, 403, 404):
        return ModelError(
            f"Hugging Face has no model {hub.repository}, or shows it to nobody without permission (status {status}): "
            f"check the name; if {page} asks for consent, give it there, and set HF_TOKEN to a token of yours"
        )
    return ModelError(f"{page} answers with status {status}; try again later")


def _choose(files: list[RemoteFile], hub: HubName) -> list[RemoteFile]:
    """Returns the file that a name means, or all parts of it. Raises ``ModelError`` unless it is one."""
    by_path = {each.path: each for each in files}
    found = hub.pick(by_path)
    if len(found) != 1:
        every = found or HubName(hub.repository, "").pick(by_path)
        if not every:
            raise ModelError(f"{hub.repository} has no GGUF files; its name may have a counterpart that ends in -GGUF")
        shown = ", ".join(f"{each} ({by_path[each].size / 2**30:.1f} GiB)" for each in every[:_SHOWN_FILES])
        many = f"several files match {hub.which}" if hub.which else "there are several files"
        raise ModelError(
            f"{hub.repository}: {many if found else f'no file matches {hub.which}'}; write {hub.repository}:FILE with "
            f"the name of a file, or with the quantization at the end of one: {shown}"
        )
    first = str(found[0])
    split = re.fullmatch(r"(.*)-00001-of-(\d{5})\.gguf", first)
    paths = [first]
    if split is not None:
        paths = [f"{split[1]}-{number:05}-of-{split[2]}.gguf" for number in range(1, int(split[2]) + 1)]
    chosen = [by_path[PurePosixPath(path)] for path in paths if PurePosixPath(path) in by_path]
    if len(chosen) < len(paths):
        raise ModelError(f"{hub.repository} has {len(chosen)} of the {len(paths)} parts of {first}; fetch another file")
    for each in chosen:
        if each.path.is_absolute() or ".." in each.path.parts or re.search(r"[\\:\0]", str(each.path)):
            raise ModelError(f"{hub.repository} has a file named {str(each.path)!r}, which is not safe to write")
    return chosen


def _is_whole(path: Path, file: RemoteFile) -> bool:
    """Whether a file is there already, with the content that the hub states."""
    return path.is_file() and path.stat().st_size == file.size and file_sha256(path, find_directory()) == file.sha256


def _part(path: Path, file: RemoteFile) -> Path:
    return path.with_name(f"{path.name}.{file.sha256[:8]}.part")


def _require_room(folder: Path, wanted: list[RemoteFile]) -> None:
    """Raises ``ModelError`` if the disk has no room for files."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = (_part(folder / each.path, each) for each in wanted)
    needed = sum(each.size for each in wanted) - sum(part.stat().st_size for part in parts if part.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ModelError(
            f"the disk of {folder} has {free / 2**30:.1f} GiB left, and the model needs {needed / 2**30:.1f}; make "
            f"room, or set {FOLDERS} to a folder on another disk"
        )


class _Part:
    """The beginning of a file on disk, with its digest."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.digest, self.size = file, hashlib.sha256(), 0
        file.seek(0)
        while block := file.read(_BLOCK):
            self.digest.update(block)
            self.size += len(block)

    def add(self, block: bytes) -> None:
        self._file.write(block)
        self.digest.update(block)
        self.size += len(block)

    def restart(self) -> None:
        self._file.truncate(0)
        self.digest, self.size = hashlib.sha256(), 0


def _download(
    client: httpx2.Client, url: str, hub: HubName, file: RemoteFile, report: Callable[[str, int, int], None]
) -> None:
    """Fetches a file, from where an earlier call stopped. Raises ``ModelError`` and ``OSError``."""
    target = fetched_folder() / hub.repository / file.path
    place = _part(target, file)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a+b") as opened:
        part = _Part(opened)
        for left in reversed(range(_TRIES)):
            try:
                _receive(client, url, file, part, lambda: report(target.name, part.size, file.size))
                break
            except httpx2.HTTPStatusError as error:
                raise _refusal(error.response.status_code, hub) from error
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                if not left:
                    raise ModelError(
                        f"the connection broke after {part.size} of {file.size} bytes of {target.name}: {error}; run "
                        "the same command again, which goes on from there"
                    ) from error
    found = part.digest.hexdigest()
    if found != file.sha256:
        place.unlink()
        raise ModelError(
            f"{target.name} was damaged on its way: its SHA-256 is {found}, and Hugging Face states {file.sha256}; it "
            "was removed; run the same command again"
        )
    place.replace(target)


def _receive(client: httpx2.Client, url: str, file: RemoteFile, part: _Part, report: Callable[[], None]) -> None:
    """Receives what is missing of a file, in one connection. Raises ``httpx2.HTTPError`` if it breaks."""
    if part.size > file.size:
        part.restart()
    report()
    if part.size == file.size:
        return
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={part.size}-"}
    with client.stream("GET", url, headers=headers) as response:
        continues = response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-")
        if response.status_code != httpx2.codes.PARTIAL_CONTENT or not continues:
            response.raise_for_status()
            part.restart()
        if response.status_code != httpx2.codes.OK and not continues:
            raise httpx2.RemoteProtocolError("the hub sent another part of the file than the one asked for")
        for block in response.iter_bytes():
            part.add(block)
            report()
    if part.size < file.size:
        raise httpx2.RemoteProtocolError("the file ended too early")
