"""Finished answers as ``Response`` objects, in the types of OpenAI's own client."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from openai.types.responses import Response

from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import CustomCall
from constrain.engine.captures import captures_object
from constrain.generation.logprobs import logprob_objects
from constrain.server.requests.tools import SEARCH
from constrain.server.responses.input import CALLS, PREFIXES
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion
    from constrain.server.responses.request import ResponsesRequest

ItemDocument = dict[str, Any]
"""A JSON object: an item of the output."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The fields of a response that are known before its first token.

    Attributes:
        request: request that it answers.
        id: unique id, beginning with ``resp_``.
        created_at: seconds since 1970.
        model: name of the model that answers.
        temperature: temperature at which the answer is sampled.
    """

    request: ResponsesRequest
    id: str
    created_at: float
    model: str
    temperature: float

    def item_id(self, kind: str, output_index: int) -> str:
        """Returns the id of an item of the output: the same in events and in the finished response."""
        return f"{PREFIXES[kind]}_{self.id.partition('_')[2]}{output_index:04x}"


def new_response_id() -> str:
    """Returns an id that cannot be guessed."""
    return f"resp_{secrets.token_hex(24)}"


def unfinished_response(head: ResponseHead) -> Response:
    """Returns the response before its first token, for events."""
    return _response(head, "in_progress", ())


def finished_response(
    head: ResponseHead,
    completion: Completion,
    *,
    completed_at: float,
    reasoning_tokens: int,
) -> Response:
    """Returns the response for a finished answer.

    Args:
        head: fields known before the answer.
        completion: answer of the model.
        completed_at: seconds since 1970.
        reasoning_tokens: number of the answer's tokens that are reasoning: see ``count_reasoning``.
    """
    items = output_items(head, completion)
    return make_response(head, completion, items, completed_at=completed_at, reasoning_tokens=reasoning_tokens)


def count_reasoning(completion: Completion, token_bytes: Callable[[int], bytes]) -> int:
    """Returns how many of an answer's tokens are reasoning, including the mark that opens the section, or a draft."""
    if completion.draft:
        return completion.usage.draft_tokens
    reasoning = completion.reasoning.rstrip("\ufffd").encode()  # a limit on tokens may cut a character
    if not reasoning:
        return 0
    pieces = list(map(token_bytes, completion.tokens))
    end = b"".join(pieces).find(reasoning) + len(reasoning)
    starts = accumulate(map(len, pieces), initial=0)
    return sum(start < end for start in list(starts)[:-1])


def make_response(
    head: ResponseHead,
    completion: Completion,
    items: Sequence[ItemDocument],
    *,
    completed_at: float,
    reasoning_tokens: int,
) -> Response:
    """Returns the finished response with the given items."""
    usage = completion.usage
    tokens = {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
    cut = is_cut(completion, head.request)
    facts = {"usage": tokens, **extension(completion, is_cut=cut)}
    if not cut:
        return _response(head, "completed", items, completed_at=completed_at, **facts)
    reason = "max_output_tokens" if completion.finish_reason == "length" else None
    return _response(head, "incomplete", items, incomplete_details={"reason": reason}, **facts)


def is_cut(completion: Completion, request: ResponsesRequest) -> bool:
    """Returns whether the answer lacks its end.

    Only free text can: calls and values of a schema end within every limit.
    """
    if completion.finish_reason == "stop":
        return False
    is_value = request.content is not None and completion.text
    return not (_calls(completion) or is_value)


def output_items(head: ResponseHead, completion: Completion) -> list[ItemDocument]:
    """Returns the items of an answer: reasoning, a message, calls."""
    return list(_items(head, completion))


def _items(head: ResponseHead, completion: Completion) -> Iterator[ItemDocument]:
    index = 0
    status = "incomplete" if is_cut(completion, head.request) else "completed"
    if completion.thoughts:
        alone = not has_message(completion, head.request)
        yield reasoning_item(head, index, completion.thoughts, status if alone else "completed")
        index += 1
    if has_message(completion, head.request):
        refusal = _refusal(completion)
        text = text_part(completion.text, logprob_objects(completion.text_logprobs or ()))
        part = text if refusal is None else refusal_part(refusal)
        yield message_item(head, index, [part], status)
        index += 1
    for position, call in enumerate(_calls(completion)):
        is_custom = isinstance(call, CustomCall)
        item = call_item(head, index + position, call.id, call.name, call.text, is_custom=is_custom, status="completed")
        yield {**item, **_captures(call)}


def with_captures(items: Sequence[ItemDocument], completion: Completion) -> list[ItemDocument]:
    """Returns the items of a streamed answer, with the captures of its calls: the items were made before those."""
    calls = iter(_calls(completion))
    return [{**item, **_captures(next(calls))} if item["type"] in CALLS else item for item in items]


def _captures(call: ToolCall) -> dict[str, Any]:
    return captures_object(call.captures) if isinstance(call, CustomCall) else {}


def has_message(completion: Completion, request: ResponsesRequest) -> bool:
    """Returns whether an answer has a message: without calls it has one, maybe empty, unless its reasoning was cut."""
    if completion.text or _refusal(completion) is not None:
        return True
    return not _calls(completion) and not (completion.thoughts and is_cut(completion, request))


def _calls(completion: Completion) -> tuple[Any, ...]:
    return completion.value.calls if isinstance(completion.value, Reply) else ()


def _refusal(completion: Completion) -> str | None:
    value = completion.value
    if isinstance(value, Reply):
        return value.refusal
    return value.text if isinstance(value, Refusal) else None


def text_part(text: str, logprobs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns a text part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}


def refusal_part(text: str) -> dict[str, Any]:
    """Returns a refusal part of a message."""
    return {"type": "refusal", "refusal": text}


def message_item(head: ResponseHead, index: int, parts: list[dict[str, Any]], status: str) -> ItemDocument:
    """Returns a message item."""
    item_id = head.item_id("message", index)
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": parts}


def reasoning_item(head: ResponseHead, index: int, text: str | None, status: str) -> ItemDocument:
    """Returns a reasoning item; ``text`` is None before its first piece."""
    content = [] if text is None else [{"type": "reasoning_text", "text": text}]
    item_id = head.item_id("reasoning", index)
    return {"id": item_id, "type": "reasoning", "summary": [], "content": content, "status": status}


def call_item(
    head: ResponseHead, index: int, call_id: str, name: str, text: str, *, is_custom: bool, status: str
) -> ItemDocument:
    """Returns a call item with its arguments or input. ``name``: name that the model calls, with its namespace."""
    if name == SEARCH and head.request.searches:
        about = {"type": "tool_search_call", "call_id": call_id, "execution": "client", "status": status}
        return {"id": head.item_id(about["type"], index), **about, "arguments": json.loads(text or "{}")}
    kind = [*CALLS][is_custom]
    item = {"id": head.item_id(kind, index), "type": kind, "call_id": call_id, "name": name}
    if name in head.request.namespaces:
        namespace, name = head.request.namespaces[name]
        item |= {"name": name, "namespace": namespace}
    return {**item, CALLS[kind]: text, "status": status}


def _response(head: ResponseHead, status: str, items: Sequence[ItemDocument], **given: Any) -> Response:
    document = {
        "id": head.id,
        "object": "response",
        "created_at": head.created_at,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": head.model,
        "output": list(items),
        "usage": None,
        "temperature": head.temperature,
        **head.request.repeated,
        **given,
    }
    return Response.model_validate(document)


def failed_response(head: ResponseHead, message: str, items: Sequence[ItemDocument]) -> Response:
    """Returns the response after an error, with the items that were finished."""
    return _response(head, "failed", items, error={"code": "server_error", "message": message})


def response_json(response: Response) -> dict[str, Any]:
    """Returns the response as a JSON object, with times in whole seconds."""
    document: dict[str, Any] = response.to_dict(mode="json", exclude_unset=True)
    times = {key: int(document[key]) for key in ("created_at", "completed_at") if document.get(key) is not None}
    return document | times
