"""The pages of the documentation, taken apart: their blocks of code, and what is said about these."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"

_BLOCK = re.compile(
    r"(?P<before>(?:^[^\n`][^\n]*\n|^`(?!``)[^\n]*\n)*\n*)"  # the paragraph above, if there is one
    r"(?:^```(?P<language>[a-z]+)\n(?P<fenced>.*?)^```$|(?<=\n\n)(?P<indented>(?:^    [^\n]*\n|^\n(?=    ))+))",
    re.DOTALL | re.MULTILINE,
)
_NOT_RUN = re.compile(r"<!-- not run: (.*?) -->\s*\Z", re.DOTALL)
_EXTENSIONS = {name: name for name in ("csv", "ebnf", "json", "jsonl", "toml", "lark", "sql")} | {
    "python": "py",
    "text": "txt",
}
"""Extensions of files, by the language of a block that shows one."""


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Attributes:
        page: the page, below docs/.
        line: of its first line of code, from 1.
        language: as the fence says; ``""`` for an indented block.
        code: the text.
        before: the paragraph above it.
    """

    page: str
    line: int
    language: str
    code: str
    before: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def not_run(self) -> str | None:
        """The reason that ``<!-- not run: REASON -->`` right above the block gives."""
        found = _NOT_RUN.search(self.before)
        return None if found is None else " ".join(found[1].split())

    @property
    def is_shell(self) -> bool:
        """Whether it calls the command line: an indented block, or one of a shell, that begins with ``constrain``."""
        return self.language in ("", "bash", "console", "sh", "shell") and self.code.startswith("constrain ")

    @property
    def file(self) -> str | None:
        """The file that the block shows: the last name in the paragraph above with the extension of its language."""
        extension = _EXTENSIONS.get(self.language)
        names = [] if extension is None else re.findall(rf"`([\w-]+\.{extension})`", self.before)
        return names[-1] if names else None


def blocks() -> list[Block]:
    """Returns all blocks of code of the documentation."""
    pages = sorted(DOCS.rglob("*.md"))
    return [block for page in pages for block in blocks_of(str(page.relative_to(DOCS)), page.read_text("utf-8"))]


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yields the blocks of a page."""
    for found in _BLOCK.finditer(text):
        group = "indented" if found["fenced"] is None else "fenced"
        code = textwrap.dedent(found[group]).strip("\n") + "\n"
        line = text.count("\n", 0, found.start(group)) + 1
        yield Block(page, line, found["language"] or "", code, found["before"])
