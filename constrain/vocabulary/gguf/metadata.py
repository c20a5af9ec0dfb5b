"""Reads the metadata of a GGUF file: keys, values, shapes and formats of tensors, never the weights.

The layout (all little-endian; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):

    magic "GGUF" | version u32 | number of tensors u64 | number of keys u64
    key:    name | value type u32 | value          an array: item type u32 | count u64 | items
    string: length u64 | UTF-8 bytes
    tensor: name | dimensions u32 | extents u64... | type u32 | offset u64

The file is mapped, so the system reads only the pages with metadata. Arrays of strings (tokens, merges) have no total
length, so even a skipped array is walked, one window of bytes at a time with numpy.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_VERSIONS = (2, 3)

_WINDOW_BYTES = 1 << 20
"""Bytes of a string array examined in one step: little memory, and enough strings to repay numpy's overhead."""

_SINGLE_STEPS = 1024
"""Strings read one at a time where a window yields few; they take about as long as one window."""

_WORTH_A_WINDOW = 256
"""Strings that a window must yield to be used; with fewer, a file of odd strings would cost milliseconds each."""

_SHOWN = 80
"""Characters of a name shown in a message; a damaged file may hold a name of millions."""

_ALIGNMENT = 32
"""Bytes to whose multiples the data of tensors is aligned, if the file does not say."""


@dataclass(frozen=True, slots=True)
class StringArray:
    """An array of strings as one buffer: item ``i`` is ``data[starts[i] : starts[i] + lengths[i]]``."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def to_list(self) -> list[bytes]:
        """The strings as a list of ``bytes``."""
        data = self.data.tobytes()
        ends = (self.starts + self.lengths).tolist()
        return [data[start:end] for start, end in zip(self.starts.tolist(), ends, strict=True)]


Value: TypeAlias = "int | float | bool | str | StringArray | NDArray[np.generic]"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a GGUF file.

    Attributes:
        shape: its extents; the first is the number of columns, so that a matrix is (columns, rows).
        kind: number of its format, as in ggml's ``enum ggml_type``.
        offset: bytes from the first tensor's place to its own.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a GGUF file: ``values`` by key, and the requested ``tensors`` by name."""

    path: str
    values: dict[str, Value]
    tensors: dict[str, Tensor]

    def integer(self, key: str) -> int | None:
        """The value of ``key`` as an integer; ``None`` if absent. Raises ``ModelError`` for another type."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int):
            raise ModelError(f"{self.path}: {shown(key)} is not an integer")
        return value

    def integers(self, key: str) -> int | list[int] | None:
        """The value of ``key`` as one integer or an array of integers; ``None`` if absent."""
        value = self.values.get(key)
        if value is None or isinstance(value, int):
            return value
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            raise ModelError(f"{self.path}: {key} is neither an integer nor an array of integers")
        listed: list[int] = value.tolist()
        return listed

    def text(self, key: str) -> str | None:
        """The value of ``key`` as text; ``None`` if absent. Raises ``ModelError`` for another type."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise ModelError(f"{self.path}: {key} is not a string")
        return value


def read_metadata(
    path: str | os.PathLike[str], *, arrays: Collection[str] = (), tensors: Collection[str] | None = ()
) -> Metadata:
    """Reads all scalar values of a GGUF file, the requested arrays, and shape and format of the requested tensors.

    ``tensors``: names of tensors; ``None`` for all tensors of the file.

    Raises ``ModelError`` if the file cannot be opened, is not a GGUF file, or ends within its metadata.
    """
    name = os.fspath(path)
    return _Reader(name, map_model(name)).read(arrays, tensors)


def map_model(path: str | os.PathLike[str]) -> memoryview:
    """The mapped bytes of a GGUF file. Raises ``ModelError`` if it cannot be opened or is empty."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ModelError(f"{name}: not a GGUF file (it is empty)")
            # The map is not closed here: a propagating error still holds views into it.
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        cure = "; a model is a GGUF file on this machine: `constrain models` lists them, and fetches others"
        cure = cure if isinstance(error, FileNotFoundError) else ""
        raise ModelError(f"{name}: cannot be opened: {error.strerror}{cure}") from error


def tensor_places(path: str | os.PathLike[str], buffer: memoryview) -> dict[str, int]:
    """The places in a mapped GGUF file at which its tensors begin, by name; all metadata stands before the first.

    Raises ``ModelError`` as ``read_metadata`` does.
    """
    reader = _Reader(os.fspath(path), buffer)
    metadata = reader.read((), None)
    alignment = metadata.integer("general.alignment") or _ALIGNMENT
    begin = -(-reader.position // alignment) * alignment
    return {name: begin + tensor.offset for name, tensor in metadata.tensors.items()}


def shown(name: str) -> str:
    """A name from a file, quoted and shortened for an error message."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."


class _Reader:
    """A position in the mapped file; each step checks that the file holds the bytes it reads."""

    def __init__(self, name: str, buffer: memoryview) -> None:
        self.name = name
        self.buffer = buffer
        self.position = 0
        self.place = "the header"

    def read(self, arrays: Collection[str], tensors: Collection[str] | None) -> Metadata:
        if bytes(self.buffer[:4]) != b"GGUF":
            raise ModelError(f"{self.name}: not a GGUF file (it begins with {bytes(self.buffer[:4])!r})")
        self.position = 4
        version: int = self.scalar("I")
        if version not in _VERSIONS:
            note = " (a big-endian file?)" if version and version & 0xFFFF == 0 else ""
            raise ModelError(f"{self.name}: GGUF version {version}{note} is not supported; versions 2 and 3 are")
        n_tensors: int = self.scalar("Q")
        n_keys: int = self.scalar("Q")
        values: dict[str, Value] = {}
        known: set[str] = set()
        for index in range(n_keys):
            self.place = f"key {index} of {n_keys}"
            key = self.string()
            if key in known:
                raise ModelError(f"{self.name}: damaged: {self.place}, {shown(key)}, appears twice")
            known.add(key)
            self.place = f"the value of {shown(key)}"
            value = self.value(self.scalar("I"), wanted=key in arrays)
            if value is not None:
                values[key] = value
        found = {}
        for index in range(n_tensors if tensors is None or tensors else 0):
            self.place = f"tensor {index} of {n_tensors}"
            name, tensor = self.tensor()
            if tensors is None or name in tensors:
                found[name] = tensor
        return Metadata(self.name, values, found)

    def value(self, kind: int, *, wanted: bool) -> Value | None:
        """Reads one value; skips an array that is not wanted and returns ``None``."""
        if kind == _STRING:
            return self.string()
        if kind in _SCALARS:
            result: int | float | bool = self.scalar(_SCALARS[kind])
            return result
        if kind != _ARRAY:
            raise ModelError(f"{self.name}: damaged: value type {kind} at byte {self.position - 4}, in {self.place}")
        item: int = self.scalar("I")
        count: int = self.scalar("Q")
        if item == _STRING:
            return self.string_array(count, wanted=wanted)
        if item not in _SCALARS:
            raise ModelError(f"{self.name}: damaged: array of type {item} at byte {self.position - 12}, {self.place}")
        size = struct.calcsize("<" + _SCALARS[item])
        start = self.advance(count * size)
        if not wanted:
            return None
        numbers: NDArray[np.generic] = np.frombuffer(self.buffer, np.dtype(f"<{_SCALARS[item]}"), count, start).copy()
        return numbers

    def tensor(self) -> tuple[str, Tensor]:
        name = self.string()
        dimensions: int = self.scalar("I")
        if dimensions > 8:  # ggml has four
            raise ModelError(f"{self.name}: damaged: {dimensions} dimensions at byte {self.position - 4}, {self.place}")
        shape = tuple(self.scalar("Q") for _ in range(dimensions))
        return name, Tensor(shape, kind=self.scalar("I"), offset=self.scalar("Q"))

    def scalar(self, code: str) -> int:
        """Reads one number, given its ``struct`` code."""
        start = self.advance(struct.calcsize("<" + code))
        number: int = struct.unpack_from("<" + code, self.buffer, start)[0]
        return number

    def string(self) -> str:
        length = self.scalar("Q")
        start = self.advance(length)
        try:
            return str(self.buffer[start : start + length], "utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"{self.name}: damaged: not UTF-8 at byte {start + error.start}, {self.place}") from error

    def string_array(self, count: int, *, wanted: bool) -> StringArray | None:
        begin = self.position
        if count * 8 > len(self.buffer) - begin:
            self.advance(count * 8)
        starts = np.empty(count if wanted else 0, np.int64)
        lengths = np.empty(count if wanted else 0, np.int64)
        done = 0
        while done < count:
            step_starts, step_lengths = self.string_run(count - done)
            if wanted:
                starts[done : done + len(step_starts)] = step_starts - begin
                lengths[done : done + len(step_starts)] = step_lengths
            done += len(step_starts)
        if not wanted:
            return None
        data = np.frombuffer(self.buffer, np.uint8, self.position - begin, begin).copy()
        return StringArray(data, starts, lengths)

    def string_run(self, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and lengths of the next strings, at least one and at most ``limit``; moves past them.

        A length below 256 is one byte followed by seven zero bytes. The reader finds all such places in a window at
        once. The first is known to be a length; each further one is a length if the string before it ends exactly
        there. A window may yield few strings this way (long strings, several empty ones, zero bytes in a text); then
        strings are read one at a time.
        """
        size = min(_WINDOW_BYTES, len(self.buffer) - self.position)
        window = np.frombuffer(self.buffer, np.uint8, size, self.position)
        zero = window == 0
        run = zero[1:-6] & zero[2:-5]
        for shift in range(3, 8):
            run &= zero[shift : len(zero) - 7 + shift]
        places = np.flatnonzero(run)[:limit]
        if len(places) and places[0] == 0:
            lengths = window[places].astype(np.int64)
            ends = places + 8 + lengths
            broken = np.flatnonzero(ends[:-1] != places[1:])
            whole = int(broken[0]) + 1 if len(broken) else len(places)
            while whole and ends[whole - 1] > len(window):
                whole -= 1
            if whole >= min(limit, _WORTH_A_WINDOW):
                starts = places[:whole] + 8 + self.position
                self.position += int(ends[whole - 1])
                return starts, lengths[:whole]
        single = [(length := self.scalar("Q"), self.advance(length)) for _ in range(min(limit, _SINGLE_STEPS))]
        table = np.array(single, np.int64)
        return table[:, 1], table[:, 0]

    def advance(self, size: int) -> int:
        """Moves ``size`` bytes ahead and returns the position before the move."""
        start = self.position
        if size > len(self.buffer) - start:
            raise ModelError(
                f"{self.name}: truncated: {self.place} needs {size} bytes at byte {start}, "
                f"the file has {len(self.buffer)}"
            )
        self.position = start + size
        return start
