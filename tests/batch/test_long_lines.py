"""Lines that are too long: only their beginning is read, whatever ends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrain.batch.lines import read_lines

LONGEST = 10
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("mark", [b"", MARK])
@pytest.mark.parametrize("length", [1, LONGEST - 1, LONGEST, LONGEST + 1, LONGEST + 2, 50, 3 << 20])
def test_as_many_bytes_as_allowed_are_no_more_than_allowed(
    length: int, mark: bytes, end: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(mark + b"x" * length + (end + b"next" + end if end else b""))
    lines = list(read_lines(path, LONGEST))
    assert lines[0] == (1, b"x" * min(length, LONGEST + 1))
    assert lines[1:] == ([(2, b"next")] if end else [])


def test_without_a_limit_lines_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 100_000 + b"\n")
    assert list(read_lines(path)) == [(1, b"x" * 100_000)]
