"""The events of one run as JSON: the prompt, the tokens with their trace, the fields, and the finished answer.

The stream of the playground has them, and so has a run that is kept in a file. Imports nothing of the server.
"""

from __future__ import annotations

import codecs
import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import CustomCall
from constrain.errors import pointer_to
from constrain.generation.completion import report_objects
from constrain.generation.logprobs import LEAST_LOGPROB
from constrain.language.special import without_special
from constrain.partial.scanner import Scanner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.generation.completion import Completion
    from constrain.generation.observers.trace import LikelyToken, TokenTrace
    from constrain.generation.plan import Plan
    from constrain.partial.reader import FieldEvent

VERSION = 1
"""Version of the endpoint and of the events. It changes when a member is removed or gets another meaning."""


class TokenObjects:
    """Makes the objects of an answer's tokens, which have their numbers, places, and JSON Pointers.

    ``n_vocab``: number of tokens of the vocabulary.
    """

    def __init__(self, n_vocab: int) -> None:
        self._n_vocab = n_vocab
        self._number = self._offset = 0
        self._pointers = _Pointers()

    def add(self, tokens: Sequence[TokenTrace]) -> list[dict[str, Any]]:
        """Returns the objects of the next tokens."""
        return [self._one(token) for token in tokens]

    def _one(self, token: TokenTrace) -> dict[str, Any]:
        found = {
            "index": self._number,
            "token": token.token,
            "text": token.text,
            "special": not token.bytes,
            "offset": self._offset,
            "origin": token.origin,
            "logprob": max(token.logprob, LEAST_LOGPROB),
            "allowed": None if token.n_allowed == self._n_vocab else token.n_allowed,
            "mass": token.mass,
            "top": [{**_likely(each), "allowed": each.is_allowed} for each in token.top],
            "allowed_top": [_likely(each) for each in token.allowed_top],
            "tokens_left": token.tokens_left,
            "least_tokens": token.min_tokens_left,
            "expected": [each._asdict() for each in token.expected],
            "pointer": self._pointers.after(token.bytes),
        }
        self._number += 1
        self._offset += len(token.bytes)
        return found


class _Pointers:
    """Finds which value of a JSON text each token writes; none once the text is not JSON."""

    def __init__(self) -> None:
        self._scanner: Scanner | None = Scanner()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def after(self, data: bytes) -> str | None:
        """Returns the JSON Pointer of the value under way after the next bytes; ``None`` if there is none."""
        if self._scanner is None:
            return None
        try:
            self._scanner.feed(self._decoder.decode(without_special(data)))
        except ValueError:
            self._scanner = None
            return None
        return pointer_to(self._scanner.place())


def _likely(token: LikelyToken) -> dict[str, Any]:
    return {"token": token.token, "text": token.text, "logprob": max(token.logprob, LEAST_LOGPROB)}


def prompt_object(plan: Plan) -> dict[str, Any]:
    """Returns the event of the prompt: the text that the model reads, and its tokens.

    With a draft, ``request`` has the tokens behind it, which ask for the answer.
    """
    tokenizer = plan.model.tokenizer
    found = {"type": "prompt", "text": tokenizer.show(plan.tokens), "tokens": _tokens(plan, plan.tokens)}
    return {**found, "request": _tokens(plan, plan.request)} if plan.request else found


def _tokens(plan: Plan, tokens: Sequence[int]) -> list[dict[str, Any]]:
    found = []
    for token in tokens:
        text, data = plan.describe_token(token)
        found.append({"token": token, "text": text, "special": not data})
    return found


def field_object(event: FieldEvent) -> dict[str, Any]:
    """Returns the event of a part of a value that begins, grows by ``text``, or is complete with ``value``."""
    place = {"path": pointer_to(event.path), "steps": list(event.path), "call": event.call}
    found = {"type": "field", "kind": event.kind, **place}
    if event.kind == "grow":
        return {**found, "text": event.text}
    return {**found, "value": event.value} if event.kind == "complete" else found


def done_object(completion: Completion, *, has_value: bool) -> dict[str, Any]:
    """Returns the event of the finished answer. ``has_value``: whether it is JSON, not a text."""
    value = completion.value
    reply = value if isinstance(value, Reply) else Reply(content=value)
    is_refusal = isinstance(value, Refusal) or reply.refusal is not None
    content = None if is_refusal else reply.content
    reports = report_objects(completion)
    return {
        "type": "done",
        "finish_reason": completion.finish_reason,
        "text": completion.text,
        "value": content,
        "has_value": has_value and not is_refusal and (value is not reply or content is not None),
        "calls": [_call(call) for call in reply.calls],
        "usage": asdict(completion.usage),
        "timings": {**asdict(completion.timings), **_measured(completion)},
        "fields": reports.get("fields"),
        "quotes": reports.get("quotes", []),
        "log_mass": None if completion.log_mass is None else max(completion.log_mass, LEAST_LOGPROB),
        "notes": _notes(completion),
    }


def _call(call: Any) -> dict[str, Any]:
    found = {"id": call.id, "name": call.name}
    if isinstance(call, CustomCall):
        return {**found, "arguments": None, "input": call.text}
    return {**found, "arguments": json.loads(call.text), "input": None}


def _measured(completion: Completion) -> dict[str, Any]:
    """Returns rates and shares of an answer."""
    seconds, written = completion.timings.generation, completion.usage.completion_tokens
    forced = sum(token.origin == "forced" for token in completion.trace or ())
    return {
        "masks": completion.n_masks,
        "mask_microseconds": 1e6 * completion.mask_seconds / completion.n_masks if completion.n_masks else 0.0,
        "tokens_per_second": written / seconds if seconds > 0 and math.isfinite(written / seconds) else 0.0,
        "forced": forced / len(completion.trace) if completion.trace else 0.0,
    }


def _notes(completion: Completion) -> list[str]:
    """Returns sentences about limits that the answer met."""
    notes = list(completion.report.warnings) if completion.report is not None else []
    if completion.shortened:
        notes.append(f"{completion.shortened} strings or numbers were ended early by their own limits.")
    if completion.limited_masks:
        limits = " and ".join(completion.limits_met)
        notes.append(f"{completion.limited_masks} masks left out allowed tokens, because of {limits}.")
    elif completion.limits_met:
        notes.append(f"Limits met: {', '.join(completion.limits_met)}.")
    if completion.stop is not None:
        notes.append(f"The answer ended before the stop text {completion.stop!r}.")
    return notes
