"""The tokens behind an answer's text, and the piece of text with which each token is reported.

A token is reported with the piece that shows its first character. So no token is reported twice, and none for hidden
text: text behind a stop text, reasoning, calls.
"""

from __future__ import annotations

import codecs
from collections import deque
from typing import TYPE_CHECKING

from constrain.chat.reading.events import TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.decoding.token_logprob import TokenLogprob


class TextTokens:
    """The tokens of one answer, matched with its text.

    Args:
        logprobs: log-probabilities of all tokens of the answer so far.

    Attributes:
        position: number of bytes of the answer so far.
        reported: tokens of the text shown so far.
    """

    def __init__(self, logprobs: Sequence[TokenLogprob]) -> None:
        self.position = 0
        self.reported: list[TokenLogprob] = []
        self._logprobs = logprobs
        self._number = 0
        self._shown = 0
        self._read: deque[tuple[int, int, bytes]] = deque()  # per token: position of its first byte, number, bytes
        self._begun: deque[tuple[int, int]] = deque()  # per token of the text: index of its first character, number
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Takes the bytes of the answer's next token."""
        self._read.append((self.position, self._number, data))
        self.position += len(data)
        self._number += 1

    def add_text(self, begin: int, end: int, character: int) -> None:
        """Records bytes of the answer as text that begins at a character of the text; calls come in order."""
        while self._read and self._read[0][0] < end:
            start, number, data = self._read.popleft()
            part = data[max(0, begin - start) : end - start]
            if part:
                self._begun.append((character, number))
                character += len(self._decoder.decode(part))

    def make_delta(self, piece: str) -> TextDelta:
        """Returns the event for the next piece of text, with the log-probabilities of the tokens that begin in it."""
        self._shown += len(piece)
        found = []
        while self._begun and self._begun[0][0] < self._shown:
            found.append(self._logprobs[self._begun.popleft()[1]])
        self.reported += found
        return TextDelta(piece, tuple(found))
