"""Messages and tools in the form that a chat template expects, or as text if it has no place for them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from itertools import takewhile
from string import Template
from typing import TYPE_CHECKING, Any

from constrain.chat.families.format import TAG, ArgumentStyle, ToolFormat
from constrain.chat.prompt.messages import Call, Message, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.prompt.abilities import Abilities

_SHORT_ID = re.compile("[a-zA-Z0-9]{9}")


def shape(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], form: ToolFormat, able: Abilities
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the messages and tools for rendering a template; features that it lacks have become text.

    Args:
        messages: messages from ``check_messages``.
        tools: functions as ``{"name": ..., "description": ..., "parameters": ...}``.
        form: form of calls.
        able: features of the template.
    """
    beside, several = (able.text_beside_calls, able.several_calls) if able.calls else (True, form.parallel)
    said = _split_calls(messages, beside=beside, several=several)
    if not able.calls:
        said = [_with_calls_as_text(message, form) for message in said]
    if not able.results:
        said = _with_results_as_text(said, form)
    said = _place_system(said, show_tools(tools, form) if tools and not able.tools else "", able)
    functions = [{"type": "function", "function": dict(tool)} for tool in tools] if able.tools else []
    return [_as_dict(message, form, able) for message in said], functions


def show_tools(tools: Sequence[Mapping[str, Any]], form: ToolFormat) -> str:
    """Returns the text that shows tools to a model whose template does not."""
    written = [escape_tags(to_json(tool), form) for tool in tools]
    listed = f"[{', '.join(written)}]" if form.tools_as_list else "\n".join(written)
    call = Template(form.call).substitute(name="<name>", arguments=_ARGUMENTS[form.style], id="<id>")
    calls, example = f"{form.opening}{call}{form.closing}", write_calls([_EXAMPLE], form)
    return Template(form.tools_shown).substitute(tools=listed, calls=calls, example=example)


_EXAMPLE = Call("0", "set_alarm", '{"time": "7:30", "day": "tomorrow"}', {"time": "7:30", "day": "tomorrow"})
"""The call that shows small models how to take values from a message: they then write more of them right."""


_ARGUMENTS = {
    ArgumentStyle.JSON: "<arguments as a JSON object>",
    ArgumentStyle.PYTHON: "<name of argument>=<value>, ...",
    ArgumentStyle.XML: "<parameter=name of argument>\nvalue\n</parameter>\n",
}
"""Placeholders for arguments in the explanation of a call."""


def write_calls(calls: Sequence[Call], form: ToolFormat) -> str:
    """Returns the text of calls, as a model of the family writes them."""
    written = [
        Template(form.call).substitute(
            name=call.name, arguments=_arguments(call, form), id=_identifier(call.id, index, form)
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


def _arguments(call: Call, form: ToolFormat) -> str:
    match form.style:
        case ArgumentStyle.JSON:
            return escape_tags(call.text, form)
        case ArgumentStyle.PYTHON:
            return ", ".join(f"{name}={_python(value)}" for name, value in call.arguments.items())
        case ArgumentStyle.XML:
            texts = {n: v if isinstance(v, str) else escape_tags(to_json(v), form) for n, v in call.arguments.items()}
            return "".join(f"<parameter={name}>\n{text}\n</parameter>\n" for name, text in texts.items())


def _python(value: Any) -> str:
    """Returns a JSON value as a Python literal; strings are spelled as in JSON, with the same meaning."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(key)}: {_python(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_python, value)) + "]"
    return repr(value) if value is None or isinstance(value, bool) else to_json(value)


def _split_calls(messages: Sequence[Message], *, beside: bool, several: bool) -> list[Message]:
    """Moves text and calls into messages of their own if the template cannot show them together."""
    said: list[Message] = []
    results: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool" and results:
            continue  # already placed behind its call
        results = []
        alone = message
        if message.calls and message.content and not beside:
            said.append(replace(message, calls=()))
            alone = replace(message, content="", reasoning="")
        if len(message.calls) < 2 or several:
            said.append(alone)
            continue
        results = list(takewhile(lambda other: other.role == "tool", messages[index + 1 :]))
        for place, (call, result) in enumerate(zip(message.calls, results, strict=True)):
            first = alone if place == 0 else replace(alone, content="", reasoning="")
            said += [replace(first, calls=(call,)), result]
    return said


def _with_calls_as_text(message: Message, form: ToolFormat) -> Message:
    if not message.calls:
        return message
    text = f"{message.content}\n" if message.content else ""
    return replace(message, content=text + write_calls(message.calls, form), calls=())


def _with_results_as_text(messages: Sequence[Message], form: ToolFormat) -> list[Message]:
    """Turns results into messages of the user, joined with the user's next text: many templates expect turns."""
    said: list[Message] = []
    after_result = False
    for message in messages:
        is_result = message.role == "tool"
        if is_result:
            content = Template(form.result).substitute(
                name=message.name, id=message.call_id, content=escape_tags(to_json(message.content), form)
            )
            message = Message("user", content)  # noqa: PLW2901
        if after_result and message.role == "user":
            said[-1] = replace(message, content=f"{said[-1].content}\n{message.content}")
        else:
            said.append(message)
        after_result = is_result
    return said


def _place_system(messages: Sequence[Message], shown: str, able: Abilities) -> list[Message]:
    """Merges system and developer messages where the template shows them, followed by the text about tools."""
    ordered = [replace(m, role="system") if m.role == "developer" else m for m in messages]
    start = len(list(takewhile(lambda message: message.role == "system", ordered)))
    first, rest = ordered[:start], ordered[start:]
    if not able.later_system:
        first += [message for message in rest if message.role == "system"]
        rest = [message for message in rest if message.role != "system"]
    text = "\n\n".join([*(message.content for message in first if message.content), *([shown] if shown else [])])
    if not first and not shown:
        return rest
    if able.system:
        return [Message("system", text), *rest]
    if rest and rest[0].role == "user":
        return [replace(rest[0], content=f"{text}\n\n{rest[0].content}"), *rest[1:]]
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
        if not message.content:
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
