"""The records of a batch's output: answers, and errors in place of answers, as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from constrain.batch.lines import LineError
from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.engine.captures import captures_object
from constrain.errors import OutputValidationError
from constrain.generation.completion import facts_object
from constrain.generation.logprobs import logprob_objects
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.chat.tools.calls import ToolCall
    from constrain.errors import ConstrainError
    from constrain.generation.completion import Completion

_NOT_AS_IS = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that JSON output escapes: some programs read them as line ends, and UTF-8 cannot encode surrogates."""


def json_text(value: object) -> str:
    """Returns a JSON text in one line."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_AS_IS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_line(record: Mapping[str, object]) -> bytes:
    """Returns the line of a record."""
    return json_text(record).encode() + b"\n"


def line_number(line: bytes) -> int | None:
    """Returns the number in a line of answers; ``None`` if the line is not an answer."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = record.get("line") if isinstance(record, dict) else None
    return found if isinstance(found, int) else None


def is_error(line: bytes) -> bool:
    """Returns whether a line is an error in place of an answer, or the beginning of one that was not written whole."""
    if not line.endswith(b"\n"):
        return line.startswith(b'{"line": ')
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and {"line", "error", "message"} <= record.keys()


def last_certificate(lines: Iterable[bytes]) -> str | None:
    """Returns the hash of the last certificate in lines of answers; ``None`` without certificates."""
    last = None
    for line in lines:
        if b'"certificate"' in line and "certificate" in json.loads(line):
            last = line
    return None if last is None else json.loads(last)["certificate"]["sha256"]


def answer_object(completion: Completion) -> dict[str, object]:
    """Returns an answer as JSON."""
    answer: dict[str, object] = {
        "value": _json_value(completion.value),
        "text": completion.text,
        "finish_reason": completion.finish_reason,
        "usage": asdict(completion.usage),
    }
    if completion.shortened:
        answer["shortened"] = completion.shortened
    answer |= facts_object(completion)
    if completion.text_logprobs is not None:
        answer["logprobs"] = logprob_objects(completion.text_logprobs)
    texts = {"reasoning": completion.reasoning, "draft": completion.draft}
    return {**answer, **{name: text for name, text in texts.items() if text}}


def _json_value(value: object) -> object:
    """Returns a value as JSON; for a line with tools, the content and the calls."""
    match value:
        case Refusal(text):
            return {"refusal": text}
        case Reply(calls, content, _, refusal):
            said = {"content": content, "calls": [_json_call(call) for call in calls]}
            return said if refusal is None else {**said, "refusal": refusal}
    return value


def _json_call(call: ToolCall) -> dict[str, object]:
    if isinstance(call, FunctionCall):
        return {"id": call.id, "name": call.name, "arguments": read_answer(call.text)}
    return {"id": call.id, "name": call.name, "input": call.text, **captures_object(call.captures)}


def error_object(error: ConstrainError | LineError) -> dict[str, object]:
    """Returns the reason why a line has no answer, as JSON."""
    if isinstance(error, LineError):
        return {"error": "LineError", "message": str(error)}
    found: dict[str, object] = {"error": type(error).__name__, "message": error.message}
    if error.pointer is not None:
        found["pointer"] = error.pointer
    if isinstance(error, OutputValidationError):
        found["text"] = error.text
    return found
