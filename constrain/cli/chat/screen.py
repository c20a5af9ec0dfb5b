"""Answers on the screen: Markdown block by block on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from constrain.cli import shared

if TYPE_CHECKING:
    from constrain.chat.tools.calls import ToolCall

_SHOWN_RESULT = 400
"""Characters of a tool's result that are shown; the model reads all of it."""


class Screen:
    """Shows one conversation.

    Args:
        is_markdown: whether free text is shown as Markdown; only terminals show it so.

    Attributes:
        notes: console for everything but answers, on standard error.
    """

    def __init__(self, *, is_markdown: bool) -> None:
        self.notes = Console(stderr=True, soft_wrap=True, highlight=False)
        self._answers = Console(highlight=False)
        self._is_markdown = is_markdown and self._answers.is_terminal
        self._block = ""
        self._live: Live | None = None
        self._is_open = self._note_is_open = False

    def write(self, text: str, *, as_markdown: bool) -> None:
        """Shows a piece of an answer."""
        self._end_note()
        if not (as_markdown and self._is_markdown):
            sys.stdout.write(text.translate(shared.HARMLESS) if self._answers.is_terminal else text)
            sys.stdout.flush()
            self._is_open = True
            return
        self._block += text.translate(shared.HARMLESS)
        while (end := _end_of_block(self._block)) is not None:
            self._show(self._block[:end])
            self._block = self._block[end:]
        if self._live is None:
            self._live = Live(console=self._answers, transient=True, refresh_per_second=8, vertical_overflow="crop")
            self._live.start()
        self._live.update(self._shown_so_far())

    def note(self, text: str, style: str = "dim", end: str = "\n") -> None:
        """Shows a line about the conversation, or a piece of the model's thoughts."""
        if end:
            self._end_note()
        self.notes.print(Text(text.translate(shared.HARMLESS), style=style), end=end)
        self._note_is_open = not (end or text.endswith("\n"))

    def call(self, call: ToolCall) -> None:
        """Shows a call before it runs."""
        self.end()
        self.note(f"-> {call!r}", style="cyan")

    def result(self, text: str) -> None:
        """Shows the result of a call, shortened."""
        cut = "" if len(text) <= _SHOWN_RESULT else f" ... ({len(text)} characters)"
        self.note(f"<- {text[:_SHOWN_RESULT]}{cut}")

    def end(self) -> None:
        """Ends the answer, or the part of it before a call."""
        if self._block.strip():
            self._show(self._block)
        self._block = ""
        self._stop()
        self._end_note()
        if self._is_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open = False

    def _shown_so_far(self) -> Markdown | Text:
        """Returns the block in progress; of one that is higher than the terminal, its last lines."""
        lines = self._block.splitlines()
        rows = self._answers.height - 2
        needed = sum(1 + len(line) // max(self._answers.width - 4, 1) for line in lines)
        return Markdown(self._block) if needed < rows else Text("\n".join(lines[-rows // 2 :]))

    def _end_note(self) -> None:
        """Ends the line of a note that goes on."""
        if self._note_is_open:
            self.notes.print()
        self._note_is_open = False

    def _show(self, block: str) -> None:
        self._stop()
        self._answers.print(Markdown(block))

    def _stop(self) -> None:
        if self._live is not None:
            self._live.update(Text())
            self._live.stop()
        self._live = None


def _end_of_block(text: str) -> int | None:
    """Returns the end of the first whole block of a Markdown text: behind a blank line outside a fence."""
    place, fence = 0, ""
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            return None
        place += len(line)
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if mark == fence else fence or mark
        elif not fence and not line.strip() and text[:place].strip():
            return place
    return None
