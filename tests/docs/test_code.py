"""Every block of Python and every call of the command line on the pages of docs/ runs.

All Python blocks of a page are one program, and so are all its calls of ``constrain``. A file that a page shows below
its name (`` `person.json`: ``) is there for every page. Where a block cannot run here, ``<!-- not run: REASON -->``
stands above it; these blocks are skipped, and the summary of pytest has their reasons.

A tiny model answers, in this process; with ``CONSTRAIN_LONG=1`` and on the pages in ``DEMO``, the model of the ``demo``
extra.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import constrain
from tests.support import LONG, for_each
from tests.support.command_line import call
from tests.support.pages import DOCS, Block, blocks, blocks_of

SECONDS = 300
"""Wall-clock seconds that a page may take which runs as a program of its own."""

APART = {"guides/llm.md", "guides/ray-spark.md"}
"""Pages with libraries that keep models for the rest of a process: programs of their own."""

DEMO = {"explanation/budgets.md", "guides/machine.md"}
"""Pages that need the words of this model's vocabulary, or try the model itself."""

BLOCKS = blocks()
PYTHON = [block for block in BLOCKS if block.language == "python" and block.file is None]
SHELL = [block for block in BLOCKS if block.is_shell]
NOT_RUN = [block for block in (*PYTHON, *SHELL) if block.not_run is not None]


def pages_of(some: list[Block]) -> list[str]:
    return sorted({block.page for block in some if block.not_run is None})


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The folder in which tests run, with the files that pages show."""
    if not LONG and request.node.callspec.params["page"] not in DEMO:
        request.getfixturevalue("tiny_model")
    for block in BLOCKS:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", pages_of(PYTHON))
def test_python_on_a_page_runs(page: str, folder: Path) -> None:
    program = folder / "page.py"
    parts = [block.code for block in PYTHON if block.page == page and block.not_run is None]
    program.write_text("\n\n".join(parts), encoding="utf-8")
    if page in APART:
        environment = {**os.environ, "CONSTRAIN_CACHE": str(folder / "cache")}
        subprocess.run([sys.executable, program], env=environment, timeout=SECONDS, check=True)
    else:
        runpy.run_path(str(program), run_name="__main__")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", pages_of(SHELL))
@pytest.mark.usefixtures("folder")
def test_command_lines_on_a_page_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr("constrain.cli.serve.run_server", lambda *given: served.append(given))
    monkeypatch.setattr("constrain.server.http.listening.listen", lambda *_: [])
    parts = [block.code for block in SHELL if block.page == page and block.not_run is None]
    lines = [shlex.split(line) for part in parts for line in part.splitlines()]
    for line in lines:
        done = call(*line[1:])
        assert done.returncode == 0, done.stderr
    assert len(served) == sum(line[1] == "serve" for line in lines)


@pytest.mark.parametrize("block", NOT_RUN, ids=str)
def test_blocks_that_do_not_run_here_say_why(block: Block) -> None:
    assert block.not_run
    for path in re.findall(r"tests/[\w/]+\.py", block.not_run):
        assert (DOCS.parent / path).exists(), f"{block}: there is no {path}"
    pytest.skip(block.not_run)


@for_each("block", [block for block in PYTHON if block.not_run is not None])
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


PACKAGE = Path(constrain.__file__).parent
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_print_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder(exclude_empty=True).find(module, name) if test.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in tests:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
