"""``POST /v1/completions``: a model goes on with texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.server.completions.request import read_completion_request
from constrain.server.completions.response import CompletionWriter
from constrain.server.serving.answering import Asked
from constrain.server.serving.generation import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.completions.request import CompletionRequest
    from constrain.server.requests.texts import Text
    from constrain.server.serving.models import ServedModel
    from constrain.server.settings import Settings


def read_completion(body: Mapping[str, Any], settings: Settings) -> Asked:
    """What a completion asks: how each of its prompts goes on. Raises ``ApiError``."""
    asked = read_completion_request(body, settings)
    questions = [
        Question(prompt, asked.content, asked.options, "max_tokens", asked.best_of) for prompt in asked.prompts
    ]
    return Asked(asked.model, tuple(questions), asked.stream, partial(_writer, asked))


def _writer(asked: CompletionRequest, served: ServedModel) -> CompletionWriter:
    return CompletionWriter(
        asked.model,
        [_shown(prompt, served) if asked.echo else "" for prompt in asked.prompts],
        asked.n,
        asked.best_of,
        is_text=asked.content is None,
        logprobs=asked.logprobs,
        include_usage=asked.include_usage,
    )


def _shown(prompt: Text, served: ServedModel) -> str:
    """The text of a prompt; special tokens have none."""
    if isinstance(prompt, str):
        return prompt
    return b"".join(map(served.model.vocabulary.token_bytes, prompt)).decode("utf-8", "replace")
