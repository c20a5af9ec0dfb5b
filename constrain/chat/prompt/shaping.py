"""Messages and tools in the form that a chat template expects, or as text if it has no place for them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from itertools import takewhile
from string import Template
from typing import TYPE_CHECKING, Any

from constrain.chat.families.format import TAG, TOOL_SHOWN, ArgumentStyle, ToolFormat
from constrain.chat.prompt.abilities import Abilities, TextAndCalls
from constrain.chat.prompt.messages import Call, Message, to_json
from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_PARAGRAPH = "\n\n"
"""Text between the texts of messages that become one."""

WORDS_SHOWN = 12
"""Words that a list of tools' names shows of each description, at most: those of its first sentence."""

_SENTENCE = re.compile(r"(.+?)(?:[.!?:;](?!\S)|\n|$)")

_SHORT_ID = re.compile("[a-zA-Z0-9]{9}")


def shape(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], form: ToolFormat, able: Abilities
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the messages and tools for rendering a template; features that it lacks have become text.

    Args:
        messages: messages from ``check_messages``.
        tools: functions as ``{"name": ..., "description": ..., "parameters": ...}``; or entries of a list of names
            (``list_name``), which no template shows: then ``able.tools`` is false.
        form: form of calls.
        able: features of the template.
    """
    messages = _with_whole_ids(messages, form)
    place, several = (able.text_and_calls, able.several_calls) if able.calls else (TextAndCalls.TOGETHER, form.parallel)
    said = _split_calls(messages, place, several=several)
    if not able.calls:
        said = [_with_calls_as_text(message, form) for message in said]
    said = _with_results_as_text(said, form, able)
    shown = show_tools(tools, form) if tools and not able.tools else ""
    said = _place_system(said, shown, able, has_tools=bool(tools) and able.tools)
    if able.alternating:
        said = _alternate(said)
    written = [_plain(tool) if able.plain_schemas else dict(tool) for tool in tools] if able.tools else []
    functions = [{"type": "function", "function": tool} for tool in written]
    return [_as_dict(message, form, able) for message in said], functions


def find_shape(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    able: Abilities,
    write: Callable[[Sequence[Message], Abilities], str],
) -> tuple[Abilities, str]:
    """Returns the features to shape a conversation by, and the prompt, of the first shape that the template takes.

    Args:
        messages: messages from ``check_messages``.
        tools: functions, as ``shape`` takes them.
        able: features of the template, which most conversations are shaped by.
        write: function that returns the prompt of messages shaped by other features. It is called at most 40 times for
            a conversation, most of them for a template that refuses everything.

    Raises ``ModelError`` with the first message that the template refuses in every shape.
    """
    usual = able
    try:
        return usual, write(messages, usual)
    except ModelError as error:
        refused = error
    if tools and able.tools:
        question = [Message("user", "Hello")]
        forms = (able, replace(able, plain_schemas=True), replace(able, tools=False))
        able = next((other for other in forms if _try(write, question, other) is not None), able)
    for other in _other_shapes(messages, able):
        if other != usual and (written := _try(write, messages, other)) is not None:
            return other, written
    first, last = 0, len(messages)  # the template takes so many messages, and refuses so many
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if _try(write, messages[:middle], able) is None else (middle, last)
    place = f"messages[{last - 1}], of the role {messages[last - 1].role!r}, is the first that it refuses"
    raise ModelError(f"{refused.message}; {place}") from refused


def _try(
    write: Callable[[Sequence[Message], Abilities], str], messages: Sequence[Message], able: Abilities
) -> str | None:
    try:
        return write(messages, able)
    except ModelError:
        return None


def _other_shapes(messages: Sequence[Message], able: Abilities) -> Iterator[Abilities]:
    """Yields the shapes to try for messages that a template refuses, from the nearest to the most different one."""
    has_calls = able.calls and any(message.calls for message in messages)
    places, contents = [able.text_and_calls], [(able.no_content, able.empty_content)]
    if has_calls and any(message.calls and message.content for message in messages):
        places += [place for place in TextAndCalls if place is not able.text_and_calls]
    if has_calls:
        contents += [(content, False) for content in (None, "") if (content, False) not in contents]
    for alternating in (False, True):
        for place in places:
            for content, as_sent in contents:
                yield replace(
                    able, no_content=content, empty_content=as_sent, text_and_calls=place, alternating=alternating
                )
    for alternating in (False, True):
        yield replace(able, calls=False, tools=False, results=False, orphans=False, alternating=alternating)


def show_tools(tools: Sequence[Mapping[str, Any]], form: ToolFormat) -> str:
    """Returns the text that shows tools, or their names, to a model whose template does not."""
    by_name = "parameters" not in tools[0]
    written = [escape_tags(_name_line(tool) if by_name else to_json(tool), form) for tool in tools]
    listed = f"[{', '.join(written)}]" if form.tools_as_list and not by_name else "\n".join(written)
    shown = form.names_shown if by_name else form.tools_shown
    return Template(shown).substitute(tools=listed, calls=_example(form))


def list_name(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entry of a tool in a list of names: a function whose description is short."""
    sentence = _SENTENCE.search(tool["description"].strip())
    words = sentence[1].split() if sentence else []
    return {"name": tool["name"], "description": " ".join(words[:WORDS_SHOWN])}


def _name_line(tool: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, (tool["name"], tool["description"])))


def show_tool(name: str, definition: str, form: ToolFormat) -> str:
    """Returns the text that shows one tool, with its definition as JSON, to a model that has begun to call it."""
    return Template(TOOL_SHOWN).substitute(tool=escape_tags(definition, form), calls=_example(form, name))


def _example(form: ToolFormat, name: str = "<name>") -> str:
    """Returns a call with placeholders."""
    arguments = _ARGUMENTS.get(form.style) or form.element.write("name of argument", "value")
    call = Template(form.call).substitute(name=name, arguments=arguments, id="<id>")
    return f"{form.opening}{call}{form.closing}"


_ARGUMENTS = {
    ArgumentStyle.JSON: "<arguments as a JSON object>",
    ArgumentStyle.PYTHON: "<name of argument>=<value>, ...",
}
"""Placeholders for arguments in the explanation of a call."""


def write_calls(calls: Sequence[Call], form: ToolFormat) -> str:
    """Returns the text of calls, as a model of the family writes them."""
    written = [
        Template(form.call).substitute(
            name=escape_tags(to_json(call.name)[1:-1], form),
            arguments=_arguments(call, form),
            id=_identifier(call.id, index, form),
        )
        for index, call in enumerate(calls)
    ]
    return f"{form.opening}{form.between.join(written)}{form.closing}"


def escape_tags(text: str, form: ToolFormat) -> str:
    """Escapes tags of the form in JSON text: the first character of a tag becomes a numeric escape.

    A tag is found even if a mark (see ``constrain.chat.prompt.guarding``) stands inside it.
    """
    structure = f"{form.opening}\n{form.call}\n{form.closing}\n{form.tools_shown}\n{form.result}"
    for tag in sorted(set(TAG.findall(structure))):
        hidden = re.compile(f"{re.escape(tag[0])}(?=[\ufdd0-\ufdef]?{re.escape(tag[1:])})")
        text = hidden.sub(f"\\\\u{ord(tag[0]):04x}", text)
    return text


def short_id(call_id: str) -> str:
    """Returns an id of nine letters and digits; equal ids give equal results."""
    if _SHORT_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _identifier(call_id: str, index: int, form: ToolFormat) -> str:
    """Returns an id that the form allows."""
    if not form.id_pattern or re.fullmatch(form.id_pattern, call_id):
        return call_id
    derived = short_id(call_id)
    return derived if re.fullmatch(form.id_pattern, derived) else str(index)


def whole_id(name: str, index: int, form: ToolFormat) -> str:
    """Returns the id by which a template names a tool (see ``ToolFormat.whole_id``)."""
    return Template(form.whole_id).substitute(name=name, index=index)


def _with_whole_ids(messages: Sequence[Message], form: ToolFormat) -> list[Message]:
    """Returns messages with ids of calls and results as the family's templates want them."""
    said, ids, number = [], dict[str, str](), 0
    for message in messages:
        if form.whole_id:
            calls = []
            for call in message.calls:
                ids[call.id] = whole_id(call.name, number, form)
                calls.append(replace(call, id=ids[call.id]))
                number += 1
            message = replace(message, calls=tuple(calls), call_id=ids.get(message.call_id, message.call_id))  # noqa: PLW2901
        said.append(message)
    return said


def _arguments(call: Call, form: ToolFormat) -> str:
    match form.style:
        case ArgumentStyle.JSON:
            return escape_tags(call.text, form)
        case ArgumentStyle.PYTHON:
            return ", ".join(f"{name}={_python(value)}" for name, value in call.arguments.items())
        case ArgumentStyle.XML:
            texts = {n: v if isinstance(v, str) else escape_tags(to_json(v), form) for n, v in call.arguments.items()}
            return "".join(form.element.write(name, text) for name, text in texts.items())


def _python(value: Any) -> str:
    """Returns a JSON value as a Python literal; strings are spelled as in JSON, with the same meaning."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(key)}: {_python(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_python, value)) + "]"
    return repr(value) if value is None or isinstance(value, bool) else to_json(value)


def _split_calls(messages: Sequence[Message], place: TextAndCalls, *, several: bool) -> list[Message]:
    """Moves text and calls into messages of their own if the template cannot show them together."""
    said: list[Message] = []
    results: list[Message] = []
    for index, message in enumerate(messages):
        if results and message.role == "tool" and not message.is_orphan:
            continue  # already placed behind its call
        results = []
        alone = message
        if message.calls and message.content and place is not TextAndCalls.TOGETHER:
            alone = replace(message, content="", is_null=True)
            if place is TextAndCalls.APART:
                said.append(replace(message, calls=()))
                alone = replace(alone, reasoning="")
        if len(message.calls) < 2 or several:
            said.append(alone)
            continue
        results = list(messages[index + 1 : index + 1 + len(message.calls)])
        for number, (call, result) in enumerate(zip(message.calls, results, strict=False)):  # a part may lack some
            first = alone if number == 0 else replace(alone, content="", is_null=True, reasoning="")
            said += [replace(first, calls=(call,)), result]
    return said


def _with_calls_as_text(message: Message, form: ToolFormat) -> Message:
    if not message.calls:
        return message
    text = f"{message.content}\n" if message.content else ""
    return replace(message, content=text + write_calls(message.calls, form), calls=())


def _with_results_as_text(messages: Sequence[Message], form: ToolFormat, able: Abilities) -> list[Message]:
    """Turns results that the template does not show into messages of the user, joined with the user's next text.

    Many templates expect turns.
    """
    said: list[Message] = []
    after_result = False
    for message in messages:
        is_result = message.role == "tool" and not (able.orphans if message.is_orphan else able.results)
        if is_result:
            name = message.name or message.call_id
            content = Template(form.result).substitute(
                name=escape_tags(to_json(name)[1:-1], form),
                id=message.call_id,
                content=escape_tags(to_json(message.content), form),
            )
            message = Message("user", content)  # noqa: PLW2901
        if after_result and message.role == "user":
            said[-1] = replace(message, content=f"{said[-1].content}\n{message.content}")
        else:
            said.append(message)
        after_result = is_result
    return said


def _alternate(messages: Sequence[Message]) -> list[Message]:
    """Returns messages in which user and assistant take turns, beginning with the user.

    Neighbours of one role are joined, and empty answers left out. Where calls and results stand between two messages of
    one role, or the assistant comes first, a message without text stands for the turn that is missing. Messages with
    calls are no turns, as in Mistral's templates.
    """
    others = {"user": "assistant", "assistant": "user"}
    said: list[Message] = []
    last = "assistant"
    for message in _join(messages):
        if message.role in others and not message.calls:
            said += [Message(others[last], "")] if message.role == last else []
            last = message.role
        said.append(message)
    return said


def _join(messages: Sequence[Message]) -> list[Message]:
    """Returns messages without empty answers, and neighbours of user or assistant as one message, which calls end."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.role == "assistant" and not (message.calls or message.content or message.reasoning):
            continue
        before = groups[-1][-1] if groups else None
        if before is not None and before.role == message.role in ("user", "assistant") and not before.calls:
            groups[-1].append(message)
        else:
            groups.append([message])
    return [
        replace(
            group[-1],
            content=_PARAGRAPH.join(message.content for message in group if message.content),
            reasoning=_PARAGRAPH.join(message.reasoning for message in group if message.reasoning),
        )
        for group in groups
    ]


def _plain(function: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a function whose schemas mean the same in words that every template knows (see ``plain_schemas``)."""
    parameters = {"type": "object", "properties": {}, **function["parameters"]}
    described = {"description": "", **_plain_schema(parameters)}
    return {**function, "description": function.get("description") or "", "parameters": described}


def _plain_schema(schema: Any) -> Any:
    if schema is True:
        return {"description": ""}
    if not isinstance(schema, dict):
        return schema
    from constrain.json_schema.documents.dialects import DRAFT_2020
    from constrain.json_schema.keywords.table import KEYWORDS

    single, several = KEYWORDS.single[DRAFT_2020], KEYWORDS.several[DRAFT_2020]
    plain: dict[str, Any] = {"description": ""}
    for keyword, value in schema.items():
        if isinstance(value, dict) and keyword in single:
            plain[keyword] = _plain_schema(value)
        elif isinstance(value, dict) and keyword in several:
            plain[keyword] = {name: _plain_schema(inner) for name, inner in value.items()}
        elif isinstance(value, list) and keyword in several:
            plain[keyword] = [_plain_schema(inner) for inner in value]
        elif value is not None or keyword not in KEYWORDS.annotations:
            plain[keyword] = value
    if isinstance(types := plain.get("type"), list):
        del plain["type"]
        one = {"anyOf": [{"type": name, "description": ""} for name in types]}
        plain |= one if "anyOf" not in plain else {"allOf": [*plain.get("allOf", ()), one]}
    if plain.get("type") == "object":
        plain.setdefault("additionalProperties", {})
    return plain


def _place_system(messages: Sequence[Message], shown: str, able: Abilities, *, has_tools: bool) -> list[Message]:
    """Merges system and developer messages where the template shows them, followed by the text about tools."""
    ordered = [replace(m, role="system") if m.role == "developer" else m for m in messages]
    start = len(list(takewhile(lambda message: message.role == "system", ordered)))
    first, rest = ordered[:start], ordered[start:]
    if not able.later_system:
        first += [message for message in rest if message.role == "system"]
        rest = [message for message in rest if message.role != "system"]
    text = _PARAGRAPH.join([*(message.content for message in first if message.content), *([shown] if shown else [])])
    if not first and not shown:
        return rest
    if able.system if rest else able.only_system and (able.only_system_with_tools or not has_tools):
        return [Message("system", text), *rest]
    if rest and rest[0].role == "user":
        return [replace(rest[0], content=f"{text}{_PARAGRAPH}{rest[0].content}"), *rest[1:]]
    return [Message("user", text), *rest]


def _as_dict(message: Message, form: ToolFormat, able: Abilities) -> dict[str, Any]:
    """Returns a message as templates read it."""
    shaped: dict[str, Any] = {"role": message.role, "content": _content(message.content, able)}
    if message.name:
        shaped["name"] = message.name
    if message.role == "tool":
        result = message.content if not able.json_results or _is_json(message.content) else to_json(message.content)
        shaped.update(
            tool_call_id=_native_id(message.call_id, form, able), name=message.name, content=_content(result, able)
        )
    if message.calls:
        shaped["tool_calls"] = [_call(call, form, able) for call in message.calls]
        if not message.content and (message.is_null or not able.empty_content):
            shaped["content"] = able.no_content
    beside_text = message.calls and message.content
    if message.reasoning and able.reasoning_key and (able.reasoning_beside_text or not beside_text):
        if able.reasoning_key == "parts":
            text = [{"type": "text", "text": message.content}] if message.content else []
            shaped["content"] = [{"type": "thinking", "thinking": message.reasoning}, *text]
        else:
            shaped[able.reasoning_key] = message.reasoning
    return shaped


def _call(call: Call, form: ToolFormat, able: Abilities) -> dict[str, Any]:
    arguments: object = call.text if able.arguments_as_text else call.arguments
    function = {"name": call.name, "arguments": arguments}
    return {"id": _native_id(call.id, form, able), "type": "function", "function": function}


def _native_id(call_id: str, form: ToolFormat, able: Abilities) -> str:
    """Returns an id for a template: a short one if the template or the form needs it."""
    derived = short_id(call_id)
    wanted = able.short_ids or (form.id_pattern and re.fullmatch(form.id_pattern, derived))
    return derived if wanted else call_id


def _content(text: str, able: Abilities) -> object:
    return [{"type": "text", "text": text}] if able.parts else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
