"""The question to a model: the same record for all endpoints that write text.

A request may give the beginning of the answer as its last message, for the model to continue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.declared import Fields, Flag
from constrain.fields.values import invalid, refuse_together
from constrain.server.http.account import warn

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions
    from constrain.language.source import Source
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Places
    from constrain.server.requests.streams import Streaming
    from constrain.server.requests.texts import Text


@dataclass(frozen=True, slots=True)
class Question:
    """The question to a model: a request without the fields of its endpoint, before it meets a model.

    Attributes:
        prompt: checked messages in OpenAI's form, or a text to continue.
        content: format of the content; None for any text.
        options: options for the generation.
        places: names of the request's fields for later errors.
        n: number of answers.
        vote: whether the answers become one, the one that they agree on.
        prefill: text that each answer begins with, without being returned; ``""`` for none.
    """

    prompt: list[dict[str, Any]] | Text
    content: Format | None
    options: ChatOptions
    places: Places
    n: int = 1
    vote: bool = False
    prefill: str = ""

    @property
    def schema(self) -> str | Source | None:
        """The JSON Schema of the content, as text, or another language."""
        return None if self.content is None else self.content.schema


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose model writes answers.

    Attributes:
        model: name of the model.
        questions: questions to the model, which differ only in their prompts.
        streaming: how the answers are sent.
    """

    model: str
    questions: tuple[Question, ...]
    streaming: Streaming

    @property
    def question(self) -> Question:
        """The first question."""
        return self.questions[0]


class PrefillFields(Fields):
    """Fields of requests whose last message may be the beginning of the answer."""

    add_generation_prompt: Flag = None
    continue_final_message: Flag = None


def take_prefill(
    asked: PrefillFields, messages: list[dict[str, Any]], options: ChatOptions, *, vote: bool = False
) -> tuple[list[dict[str, Any]], str]:
    """Returns the messages in front of the answer, and the text that the answer begins with.

    A last message of the assistant without calls is such a text, unless the request says otherwise by
    ``continue_final_message`` or ``add_generation_prompt``. Adds to the options that the model does not reason first.
    Raises ``FieldError``.

    Args:
        asked: fields of the request.
        messages: checked messages.
        options: options for the generation.
        vote: whether several answers vote.
    """
    continues, begins = asked.continue_final_message, asked.add_generation_prompt
    name = "continue_final_message" if continues else "add_generation_prompt"
    refuse_together(continue_final_message=continues, add_generation_prompt=begins)
    place, last = f"messages[{len(messages) - 1}]", messages[-1]
    is_text = last["role"] == "assistant" and not last.get("tool_calls")
    if not is_text or begins or (continues is False and begins is not False):
        if continues or begins is False:
            raise invalid(name, "the last message is none of the assistant with a text to continue.")
        return messages, ""
    content = last.get("content") or ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    text = text.lstrip("\n")  # templates and readers drop line feeds in front of an answer
    if last.get("reasoning_content") or last.get("reasoning"):
        warn("The reasoning of the last message is left out: the model continues its text.")
    if not text:
        return messages[:-1] or messages, ""
    if len(messages) == 1:
        raise invalid(place, "there must be a message before the one that the model continues.")
    if options.get("thinking") is True:
        raise invalid(place, "the model continues this message, without any reasoning before; ask for none.")
    refuse_together(vote=vote, prefill=True, **{"draft of a request": options.get("draft")})
    stops = options.get("stop", ())
    if any(stop in text for stop in ([stops] if isinstance(stops, str) else stops)):
        raise invalid(place, "it holds a text of 'stop', at which the answer would end.")
    options["thinking"] = False
    return messages[:-1], text
