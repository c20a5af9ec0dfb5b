"""From messages and tools through a model's chat template to token ids: the one way to a prompt.

A plain text is a conversation of one message, and a conversation without tools is one with none.

What the template does by itself (``constrain.chat.prompt.abilities``) it is left to do, so that the tokens are those
that the model knows; the rest is written as text, in the form of the model's family. Tools come in the order they are
given in, and JSON is written the same way every time: the prompt of a conversation begins with the prompts of its
beginnings, as far as the template lets it, and what the model has read it need not read again. Templates that do not
let it: those that leave out the reasoning of earlier turns (Qwen 3, DeepSeek, harmony), and those that show the tools
in front of the user's last message (Mistral's older ones).

**Text stays text.** Contents, reasoning, results, ids, and everything in tools and arguments is passed through
``guarded_tokens``: none of it becomes a special token, whatever it says. Families whose tags are special or
user-defined tokens are safe by that. A tag that is plain text in the vocabulary nobody can tell from the same text in a
message. So where tools, calls and results are written as text here, tags within them are spelled with JSON's escapes,
except in strings of arguments in XML, which has none. A template that writes a result as it is lets plain tags through;
they change neither the turns of the conversation nor what the answer may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from constrain.chat.families.forms import detect_format
from constrain.chat.prompt.abilities import Abilities, abilities
from constrain.chat.prompt.guarding import Mark, guarded_tokens, token_names
from constrain.chat.prompt.messages import Message, conversation, map_strings, map_texts
from constrain.chat.prompt.shaping import shape
from constrain.chat.prompt.template import render

if TYPE_CHECKING:
    from constrain.chat.families.format import Thinking, ToolFormat
    from constrain.vocabulary.tokenizer import Tokenizer


REMINDER = "Answer in the format above."
"""The text that later messages of the user end with in place of the schema."""


class ThinkingState(Enum):
    """Where a prompt leaves the reasoning section of the answer."""

    ABSENT = "absent"  # the model has none
    POSSIBLE = "possible"  # the answer may begin with one
    OPEN = "open"  # the prompt has begun it
    CLOSED = "closed"  # the prompt has ended it


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt, ready for the answer: its token ids, and whether the answer begins with reasoning."""

    tokens: list[int]
    thinking: ThinkingState


def conversation_prompt(
    tokenizer: Tokenizer,
    template: str,
    prompt: object,
    *,
    tools: Sequence[object] = (),
    form: ToolFormat | None = None,
    variables: Mapping[str, object] | None = None,
    shown: str = "",
) -> RenderedPrompt:
    """The prompt of a conversation.

    Args:
        tokenizer: of the model.
        template: its chat template; ``""`` for none: the texts of the messages, with empty lines between.
        prompt: a text, which is one message of the user, or messages in OpenAI's shape, see ``check_messages``.
        tools: that the model is shown: objects with ``name``, ``description`` and ``parameters`` (a JSON Schema), or
            with ``format`` in place of ``parameters`` for custom ones, or objects in OpenAI's shape of functions.
        form: of the calls; by default that of the template or vocabulary.
        variables: for the template: ``{"enable_thinking": False}``.
        shown: a text to put in front of the user's first message; later ones get a reminder of it.

    Raises ``MessageError`` (a ``ValueError``) for messages, ``TypeError`` for a prompt of another type, ``ValueError``
    for what is nested too deeply, and ``ModelError`` if the template fails.
    """
    checked = conversation(prompt)
    if shown:
        checked = with_text(checked, shown)
    functions = [function_of(tool) for tool in tools]
    form = form or format_of(tokenizer, template)
    names = token_names(tokenizer)
    able = template_abilities(template, form, names)

    def write(mark: Mark, *, for_answer: bool = True) -> str:
        said = [map_texts(message, mark) for message in checked]
        known = {key: map_strings(value, mark) for key, value in (variables or {}).items()}
        known |= {**names, "add_generation_prompt": for_answer}
        return write_prompt(template, said, map_strings(functions, mark), form, able, known)

    try:
        texts = [template, *_texts(checked, functions, variables or {})]
        state = ThinkingState.ABSENT
        if form.thinking is not None:
            state = thinking_state(form.thinking, write(str), write(str, for_answer=False))
        return RenderedPrompt(guarded_tokens(tokenizer, texts, write), state)
    except RecursionError as error:
        raise ValueError("messages or tools are nested too deeply to be shown to the model") from error


def _texts(messages: Sequence[Message], functions: object, variables: object) -> list[str]:
    """All texts of a conversation that come from outside."""
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    for message in messages:
        map_texts(message, collect)
    map_strings(functions, collect)
    map_strings(variables, collect)
    return texts


def write_prompt(
    template: str,
    messages: Sequence[Message],
    functions: Sequence[Mapping[str, Any]],
    form: ToolFormat,
    able: Abilities,
    variables: Mapping[str, object],
) -> str:
    """The text of a prompt. Raises ``ModelError`` if the template fails."""
    shaped, offered = shape(messages, functions, form, able)
    if not template:
        return "\n\n".join(message["content"] for message in shaped)
    tools = {"tools": offered} if offered else {}
    return render(template, {"messages": shaped, **tools, **variables})


def template_abilities(template: str, form: ToolFormat, names: Mapping[str, str]) -> Abilities:
    """What a template does by itself, ``names`` being its variables for tokens.

    Without a template, each message is passed on where it stands, and all else is written as text.
    """
    return abilities(template, form, tuple(names.items())) if template else Abilities(system=True, later_system=True)


def format_of(tokenizer: Tokenizer, template: str, name: str | None = None) -> ToolFormat:
    """The form of calls of a model, told from its template and vocabulary, or the one of a name."""
    return detect_format(template, {special.text for special in tokenizer.special_tokens}, name=name)


def function_of(tool: Any) -> dict[str, Any]:
    """A tool as templates are given functions. A custom tool is a function whose one argument is its input."""
    if isinstance(tool, Mapping):
        function = tool["function"]
        parameters = function.get("parameters") or {"type": "object", "properties": {}}
        return {"name": function["name"], "description": function.get("description") or "", "parameters": parameters}
    if hasattr(tool, "parameters"):
        return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    taken: dict[str, Any] = {"type": "string"}
    if tool.format is not None:
        taken["description"] = tool.format.describe()
    parameters = {"type": "object", "properties": {"input": taken}, "required": ["input"]}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def with_text(messages: Sequence[Message], shown: str) -> list[Message]:
    """The messages with a text that says what the answer must be, in those of the user.

    The first has ``shown`` in front of its text, so that requests which ask for the same begin alike, whatever the user
    says, and what the model has read for one it need not read again for the others. The later ones end with a reminder:
    a conversation that goes on begins as it did. Where no user spoke, the last message of all is the first.
    """
    first, *later = [index for index, message in enumerate(messages) if message.role == "user"] or [len(messages) - 1]
    changed = list(messages)
    changed[first] = replace(messages[first], content=_joined(shown, messages[first].content))
    for index in later:
        changed[index] = replace(messages[index], content=_joined(messages[index].content, REMINDER))
    return changed


def _joined(*texts: str) -> str:
    """The texts that are not empty, with empty lines between."""
    return "\n\n".join(text for text in texts if text)


def thinking_state(thinking: Thinking | None, prompt: str, without_answer: str) -> ThinkingState:
    """The state that a prompt leaves, by how the beginning of the answer in it ends.

    Templates that write it in any case are judged by the whole prompt.
    """
    if thinking is None:
        return ThinkingState.ABSENT
    shared = next((at for at, pair in enumerate(zip(prompt, without_answer, strict=False)) if pair[0] != pair[1]), None)
    beginning = (prompt[len(without_answer) if shared is None else shared :] or prompt).rstrip()
    if beginning.endswith(thinking.begin.rstrip()):
        return ThinkingState.OPEN
    return ThinkingState.CLOSED if beginning.endswith(thinking.end) else ThinkingState.POSSIBLE
