"""The body of ``POST /v1/completions``, checked: texts for the model to continue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from constrain.fields.declared import Flag, Reads, within
from constrain.fields.logprobs import logprobs_options
from constrain.fields.sampling import LimitOrNone, smallest_limit
from constrain.fields.values import invalid
from constrain.fields.votes import VoteFields
from constrain.generation.options import TOP_LOGPROBS
from constrain.server.requests.declared import AskingBody
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, Question
from constrain.server.requests.refusals import COMPLETIONS_FIELDS
from constrain.server.requests.streams import StreamFields
from constrain.server.requests.texts import Text, read_texts

if TYPE_CHECKING:
    from constrain.server.settings import Settings

_DEFAULT_MAX_TOKENS = 16
"""Tokens of a completion without ``max_tokens``: 16, as at OpenAI. A completion with a format has no such limit."""


class CompletionBody(VoteFields, ContentFields, StreamFields, AskingBody):
    """The body. OpenAI's types say what fields of the type ``Any`` may be."""

    refused = COMPLETIONS_FIELDS

    prompt: Annotated[tuple[Text, ...], Reads(read_texts, Any)]
    n: Annotated[int | None, within(RANGES["n"])] = None
    best_of: Annotated[int | None, within(RANGES["best_of"])] = None
    echo: Flag = None
    logprobs: Annotated[int | None, within(RANGES["logprobs"])] = None
    n_probs: Annotated[int | None, within(TOP_LOGPROBS)] = None
    response_format: Any = None
    max_tokens: LimitOrNone = None

    def request(self, settings: Settings) -> CompletionRequest:
        """Returns the request. ``response_format`` has the same effect as in chat completions.

        Raises ``ApiError`` or ``FieldError`` with the place.
        """
        n, streaming = self.n or 1, self.streaming()
        best_of = self.best_of or n
        if best_of < n:
            raise invalid("best_of", f"{best_of} answers cannot yield the {n} that 'n' asks for.")
        # llama-server names it ``n_probs``, where 0 is none
        top_logprobs = (self.n_probs or None) if self.logprobs is None else self.logprobs
        facts = {"best_of": best_of > n, "stream": streaming.is_wanted, "echo": self.echo}
        facts |= dict.fromkeys(("logprobs", "logprobs of a completion"), top_logprobs is not None)
        vote = self.votes(n, **facts)
        options = self.plain_options()
        if top_logprobs is not None or best_of > n:  # log-probabilities decide which answers are the best
            options |= logprobs_options(top_logprobs or 0)
        content = read_format(self.response_format, RESPONSE_FORMAT, settings.strict_subset)
        content = self.content({"response_format": content})
        if content is None:
            options["max_tokens"] = _DEFAULT_MAX_TOKENS
        options |= smallest_limit({"max_tokens": self.max_tokens})[0]
        places = Places("prompt", "max_tokens")
        questions = tuple(Question(prompt, content, options, places, best_of, vote) for prompt in self.prompt)
        return CompletionRequest(self.model, questions, streaming, n, top_logprobs is not None, self.echo or False)


@dataclass(frozen=True, slots=True)
class CompletionRequest(Asked):
    """A request for text completions.

    Attributes:
        n: answers per prompt that are returned.
        logprobs: whether answers have log-probabilities.
        echo: whether answers begin with their prompts.
    """

    n: int
    logprobs: bool
    echo: bool
