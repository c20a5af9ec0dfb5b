"""The body of ``POST /v1/responses``, checked: the question to the model, and the fields that the response repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.kinds import CustomTool
from constrain.fields.logprobs import logprobs_options, read_certificate, read_confidence, read_top_logprobs
from constrain.fields.sampling import (
    read_cache_prompt,
    read_draft,
    read_max_tokens,
    read_parallel,
    read_sampling,
    read_show_schema,
    read_sources,
)
from constrain.fields.thinking import read_thinking
from constrain.fields.values import (
    array,
    boolean,
    mapping,
    missing,
    one_of,
    optional_text,
)
from constrain.fields.votes import read_unbias, read_vote
from constrain.server.http.account import warn
from constrain.server.http.errors import convert_field_errors
from constrain.server.requests.body import model_name
from constrain.server.requests.formats import TEXT_FORMAT, read_format
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import read_content
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question, read_n
from constrain.server.requests.refusals import RESPONSES_FIELDS, refuse_fields, unsupported
from constrain.server.requests.streams import read_stream
from constrain.server.requests.tools import read_tools
from constrain.server.responses.input import conversation, read_items
from constrain.server.responses.repeated import (
    repeat_reasoning,
    repeat_sampling,
    repeat_text,
    repeat_tools,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.responses.input import Item
    from constrain.server.settings import StrictSubset

_LOGPROBS = "message.output_text.logprobs"

_TRUNCATIONS = ("auto", "disabled")
"""Values of ``truncation``. Neither drops a part of a conversation: if it does not fit, the request is refused."""


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """The checked fields of a request for a response, which may continue an earlier response.

    Attributes:
        model: name of the model.
        items: items of the input (see ``read_items``).
        instructions: instructions at the beginning; those of the continued response are dropped.
        previous_response_id: id of the response that this one continues.
        content: format of the text; None for any text.
        options: options for the generation.
        places: names of the request's fields for later errors.
        custom_tools: names of the tools that take a text.
        namespaces: namespace and name of each tool of a namespace, by the name that the model calls.
        n: number of answers that vote on the response; 1 without a vote.
        stream: whether the answer is sent as events.
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
    namespaces: Mapping[str, tuple[str, str]]
    n: int
    stream: bool
    store: bool
    repeated: dict[str, Any]

    def question(self, previous: Sequence[Item] = ()) -> Question:
        """Returns the question to the model; ``previous`` as for ``messages``. Raises ``ApiError``."""
        messages = self.messages(previous)
        return Question(messages, self.content, self.options, self.places, self.n, vote=self.n > 1)

    def messages(self, previous: Sequence[Item] = ()) -> list[dict[str, Any]]:
        """Returns the conversation as chat messages.

        ``previous``: items of the continued response and of those before it.

        Raises ``ApiError`` for calls without results and results without calls.
        """
        return conversation([*previous, *self.items], self.instructions)


def _repeat_choice(read: Any, given: object) -> object:
    """Returns a choice of tools as it was given, except for other servers' words for it."""
    return read if isinstance(given, str) else given


@convert_field_errors()
def read_request(
    body: Mapping[str, Any], *, strict_subset: StrictSubset = "structural", keeps: bool = True
) -> ResponsesRequest:
    """Reads a parsed body. Unknown fields are ignored; known fields that this server cannot honour are refused.

    ``keeps``: whether the server keeps responses.

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
    content = read_content(body, read_format(text.get("format"), TEXT_FORMAT, strict_subset), "text.format")
    parallel = read_parallel(body)
    store = _read_store(body, keeps=keeps)
    options: ChatOptions = {**read_sampling(body, RANGES), **read_show_schema(body)}
    has_schema = content is not None and isinstance(content.schema, str)
    options |= read_sources(body, has_schema=has_schema or bool(tools.all))
    options |= {**read_draft(body), **read_confidence(body), **read_cache_prompt(body)}
    max_tokens, name = read_max_tokens(body, "max_output_tokens", least=1)
    options |= {**max_tokens, **read_thinking(body, max_tokens.get("max_tokens"))}
    options |= {**tools.options(parallel=parallel), **_logprobs(body)}
    stream = read_stream(body)
    n = _read_voters(body, stream=stream, logprobs=options.get("logprobs", False))
    options |= {**read_unbias(body, vote=n > 1), **read_certificate(body, vote=n > 1)}
    instructions = optional_text(body, "instructions")
    repeated = {
        **repeat_sampling(options),
        "background": False,
        "instructions": instructions,
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": _read_metadata(body),
        "parallel_tool_calls": parallel,
        "previous_response_id": previous,
        "reasoning": repeat_reasoning(body),
        "service_tier": "default",
        "store": store,
        "text": repeat_text(body),
        "tool_choice": "auto" if tools.choice is None else _repeat_choice(tools.choice, body["tool_choice"]),
        "tools": repeat_tools(tools, body),
        "truncation": "disabled",
        "user": body["user"] if isinstance(body.get("user"), str) else None,
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
        namespaces=tools.namespaces,
        n=n,
        stream=stream,
        store=store,
        repeated=repeated,
    )


def _read_metadata(body: Mapping[str, Any]) -> dict[str, str]:
    """Returns ``metadata``, which the response repeats: ``{}``, with a warning, unless it is an object of strings."""
    given = body.get("metadata") or {}
    if isinstance(given, dict) and all(isinstance(value, str) for value in given.values()):
        return given
    warn("'metadata' is not an object whose values are strings, so the response leaves it out.")
    return {}


def _read_store(body: Mapping[str, Any], *, keeps: bool) -> bool:
    """Reads ``store``: whether the response is kept. Without the field, it is kept if the server keeps responses."""
    given = boolean(body, "store")
    if given and not keeps:
        raise unsupported(
            "store",
            "This server keeps no responses. Send 'store': false, or start the server with a 'response_store'.",
        )
    return keeps if given is None else given


def _read_voters(body: Mapping[str, Any], *, stream: bool, logprobs: bool) -> int:
    """Reads ``n`` and ``vote``: how many answers vote on the response; 1 without a vote."""
    n = read_n(body)
    vote = read_vote(body, n, stream=stream, logprobs=logprobs)
    if n > 1 and not vote:
        raise unsupported("n", "A response is one answer; with 'vote': true, it is the one that 'n' answers agree on.")
    return n


def _logprobs(body: Mapping[str, Any]) -> ChatOptions:
    """Reads ``include`` and ``top_logprobs``; other entries of ``include`` are for items that this server never writes.

    A request with ``top_logprobs`` gets log-probabilities even without ``include``.
    """
    given = body.get("include")
    included = [] if given is None else array(given, "include")
    top = read_top_logprobs(body) or 0
    return logprobs_options(top) if top or _LOGPROBS in included else {}
