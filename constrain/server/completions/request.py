"""The body of ``POST /v1/completions``, checked: texts for the model to continue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.logprobs import logprobs_options, read_certificate
from constrain.fields.sampling import read_cache_prompt, read_max_tokens, read_sampling
from constrain.fields.values import boolean, integer
from constrain.fields.votes import read_unbias, read_vote
from constrain.generation.options import TOP_LOGPROBS
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.requests.body import model_name
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import read_content
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question, read_n
from constrain.server.requests.refusals import COMPLETIONS_FIELDS, refuse_fields, unsupported
from constrain.server.requests.streams import Streaming, read_streaming
from constrain.server.requests.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.requests.texts import Text
    from constrain.server.settings import Settings

_DEFAULT_MAX_TOKENS = 16
"""Tokens of a completion without ``max_tokens``: 16, as at OpenAI. A completion with a format has no such limit."""

_PROMPT = "prompt"
_MAX_TOKENS = "max_tokens"


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
        places = Places(_PROMPT, _MAX_TOKENS)
        return tuple(
            Question(prompt, self.content, self.options, places, self.best_of, self.vote) for prompt in self.prompts
        )


@convert_field_errors()
def read_completion_request(body: Mapping[str, Any], settings: Settings) -> CompletionRequest:
    """Reads a parsed body. Raises ``ApiError`` with the place.

    ``response_format`` has the same effect as in chat completions.
    """
    model = model_name(body)
    refuse_fields(body, COMPLETIONS_FIELDS)
    prompts = read_texts(body, _PROMPT)
    n = read_n(body)
    streaming = read_streaming(body)
    best_of = _best_of(body, n, stream=streaming.is_wanted)
    top_logprobs = _top_logprobs(body)
    vote = read_vote(body, n, stream=streaming.is_wanted, logprobs=top_logprobs is not None)
    if vote and best_of > n:
        raise ApiError(
            "Invalid 'best_of': all answers that are written vote; leave 'best_of' out.",
            param="best_of",
            code="invalid_value",
        )
    options: ChatOptions = {**read_sampling(body, RANGES), **read_unbias(body, vote=vote), **read_cache_prompt(body)}
    options |= read_certificate(body, vote=vote)
    if top_logprobs is not None or best_of > n:  # log-probabilities decide which answers are the best
        options |= logprobs_options(top_logprobs or 0)
    content = read_format(body.get("response_format"), RESPONSE_FORMAT, settings.strict_subset)
    content = read_content(body, content, "response_format")
    max_tokens, _ = read_max_tokens(body, _MAX_TOKENS, least=0)
    if content is None:
        options["max_tokens"] = _DEFAULT_MAX_TOKENS
    options |= max_tokens
    return CompletionRequest(
        model=model,
        prompts=prompts,
        n=n,
        best_of=best_of,
        vote=vote,
        content=content,
        options=options,
        logprobs=top_logprobs is not None,
        echo=boolean(body, "echo") or False,
        streaming=streaming,
    )


def _top_logprobs(body: Mapping[str, Any]) -> int | None:
    """Reads ``logprobs``, or llama-server's ``n_probs``: the number of likeliest tokens to return per position."""
    top = integer(body, "logprobs", *RANGES["logprobs"])
    if top is None:
        top = integer(body, "n_probs", *TOP_LOGPROBS) or None
    if top is not None and boolean(body, "echo"):
        raise unsupported("logprobs", "This server has no log-probabilities of a prompt; leave 'echo' out.")
    return top


def _best_of(body: Mapping[str, Any], n: int, *, stream: bool) -> int:
    """Reads ``best_of``: answers written per prompt; the ``n`` best of them are returned."""
    best_of = integer(body, "best_of", *RANGES["best_of"])
    if best_of is None:
        return n
    if best_of < n:
        problem = f"{best_of} answers cannot yield the {n} that 'n' asks for"
    elif best_of > n and stream:
        problem = "which answers are the best is known when all are written, so they cannot be streamed"
    else:
        return best_of
    raise ApiError(f"Invalid 'best_of': {problem}.", param="best_of", code="invalid_value")
