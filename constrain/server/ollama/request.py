"""The bodies of ``POST /api/chat`` and ``POST /api/generate``, checked completely before generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.fields.declared import Flag, Reads, Text, inside
from constrain.fields.logprobs import LogprobFields, ProofFields
from constrain.fields.sampling import KeepingFields, ToolsShownFields
from constrain.fields.thinking import ThinkingFields
from constrain.fields.values import array, refuse_together
from constrain.server.ollama.fields import (
    CHAT_REFUSED,
    GENERATE_REFUSED,
    read_functions,
    read_keep_alive,
    read_shape,
)
from constrain.server.ollama.messages import convert_messages, refuse_images
from constrain.server.ollama.options import LEVELS, NUM_PREDICT, OllamaOptions, read_think, think_options
from constrain.server.requests.declared import Body
from constrain.server.requests.formats import Format  # noqa: TC001 - for Pydantic
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, PrefillFields, Question, take_prefill
from constrain.server.requests.streams import Streaming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

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

    def ask_model(self, questions: tuple[Question, ...], options: ChatOptions) -> OllamaRequest:
        """Returns the request. Answers are sent while they are written, unless ``stream`` is false."""
        return OllamaRequest(self.model, questions, Streaming(self.stream is not False), self.keep_alive, options)


class ChatBody(PrefillFields, ToolsShownFields, _AskingBody):
    """The body of ``/api/chat``. OpenAI's types say what fields of the type ``Any`` may be."""

    refused = CHAT_REFUSED

    messages: Any = None
    parallel_tool_calls: Flag = None
    tool_choice: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    tools: Any = None

    def request(self, settings: Settings) -> OllamaRequest:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        options = self.all_options()
        content = self.content({"format": self.format})
        tools = read_functions(self.given("tools", "tool_choice"), settings.strict_subset)
        options |= tools.options(parallel=self.parallel_tool_calls is not False)
        if self.messages is None or not array(self.messages, "messages"):
            return self.ask_model((), options)
        places = Places("messages", NUM_PREDICT, tools.field, tools.places)
        messages, prefill = take_prefill(self, convert_messages(self.messages), options)
        return self.ask_model((Question(messages, content, options, places, prefill=prefill),), options)


class GenerateBody(_AskingBody):
    """The body of ``/api/generate``."""

    refused = GENERATE_REFUSED

    prompt: Text = None
    system: Text = None
    raw: Flag = None

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads a body. Raises ``FieldError``, also for images."""
        refuse_images(given)
        return super().read(given, place)

    def request(self, _: Settings) -> OllamaRequest:
        """Returns the request. With ``raw``, the model continues the prompt; otherwise it is a message of the user.

        Raises ``ApiError`` or ``FieldError`` with the place.
        """
        options = self.all_options()
        content = self.content({"format": self.format})
        refuse_together(raw=self.raw, system=self.system, think=options.get("thinking"))
        if self.raw:
            options.pop("thinking", None)
        if not self.prompt:
            return self.ask_model((), options)
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": self.prompt})
        prompt = self.prompt if self.raw else messages
        return self.ask_model((Question(prompt, content, options, Places("prompt", NUM_PREDICT)),), options)


@dataclass(frozen=True, slots=True)
class OllamaRequest(Asked):
    """A request whose model writes an answer, or, without a question, is only loaded or unloaded.

    Attributes:
        is_unloading: whether a request without a question unloads the model.
        options: options for the generation.
    """

    is_unloading: bool
    options: ChatOptions
