"""Ctrl-C during an answer."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stop:
    """Watches for Ctrl-C: the first one is noted, so that the answer ends after the next token.

    A second one ends the answer at once, and so does one while the user is asked something.
    """

    def __init__(self) -> None:
        self._is_noted = False
        self._is_asking = False

    def is_noted(self) -> bool:
        """Returns whether the present answer is to end."""
        return self._is_noted

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Watches during the block, which a ``KeyboardInterrupt`` ends without an error."""
        self._is_noted = False
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        except KeyboardInterrupt:
            self._is_noted = True
        finally:
            signal.signal(signal.SIGINT, before)

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Has Ctrl-C raise ``KeyboardInterrupt`` during the block, in which the user is asked something."""
        self._is_asking = True
        try:
            yield
        finally:
            self._is_asking = False

    def _note(self, number: int, frame: object) -> None:
        del number, frame
        if self._is_noted or self._is_asking:
            raise KeyboardInterrupt
        self._is_noted = True
