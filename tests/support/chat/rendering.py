"""Prompts of the families' templates as text, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrain.chat.families.format import ToolFormat
from constrain.chat.families.forms import detect_format
from constrain.chat.prompt import conversation
from constrain.chat.prompt.abilities import Abilities
from constrain.chat.prompt.messages import Message, check_messages
from constrain.chat.prompt.shaping import find_shape
from tests.support.chat.templates import template

NAMES = {"bos_token": "<bos>", "eos_token": "<eos>"}


def abilities_of(name: str, form: ToolFormat | None = None) -> Abilities:
    """What the template of a name does by itself."""
    text = template(name)
    return conversation.template_abilities(text, form or detect_format(text), NAMES)


def prompt(name: str, messages: Sequence[Any], tools: Sequence[Any] = (), **variables: Any) -> str:
    """The prompt that the template of a name makes."""
    return shaped_prompt(template(name), messages, tools, **variables)[1]


def shaped_prompt(
    text: str, messages: Sequence[Any], tools: Sequence[Any] = (), **variables: Any
) -> tuple[Abilities, str]:
    """The prompt that a template makes, behind the features by which the messages were shaped."""
    form = detect_format(text)
    known = {"add_generation_prompt": True, **NAMES, **variables}
    functions = [conversation.function_of(tool) for tool in tools]
    able = conversation.template_abilities(text, form, NAMES)

    def write(said: Sequence[Message], shape: Abilities) -> str:
        return conversation.write_prompt(text, said, functions, form, shape, known)

    return find_shape(check_messages(messages), functions, able, write)
