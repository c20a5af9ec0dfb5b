"""The body of ``POST /v1/chat/completions``, checked completely before generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.logprobs import read_certificate, read_confidence, read_logprobs
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
from constrain.fields.votes import read_unbias, read_vote
from constrain.server.http.errors import convert_field_errors
from constrain.server.requests.body import model_name
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.requests.functions import read_functions, uses_functions
from constrain.server.requests.limits import RANGES
from constrain.server.requests.messages import read_messages
from constrain.server.requests.peers import read_content
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question, read_n, take_prefill
from constrain.server.requests.refusals import CHAT_FIELDS, refuse_fields
from constrain.server.requests.streams import Streaming, read_streaming
from constrain.server.requests.tools import read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The checked fields of a request for a chat completion.

    Attributes:
        model: name of the model.
        question: question to the model.
        tools: tools that the model may call.
        has_functions: whether the request has ``functions``, the predecessor of ``tools``; the answer then has a
            ``function_call``.
        streaming: how the answers are sent.
    """

    model: str
    question: Question
    tools: tuple[Tool, ...]
    has_functions: bool
    streaming: Streaming

    @property
    def questions(self) -> tuple[Question, ...]:
        """The question, as a tuple of one."""
        return (self.question,)


@convert_field_errors()
def read_chat_request(body: Mapping[str, Any], settings: Settings) -> ChatRequest:
    """Reads a parsed body. Raises ``ApiError`` with the place.

    Compiles grammars and schemas of tools. Unknown fields are accepted; known fields that this server cannot honour are
    refused.
    """
    model = model_name(body)
    refuse_fields(body, CHAT_FIELDS)
    messages = read_messages(body)
    streaming = read_streaming(body)
    options: ChatOptions = {**read_sampling(body, RANGES), **read_show_schema(body), **read_logprobs(body)}
    options |= {**read_draft(body), **read_confidence(body), **read_cache_prompt(body)}
    max_tokens, name = read_max_tokens(body, "max_completion_tokens", "max_tokens", least=1)
    options |= {**max_tokens, **read_thinking(body, max_tokens.get("max_tokens"))}
    content = read_format(body.get("response_format"), RESPONSE_FORMAT, settings.strict_subset)
    content = read_content(body, content, "response_format")
    has_functions = uses_functions(body)
    if has_functions:
        tools = read_functions(body, settings.strict_subset)
    else:
        tools = read_tools(body, settings.strict_subset, is_flat=False)
    has_schema = content is not None and isinstance(content.schema, str)
    options |= read_sources(body, has_schema=has_schema or bool(tools.all))
    options |= tools.options(parallel=read_parallel(body) and not has_functions)
    places = Places("messages", name, tools.field, tools.places)
    n = read_n(body)
    vote = read_vote(body, n, stream=streaming.is_wanted, logprobs=options.get("logprobs", False))
    options |= {**read_unbias(body, vote=vote), **read_certificate(body, vote=vote)}
    messages, prefill = take_prefill(body, messages, options, vote=vote)
    question = Question(messages, content, options, places, n, vote, prefill)
    return ChatRequest(model, question, tools.all, has_functions, streaming)
