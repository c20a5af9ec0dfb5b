"""``POST /v1/completions``: the dialect, and the writer of continuations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from constrain.server.completions.request import CompletionBody
from constrain.server.completions.response import CompletionWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect

if TYPE_CHECKING:
    from constrain.server.completions.request import CompletionRequest
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel


def _make_writer(request: CompletionRequest, served: ServedModel) -> CompletionWriter:
    """Returns the writer of the answers to a request."""
    return CompletionWriter(
        request.model,
        [_prompt_text(each.prompt, served) if request.echo else "" for each in request.questions],
        1 if request.question.vote else request.n,
        1 if request.question.vote else request.question.n,
        is_text=request.question.content is None,
        logprobs=request.logprobs,
        include_usage=request.streaming.include_usage,
    )


def _prompt_text(prompt: Any, served: ServedModel) -> str:
    """Returns the text of a prompt; special tokens have no text."""
    if isinstance(prompt, str):
        return prompt
    return b"".join(map(served.model.vocabulary.token_bytes, prompt)).decode("utf-8", "replace")


def _routes(serving: Serving) -> list[Route]:
    return [Route("/v1/completions", Answering(serving, CompletionBody, _make_writer), methods=["POST"])]


COMPLETIONS = Dialect(_routes, (CompletionBody,))
"""OpenAI's text completions."""
