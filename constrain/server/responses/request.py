"""The body of ``POST /v1/responses``, checked: the question to the model, and the fields that the response repeats."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from constrain.chat.tools.checks import checked_before
from constrain.chat.tools.kinds import CustomTool
from constrain.fields.declared import Flag, Reads, Text, inside, within
from constrain.fields.logprobs import logprobs_options
from constrain.fields.sampling import DraftFields, Limit, ShowingFields, smallest_limit
from constrain.fields.thinking import Reasoning, ThinkingFields
from constrain.fields.values import array, mapping, missing
from constrain.fields.votes import VoteFields
from constrain.generation.options import TOP_LOGPROBS
from constrain.server.config import KEEP_NONE
from constrain.server.http.account import warn
from constrain.server.requests.declared import AskingBody
from constrain.server.requests.formats import TEXT_FORMAT, read_format
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, Question
from constrain.server.requests.refusals import RESPONSES_FIELDS, unsupported
from constrain.server.requests.streams import Streaming
from constrain.server.requests.tools import is_client_search, read_tools
from constrain.server.responses.input import conversation, read_items, tools_of_items
from constrain.server.responses.repeated import (
    repeat_reasoning,
    repeat_sampling,
    repeat_text,
    repeat_tools,
)
from constrain.server.responses.results import warn_of_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.responses.input import Item
    from constrain.server.settings import Settings

_LOGPROBS = "message.output_text.logprobs"


def _metadata(given: object, name: str) -> dict[str, str]:
    """Returns ``metadata``, which the response repeats: ``{}``, with a warning, unless it is an object of strings."""
    if not given:
        return {}
    if isinstance(given, dict) and all(isinstance(value, str) for value in given.values()):
        return given
    warn(f"'{name}' is not an object whose values are strings, so the response leaves it out.")
    return {}


class _Reasoning(Reasoning):
    summary: Any = None


class ResponseBody(VoteFields, ContentFields, ThinkingFields, ShowingFields, DraftFields, AskingBody):
    """The body. OpenAI's types say what fields of the type ``Any`` may be.

    Neither value of ``truncation`` drops a part of a conversation: if it does not fit, the request is refused.
    """

    refused = RESPONSES_FIELDS

    truncation: Literal["auto", "disabled"] | None = None
    previous_response_id: Text = None
    input: Any = None
    tools: Any = None
    tool_choice: Any = None
    text: Annotated[dict[str, Any] | None, Reads(mapping, Any)] = None
    reasoning: Annotated[_Reasoning | None, inside(_Reasoning)] = None
    parallel_tool_calls: Flag = None
    store: Flag = None
    max_output_tokens: Limit = None
    include: Annotated[list[Any] | None, Reads(array, Any)] = None
    top_logprobs: Annotated[int | None, within(TOP_LOGPROBS)] = None
    stream: Flag = None
    n: Annotated[int | None, within(RANGES["n"])] = None
    instructions: Text = None
    metadata: Annotated[dict[str, str] | None, Reads(_metadata, Any)] = None
    user: Any = None

    def logprobs_options(self) -> ChatOptions:
        """Returns the options for log-probabilities, which ``top_logprobs`` asks for even without ``include``.

        Other entries of ``include`` are for items that this server never writes.
        """
        top = self.top_logprobs or 0
        return logprobs_options(top) if top or _LOGPROBS in (self.include or ()) else {}

    def request(self, settings: Settings) -> ResponsesRequest:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        previous, keeps = self.previous_response_id, settings.response_store != KEEP_NONE
        if self.input in (None, []) and previous is None:
            raise missing("input")
        items = [] if self.input is None else read_items(self.input)
        given = self.given("tools", "tool_choice")
        tools = read_tools(given, settings.strict_subset, is_flat=True, more=tools_of_items(self.input))
        warn_of_results(items, tools.outputs)
        content = read_format((self.text or {}).get("format"), TEXT_FORMAT, settings.strict_subset)
        content = self.content({"text.format": content})
        if self.store and not keeps:
            raise unsupported(
                "store",
                "This server keeps no responses. Send 'store': false, or start the server with a 'response_store'.",
            )
        store = keeps if self.store is None else self.store
        has_schema = content is not None and isinstance(content.schema, str)
        self.require_quotes(has_schema=has_schema or bool(tools.all))
        max_tokens, name = smallest_limit({"max_output_tokens": self.max_output_tokens})
        options: ChatOptions = {
            **self.plain_options(),
            **max_tokens,
            **self.thinking_options(max_tokens.get("max_tokens")),
        }
        parallel = self.parallel_tool_calls is not False
        options |= {**tools.options(parallel=parallel), **self.logprobs_options()}
        n = self.n or 1
        self.votes(n, stream=self.stream, logprobs=options.get("logprobs"), **{"n of a response": n > 1})
        repeated = {
            **repeat_sampling(options),
            "background": False,
            "instructions": self.instructions,
            "max_output_tokens": self.max_output_tokens,
            "metadata": self.metadata or {},
            "parallel_tool_calls": parallel,
            "previous_response_id": previous,
            "reasoning": repeat_reasoning(self.reasoning),
            "service_tier": "default",
            "store": store,
            "text": repeat_text(self.text or {}),
            "tool_choice": "auto" if tools.choice is None else _repeat_choice(tools.choice, self.tool_choice),
            "tools": repeat_tools(tools, given),
            "truncation": "disabled",
            "user": self.user if isinstance(self.user, str) else None,
        }
        return ResponsesRequest(
            model=self.model,
            questions=(),
            streaming=Streaming(self.stream or False),
            items=tuple(items),
            instructions=self.instructions,
            previous_response_id=previous,
            content=content,
            options=options,
            places=Places("input", name, tools.field, tools.places),
            custom_tools=frozenset(tool.name for tool in tools.all if isinstance(tool, CustomTool)),
            namespaces=tools.namespaces,
            searches=any(map(is_client_search, given.get("tools") or ())),
            n=n,
            store=store,
            repeated=repeated,
        )


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A kept response.

    Attributes:
        response: response as a JSON object.
        input_items: items of the request, each with an id.
        conversation: items for a continuation: all earlier ones, the input and the output.
        size: characters of the conversation as JSON.
    """

    response: dict[str, Any]
    input_items: tuple[Item, ...]
    conversation: tuple[Item, ...]
    size: int

    @property
    def whole_size(self) -> int:
        """Characters of the response and its conversation as JSON."""
        return len(json.dumps(self.response)) + self.size  # shared items may outlive a response


@dataclass(frozen=True, slots=True)
class ResponsesRequest(Asked):
    """A request for a response, which may continue an earlier response. Its question is known once that is found.

    Attributes:
        items: items of the input (see ``read_items``).
        instructions: instructions at the beginning; those of the continued response are dropped.
        previous_response_id: id of the response that this one continues.
        content: format of the text; None for any text.
        options: options for the generation.
        places: names of the request's fields for later errors.
        custom_tools: names of the tools that take a text.
        namespaces: namespace and name of each tool of a namespace, by the name that the model calls.
        searches: whether the model may ask the client for more tools, by a call of ``SEARCH``.
        n: number of answers that vote on the response; 1 without a vote.
        store: whether the response is kept.
        repeated: fields that the response repeats.
        previous: response that it continues, once that is found.
    """

    items: tuple[Item, ...]
    instructions: str | None
    previous_response_id: str | None
    content: Format | None
    options: ChatOptions
    places: Places
    custom_tools: frozenset[str]
    namespaces: Mapping[str, tuple[str, str]]
    searches: bool
    n: int
    store: bool
    repeated: dict[str, Any]
    previous: StoredResponse | None = None

    def asking(self, previous: Sequence[Item] = ()) -> Self:
        """Returns the request with its question; ``previous`` as for ``messages``. Raises ``ApiError``."""
        found = self._with_tools_of(previous)
        messages = found.messages(previous)
        question = Question(messages, found.content, found.options, found.places, found.n, vote=found.n > 1)
        return replace(found, questions=(question,))

    def _with_tools_of(self, previous: Sequence[Item]) -> Self:
        """Returns the request with the tools that were found earlier in the conversation, which were checked then."""
        with checked_before():
            found = read_tools({}, "off", is_flat=True, more=tools_of_items(previous))
        own: tuple[Tool, ...] = tuple(self.options.get("tools", ()))  # type: ignore[arg-type]
        known = {tool.name for tool in own}
        new = tuple(tool for tool in found.all if tool.name not in known)
        if not new:
            return self
        parallel, choice = self.repeated["parallel_tool_calls"], self.repeated["tool_choice"]
        options: ChatOptions = {"parallel_tool_calls": parallel, "tool_choice": choice, **self.options}
        return replace(
            self,
            options={**options, "tools": own + new},
            places=replace(self.places, of_tools={**found.places, **self.places.of_tools}),
            custom_tools=self.custom_tools.union(tool.name for tool in new if isinstance(tool, CustomTool)),
            namespaces={**found.namespaces, **self.namespaces},
        )

    def messages(self, previous: Sequence[Item] = ()) -> list[dict[str, Any]]:
        """Returns the conversation as chat messages.

        ``previous``: items of the continued response and of those before it.

        Raises ``ApiError`` for calls without results and results without calls.
        """
        return conversation([*previous, *self.items], self.instructions)


def _repeat_choice(read: Any, given: object) -> object:
    """Returns a choice of tools as it was given, except for other servers' words for it."""
    return read if isinstance(given, str) else given
