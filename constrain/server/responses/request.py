"""The body of ``POST /v1/responses``, checked: what ``constrain`` is to be asked, and what the response repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from openai.types.responses import ResponseIncludable

from constrain.chat.tools.kinds import CustomTool
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import (
    array,
    boolean,
    mapping,
    missing,
    model_name,
    one_of,
    optional_text,
    wrong_type,
)
from constrain.server.requests.formats import TEXT_FORMAT, read_format
from constrain.server.requests.limits import MAX_METADATA
from constrain.server.requests.logprobs import logprobs_options, top_logprobs
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question
from constrain.server.requests.refusals import RESPONSES_FIELDS, refuse_fields
from constrain.server.requests.sampling import read_max_tokens, read_sampling, read_show_schema
from constrain.server.requests.streams import read_stream
from constrain.server.requests.tools import read_parallel, read_tools
from constrain.server.responses.input import conversation, read_items
from constrain.server.responses.repeated import (
    repeated_reasoning,
    repeated_sampling,
    repeated_text,
    repeated_tools,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.responses.input import Item
    from constrain.server.settings import StrictSubset

_INCLUDABLE: tuple[str, ...] = get_args(ResponseIncludable)
_LOGPROBS = "message.output_text.logprobs"

_TRUNCATIONS = ("auto", "disabled")
"""Nothing is ever left out of a conversation: where it does not fit, the request is refused with either."""


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A body that was read: what a client asks of this endpoint, which may continue an earlier response.

    Attributes:
        model: the name of the model asked for.
        items: the input, as ``read_items`` makes it.
        instructions: what the conversation begins with; those of an earlier response do not count.
        previous_response_id: the response that this one continues.
        content: what the text must match; None for any text.
        options: for the generation.
        places: where the request has what errors may still be about.
        custom_tools: the names of the tools that take a text.
        stream: whether the answer is wanted as events.
        store: whether the response is kept.
        repeated: fields that the response repeats.
    """

    model: str
    items: tuple[Item, ...]
    instructions: str | None
    previous_response_id: str | None
    content: Format | None
    options: ChatOptions
    places: Places
    custom_tools: frozenset[str]
    stream: bool
    store: bool
    repeated: dict[str, Any]

    def question(self, previous: Sequence[Item] = ()) -> Question:
        """What the model is asked; ``previous`` as for ``messages``. Raises ``ApiError``."""
        return Question(self.messages(previous), self.content, self.options, self.places)

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
    model = model_name(body)
    previous = optional_text(body, "previous_response_id")
    if body.get("input") in (None, []) and previous is None:
        raise missing("input")
    items = read_items(body["input"]) if body.get("input") is not None else []
    tools = read_tools(body, strict_subset, is_flat=True)
    text = mapping(body["text"], "text") if body.get("text") is not None else {}
    content = read_format(text.get("format"), TEXT_FORMAT, strict_subset)
    parallel = read_parallel(body)
    store = boolean(body, "store") is not False
    options: ChatOptions = {**read_sampling(body), **read_show_schema(body)}
    max_tokens, name = read_max_tokens(body, "max_output_tokens")
    options |= {**max_tokens, **tools.options(parallel=parallel), **_logprobs(body)}
    instructions = optional_text(body, "instructions")
    repeated = {
        **repeated_sampling(options),
        "background": False,
        "instructions": instructions,
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": _metadata(body),
        "parallel_tool_calls": parallel,
        "previous_response_id": previous,
        "reasoning": repeated_reasoning(body),
        "service_tier": "default",
        "store": store,
        "text": repeated_text(body),
        "tool_choice": "auto" if tools.choice is None else tools.choice,
        "tools": repeated_tools(tools, body),
        "truncation": "disabled",
        "user": optional_text(body, "user"),
    }
    return ResponsesRequest(
        model=model,
        items=tuple(items),
        instructions=instructions,
        previous_response_id=previous,
        content=content,
        options=options,
        places=Places("input", name, tools.field, tools.places),
        custom_tools=frozenset(tool.name for tool in tools.all if isinstance(tool, CustomTool)),
        stream=read_stream(body),
        store=store,
        repeated=repeated,
    )


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
    if len(metadata) > MAX_METADATA:
        raise ApiError(
            f"Invalid 'metadata': too many properties. Expected at most {MAX_METADATA}, but got {len(metadata)}.",
            param="metadata",
            code="object_above_max_properties",
        )
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise wrong_type(f"metadata.{key:.64}", "a string", value)
    return metadata
