r"""Files of evaluated prompts: the tokens, and llama.cpp's state after them.

    offset  bytes
         0      8  "PROMPTS\n"
         8      4  FORMAT
        12      4  zero
        16     16  checksum of the bytes from 32 on, up to the end of the tokens
        32     16  checksum of the state
        48     16  number of tokens, bytes of the state
        64     32  identity: model, context, build, and who may use the file
        96         tokens (int32), zeros up to a multiple of 64, then the state

llama.cpp trusts a state, so a file is used only after both checksums are verified.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import TYPE_CHECKING

import numpy as np

from constrain.kernel import checksum
from constrain.private_folders import replace_file
from constrain.system import is_anothers, map_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FORMAT = 1
"""Version of the format of files and folders; files of other versions are not used."""

_MAGIC = b"PROMPTS\n"
_START = struct.Struct("<8sII16s")
_REST = struct.Struct("<16sQQ32s")
_TOKENS = _START.size + _REST.size
_ALIGNMENT = 64
_ITEM = np.dtype("<i4")

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)


class RejectedFileError(Exception):
    """A file that must not be used; the message says why."""


def write_state(path: Path, identity: bytes, tokens: NDArray[np.intc], state: NDArray[np.uint8]) -> None:
    """Writes a file, in place of an older one. Raises OSError."""
    listed = tokens.astype(_ITEM).tobytes()
    rest = _REST.pack(checksum(state.data), len(tokens), len(state), identity) + listed
    start = _START.pack(_MAGIC, FORMAT, 0, checksum(rest))
    replace_file(path, start, rest, bytes(_state_place(len(tokens)) - len(start) - len(rest)), state.data)


def file_bytes(n_tokens: int, state_bytes: int) -> int:
    """Size of a file in bytes."""
    return _state_place(n_tokens) + state_bytes


def read_tokens(path: str, identity: bytes) -> NDArray[np.intc]:
    """The tokens of a file; the state is not read. Raises RejectedFileError and OSError."""
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        header = file.read(_TOKENS)
        if len(header) < _TOKENS:
            raise RejectedFileError(f"{path} is cut off")
        n_tokens = _REST.unpack_from(header, _START.size)[1]
        if n_tokens * _ITEM.itemsize > found.st_size:
            raise RejectedFileError(f"{path} is damaged")
        header += file.read(n_tokens * _ITEM.itemsize)
    return _checked(path, memoryview(header), found, identity)[0]


def map_state(path: str, identity: bytes) -> tuple[NDArray[np.intc], NDArray[np.uint8], float]:
    """The tokens of a file, its state as a view of the mapped file, and when it was last used.

    Raises RejectedFileError and OSError.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        found = os.fstat(descriptor)
        if found.st_size < _TOKENS:
            raise RejectedFileError(f"{path} is cut off")
        content = memoryview(map_file(descriptor, found.st_size))
    finally:
        os.close(descriptor)
    tokens, sum_of_state = _checked(path, content, found, identity)
    state = content[_state_place(len(tokens)) :]
    if checksum(state) != sum_of_state:
        raise RejectedFileError(f"{path} is damaged")
    return tokens, np.frombuffer(state, np.uint8), found.st_mtime


def _checked(path: str, content: memoryview, found: os.stat_result, identity: bytes) -> tuple[NDArray[np.intc], bytes]:
    """The tokens in the first bytes of a file, and the checksum of its state. Raises RejectedFileError."""
    if not stat.S_ISREG(found.st_mode) or is_anothers(found):
        raise RejectedFileError(f"{path} is no file of this user")
    magic, version, zero, sum_of_rest = _START.unpack_from(content)
    if magic != _MAGIC or version != FORMAT or zero != 0:
        raise RejectedFileError(f"{path} is not a file of this format")
    sum_of_state, n_tokens, state_bytes, owner = _REST.unpack_from(content, _START.size)
    end = _TOKENS + n_tokens * _ITEM.itemsize
    if end > len(content) or checksum(content[_START.size : end]) != sum_of_rest:
        raise RejectedFileError(f"{path} is damaged")
    if owner != identity:
        raise RejectedFileError(f"{path} is of another model, context or build")
    if found.st_size != file_bytes(n_tokens, state_bytes):
        raise RejectedFileError(f"{path} is cut off")
    return np.frombuffer(content[_TOKENS:end], _ITEM).astype(np.intc), sum_of_state


def _state_place(n_tokens: int) -> int:
    """The offset at which the state begins."""
    end = _TOKENS + n_tokens * _ITEM.itemsize
    return -(-end // _ALIGNMENT) * _ALIGNMENT
