"""Log-probabilities in the shape of text completions: lists that run beside the tokens of the text."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from openai.types.completion_choice import Logprobs

from constrain.generation.logprobs import shown_logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.decoding.token_logprob import TokenLogprob


class TextLogprobs:
    """Tells those of one answer, piece by piece."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def tell(self, tokens: Sequence[TokenLogprob]) -> Logprobs:
        """Those of the next tokens. ``text_offset``: the character of the text that a token begins in."""
        return Logprobs(
            tokens=[token.text for token in tokens],
            token_logprobs=[shown_logprob(token) for token in tokens],
            top_logprobs=[_top(token) for token in tokens],
            text_offset=[self._offset(token) for token in tokens],
        )

    def _offset(self, token: TokenLogprob) -> int:
        begin = self._characters
        self._characters += len(self._decoder.decode(token.bytes))
        return begin


def _top(token: TokenLogprob) -> dict[str, float]:
    """The most likely tokens in the place of one, by their texts, and itself; of equal texts the most likely."""
    found: dict[str, float] = {}
    for other in (*token.top, token):
        found.setdefault(other.text, shown_logprob(other))
    return found
