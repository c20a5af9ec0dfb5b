"""Continuations of prompts as objects of llama-server: finished, or piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.reading.events import TextDelta
from constrain.generation.completion import Finished
from constrain.server.http.events import data_event
from constrain.server.serving.dialect import Writer
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.server.llama_server.request import ContinuationRequest
    from constrain.server.serving.models import ServedModel
    from constrain.server.serving.progress import PromptProgress


class ContinuationWriter(Writer):
    """Writes one answer, or its pieces. ``asked``: the request; ``served``: the model."""

    def __init__(self, asked: ContinuationRequest, served: ServedModel, *_: object) -> None:
        self._asked = asked
        self._model = served.name

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the response for a finished answer."""
        [completion] = completions
        return self._ending(completion, completion.text)

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:
        """Yields the pieces for an event of an answer."""
        if isinstance(event, TextDelta):
            yield data_event({"index": number, "content": event.text, "stop": False})
        elif isinstance(event, Finished):
            yield data_event(self._ending(event.completion, ""))

    def tell(self, number: int, progress: PromptProgress) -> Iterator[str]:
        """Yields a piece that tells how much of the prompt is read."""
        yield data_event({"index": number, "content": "", "stop": False, **progress.member()})

    def _ending(self, completion: Completion, content: str) -> dict[str, Any]:
        """Returns the last piece of an answer: why it ended, and its numbers."""
        is_cut = self._asked.question.content is None and completion.finish_reason != "stop"
        usage, timings = completion.usage, completion.timings
        evaluated = usage.prompt_tokens - usage.cached_tokens
        return {
            "index": 0,
            "content": content,
            "tokens": list(completion.tokens) if self._asked.returns_tokens else [],
            "id_slot": -1,
            "stop": True,
            "model": self._model,
            "tokens_predicted": usage.completion_tokens,
            "tokens_evaluated": usage.prompt_tokens,
            "tokens_cached": usage.cached_tokens,
            "truncated": False,
            "stop_type": "word" if completion.stop is not None else "limit" if is_cut else "eos",
            "stopping_word": completion.stop or "",
            "timings": {
                "cache_n": usage.cached_tokens,
                **_timing("prompt", evaluated, timings.prompt),
                **_timing("predicted", usage.completion_tokens, timings.generation),
            },
            **extension(completion, is_cut=is_cut),
        }


def _timing(step: str, tokens: int, seconds: float) -> dict[str, float]:
    return {
        f"{step}_n": tokens,
        f"{step}_ms": 1e3 * seconds,
        f"{step}_per_token_ms": 1e3 * seconds / tokens if tokens else 0.0,
        f"{step}_per_second": tokens / seconds if seconds else 0.0,
    }
