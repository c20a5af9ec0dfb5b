"""Answers in Ollama's form: finished, or as a stream of JSON objects, one per line."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from constrain.chat.reading.reply import Reply
from constrain.errors import OutputValidationError
from constrain.generation.completion import Finished
from constrain.generation.logprobs import logprob_objects
from constrain.server.http.account import current
from constrain.server.http.errors import ApiError
from constrain.server.serving.dialect import Writer
from constrain.server.serving.ended import Shape, finish_reason
from constrain.server.serving.extension import extension, request_extension
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.server.ollama.request import OllamaRequest
    from constrain.server.serving.models import ServedModel

LINES = "application/x-ndjson"
"""Media type of a stream."""

_NANOSECONDS = 1_000_000_000

_HINTS = {"unsupported_media_type": " With curl, use --json instead of -d."}
"""Sentences behind the messages of errors, by code: users of Ollama send bodies without a type."""


class AnswerWriter(Writer):
    """Writes one answer, or its lines.

    Args:
        members: function that makes the members of a piece of the answer: ``chat_members`` or ``generate_members``.
        asked: the request.
        served: the model; ``None`` for one that is unloaded.
    """

    media_type = LINES

    def __init__(
        self,
        members: Callable[..., dict[str, Any]],
        asked: OllamaRequest,
        served: ServedModel | None = None,
        *_: object,
    ) -> None:
        self._model = asked.model
        self._members = members
        self._load_seconds = 0.0 if served is None else served.load_seconds
        self._begun = current.get().begun
        self._shape = Shape(is_text=not asked.questions or asked.question.content is None)
        self._calls: dict[int, tuple[str, str, list[str]]] = {}

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the response for a finished answer."""
        [completion] = completions
        reply = completion.value
        calls = reply.calls if isinstance(reply, Reply) else ()
        written = [_call_object(index, call.id, call.name, call.text) for index, call in enumerate(calls)]
        members = self._members(completion.text, completion.thoughts, written)
        if completion.text_logprobs is not None:
            members["logprobs"] = logprob_objects(completion.text_logprobs)
        return {**self._head(), **members, **self._ending(completion)}

    def ready(self, reason: str) -> dict[str, Any]:
        """Returns the response to a request without a question. ``reason``: ``"load"`` or ``"unload"``."""
        done = {"done": True, "done_reason": reason, **self._durations()}
        return {**self._head(), **self._members(), **done, **request_extension()}

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:  # noqa: ARG002 - there is one answer
        """Yields the lines for an event of the answer; each call is one line."""
        match event:
            case TextDelta(text, tokens):
                yield self._piece(self._members(text), {"logprobs": logprob_objects(tokens)} if tokens else {})
            case RefusalDelta(text):
                yield self._piece(self._members(text))
            case ReasoningDelta(text):
                yield self._piece(self._members("", text))
            case CallStarted(index, identifier, name):
                self._calls[index] = identifier, name, []
            case ArgumentsDelta(index, text):
                self._calls[index][2].append(text)
            case CallEnded(index):
                identifier, name, texts = self._calls.pop(index)
                yield self._piece(self._members("", "", [_call_object(index, identifier, name, "".join(texts))]))
            case Finished(completion):
                yield json_line({**self._head(), **self._members(), **self._ending(completion)})

    @staticmethod
    def failed(error: ApiError, sent: int = 0) -> str:  # noqa: ARG004 - see Writer
        """Returns the line of an error, which ends a stream."""
        return json_line(error_object(error))

    def _piece(self, members: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> str:
        return json_line({**self._head(), **members, "done": False, **(more or {})})

    def _head(self) -> dict[str, Any]:
        return {"model": self._model, "created_at": timestamp(time.time())}

    def _ending(self, completion: Completion) -> dict[str, Any]:
        """Returns the last members of an answer: why it ended, its numbers, and facts that Ollama has no field for."""
        is_cut = finish_reason(completion, self._shape) == "length"
        return {
            "done": True,
            "done_reason": "length" if is_cut else "stop",
            **self._durations(),
            "prompt_eval_count": completion.usage.prompt_tokens,
            "prompt_eval_duration": nanoseconds(completion.timings.prompt),
            "eval_count": completion.usage.completion_tokens,
            "eval_duration": nanoseconds(completion.timings.generation),
            **extension(completion, is_cut=is_cut),
        }

    def _durations(self) -> dict[str, int]:
        return {
            "total_duration": nanoseconds(time.monotonic() - self._begun),
            "load_duration": nanoseconds(self._load_seconds),
        }


def chat_members(content: str = "", thinking: str = "", calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Returns the members of a piece of an answer of ``/api/chat``."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = list(calls)
    return {"message": message}


def generate_members(response: str = "", thinking: str = "", _: Sequence[object] = ()) -> dict[str, Any]:
    """Returns the members of a piece of an answer of ``/api/generate``, which has no calls."""
    return {"response": response, "thinking": thinking} if thinking else {"response": response}


def json_line(document: Mapping[str, Any]) -> str:
    """Returns an object as one line of JSON.

    Characters beyond ASCII are escaped, because some clients end lines at U+0085, U+2028 and U+2029, too.
    """
    return json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"


def error_object(error: ApiError) -> dict[str, Any]:
    """Returns the JSON object of an error."""
    return {"error": error.message + _HINTS.get(error.code or "", "")}


def timestamp(seconds: float) -> str:
    """Returns a time in seconds since 1970 as RFC 3339 writes it.

    >>> timestamp(0)
    '1970-01-01T00:00:00.000000Z'
    """
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def nanoseconds(seconds: float) -> int:
    """Returns seconds as whole nanoseconds."""
    return round(seconds * _NANOSECONDS)


def _call_object(index: int, identifier: str, name: str, text: str) -> dict[str, Any]:
    """Returns a call with its arguments as an object, from their JSON text.

    Raises ``ApiError`` for arguments that no JSON reader can be sure to read: numbers beyond floats, or many levels.
    """
    try:
        arguments = read_answer(text)
        json.dumps(arguments, allow_nan=False)
    except (ValueError, OutputValidationError) as error:
        message = (
            f"The answer cannot be read: the arguments of '{name}' have a number that is too large, or too many levels."
        )
        raise ApiError(message, code="invalid_value") from error
    return {"id": identifier, "function": {"index": index, "name": name, "arguments": arguments}}
