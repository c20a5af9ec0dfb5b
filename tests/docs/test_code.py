"""Every block of Python and every call of the command line on the pages of docs/ runs.

All Python blocks of a page are one program, and so are all its calls of ``constrain``. A file that a page shows below
its name (`` `person.json`: ``) is there for every page. Where a block cannot run here, ``<!-- not run: REASON -->``
stands above it; these blocks are skipped, and the summary of pytest has their reasons.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.pages import DOCS, Block, blocks, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 300
"""Wall-clock seconds that the blocks of one page may take."""

BLOCKS = blocks()
PYTHON = [block for block in BLOCKS if block.language == "python" and block.file is None]
SHELL = [block for block in BLOCKS if block.is_shell]
NOT_RUN = [block for block in (*PYTHON, *SHELL) if block.not_run is not None]


def pages_of(some: list[Block]) -> list[str]:
    return sorted({block.page for block in some if block.not_run is None})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that pages show, and a program ``constrain`` of this interpreter."""
    program = tmp_path / "bin" / "constrain"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m constrain "$@"\n')
    program.chmod(0o755)
    for block in BLOCKS:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> None:
    path = os.pathsep.join((str(folder / "bin"), os.environ["PATH"]))
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "CONSTRAIN_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_of(PYTHON))
def test_python_on_a_page_runs(page: str, folder: Path) -> None:
    parts = [block.code for block in PYTHON if block.page == page and block.not_run is None]
    program = folder / "page.py"
    program.write_text("\n\n".join(parts), encoding="utf-8")
    run(folder, sys.executable, str(program))


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_of(SHELL))
def test_command_lines_on_a_page_run(page: str, folder: Path) -> None:
    parts = [block.code for block in SHELL if block.page == page and block.not_run is None]
    lines = [line for part in parts for line in part.splitlines(keepends=True)]
    serving = [line for line in lines if line.startswith("constrain serve")]
    run(folder, "bash", "-euc", "".join(line for line in lines if line not in serving))
    for line in serving:
        require_serving(folder, shlex.split(line)[1:])


def require_serving(folder: Path, arguments: list[str]) -> None:
    """Starts the server at a free port, waits until it says where it is, and stops it as Ctrl-C does."""
    command = [sys.executable, "-m", "constrain", *arguments, "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = next(line for line in server.stderr if " at http://" in line)
        finally:
            server.send_signal(signal.SIGINT)
        server.communicate(timeout=SECONDS)
    assert "/v1" in said


@pytest.mark.parametrize("block", NOT_RUN, ids=str)
def test_blocks_that_do_not_run_here_say_why(block: Block) -> None:
    assert block.not_run
    for path in re.findall(r"tests/[\w/]+\.py", block.not_run):
        assert (DOCS.parent / path).exists(), f"{block}: there is no {path}"
    pytest.skip(block.not_run)


@pytest.mark.parametrize("block", [block for block in PYTHON if block.not_run is not None], ids=str)
def test_python_that_does_not_run_here_is_python(block: Block) -> None:
    compile(block.code, str(block), "exec")


def test_every_file_has_one_text() -> None:
    texts: dict[str, set[str]] = {}
    for block in BLOCKS:
        if block.file is not None:
            texts.setdefault(block.file, set()).add(block.code)
    assert [name for name, found in texts.items() if len(found) > 1] == []


PAGE = """# A page

A file `a.json`, or rather `b.json`:

```json
{"c": 1}
```

Words.

    constrain check b.json
    constrain check a.json

<!-- not run: needs
a server -->
```python
print(1)
```

```python
print(2)
```
"""


def test_blocks_are_told_from_words() -> None:
    found = list(blocks_of("page.md", PAGE))
    assert [(block.language, block.line, block.not_run) for block in found] == [
        ("json", 6, None),
        ("", 11, None),
        ("python", 17, "needs a server"),
        ("python", 21, None),
    ]
    assert [block.file for block in found] == ["b.json", None, None, None]
    assert [block.is_shell for block in found] == [False, True, False, False]
    assert found[1].code == "constrain check b.json\nconstrain check a.json\n"
