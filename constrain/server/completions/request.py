"""The body of ``POST /v1/completions``, checked: texts that the model is to go on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import boolean, integer, model_name, unsupported
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.requests.limits import MAX_CHOICES, MAX_COMPLETION_LOGPROBS
from constrain.server.requests.logprobs import logprobs_options
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question
from constrain.server.requests.refusals import COMPLETIONS_FIELDS, refuse_fields
from constrain.server.requests.sampling import read_max_tokens, read_n, read_sampling
from constrain.server.requests.streams import Streaming, read_streaming
from constrain.server.requests.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.requests.texts import Text
    from constrain.server.settings import Settings

_DEFAULT_MAX_TOKENS = 16
"""OpenAI's, for text. What has to match a format is written to its end."""

_PROMPT = "prompt"
_MAX_TOKENS = "max_tokens"


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A body that was read: what a client asks of this endpoint.

    Attributes:
        model: its name.
        prompts: each is gone on with.
        n: how many answers to each are shown.
        best_of: how many are written.
        content: what is written must match this; None for any text.
        options: for the generation.
        logprobs: whether is told how likely tokens were.
        echo: whether answers begin with their prompts.
        streaming: how the answers are sent.
    """

    model: str
    prompts: tuple[Text, ...]
    n: int
    best_of: int
    content: Format | None
    options: ChatOptions
    logprobs: bool
    echo: bool
    streaming: Streaming

    @property
    def questions(self) -> tuple[Question, ...]:
        """How each prompt goes on."""
        places = Places(_PROMPT, _MAX_TOKENS)
        return tuple(Question(prompt, self.content, self.options, places, self.best_of) for prompt in self.prompts)


def read_completion_request(body: Mapping[str, Any], settings: Settings) -> CompletionRequest:
    """The request that a parsed body is. Raises ``ApiError``, which names the place.

    ``response_format`` is honoured as in chat completions.
    """
    model = model_name(body)
    prompts = read_texts(body, _PROMPT)
    n = read_n(body)
    refuse_fields(body, COMPLETIONS_FIELDS)
    streaming = read_streaming(body)
    best_of = _best_of(body, n, stream=streaming.is_wanted)
    top_logprobs = _top_logprobs(body)
    options = read_sampling(body)
    if top_logprobs is not None or best_of > n:  # by their log-probabilities the best are found
        options |= logprobs_options(top_logprobs or 0)
    content = read_format(body.get("response_format"), RESPONSE_FORMAT, settings.strict_subset)
    max_tokens, _ = read_max_tokens(body, _MAX_TOKENS, least=0)
    if content is None:
        options["max_tokens"] = _DEFAULT_MAX_TOKENS
    options |= max_tokens
    return CompletionRequest(
        model=model,
        prompts=prompts,
        n=n,
        best_of=best_of,
        content=content,
        options=options,
        logprobs=top_logprobs is not None,
        echo=boolean(body, "echo") or False,
        streaming=streaming,
    )


def _top_logprobs(body: Mapping[str, Any]) -> int | None:
    """``logprobs``: how many of the most likely tokens to tell in each place, beside that which was taken."""
    top = integer(body, "logprobs", 0, MAX_COMPLETION_LOGPROBS)
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
