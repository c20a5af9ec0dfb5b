"""Files of a cache: an input is a list of edits to the files that were kept for a constraint.

An edit is six bytes (file and what is done; place, of two bytes; how many bytes; a place's scale; whether the checksum
is made anew) and the bytes that are written. Whatever the edits, compiling gives the constraint that a fresh one is.
"""

from __future__ import annotations

import functools
import os
import shutil
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import constrain
from constrain import cache as _cache
from constrain import kernel
from constrain.engine import remembered
from tests.fuzz.judge import BrokenPromiseError, Meter
from tests.fuzz.walking import vocabulary

DECLARED: tuple[type[Exception], ...] = (constrain.LimitError,)
MAX_SIZE = 512

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "bé", 3]}}},
    "required": ["name"],
}
_PATH = b'{"name": "x", "tags": ["a", 3]}'

_EDIT = struct.Struct("<BHBBB")
_FILES = 3
_KINDS = 6

_START = 32
"""Bytes in front of what a file's checksum is of."""

_TABLES = 144
"""Where the tables begin."""


def _fresh_vocabulary() -> constrain.Vocabulary:
    """An equal vocabulary that remembers nothing but what the cache keeps for it."""
    known = vocabulary()
    texts = [known.token_bytes(token) for token in range(known.n_vocab)]
    names = {token: name for name, token in known.special_tokens.items()}
    return constrain.Vocabulary.from_tokens(texts, eos=known.eos, special=names)


def _masks(made: constrain.Constraint) -> list[bytes]:
    row, matcher, seen = made.allocate_bitmask()[0], made.matcher(), []
    for byte in _PATH:
        matcher.fill_bitmask(row)
        seen.append(row.tobytes())
        if not matcher.accept(byte):
            raise BrokenPromiseError(f"{bytes([byte])!r} is refused after {len(seen) - 1} bytes of {_PATH!r}")
    return [*seen, bytes([matcher.is_accepting])]


@functools.cache
def _kept() -> tuple[Path, tuple[Path, ...], list[bytes]]:
    """A folder with a cache as it should be; its files; and the masks of a constraint that was never kept."""
    folder = Path(tempfile.mkdtemp(prefix="constrain-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    whole = folder / "whole"
    made = _with_cache(whole, lambda: constrain.compile(SCHEMA, _fresh_vocabulary()))
    _with_cache(whole, lambda: made.precompute(max_masks=30))
    files = tuple(sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file()))
    if len(files) != _FILES:
        raise RuntimeError(f"the cache has {files}")
    return folder, files, _masks(constrain.compile(SCHEMA, _fresh_vocabulary(), cache=False))


def _with_cache(path: Path, make: Callable[[], Any]) -> Any:
    """What is made while this is the cache, and nothing is remembered but what is on disk."""
    before, most = os.environ.get("CONSTRAIN_CACHE"), remembered.CACHED_CONSTRAINTS
    os.environ["CONSTRAIN_CACHE"] = str(path)
    remembered.CACHED_CONSTRAINTS = 0
    try:
        return make()
    finally:
        remembered.CACHED_CONSTRAINTS = most
        if before is None:
            del os.environ["CONSTRAIN_CACHE"]
        else:
            os.environ["CONSTRAIN_CACHE"] = before


def run(data: bytes, meter: Meter) -> str:
    """Edits the files and compiles; compares masks where what the kernel trusts is as it was."""
    folder, files, expected = _kept()
    used = folder / "used"
    shutil.rmtree(used, ignore_errors=True)
    shutil.copytree(folder / "whole", used)
    trusts_forgery = False
    for each in files:
        path = used / each
        whole = path.read_bytes()
        content, is_forged = _edited(whole, data, files.index(each))
        trusts_forgery |= is_forged and content[_TABLES:] != whole[_TABLES:]
        path.write_bytes(content)
    _cache._cache_of.cache_clear()

    def compile_again() -> constrain.Constraint:
        with meter.call("compile"):
            return constrain.compile(SCHEMA, _fresh_vocabulary())

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = _with_cache(used, compile_again)
    for each in told:
        if not issubclass(each.category, RuntimeWarning):
            raise BrokenPromiseError(f"a warning of another kind: {each.message}")
    if trusts_forgery:  # a checksum is no protection against forgery: that nothing ends the process is enough
        return "forged"
    if _masks(made) != expected:
        raise BrokenPromiseError("other masks than those of a fresh constraint")
    return "restored" if isinstance(made._places, bytes) else "made anew"


def _edited(content: bytes, data: bytes, number: int) -> tuple[bytes, bool]:
    """A file after the edits for it, and whether its checksum was made anew."""
    at, is_forged = 0, False
    while at + _EDIT.size <= len(data):
        head, place, size, scale, forges = _EDIT.unpack_from(data, at)
        at += _EDIT.size
        piece = data[at : at + size % 16]
        if head % (_FILES + 1) != number and head % (_FILES + 1) != _FILES:  # the last number is for all files
            at += len(piece)
            continue
        kind = head // (_FILES + 1) % _KINDS
        start = min(len(content), place if scale < 128 else place * max(1, len(content) >> 16) * (scale - 127))
        if kind == 0:
            content = content[:start] + piece + content[start + len(piece) :]
        elif kind == 1:
            content = content[:start] + piece + content[start:]
        elif kind == 2:
            content = content[:start] + content[start + size :]
        elif kind == 3:
            content = content[:start]
        elif kind == 4 and start < len(content):
            content = content[:start] + bytes([content[start] ^ (1 << size % 8)]) + content[start + 1 :]
        elif kind == 5:
            content = content[:start] + bytes(size) + content[start + size :]
        at += len(piece)
        is_forged |= forges >= 192
    if is_forged and len(content) > _START:
        content = content[: _START - 16] + kernel.checksum(content[_START:]) + content[_START:]
    return content, is_forged


def seeds() -> Iterable[bytes]:
    """Edits of each kind to each file, and none."""
    yield b""
    for number in range(_FILES + 1):
        for kind in range(_KINDS):
            for place, forges in ((40, 0), (200, 0), (60, 255), (600, 255)):
                yield _EDIT.pack(number + (_FILES + 1) * kind, place, 3, 0, forges) + b"\xff\0\1"


def mutate(data: bytes, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """Another edit, or changed bytes."""
    if rng.random() < 0.5 and data:
        return mutate_bytes(data)
    piece = bytes(rng.choice((0, 1, 255, rng.randrange(256))) for _ in range(rng.randrange(16)))
    edit = _EDIT.pack(
        rng.randrange(256), rng.choice((rng.randrange(160), rng.randrange(1 << 16))), len(piece), rng.randrange(256),
        rng.choice((0, 255)),
    )  # fmt: skip
    return data + edit + piece if rng.random() < 0.6 else edit + piece
