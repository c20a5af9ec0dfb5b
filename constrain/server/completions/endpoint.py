"""``POST /v1/completions``: a model goes on with texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.completions.response import CompletionWriter

if TYPE_CHECKING:
    from constrain.server.completions.request import CompletionRequest
    from constrain.server.requests.texts import Text
    from constrain.server.serving.models import ServedModel


def completion_writer(request: CompletionRequest, served: ServedModel) -> CompletionWriter:
    """What writes the answers to a request."""
    return CompletionWriter(
        request.model,
        [_shown(prompt, served) if request.echo else "" for prompt in request.prompts],
        request.n,
        request.best_of,
        is_text=request.content is None,
        logprobs=request.logprobs,
        include_usage=request.streaming.include_usage,
    )


def _shown(prompt: Text, served: ServedModel) -> str:
    """The text of a prompt; special tokens have none."""
    if isinstance(prompt, str):
        return prompt
    return b"".join(map(served.model.vocabulary.token_bytes, prompt)).decode("utf-8", "replace")
