"""Log-probabilities of the tokens of an answer, and of the most likely tokens in their places.

They are the model's own: the softmax of its logits over the whole vocabulary, before masks, biases, penalties and the
temperature. So they say how likely the model itself finds each token, forced tokens included, and can be compared
between requests. Engines such as vLLM and llama.cpp's server report the same by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.reading.text_tokens import TextTokens
from constrain.generation.observers.observer import Observer
from constrain.llama.decoding.answer import TokenObserver
from constrain.llama.decoding.distribution import largest
from constrain.llama.decoding.token_logprob import TokenLogprob

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.generation.observers.observer import Observers, Written
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.decoding.distribution import Distribution


class Logprobs(Observer, TokenObserver):
    """The log-probabilities of the tokens of one answer; reports ``logprobs`` and ``text_logprobs``.

    Args:
        top: how many of the most likely tokens to record for each place.
        describe: returns the text and the bytes of a token.

    Attributes:
        tokens: one record for each token of the answer that has been scored.
    """

    needs_logits = True

    def __init__(self, top: int, describe: Callable[[int], tuple[str, bytes]]) -> None:
        self.tokens: list[TokenLogprob] = []
        self.text_tokens = self._text = TextTokens(self.tokens)
        self._top = top
        self._describe = describe

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer:  # noqa: ARG003
        """Returns the observer of a new answer."""
        return cls(plan.settings.top_logprobs, plan.describe_token)

    def on_token(self, answer: Answer, number: int, distribution: Distribution) -> None:
        """Records the next token of the answer."""
        top = tuple(self._one(each, distribution) for each in largest(distribution.logits, self._top))
        self.tokens.append(self._one(answer.tokens[number], distribution, top))

    def on_cut(self, length: int) -> None:
        """Removes the records behind the first ``length``."""
        del self.tokens[length:]

    def finish(self, written: Written) -> dict[str, Any]:  # noqa: ARG002
        """Returns the records of all tokens, and those of the tokens of the text."""
        return {"logprobs": tuple(self.tokens), "text_logprobs": tuple(self._text.reported)}

    def _one(self, token: int, distribution: Distribution, top: tuple[TokenLogprob, ...] = ()) -> TokenLogprob:
        return TokenLogprob(token, *self._describe(token), distribution.logprob(token), top)
