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
from constrain.server.http.errors import convert_field_errors
from constrain.server.requests.declared import AskingBody
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question
from constrain.server.requests.refusals import COMPLETIONS_FIELDS
from constrain.server.requests.streams import StreamFields, Streaming
from constrain.server.requests.texts import Text, read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
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

    def top_logprobs(self) -> int | None:
        """Returns the number of likeliest tokens per position; llama-server names it ``n_probs``, where 0 is none."""
        return (self.n_probs or None) if self.logprobs is None else self.logprobs

    def written(self) -> int:
        """Returns the number of answers written per prompt, of which the ``n`` best are returned."""
        n, best_of = self.n or 1, self.best_of
        if best_of is not None and best_of < n:
            raise invalid("best_of", f"{best_of} answers cannot yield the {n} that 'n' asks for.")
        return best_of or n


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """The checked fields of a request for text completions.

    Attributes:
        model: name of the model.
        prompts: texts to continue.
        n: answers per prompt that are returned.
        best_of: answers per prompt that are written.
        vote: whether the answers to a prompt become one, the one that they agree on.
        content: format that an answer must match; None for any text.
        options: options for the generation.
        logprobs: whether answers have log-probabilities.
        echo: whether answers begin with their prompts.
        streaming: how the answers are sent.
    """

    model: str
    prompts: tuple[Text, ...]
    n: int
    best_of: int
    vote: bool
    content: Format | None
    options: ChatOptions
    logprobs: bool
    echo: bool
    streaming: Streaming

    @property
    def questions(self) -> tuple[Question, ...]:
        """One question per prompt."""
        places = Places("prompt", "max_tokens")
        return tuple(
            Question(prompt, self.content, self.options, places, self.best_of, self.vote) for prompt in self.prompts
        )


@convert_field_errors()
def read_completion_request(body: Mapping[str, Any], settings: Settings) -> CompletionRequest:
    """Reads a parsed body. Raises ``ApiError`` with the place.

    ``response_format`` has the same effect as in chat completions.
    """
    asked = CompletionBody.read(body)
    n, streaming = asked.n or 1, asked.streaming()
    best_of, top_logprobs = asked.written(), asked.top_logprobs()
    facts = {"best_of": best_of > n, "stream": streaming.is_wanted, "echo": asked.echo}
    vote = asked.votes(n, logprobs=top_logprobs is not None, **facts)
    options = asked.plain_options()
    if top_logprobs is not None or best_of > n:  # log-probabilities decide which answers are the best
        options |= logprobs_options(top_logprobs or 0)
    content = read_format(asked.response_format, RESPONSE_FORMAT, settings.strict_subset)
    content = asked.content(content, "response_format")
    if content is None:
        options["max_tokens"] = _DEFAULT_MAX_TOKENS
    options |= smallest_limit({"max_tokens": asked.max_tokens})[0]
    return CompletionRequest(
        model=asked.model,
        prompts=asked.prompt,
        n=n,
        best_of=best_of,
        vote=vote,
        content=content,
        options=options,
        logprobs=top_logprobs is not None,
        echo=asked.echo or False,
        streaming=streaming,
    )
