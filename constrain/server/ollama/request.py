"""The bodies of ``POST /api/chat`` and ``POST /api/generate``, checked completely before generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.fields.declared import Flag, Reads, Text, inside
from constrain.fields.logprobs import LogprobFields, ProofFields
from constrain.fields.sampling import KeepingFields
from constrain.fields.thinking import ThinkingFields
from constrain.fields.values import array, refuse_together
from constrain.server.http.errors import convert_field_errors
from constrain.server.ollama.fields import (
    CHAT_REFUSED,
    GENERATE_REFUSED,
    read_functions,
    read_keep_alive,
    read_shape,
)
from constrain.server.ollama.messages import convert_messages, refuse_images
from constrain.server.ollama.options import NUM_PREDICT, OllamaOptions
from constrain.server.ollama.thinking import LEVELS, read_think, think_options
from constrain.server.requests.declared import Body
from constrain.server.requests.formats import Format  # noqa: TC001 - for Pydantic
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import PrefillFields, Question, take_prefill
from constrain.server.requests.streams import Streaming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings


_THINK = {"anyOf": [{"enum": [*LEVELS]}, {"type": "boolean"}]}
_FORMAT = {"anyOf": [{"type": "object"}, {"enum": ["json", ""]}]}


class _AskingBody(ContentFields, ThinkingFields, ProofFields, LogprobFields, KeepingFields, Body):
    names = "TaggedModelName"

    options: Annotated[OllamaOptions | None, inside(OllamaOptions)] = None
    think: Annotated[bool | str | None, Reads(read_think, _THINK)] = None
    keep_alive: Annotated[bool, Reads(read_keep_alive, {})] = False
    format: Annotated[Format | None, Reads(read_shape, _FORMAT)] = None
    stream: Flag = None

    def all_options(self) -> ChatOptions:
        """Returns the options for the generation. Raises ``FieldError``."""
        own = (self.options or OllamaOptions()).plain_options()
        found: ChatOptions = {**own, **self.logprobs_options(), **self.plain_options()}
        most = found.get("max_tokens")
        found |= self.thinking_options(most)
        return found if self.think is None else found | think_options(self.think, most)

    def request(self, question: Question | None, options: ChatOptions) -> OllamaRequest:
        """Returns the request. Answers are sent while they are written, unless ``stream`` is false."""
        return OllamaRequest(self.model, question, Streaming(self.stream is not False), self.keep_alive, options)


class ChatBody(PrefillFields, _AskingBody):
    """The body of ``/api/chat``. OpenAI's types say what fields of the type ``Any`` may be."""

    refused = CHAT_REFUSED

    messages: Any = None
    parallel_tool_calls: Flag = None
    tool_choice: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    tools: Any = None


class GenerateBody(_AskingBody):
    """The body of ``/api/generate``."""

    refused = GENERATE_REFUSED

    prompt: Text = None
    system: Text = None
    raw: Flag = None


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """A request whose model writes an answer, or, without a question, is only loaded or unloaded.

    Attributes:
        model: name of the model, with or without a tag.
        question: question to the model; ``None`` if the request only loads or unloads it.
        streaming: how the answer is sent.
        is_unloading: whether a request without a question unloads the model.
        options: options for the generation.
    """

    model: str
    question: Question | None
    streaming: Streaming
    is_unloading: bool
    options: ChatOptions

    @property
    def questions(self) -> tuple[Question, ...]:
        """The question, as a tuple of one, or of none."""
        return () if self.question is None else (self.question,)


@convert_field_errors()
def read_ollama_chat(body: Mapping[str, Any], settings: Settings) -> OllamaRequest:
    """Reads a parsed body of ``/api/chat``. Raises ``ApiError`` with the place.

    Compiles schemas of tools. Unknown fields are accepted; known fields that this server cannot honour are refused.
    """
    asked = ChatBody.read(body)
    options = asked.all_options()
    content = asked.content(asked.format, "format")
    tools = read_functions(asked.given("tools", "tool_choice"), settings.strict_subset)
    options |= tools.options(parallel=asked.parallel_tool_calls is not False)
    question = None
    if asked.messages is not None and array(asked.messages, "messages"):
        places = Places("messages", NUM_PREDICT, tools.field, tools.places)
        messages, prefill = take_prefill(asked, convert_messages(asked.messages), options)
        question = Question(messages, content, options, places, prefill=prefill)
    return asked.request(question, options)


@convert_field_errors()
def read_ollama_generate(body: Mapping[str, Any], settings: Settings) -> OllamaRequest:  # noqa: ARG001 - as all readers
    """Reads a parsed body of ``/api/generate``. Raises ``ApiError`` with the place.

    With ``raw``, the model continues the prompt; otherwise it answers, and the prompt is a message of the user.
    """
    refuse_images(body)
    asked = GenerateBody.read(body)
    options = asked.all_options()
    content = asked.content(asked.format, "format")
    prompt, system = asked.prompt or "", asked.system
    refuse_together(raw=asked.raw, system=system, think=options.get("thinking"))
    if asked.raw:
        options.pop("thinking", None)
    question = None
    if prompt and asked.raw:
        question = Question(prompt, content, options, Places("prompt", NUM_PREDICT))
    elif prompt:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        question = Question(messages, content, options, Places("prompt", NUM_PREDICT))
    return asked.request(question, options)
