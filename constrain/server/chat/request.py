"""The body of ``POST /v1/chat/completions``: all of it checked, before anything is generated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import MessageError, check_messages
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import array, boolean, integer, mapping, missing, model_name, number, wrong_type
from constrain.server.requests.formats import read_response_format
from constrain.server.requests.functions import names_functions, read_functions, with_old_names, with_tool_calls
from constrain.server.requests.logprobs import read_logprobs
from constrain.server.requests.refusals import CHAT_FIELDS, refuse_fields
from constrain.server.requests.tools import read_tool_choice, read_tools
from constrain.server.serving.generation import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings, StrictSubset

MAX_CHOICES = 128
MAX_STOPS = 4
LARGEST_BIAS = 100
"""OpenAI's limits."""

_MOST_TOKENS = 2**31 - 1
"""More than any context holds, and few enough for the sampler to count."""

_REPEAT_PENALTIES = (0.01, 100.0)
"""The least and the greatest ``repeat_penalty``, which divides logits; 1 is none."""

_SEEDS = 2**32 - 1
"""The sampler has so many seeds; others stand for one of them."""

_INDEX = re.compile(r"messages\[(\d+)\]")

_TOKEN_ID = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a request asks for.

    Attributes:
        model: its name.
        question: for the model.
        tools: what the model may call.
        has_functions: whether the request names them, and the answer its calls, as it was done before there were tools.
        stream: whether they are sent as they are written; ``include_usage``: and last the number of tokens.
    """

    model: str
    question: Question
    tools: tuple[Tool, ...]
    has_functions: bool
    stream: bool
    include_usage: bool


def read_chat_request(body: Mapping[str, Any], settings: Settings) -> ChatRequest:
    """The request that a parsed body is. Raises ``ApiError``, which names the place.

    Compiles grammars and schemas of tools. Fields that are not known are accepted; those that are known and cannot be
    had are refused.
    """
    model = model_name(body)
    refuse_fields(body, CHAT_FIELDS)
    messages = _messages(body)
    stream = boolean(body, "stream") or False
    options, limit = _options(body)
    content = read_response_format(body.get("response_format"), settings.strict_subset)
    has_functions = names_functions(body)
    tools, choice = (read_functions if has_functions else _tools)(body, settings.strict_subset)
    several = boolean(body, "parallel_tool_calls") is not False and not has_functions
    if tools:
        options["tools"] = tools
        options["parallel_tool_calls"] = several
        if choice is not None:
            options["tool_choice"] = choice
    return ChatRequest(
        model=model,
        question=Question(messages, content, options, limit, integer(body, "n", 1, MAX_CHOICES) or 1),
        tools=tools,
        has_functions=has_functions,
        stream=stream,
        include_usage=read_include_usage(body, stream=stream),
    )


def _tools(body: Mapping[str, Any], subset: StrictSubset) -> tuple[tuple[Tool, ...], object]:
    """The tools of a request, each compiled, and its ``tool_choice``."""
    tools = read_tools(body.get("tools"), subset)
    return tools, read_tool_choice(body.get("tool_choice"), tools)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = body.get("messages")
    if given is None:
        raise missing("messages")
    written = [_without_parsed(message) for message in array(given, "messages")]
    messages = with_tool_calls(written)
    try:
        check_messages(messages)
    except MessageError as error:
        refused = ApiError(f"Invalid value: {error}.", param=error.param, code="invalid_value")
        found = _INDEX.match(error.param)
        was_changed = found and messages[int(found[1])] is not written[int(found[1])]
        raise with_old_names(refused) if was_changed else refused from error
    return [{**message, "role": "system"} if message["role"] == "developer" else message for message in messages]


def _without_parsed(message: Any) -> Any:
    """A message without the object that the ``openai`` package made of its content, and sends back with it."""
    return {key: value for key, value in message.items() if key != "parsed"} if isinstance(message, dict) else message


def _options(body: Mapping[str, Any]) -> tuple[ChatOptions, str]:
    """How to sample and when to stop, and the name of the token limit that counts."""
    options: ChatOptions = {**sampling_options(body), **read_show_schema(body), **read_logprobs(body)}
    max_tokens, limit = token_limit(body, "max_completion_tokens", "max_tokens")
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    return options, limit


def token_limit(body: Mapping[str, Any], *names: str) -> tuple[int | None, str]:
    """The least of the limits on tokens that a request gives, and its name; ``""`` for none. Raises ``ApiError``."""
    limits = {name: integer(body, name, 1) for name in names}
    given = {name: min(value, _MOST_TOKENS) for name, value in limits.items() if value is not None}
    limit = min(given, key=lambda name: given[name], default="")
    return given.get(limit), limit


def sampling_options(body: Mapping[str, Any]) -> ChatOptions:
    """How to sample, and at which texts to stop. Raises ``ApiError``."""
    options: dict[str, Any] = {
        "temperature": number(body, "temperature", 0, 2),
        "top_p": number(body, "top_p", 0, 1),
        "top_k": integer(body, "top_k", 0, 2**31 - 1),
        "min_p": number(body, "min_p", 0, 1),
        "repeat_penalty": number(body, "repeat_penalty", *_REPEAT_PENALTIES),
        "presence_penalty": number(body, "presence_penalty", -2, 2),
        "frequency_penalty": number(body, "frequency_penalty", -2, 2),
        "seed": None if (seed := integer(body, "seed", -(2**63), 2**63 - 1)) is None else seed % _SEEDS,
        "stop": _stop(body.get("stop")),
        "logit_bias": _logit_bias(body.get("logit_bias")),
    }
    found: ChatOptions = {name: value for name, value in options.items() if value is not None}  # type: ignore[assignment]
    return found


def read_show_schema(body: Mapping[str, Any]) -> ChatOptions:
    """Whether the prompt shows the schema of the answer. Raises ``ApiError``."""
    wanted = boolean(body, "show_schema")
    return {} if wanted is None else {"show_schema": wanted}


def _stop(given: object) -> list[str] | None:
    if given is None:
        return None
    stops = [given] if isinstance(given, str) else array(given, "stop", MAX_STOPS)
    for index, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise wrong_type(f"stop[{index}]", "a string", stop)
        if not stop:
            raise ApiError(
                "Invalid 'stop': an empty string would end every answer at once.", param="stop", code="invalid_value"
            )
    return stops


def _logit_bias(given: object) -> dict[int, float] | None:
    if given is None:
        return None
    biases = mapping(given, "logit_bias")
    for token in biases:
        if not _TOKEN_ID.fullmatch(token):
            raise ApiError(
                f"Invalid key in 'logit_bias': {token[:40]!r}. Expected the number of a token.",
                param="logit_bias",
                code="invalid_value",
            )
    named = {f"logit_bias.{token}": bias for token, bias in biases.items()}
    values = [number(named, name, -LARGEST_BIAS, LARGEST_BIAS) or 0.0 for name in named]
    return {int(token): value for token, value in zip(biases, values, strict=True)}


def read_include_usage(body: Mapping[str, Any], *, stream: bool) -> bool:
    """Whether the last chunk of a stream tells the number of tokens. Raises ``ApiError``."""
    given = body.get("stream_options")
    if given is None:
        return False
    if not stream:
        raise ApiError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
            code="invalid_value",
        )
    return boolean(mapping(given, "stream_options"), "include_usage", "stream_options.") or False
