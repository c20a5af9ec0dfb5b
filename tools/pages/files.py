"""Writes docs/reference/files.md: every source file and what it is for.

A Python file is described by the first paragraph of its docstring, a C++ file by the first sentence of the comment at
its beginning.
"""

from __future__ import annotations

import ast
import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from tools.pages.markdown import NOTE, cell, code, paragraphs, sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "constrain"

_HEADER = f"""# Files

Every source file below `constrain/` and what it is for: search this page for a word of your question. Packages come in
alphabetical order; [Architecture](../explanation/architecture.md) shows them as layers.

{NOTE}"""


def described(path: Path) -> str:
    """Returns what a source file says that it is for."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return next(paragraphs(ast.get_docstring(ast.parse(text)) or ""), "")
    comment = " ".join(
        line.removeprefix("//").strip() for line in takewhile(lambda each: each[:2] == "//", text.splitlines())
    )
    return re.split(r"(?<=[.]) (?=[A-Z`])", comment)[0]


def _folders() -> Iterator[tuple[Path, list[Path]]]:
    """Yields each folder with its source files, except ``__init__.py``, which describes the folder."""
    for folder in (
        PACKAGE,
        *sorted(each for each in PACKAGE.rglob("*") if each.is_dir() and each.name != "__pycache__"),
    ):
        files = sorted(
            each for pattern in ("*.py", "*.h", "*.cpp") for each in folder.glob(pattern) if each.name != "__init__.py"
        )
        if files:
            yield folder, files


def page() -> str:
    """Returns the page."""
    parts = [_HEADER]
    for folder, files in _folders():
        name = folder.relative_to(ROOT).as_posix()
        introduction = folder / "__init__.py"
        about = sentence(described(introduction)) + "\n\n" if introduction.exists() else ""
        rows = [[code(each.relative_to(ROOT).as_posix()), cell(described(each))] for each in files]
        parts.append(f"\n## {name}/\n\n{about}{table(('file', 'what it is for'), rows)}")
    return "".join(parts)
