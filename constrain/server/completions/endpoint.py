"""``POST /v1/completions``: makes the writer for the continuations of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.completions.response import CompletionWriter

if TYPE_CHECKING:
    from constrain.server.completions.request import CompletionRequest
    from constrain.server.requests.texts import Text
    from constrain.server.serving.models import ServedModel


def make_completion_writer(request: CompletionRequest, served: ServedModel) -> CompletionWriter:
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
