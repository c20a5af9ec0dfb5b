"""Which tokens of an answer its text is made of, and with which piece of the text each is told.

A token is told with the piece in which its first character is shown. So none is told twice, and none for text that is
not shown: what is behind a stop text, reasoning, calls.
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
    """The tokens of one answer, from their bytes to the text.

    Args:
        logprobs: of all tokens of the answer, as far as they are known.

    Attributes:
        position: the bytes of the answer so far.
        told: the tokens of the text, as far as it was shown.
    """

    def __init__(self, logprobs: Sequence[TokenLogprob]) -> None:
        self.position = 0
        self.told: list[TokenLogprob] = []
        self._logprobs = logprobs
        self._number = 0
        self._shown = 0
        self._read: deque[tuple[int, int, bytes]] = deque()  # where a token begins, its number, its bytes
        self._begun: deque[tuple[int, int]] = deque()  # the character that a token of the text begins with, its number
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Adds the next token."""
        self._read.append((self.position, self._number, data))
        self.position += len(data)
        self._number += 1

    def place(self, begin: int, end: int, character: int) -> None:
        """These bytes of the answer are text, from this character of the text on. Places come in order."""
        while self._read and self._read[0][0] < end:
            start, number, data = self._read.popleft()
            part = data[max(0, begin - start) : end - start]
            if part:
                self._begun.append((character, number))
                character += len(self._decoder.decode(part))

    def tell(self, piece: str) -> TextDelta:
        """The event for the next piece of the text, with the tokens that begin in it, which are scored by now."""
        self._shown += len(piece)
        found = []
        while self._begun and self._begun[0][0] < self._shown:
            found.append(self._logprobs[self._begun.popleft()[1]])
        self.told += found
        return TextDelta(piece, tuple(found))
