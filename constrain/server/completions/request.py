"""The body of ``POST /v1/completions``, checked: texts that the model is to go on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.server.chat.request import MAX_CHOICES, read_include_usage, sampling_options
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import boolean, integer, model_name, unsupported
from constrain.server.requests.formats import read_response_format
from constrain.server.requests.logprobs import logprobs_options
from constrain.server.requests.refusals import COMPLETIONS_FIELDS, refuse_fields
from constrain.server.requests.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.requests.texts import Text
    from constrain.server.settings import Settings

_DEFAULT_MAX_TOKENS = 16
"""OpenAI's, for text. What has to match a format is written to its end."""

_MOST_LOGPROBS = 5
"""OpenAI's limit."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """What a request asks for.

    Attributes:
        model: its name.
        prompts: each is gone on with.
        n: how many answers to each are shown.
        best_of: how many are written.
        content: what is written must match this; None for any text.
        options: for the generation.
        logprobs: whether is told how likely tokens were.
        echo: whether answers begin with their prompts.
        stream: whether they are sent as they are written; ``include_usage``: and last the number of tokens.
    """

    model: str
    prompts: tuple[Text, ...]
    n: int
    best_of: int
    content: Format | None
    options: ChatOptions
    logprobs: bool
    echo: bool
    stream: bool
    include_usage: bool


def read_completion_request(body: Mapping[str, Any], settings: Settings) -> CompletionRequest:
    """The request that a parsed body is. Raises ``ApiError``, which names the place.

    ``response_format`` is honoured as in chat completions.
    """
    model = model_name(body)
    prompts = read_texts(body, "prompt")
    n = integer(body, "n", 1, MAX_CHOICES) or 1
    refuse_fields(body, COMPLETIONS_FIELDS)
    stream = boolean(body, "stream") or False
    best_of = _best_of(body, n, stream=stream)
    top_logprobs = _top_logprobs(body)
    options = sampling_options(body)
    if top_logprobs is not None or best_of > n:  # by their log-probabilities the best are found
        options.update(logprobs_options(top_logprobs or 0))
    content = read_response_format(body.get("response_format"), settings.strict_subset)
    max_tokens = integer(body, "max_tokens", 0)
    if max_tokens is None and content is None:
        max_tokens = _DEFAULT_MAX_TOKENS
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    return CompletionRequest(
        model=model,
        prompts=prompts,
        n=n,
        best_of=best_of,
        content=content,
        options=options,
        logprobs=top_logprobs is not None,
        echo=boolean(body, "echo") or False,
        stream=stream,
        include_usage=read_include_usage(body, stream=stream),
    )


def _top_logprobs(body: Mapping[str, Any]) -> int | None:
    """``logprobs``: how many of the most likely tokens to tell in each place, beside that which was taken."""
    top = integer(body, "logprobs", 0, _MOST_LOGPROBS)
    if top is not None and boolean(body, "echo"):
        raise unsupported("logprobs", "This server does not tell those of a prompt; leave 'echo' out.")
    return top


def _best_of(body: Mapping[str, Any], n: int, *, stream: bool) -> int:
    """``best_of``: how many answers are written to a prompt, of which the ``n`` best are shown."""
    best_of = integer(body, "best_of", 1, MAX_CHOICES)
    if best_of is None:
        return n
    if best_of < n:
        problem = f"{best_of} answers cannot yield the {n} that 'n' asks for"
    elif best_of > n and stream:
        problem = "which answers are the best is known when all are written, so they cannot be streamed"
    else:
        return best_of
    raise ApiError(f"Invalid 'best_of': {problem}.", param="best_of", code="invalid_value")
