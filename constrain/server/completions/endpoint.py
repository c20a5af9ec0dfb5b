"""``POST /v1/completions``: the dialect, and the writer of continuations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from constrain.server.completions.request import read_completion_request
from constrain.server.completions.response import CompletionWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect

if TYPE_CHECKING:
    from constrain.server.completions.request import CompletionRequest
    from constrain.server.requests.texts import Text
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel


def _make_writer(request: CompletionRequest, served: ServedModel) -> CompletionWriter:
    """Returns the writer of the answers to a request."""
    return CompletionWriter(
        request.model,
        [_prompt_text(prompt, served) if request.echo else "" for prompt in request.prompts],
        1 if request.vote else request.n,
        1 if request.vote else request.best_of,
        is_text=request.content is None,
        logprobs=request.logprobs,
        include_usage=request.streaming.include_usage,
    )


def _prompt_text(prompt: Text, served: ServedModel) -> str:
    """Returns the text of a prompt; special tokens have no text."""
    if isinstance(prompt, str):
        return prompt
    return b"".join(map(served.model.vocabulary.token_bytes, prompt)).decode("utf-8", "replace")


def _routes(serving: Serving) -> list[Route]:
    return [Route("/v1/completions", Answering(serving, read_completion_request, _make_writer), methods=["POST"])]


COMPLETIONS = Dialect(_routes, (read_completion_request,))
"""OpenAI's text completions."""
