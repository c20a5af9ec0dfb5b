"""Continuations of prompts as ``text_completion`` objects: finished, or piece by piece."""

from __future__ import annotations

import codecs
import secrets
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from constrain.chat.reading.events import TextDelta
from constrain.generation.completion import Finished
from constrain.generation.logprobs import finite_logprob
from constrain.server.http.events import LAST_EVENT, data_event
from constrain.server.serving.dialect import Writer
from constrain.server.serving.ended import count_usage
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.llama.decoding.token_logprob import TokenLogprob
    from constrain.server.completions.request import CompletionRequest
    from constrain.server.serving.models import ServedModel

FinishReason = Literal["stop", "length"]


class CompletionWriter(Writer):
    """Writes one response, or its chunks. ``asked``: the request; ``served``: the model."""

    def __init__(self, asked: CompletionRequest, served: ServedModel, *_: object) -> None:
        question = asked.question
        before = [_prompt_text(each.prompt, served) if asked.echo else "" for each in asked.questions]
        n, best_of = (1, 1) if question.vote else (asked.n, question.n)
        self._head = {"id": f"cmpl-{secrets.token_hex(12)}"}
        self._rest = {"created": int(time.time()), "model": asked.model, "object": "text_completion"}
        self._before = before
        self._n = n
        self._best_of = best_of
        self._is_text = question.content is None
        self._logprobs = [TextLogprobs() for _ in range(len(before) * n)] if asked.logprobs else None
        self._usage: dict[str, Any] = {"usage": None} if asked.streaming.include_usage else {}
        self._completions: dict[int, Completion] = {}

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the response for finished answers."""
        choices = [
            {
                "finish_reason": (reason := self._reason(completion)),
                "index": number,
                "logprobs": self._told(number, completion.text_logprobs or ()),
                "text": self._before[number // self._n] + completion.text,
                **extension(completion, is_cut=reason == "length"),
            }
            for number, completion in enumerate(self._best(completions))
        ]
        return self._object(choices, {"usage": count_usage(completions, self._best_of)})

    def begin(self, count: int) -> Iterator[str]:
        """Yields the chunks in front of the answers."""
        for number in range(count):
            if text := self._before[number // self._n]:
                yield self._chunk(number, text)

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:
        """Yields the chunks for an event of an answer, which is a text."""
        if isinstance(event, TextDelta):
            yield self._chunk(number, event.text, logprobs=self._told(number, event.logprobs))
        elif isinstance(event, Finished):
            self._completions[number] = event.completion
            reason = self._reason(event.completion)
            facts = extension(event.completion, is_cut=reason == "length")
            yield self._chunk(number, "", reason, facts=facts)

    def end(self) -> Iterator[str]:
        """Yields the chunks after all answers are finished."""
        if self._usage:
            completions = [self._completions[number] for number in sorted(self._completions)]
            yield data_event(self._object([], {"usage": count_usage(completions, self._n)}))
        yield LAST_EVENT

    def _best(self, completions: Sequence[Completion]) -> Iterator[Completion]:
        """Yields the answers to return: for each prompt the ``n`` best, best first if more were written."""
        for start in range(0, len(completions), self._best_of):
            group = completions[start : start + self._best_of]
            yield from group if self._best_of == self._n else sorted(group, key=_mean_logprob, reverse=True)[: self._n]

    def _told(self, number: int, tokens: Sequence[TokenLogprob]) -> dict[str, Any] | None:
        return None if self._logprobs is None else self._logprobs[number].write(tokens)

    def _reason(self, completion: Completion) -> FinishReason:
        """Returns the reason why an answer ended. Only free text can be cut: values of a schema are always complete."""
        return "length" if self._is_text and completion.finish_reason != "stop" else "stop"

    def _chunk(
        self,
        number: int,
        text: str,
        reason: FinishReason | None = None,
        *,
        logprobs: dict[str, Any] | None = None,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        choice = {"finish_reason": reason, "index": number, "logprobs": logprobs, "text": text, **facts}
        return data_event(self._object([choice], self._usage))

    def _object(self, choices: list[dict[str, Any]], usage: dict[str, Any]) -> dict[str, Any]:
        return {**self._head, "choices": choices, **self._rest, **usage}


def _prompt_text(prompt: Any, served: ServedModel) -> str:
    """Returns the text of a prompt; special tokens have no text."""
    if isinstance(prompt, str):
        return prompt
    return b"".join(map(served.model.vocabulary.token_bytes, prompt)).decode("utf-8", "replace")


def _mean_logprob(completion: Completion) -> float:
    """Returns the mean log-probability of an answer's tokens."""
    logprobs = [token.logprob for token in completion.logprobs or ()]
    return sum(logprobs) / max(1, len(logprobs))


class TextLogprobs:
    """Writes the log-probabilities of one answer, piece by piece: parallel lists with one entry per token."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def write(self, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Returns the log-probabilities of the next tokens.

        ``text_offset``: index of the character that a token begins in.
        """
        return {
            "text_offset": [self._offset(token) for token in tokens],
            "token_logprobs": [finite_logprob(token) for token in tokens],
            "tokens": [token.text for token in tokens],
            "top_logprobs": [_top(token) for token in tokens],
        }

    def _offset(self, token: TokenLogprob) -> int:
        begin = self._characters
        self._characters += len(self._decoder.decode(token.bytes))
        return begin


def _top(token: TokenLogprob) -> dict[str, float]:
    """Returns the likeliest tokens at a position and the chosen one, by text; among equal texts, the likeliest."""
    found: dict[str, float] = {}
    for other in (*token.top, token):
        found.setdefault(other.text, finite_logprob(other))
    return found
