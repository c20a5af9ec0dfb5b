"""The body of ``POST /v1/chat/completions``, checked completely before generation begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from constrain.fields.declared import Flag, Reads, within
from constrain.fields.logprobs import LogprobFields
from constrain.fields.sampling import DraftFields, ShowingFields
from constrain.fields.thinking import ThinkingFields
from constrain.fields.votes import VoteFields
from constrain.server.requests.declared import AskingBody, LimitFields
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.requests.limits import RANGES
from constrain.server.requests.messages import read_messages
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, PrefillFields, Question, take_prefill
from constrain.server.requests.refusals import CHAT_FIELDS
from constrain.server.requests.streams import ProgressFields, StreamFields
from constrain.server.requests.tools import read_functions, read_tools, uses_functions

if TYPE_CHECKING:
    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings


class ChatBody(
    LimitFields,
    PrefillFields,
    VoteFields,
    ContentFields,
    ThinkingFields,
    LogprobFields,
    ShowingFields,
    DraftFields,
    StreamFields,
    ProgressFields,
    AskingBody,
):
    """The body. OpenAI's types say what fields of the type ``Any`` may be."""

    refused = CHAT_FIELDS

    messages: Annotated[Any, Reads(read_messages, {"minItems": 1})]
    response_format: Any = None
    functions: Any = None
    function_call: Any = None
    tools: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Flag = None
    n: Annotated[int | None, within(RANGES["n"])] = None

    def request(self, settings: Settings) -> ChatRequest:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        streaming = replace(self.streaming(), tells_progress=self.return_progress or False)
        max_tokens, name = self.limit()
        options: ChatOptions = {**self.plain_options(), **self.logprobs_options(), **max_tokens}
        options |= self.thinking_options(max_tokens.get("max_tokens"))
        content = read_format(self.response_format, RESPONSE_FORMAT, settings.strict_subset)
        content = self.content({"response_format": content})
        given = self.given("functions", "function_call", "tools", "tool_choice")
        has_functions = uses_functions(given)
        if has_functions:
            tools = read_functions(given, settings.strict_subset)
        else:
            tools = read_tools(given, settings.strict_subset, is_flat=False)
        has_schema = content is not None and isinstance(content.schema, str)
        self.require_quotes(has_schema=has_schema or bool(tools.all))
        options |= tools.options(parallel=self.parallel_tool_calls is not False and not has_functions)
        places = Places("messages", name, tools.field, tools.places)
        n = self.n or 1
        vote = self.votes(n, stream=streaming.is_wanted, logprobs=options.get("logprobs", False))
        messages, prefill = take_prefill(self, self.messages, options, vote=vote)
        question = Question(messages, content, options, places, n, vote, prefill)
        return ChatRequest(self.model, (question,), streaming, tools.all, has_functions)


@dataclass(frozen=True, slots=True)
class ChatRequest(Asked):
    """A request for a chat completion.

    Attributes:
        tools: tools that the model may call.
        has_functions: whether the request has ``functions``, the predecessor of ``tools``; the answer then has a
            ``function_call``.
    """

    tools: tuple[Tool, ...]
    has_functions: bool
