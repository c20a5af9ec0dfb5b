"""The bodies of ``POST /v1/messages`` and ``POST /v1/messages/count_tokens``, checked before generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.fields.declared import Fields, Flag, Reads, inside, one_among, within
from constrain.fields.logprobs import ProofFields
from constrain.fields.sampling import (
    DraftFields,
    KeepingFields,
    Limit,
    ShowingFields,
    biases,
    read_stop,
    smallest_limit,
)
from constrain.fields.thinking import Thinking, ThinkingFields, effort_options
from constrain.fields.values import FieldError, array, kind_of, mapping, missing, out_of_range
from constrain.server.messages.conversation import read_conversation
from constrain.server.messages.errors import NO_THREADS
from constrain.server.messages.tools import read_message_tools
from constrain.server.requests.declared import Body, SamplingFields
from constrain.server.requests.formats import Format, Spelling, format_of, refuse_bare_schema
from constrain.server.requests.limits import MESSAGE_RANGES, RANGES
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Place, Places
from constrain.server.requests.question import Asked, PrefillFields, Question, take_prefill
from constrain.server.requests.refusals import MESSAGES_FIELDS, unsupported
from constrain.server.requests.streams import Streaming

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings

_THINKING = ("enabled", "disabled", "adaptive")
_DISPLAYS = ("summarized", "omitted")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_TEXT = {"type": "string", "minLength": 1}
_STOPS = {"type": "array", "items": _TEXT, "maxItems": RANGES["stop_sequences"][1]}
_FORMAT = {
    "type": "object",
    "properties": {"type": {"const": "json_schema"}, "schema": {"type": "object"}},
    "required": ["type", "schema"],
}
_FORMATS = ("output_config.format", "output_format")
"""Names of the field for the format of the text: today's, and the one of earlier clients."""


class _Thinking(Thinking):
    type: Annotated[str, one_among(_THINKING)]
    display: Annotated[str | None, one_among(_DISPLAYS)] = None


class _OutputConfig(Fields):
    effort: Annotated[str | None, one_among(_EFFORTS)] = None
    format: Annotated[Any, WithJsonSchema(_FORMAT)] = None


def _stops(given: object, name: str) -> list[str]:
    return read_stop(array(given, name), name, RANGES["stop_sequences"][1])  # one text alone is no value


def _refuse_parallel(_: object, name: str) -> None:
    raise unsupported(name, "Use 'tool_choice.disable_parallel_tool_use'.")


def _refuse_thread(_: object, name: str) -> None:
    """Raises ``FieldError`` for a conversation that the server keeps, or has kept."""
    raise FieldError(
        f"Unsupported parameter: '{name}'. This server keeps no conversations. Send the whole conversation as "
        f"'messages', without '{name}'.",
        param=name,
        code=NO_THREADS,
    )


class CountBody(
    PrefillFields,
    ContentFields,
    ThinkingFields,
    ProofFields,
    ShowingFields,
    DraftFields,
    KeepingFields,
    SamplingFields,
    Body,
):
    """The body of a request whose tokens are counted, which needs no ``max_tokens``."""

    refused = MESSAGES_FIELDS

    temperature: Annotated[float | None, within(MESSAGE_RANGES["temperature"])] = None
    logit_bias: Annotated[dict[int, float] | None, biases(RANGES["logit_bias"])] = None
    thread: Annotated[None, Reads(_refuse_thread)] = None
    messages: Any
    system: Any = None
    stop_sequences: Annotated[list[str] | None, Reads(_stops, _STOPS)] = None
    max_tokens: Limit = None
    thinking: Annotated[_Thinking | None, inside(_Thinking)] = None
    output_config: Annotated[_OutputConfig | None, inside(_OutputConfig)] = None
    output_format: Annotated[Any, WithJsonSchema(_FORMAT)] = None
    tools: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Annotated[None, Reads(_refuse_parallel)] = None
    stream: Flag = None

    def request(self, settings: Settings) -> MessagesRequest:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        messages = read_conversation(self.messages, self.system)
        max_tokens, name = smallest_limit({"max_tokens": self.max_tokens})
        options: ChatOptions = {**self.plain_options(), **max_tokens}
        if self.stop_sequences is not None:
            options["stop"] = self.stop_sequences
        most = max_tokens.get("max_tokens")
        options |= self.thinking_options(most)
        if self.thinking is not None:
            options["thinking"] = self.thinking.switch()
            _check_budget(self.thinking, most)
        if self.output_config is not None and self.output_config.effort and options.get("thinking"):
            options = {**effort_options(self.output_config.effort, most), **options}
        own = {_FORMATS[0]: self.output_config and self.output_config.format, _FORMATS[1]: self.output_format}
        content = self.content({name: _read_format(name, given) for name, given in own.items()})
        tools, places = read_message_tools(self.given("tools", "tool_choice"), settings.strict_subset)
        options |= tools
        has_schema = content is not None and isinstance(content.schema, str)
        self.require_quotes(has_schema=has_schema or bool(places))
        messages, prefill = take_prefill(self, messages, options)
        question = Question(messages, content, options, Places("messages", name, "tools", places), prefill=prefill)
        shows_thinking = self.thinking is None or self.thinking.display != "omitted"
        return MessagesRequest(self.model, (question,), Streaming(self.stream or False), shows_thinking)


class MessagesBody(CountBody):
    """The body of a request for a message."""

    max_tokens: Limit


@dataclass(frozen=True, slots=True)
class MessagesRequest(Asked):
    """A request for a message. ``shows_thinking``: whether blocks of thinking have their text."""

    shows_thinking: bool


def _check_budget(thinking: _Thinking, max_tokens: int | None) -> None:
    """Raises ``FieldError`` for a budget of thinking that is missing, empty, or no less than the limit on tokens."""
    if thinking.type != "enabled":
        return
    name, budget = "thinking.budget_tokens", thinking.budget_tokens
    if budget is None:
        raise missing(name)
    if budget < 1:
        raise out_of_range(name, "integer", ">=", 1, budget)
    if max_tokens is not None and budget >= max_tokens:
        raise FieldError(
            f"Invalid '{name}': 'max_tokens' counts the tokens of thinking, too, and must be greater than {budget}.",
            param=name,
            code="integer_above_max_value",
        )


def _read_format(name: str, given: object) -> Format | None:
    """Returns the JSON Schema of a text; ``None`` for any text. Raises ``ApiError`` or ``FieldError``."""
    if given is None:
        return None
    document = mapping(given, name)
    refuse_bare_schema(document, Spelling(name, "", f"{name}.schema"))
    kind_of(document, ("json_schema",), name)
    if document.get("schema") is None:
        raise missing(f"{name}.schema")
    place = Place(f"{name}.schema", "invalid_json_schema", f"schema in '{name}'")
    return format_of(mapping(document["schema"], place.param), place)
