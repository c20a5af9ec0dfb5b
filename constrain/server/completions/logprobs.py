"""Log-probabilities in the form of text completions: parallel lists with one entry per token."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from openai.types.completion_choice import Logprobs

from constrain.generation.logprobs import finite_logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.decoding.token_logprob import TokenLogprob


class TextLogprobs:
    """Writes the log-probabilities of one answer, piece by piece."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def write(self, tokens: Sequence[TokenLogprob]) -> Logprobs:
        """Returns the log-probabilities of the next tokens.

        ``text_offset``: index of the character that a token begins in.
        """
        return Logprobs(
            tokens=[token.text for token in tokens],
            token_logprobs=[finite_logprob(token) for token in tokens],
            top_logprobs=[_top(token) for token in tokens],
            text_offset=[self._offset(token) for token in tokens],
        )

    def _offset(self, token: TokenLogprob) -> int:
        begin = self._characters
        self._characters += len(self._decoder.decode(token.bytes))
        return begin


def _top(token: TokenLogprob) -> dict[str, float]:
    """Returns the likeliest tokens at a position and the chosen one, by text; among equal texts, the likeliest."""
    found: dict[str, float] = {}
    for other in (*token.top, token):
        found.setdefault(other.text, finite_logprob(other))
    return found
