"""The body of ``POST /v1/responses``, checked: what ``constrain`` is to be asked, and what the response repeats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from openai.types.responses import ResponseIncludable
from openai.types.shared import Reasoning
from pydantic import ValidationError

from constrain.llama.decoding.sampler import Sampling
from constrain.server.chat.request import read_show_schema, sampling_options, token_limit
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import array, boolean, mapping, missing, wrong_type
from constrain.server.requests.logprobs import logprobs_options, top_logprobs
from constrain.server.requests.refusals import RESPONSES_FIELDS, refuse_fields
from constrain.server.responses.input import conversation, one_of, optional_text, read_items, required_text
from constrain.server.responses.tools import TextFormat, read_format, read_requested_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.generation.options import ChatOptions
    from constrain.server.responses.input import Item
    from constrain.server.settings import StrictSubset

_INCLUDABLE: tuple[str, ...] = get_args(ResponseIncludable)
_LOGPROBS = "message.output_text.logprobs"

_TRUNCATIONS = ("auto", "disabled")
"""Nothing is ever left out of a conversation: where it does not fit, the request is refused with either."""

_MOST_METADATA = 16
"""OpenAI's limits."""

_PARAMS = {
    "messages": "input",
    "response_format": "text.format.schema",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}


_NESTED = re.compile(r"(?<=\])\.(?:function|custom)\b")
"""What stands around a tool in chat completions alone."""


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A request for a response.

    Attributes:
        model: the name of the model asked for.
        items: the input, as ``read_items`` makes it.
        instructions: what the conversation begins with; those of an earlier response do not count.
        previous_response_id: the response that this one continues.
        text_format: what the text must match.
        options: keywords for ``complete`` and ``stream``, beside ``schema``.
        custom_tools: the names of the tools that take a text.
        stream: whether the answer is wanted as events.
        store: whether the response is kept.
        repeated: fields that the response repeats.
    """

    model: str
    items: tuple[Item, ...]
    instructions: str | None
    previous_response_id: str | None
    text_format: TextFormat
    options: ChatOptions
    custom_tools: frozenset[str]
    stream: bool
    store: bool
    repeated: dict[str, Any]

    def messages(self, previous: Sequence[Item] = ()) -> list[dict[str, Any]]:
        """The conversation as chat messages; ``previous``: the items of the response that it continues, and before.

        Raises ``ApiError`` for calls without results and results without calls.
        """
        return conversation([*previous, *self.items], self.instructions)


def read_request(body: Mapping[str, Any], *, strict_subset: StrictSubset = "structural") -> ResponsesRequest:
    """Checks a request. Fields that are not known are ignored; what cannot be honoured is refused.

    Tools are compiled, which may take long; ``text.format`` is not. Raises ``ApiError``.
    """
    refuse_fields(body, RESPONSES_FIELDS)
    if body.get("truncation") is not None:
        one_of(body["truncation"], _TRUNCATIONS, "truncation")
    model = required_text(body, "model")
    previous = optional_text(body, "previous_response_id")
    if body.get("input") in (None, []) and previous is None:
        raise missing("input")
    items = read_items(body["input"]) if body.get("input") is not None else []
    tools = read_requested_tools(body.get("tools"), body.get("tool_choice"), strict_subset)
    text_format = read_format(body.get("text"), strict_subset)
    parallel = boolean(body, "parallel_tool_calls") is not False
    store = boolean(body, "store") is not False
    options = _options(body)
    if tools.tools:
        options |= {"tools": tools.tools, "tool_choice": tools.choice, "parallel_tool_calls": parallel}
    options |= _logprobs(body)
    instructions = optional_text(body, "instructions")
    defaults = Sampling()
    repeated = {
        "background": False,
        "instructions": instructions,
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": _metadata(body),
        "parallel_tool_calls": parallel,
        "previous_response_id": previous,
        "reasoning": _reasoning(body),
        "service_tier": "default",
        "store": store,
        "temperature": options.get("temperature", defaults.temperature),
        "text": _text(body, text_format),
        "tool_choice": tools.choice,
        "tools": list(tools.documents),
        "top_logprobs": options.get("top_logprobs", 0),
        "top_p": options.get("top_p", defaults.top_p),
        "truncation": "disabled",
        "user": optional_text(body, "user"),
    }
    return ResponsesRequest(
        model=model,
        items=tuple(items),
        instructions=instructions,
        previous_response_id=previous,
        text_format=text_format,
        options=options,
        custom_tools=tools.custom,
        stream=boolean(body, "stream") or False,
        store=store,
        repeated=repeated,
    )


def for_responses(error: ApiError) -> ApiError:
    """The error, with the place in the request as this endpoint names it, in place of chat completions."""
    param = error.param and _PARAMS.get(error.param, _NESTED.sub("", error.param))
    return ApiError(
        error.message, status=error.status, kind=error.kind, param=param, code=error.code, headers=error.headers
    )


def _options(body: Mapping[str, Any]) -> ChatOptions:
    """How to sample, when to stop and what to show, by the rules of chat completions."""
    options: ChatOptions = {**sampling_options(body), **read_show_schema(body)}
    max_tokens, _ = token_limit(body, "max_output_tokens")
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    return options


def _logprobs(body: Mapping[str, Any]) -> ChatOptions:
    """Whether log-probabilities are included. The rest of ``include`` is about what no answer of ours holds.

    Who names a number of tokens to see in each place wants to see them, and need not include them.
    """
    given = body.get("include")
    entries = enumerate([] if given is None else array(given, "include"))
    included = [one_of(each, _INCLUDABLE, f"include[{index}]") for index, each in entries]
    top = top_logprobs(body)
    return logprobs_options(top) if top or _LOGPROBS in included else {}


def _metadata(body: Mapping[str, Any]) -> dict[str, str]:
    given = body.get("metadata")
    if given is None:
        return {}
    metadata = mapping(given, "metadata")
    if len(metadata) > _MOST_METADATA:
        raise ApiError(
            f"Invalid 'metadata': too many properties. Expected at most {_MOST_METADATA}, but got {len(metadata)}.",
            param="metadata",
            code="object_above_max_properties",
        )
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise wrong_type(f"metadata.{key:.64}", "a string", value)
    return metadata


def _reasoning(body: Mapping[str, Any]) -> dict[str, Any]:
    """``reasoning`` as far as OpenAI's own type knows it. How much a model reasons is not for a request to say."""
    given = body.get("reasoning")
    known = {"effort": None, "summary": None}
    if given is None:
        return known
    asked = mapping(given, "reasoning")
    try:
        return known | Reasoning.model_validate({key: asked.get(key) for key in known}).to_dict()
    except ValidationError:
        return known


def _text(body: Mapping[str, Any], text_format: TextFormat) -> dict[str, Any]:
    verbosity = (body.get("text") or {}).get("verbosity")
    return {
        "format": text_format.document,
        "verbosity": verbosity if verbosity in ("low", "medium", "high") else "medium",
    }
