"""From messages and tools to token ids, through a model's chat template: all prompts take this path.

A plain text is a conversation of one message; a conversation without tools has an empty list of tools.

A feature that the template has (``constrain.chat.prompt.abilities``) is left to the template, so that the tokens are
the ones the model was trained on; other features are written as text, in the form of the model's family. Tools keep the
caller's order, and the same JSON is always spelled the same. So the prompt of a conversation begins with the prompts of
its earlier turns, and the model need not read them again. Some templates prevent this: templates that drop the
reasoning of earlier turns (Qwen 3, DeepSeek, harmony), and templates that show the tools in front of the user's last
message (Mistral's older ones).

**Text stays text.** Contents, reasoning, results, ids, and all texts in tools and arguments pass through
``guarded_tokens``: none of them ever becomes a special token. This protects families whose tags are special or
user-defined tokens. A tag that is plain text in the vocabulary cannot be told from the same text in a message. So where
this module writes tools, calls and results as text, it spells tags in them with JSON's escapes (except in strings of
arguments in XML, which has no escapes). A template that writes a result unchanged lets plain tags through; they change
neither the turns of the conversation nor the language of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from constrain.chat.families.forms import detect_format
from constrain.chat.prompt.abilities import Abilities, abilities
from constrain.chat.prompt.guarding import Mark, guarded_tokens, token_names, unused_noncharacter
from constrain.chat.prompt.messages import Message, conversation, map_strings, map_texts, to_json
from constrain.chat.prompt.shaping import find_shape, list_name, shape, show_tool
from constrain.chat.prompt.template import render, tool_variables
from constrain.errors import ModelError

if TYPE_CHECKING:
    from constrain.chat.families.format import Thinking, ToolFormat
    from constrain.vocabulary.tokenizer import Tokenizer


_BETWEEN = "\n\n"
"""Text between messages, for models without a template."""

_OTHER_QUESTIONS = ("0", "1")
"""Texts in place of a question, to find where it begins: the prompts of different questions are alike before them."""

REMINDER = "Answer in the format above."
"""Text at the end of the user's later messages, in place of the schema."""


class ThinkingState(Enum):
    """The state of the answer's reasoning section at the end of a prompt."""

    ABSENT = "absent"  # the model has none
    POSSIBLE = "possible"  # the answer may begin with one
    OPEN = "open"  # the prompt has begun it
    CLOSED = "closed"  # the prompt has ended it


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt, ready for the answer.

    Attributes:
        tokens: token ids of the prompt.
        thinking: state of the reasoning section.
        count_shared: function that returns how many tokens stand in front of the text of the user's last message; other
            requests begin with them, too. It renders the prompt once more.
        request: token ids behind a draft: the end of its turn, a turn of the user that asks for the answer, and the
            beginning of the answer's turn. Empty without a draft.
        introduce: function from a tool to token ids that show it to a model that has begun to call it: the end of its
            turn, a turn of the user, and the beginning of a turn in which the call stands once more. ``None`` if the
            prompt shows all tools.
    """

    tokens: list[int]
    thinking: ThinkingState
    count_shared: Callable[[], int]
    request: tuple[int, ...] = ()
    introduce: Callable[[object], list[int]] | None = None


@dataclass(frozen=True, slots=True)
class DraftWords:
    """The texts of a conversation with a draft.

    Attributes:
        instruction: text behind the user's last message that asks for thoughts in plain text.
        request: message of the user that then asks for the answer.
    """

    instruction: str
    request: str


def conversation_prompt(
    tokenizer: Tokenizer,
    template: str,
    prompt: object,
    *,
    tools: Sequence[object] = (),
    form: ToolFormat | None = None,
    variables: Mapping[str, object] | None = None,
    shown: str = "",
    draft: DraftWords | None = None,
    by_name: bool = False,
) -> RenderedPrompt:
    """Returns the prompt of a conversation.

    Args:
        tokenizer: tokenizer of the model.
        template: chat template of the model; ``""`` for none: then the prompt is the texts of the messages, with empty
            lines between them.
        prompt: text (one message of the user), or messages in OpenAI's form (see ``check_messages``).
        tools: tools that the prompt shows: objects with ``name``, ``description`` and ``parameters`` (a JSON Schema)
            or,
            for custom tools, ``format``; or objects in OpenAI's form of functions.
        form: form of calls; by default the form of the template or vocabulary.
        variables: variables for the template, such as ``{"enable_thinking": False}``.
        shown: text to put in front of the user's first message; later messages get a reminder of it.
        draft: texts for a draft in front of the answer; ``None`` for no draft.
        by_name: whether the prompt shows the tools by their names, each with a few words.

    Raises ``MessageError`` (a ``ValueError``) for wrong messages, ``TypeError`` for a prompt of another type,
    ``ValueError`` for values nested too deeply, and ``ModelError`` if the template fails, or shows no answers that a
    draft, or the beginning of a call, could be.
    """
    said = conversation(prompt)
    instruction = "" if draft is None else draft.instruction
    checked = add_texts(said, shown, instruction)
    functions = [list_name(function_of(tool)) if by_name else function_of(tool) for tool in tools]
    form = form or format_of(tokenizer, template)
    names = token_names(tokenizer)

    def write_shaped(
        mark: Mark,
        *,
        messages: Sequence[Message] = checked,
        for_answer: bool = True,
        behind: Sequence[Message] = (),
        tools: Sequence[Mapping[str, Any]] = functions,
        able: Abilities,
    ) -> str:
        shown_messages = [*(map_texts(message, mark) for message in messages), *behind]
        known = {key: map_strings(value, mark) for key, value in (variables or {}).items()}
        known |= {**names, "add_generation_prompt": for_answer}
        return write_prompt(template, shown_messages, map_strings(tools, mark), form, able, known)

    def count_shared(tokens: Sequence[int], write: Callable[..., str]) -> int:
        other = _ask_otherwise(said)
        if other is None:
            return 0
        messages = add_texts(other, shown, instruction)
        texts = [template, *_collect_texts(messages, functions, variables or {})]
        try:
            others = guarded_tokens(tokenizer, texts, partial(write, messages=messages))
        except (ModelError, ValueError, RecursionError):  # the template refuses the other question
            return 0
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(tokens, others, strict=False)))

    try:
        texts = [template, *_collect_texts(checked, functions, variables or {})]
        able = template_abilities(template, form, names)
        able, written = find_shape(
            checked,
            functions,
            replace(able, tools=able.tools and not by_name),
            lambda messages, able: write_shaped(str, messages=messages, able=able),
        )
        write = partial(write_shaped, able=able)
        state = ThinkingState.ABSENT
        if form.thinking is not None:
            state = thinking_state(form.thinking, written, write(str, for_answer=False))

        def write_behind(mark: Mark, place: str, question: str, what: str, **before: Any) -> str:
            """Returns what stands behind an answer, in whose place is a character that stands nowhere else.

            That is the end of its turn, a question, and the beginning of the next answer.
            """
            turns = [Message("assistant", place), Message("user", question)]
            _, found, behind = write(mark, behind=turns, **before).rpartition(place)
            if not found:
                raise ModelError(f"the chat template does not show earlier answers, so it has no place for {what}")
            return behind if template else behind + _BETWEEN

        def write_introduction(mark: Mark, place: str, name: str, definition: str) -> str:
            # Some templates repeat the system's text in the user's last message, so there is none.
            before: dict[str, Any] = {"messages": [Message("user", REMINDER)], "tools": ()}
            shown_tool, what = show_tool(mark(name), mark(definition), form), "the parameters of a tool"
            behind = write_behind(mark, place, shown_tool, f"{what}; tools_shown='all' shows them at once", **before)
            return behind + (f"{form.thinking.end}{_BETWEEN}" if state is ThinkingState.OPEN and form.thinking else "")

        def introduce(tool: object) -> list[int]:
            function = function_of(tool)
            given = function["name"], to_json(function)
            known = [*texts, *given]
            known.append(place := unused_noncharacter(known))
            return guarded_tokens(
                tokenizer, known, lambda mark: write_introduction(mark, place, *given), continues=True
            )

        if by_name:
            write_introduction(str, unused_noncharacter(texts), "", "")  # raises the errors of the template
        request: list[int] = []
        if draft is None:
            tokens = guarded_tokens(tokenizer, texts, write)
        else:
            beginning = _BETWEEN if not template else "" if form.content is None else form.content.begin
            tokens = guarded_tokens(tokenizer, [*texts, beginning], lambda mark: write(mark) + beginning)
            place = unused_noncharacter(texts)
            asked = partial(write_behind, place=place, question=draft.request, what="a draft")
            request = guarded_tokens(tokenizer, [*texts, place, draft.request], asked, continues=True)
        shared = partial(count_shared, tokens, write)
        return RenderedPrompt(tokens, state, shared, tuple(request), introduce if by_name else None)
    except RecursionError as error:
        raise ValueError("messages or tools are nested too deeply to be shown to the model") from error


def _ask_otherwise(messages: Sequence[Message]) -> list[Message] | None:
    """The messages with another text in the user's last one, which differs from the first character on.

    ``None`` if no message is the user's.
    """
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        return None
    first = messages[last].content.lstrip()[:1]
    other = replace(messages[last], content=next(text for text in _OTHER_QUESTIONS if text != first))
    return [*messages[:last], other, *messages[last + 1 :]]


def _collect_texts(messages: Sequence[Message], functions: object, variables: object) -> list[str]:
    """Returns all texts of a conversation that the caller wrote."""
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
    """Returns the text of a prompt. Raises ``ModelError`` if the template fails."""
    shaped, offered = shape(messages, functions, form, able)
    if not template:
        return _BETWEEN.join(message["content"] for message in shaped)
    return render(template, {"messages": shaped, **tool_variables(template, offered), **variables})


def template_abilities(template: str, form: ToolFormat, names: Mapping[str, str]) -> Abilities:
    """Returns the features of a template; ``names`` are its variables for tokens.

    Without a template, messages keep their places, and everything else is written as text.
    """
    if not template:
        return Abilities(system=True, only_system=True, later_system=True)
    return abilities(template, form, tuple(names.items()))


def format_of(tokenizer: Tokenizer, template: str, name: str | None = None) -> ToolFormat:
    """Returns the form of calls with a name, or else the form detected from a model's template and vocabulary."""
    return detect_format(template, {special.text for special in tokenizer.special_tokens}, name=name)


def function_of(tool: Any) -> dict[str, Any]:
    """Returns a tool as templates expect functions.

    A custom tool becomes a function with its input as the only argument.
    """
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


def add_texts(messages: Sequence[Message], shown: str, instruction: str = "") -> list[Message]:
    """Returns the messages with texts about the answer, added to the messages of the user.

    The first message gets ``shown`` in front of its text, so that requests for the same form share a prefix that the
    model reads only once. Later messages end with a reminder, so that the conversation still begins as before; the last
    message ends with ``instruction`` in its place, if there is one. If no message is the user's, the last message gets
    both texts.
    """
    places = [index for index, message in enumerate(messages) if message.role == "user"] or [len(messages) - 1]
    changed = list(messages)
    for index in places:
        before = shown if index == places[0] else ""
        reminder = REMINDER if shown and index != places[0] else ""
        behind = instruction or reminder if index == places[-1] else reminder
        changed[index] = replace(messages[index], content=_join(before, messages[index].content, behind))
    return changed


def _join(*texts: str) -> str:
    """Joins the non-empty texts with empty lines."""
    return _BETWEEN.join(text for text in texts if text)


def thinking_state(thinking: Thinking | None, prompt: str, without_answer: str) -> ThinkingState:
    """Returns the state of the reasoning section, from the end of the part of the prompt that begins the answer.

    If the template writes the same with and without that part, the whole prompt decides.
    """
    if thinking is None:
        return ThinkingState.ABSENT
    shared = next((at for at, pair in enumerate(zip(prompt, without_answer, strict=False)) if pair[0] != pair[1]), None)
    beginning = (prompt[len(without_answer) if shared is None else shared :] or prompt).rstrip()
    if beginning.endswith(thinking.begin.rstrip()):
        return ThinkingState.OPEN
    return ThinkingState.CLOSED if beginning.endswith(thinking.end) else ThinkingState.POSSIBLE
