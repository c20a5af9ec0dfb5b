"""The bodies of ``POST /v1/messages`` and ``POST /v1/messages/count_tokens``, checked before generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.logprobs import read_certificate, read_confidence
from constrain.fields.sampling import (
    read_cache_prompt,
    read_draft,
    read_max_tokens,
    read_sampling,
    read_show_schema,
    read_sources,
    read_stop,
)
from constrain.fields.thinking import effort_options, read_thinking
from constrain.fields.values import FieldError, array, integer, kind_of, mapping, missing, one_of
from constrain.server.http.errors import convert_field_errors
from constrain.server.messages.conversation import read_conversation
from constrain.server.messages.errors import NO_THREADS
from constrain.server.messages.tools import read_message_tools
from constrain.server.requests.body import model_name
from constrain.server.requests.formats import Format, Spelling, format_of, refuse_bare_schema, require_flat
from constrain.server.requests.limits import MESSAGE_RANGES, RANGES
from constrain.server.requests.peers import read_content
from constrain.server.requests.places import Place, Places
from constrain.server.requests.question import Question, take_prefill
from constrain.server.requests.refusals import MESSAGES_FIELDS, refuse_fields
from constrain.server.requests.streams import Streaming, read_stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings

_RANGES = {**RANGES, **MESSAGE_RANGES}

_THINKING = ("enabled", "disabled", "adaptive")
_DISPLAYS = ("summarized", "omitted")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")

_FORMATS = ("output_config.format", "output_format")
"""Names of the field for the format of the text: today's, and the one of earlier clients."""


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """The checked fields of a request for a message.

    Attributes:
        model: name of the model.
        question: question to the model.
        streaming: how the answer is sent.
        shows_thinking: whether blocks of thinking have their text.
    """

    model: str
    question: Question
    streaming: Streaming
    shows_thinking: bool

    @property
    def questions(self) -> tuple[Question, ...]:
        """The question, as a tuple of one."""
        return (self.question,)


@convert_field_errors()
def read_messages_request(body: Mapping[str, Any], settings: Settings) -> MessagesRequest:
    """Reads a parsed body. Raises ``ApiError`` with the place.

    Compiles schemas of tools. Unknown fields are accepted; known fields that this server cannot honour are refused.
    """
    if body.get("max_tokens") is None:
        raise missing("max_tokens")
    return _read(body, settings)


@convert_field_errors()
def read_count_request(body: Mapping[str, Any], settings: Settings) -> MessagesRequest:
    """Reads a parsed body whose tokens are counted, which needs no ``max_tokens``. Raises ``ApiError``."""
    return _read(body, settings)


def _read(body: Mapping[str, Any], settings: Settings) -> MessagesRequest:
    model = model_name(body)
    refuse_fields(body, MESSAGES_FIELDS)
    _refuse_threads(body)
    messages = read_conversation(body)
    options: ChatOptions = {**read_sampling(body, _RANGES), **read_show_schema(body)}
    options |= {**read_draft(body), **read_confidence(body), **read_cache_prompt(body)}
    options |= read_certificate(body)
    if body.get("stop_sequences") is not None:
        array(body["stop_sequences"], "stop_sequences")  # one text alone is no value of this field
        options["stop"] = read_stop(body, "stop_sequences", RANGES["stop_sequences"][1]) or []
    max_tokens, name = read_max_tokens(body, "max_tokens", least=1)
    options |= max_tokens
    thinking, shows_thinking = _read_thinking(body, max_tokens.get("max_tokens"))
    options |= {**read_thinking(body, max_tokens.get("max_tokens")), **thinking}
    if (effort := _read_effort(body)) is not None and options.get("thinking"):
        options = {**effort_options(effort, max_tokens.get("max_tokens")), **options}
    field, content = _read_format(body)
    content = read_content(body, content, field)
    tools, places = read_message_tools(body, settings.strict_subset)
    options |= tools
    has_schema = content is not None and isinstance(content.schema, str)
    options |= read_sources(body, has_schema=has_schema or bool(places))
    messages, prefill = take_prefill(body, messages, options)
    question = Question(messages, content, options, Places("messages", name, "tools", places), prefill=prefill)
    return MessagesRequest(model, question, Streaming(read_stream(body)), shows_thinking)


def _read_thinking(body: Mapping[str, Any], max_tokens: int | None) -> tuple[ChatOptions, bool]:
    """Reads ``thinking``: the options for reasoning, and whether its text is returned. Raises ``FieldError``."""
    if body.get("thinking") is None:
        return {}, True
    config = mapping(body["thinking"], "thinking")
    kind = kind_of(config, _THINKING, "thinking")
    display = config.get("display")
    is_shown = display is None or one_of(display, _DISPLAYS, "thinking.display") != "omitted"
    if kind == "disabled":
        return {"thinking": False}, is_shown
    if kind == "adaptive":
        return {"thinking": "adaptive"}, is_shown
    name = "thinking.budget_tokens"
    budget = integer({name: config.get("budget_tokens")}, name, 1)
    if budget is None:
        raise missing(name)
    if max_tokens is not None and budget >= max_tokens:
        raise FieldError(
            f"Invalid '{name}': 'max_tokens' counts the tokens of thinking, too, and must be greater than {budget}.",
            param=name,
            code="integer_above_max_value",
        )
    return {"thinking": True, "max_reasoning_tokens": budget}, is_shown


def _read_effort(body: Mapping[str, Any]) -> str | None:
    """Reads ``output_config.effort``. Raises ``FieldError``."""
    config = {} if body.get("output_config") is None else mapping(body["output_config"], "output_config")
    effort = config.get("effort")
    return None if effort is None else one_of(effort, _EFFORTS, "output_config.effort")


def _read_format(body: Mapping[str, Any]) -> tuple[str, Format | None]:
    """Reads the format of the text: its field, and the JSON Schema; ``None`` for any text. Raises ``FieldError``."""
    config = {} if body.get("output_config") is None else mapping(body["output_config"], "output_config")
    given = {_FORMATS[0]: config.get("format"), _FORMATS[1]: body.get("output_format")}
    found = [name for name in _FORMATS if given[name] is not None]
    if len(found) > 1:
        raise FieldError(
            f"Invalid request: '{found[0]}' and '{found[1]}' cannot be used together: each says what the answer is.",
            param=found[1],
            code="invalid_value",
        )
    if not found:
        return _FORMATS[0], None
    [name] = found
    document = mapping(given[name], name)
    refuse_bare_schema(document, Spelling(name, "", f"{name}.schema"))
    kind_of(document, ("json_schema",), name)
    if document.get("schema") is None:
        raise missing(f"{name}.schema")
    place = Place(f"{name}.schema", "invalid_json_schema", f"schema in '{name}'")
    schema = mapping(document["schema"], place.param)
    require_flat(schema, place)
    return name, format_of(schema, place)


def _refuse_threads(body: Mapping[str, Any]) -> None:
    """Raises ``FieldError`` for a conversation that the server keeps, or has kept (``thread``)."""
    if body.get("thread") is not None:
        raise FieldError(
            "Unsupported parameter: 'thread'. This server keeps no conversations. Send the whole conversation as "
            "'messages', without 'thread'.",
            param="thread",
            code=NO_THREADS,
        )
