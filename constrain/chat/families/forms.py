"""The families of models, as documented by model cards and templates, and the detection of a model's family.

Each family is one record of ``FAMILIES``. The first record whose marks occur in a template wins, so specific families
stand before general ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.chat.families.format import (
    ArgumentStyle,
    Element,
    Marks,
    Section,
    Switch,
    Thinking,
    ToolFormat,
    complete,
)
from constrain.chat.prompt.template import free_variables

if TYPE_CHECKING:
    from collections.abc import Collection

GENERIC = ToolFormat(
    name="generic",
    call='<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>',
    custom_call='<tool_call>\n{"name": "$name", "arguments": {"input": $json_input}}\n</tool_call>',
    between="\n",
)
"""The form of models whose family is unknown; the prompt explains it."""

_MISTRAL_ID = "[a-zA-Z0-9]{9}"

_MISTRAL_V3 = ToolFormat(
    name="mistral-v3",
    opening="[TOOL_CALLS] [",
    call='{"name": "$name", "arguments": $arguments, "id": "$id"}',
    custom_call='{"name": "$name", "arguments": {"input": $json_input}, "id": "$id"}',
    between=", ",
    closing="]",
    id_pattern=_MISTRAL_ID,
    text_before=False,
    templates=(Marks(("[TOOL_CALLS] [",), absent=("[ARGS]",)),),
)

_PHI4_MINI = ToolFormat(
    name="phi4-mini",
    opening="<|tool_call|>[",
    call='{"name": "$name", "arguments": $arguments}',
    custom_call='{"name": "$name", "arguments": {"input": $json_input}}',
    between=", ",
    closing="]<|/tool_call|>",
    tools_shown="You can call the tools listed here.<|tool|>$tools<|/tool|>",
    tools_as_list=True,
    names_shown=(
        "You can call the tools listed here.<|tool|>$tools<|/tool|>\n"
        "The parameters of a tool are shown to you once you have written its name."
    ),
    templates=(Marks(("<|tool|>", "<|/tool|>")), Marks(("<|tool_call|>", "<|/tool_call|>"))),
    tokens=("<|tool_call|>", "<|/tool_call|>"),
)

FAMILIES = complete(
    ToolFormat(
        name="harmony",
        call="<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$arguments",
        custom_call=('<|channel|>commentary to=functions.$name <|constrain|>json<|message|>{"input": $json_input}'),
        parallel=False,  # <|call|> ends the answer
        content=Section("<|channel|>final<|message|>", ""),
        preamble=Section("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
        templates=(Marks(("<|channel|>", "<|message|>")),),
        tokens=("<|channel|>", "<|constrain|>", "<|call|>"),
        aliases=("gpt-oss",),
        thinking=Thinking(
            "<|channel|>analysis<|message|>", "<|end|><|start|>assistant", mark="<|channel|>analysis<|message|>"
        ),
    ),
    ToolFormat(
        name="functionary-v3.2",
        call="$name\n$arguments",  # the prompt ends with the first ">>>"
        custom_call='$name\n{"input": $json_input}',
        between=">>>",
        content=Section("all\n", ""),
        preamble=Section("all\n", ">>>"),
        templates=(Marks((">>>all",)),),
    ),
    ToolFormat(
        name="qwen3-coder",
        call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
        custom_call=(
            "<tool_call>\n<function=$name>\n<parameter=input>\n$input\n</parameter>\n</function>\n</tool_call>"
        ),
        between="\n",
        style=ArgumentStyle.XML,
        templates=(Marks(("<function=", "<parameter=", "<tool_call>")),),
    ),
    ToolFormat(
        name="functionary-v3.1",
        call="<function=$name>$arguments</function>",
        custom_call='<function=$name>{"input": $json_input}</function>',
        templates=(Marks(("<function=", "</function>"), absent=("<parameter=",)),),
    ),
    ToolFormat(
        name="glm-4.5",
        call="<tool_call>$name\n$arguments</tool_call>",
        custom_call="<tool_call>$name\n<arg_key>input</arg_key>\n<arg_value>$input</arg_value>\n</tool_call>",
        between="\n",
        style=ArgumentStyle.XML,
        element=Element("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"),
        templates=(Marks(("<tool_call>", "<arg_key>", "<arg_value>")),),
    ),
    ToolFormat(
        name="minimax-m2",
        opening="<minimax:tool_call>\n",
        call='<invoke name="$name">\n$arguments</invoke>\n',
        custom_call='<invoke name="$name">\n<parameter name="input">$input</parameter>\n</invoke>\n',
        closing="</minimax:tool_call>",
        style=ArgumentStyle.XML,
        element=Element('<parameter name="', '">', "</parameter>\n"),
        templates=(Marks(("<minimax:tool_call>", "<invoke name=")),),
    ),
    ToolFormat(
        name="kimi-k2",
        opening="<|tool_calls_section_begin|>",
        call="<|tool_call_begin|>functions.$name:$id<|tool_call_argument_begin|>$arguments<|tool_call_end|>",
        custom_call=(
            '<|tool_call_begin|>functions.$name:$id<|tool_call_argument_begin|>{"input": $json_input}<|tool_call_end|>'
        ),
        closing="<|tool_calls_section_end|>",
        id_pattern="0|[1-9][0-9]{0,3}",
        whole_id="functions.$name:$index",
        templates=(Marks(("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>")),),
        tokens=("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"),
    ),
    ToolFormat(
        name="command-r7b",
        opening="<|START_ACTION|>[\n    ",
        call='{"tool_call_id": "$id", "tool_name": "$name", "parameters": $arguments}',
        custom_call='{"tool_call_id": "$id", "tool_name": "$name", "parameters": {"input": $json_input}}',
        between=",\n    ",
        closing="\n]<|END_ACTION|>",
        id_pattern="0|[1-9][0-9]{0,3}",
        text_before=False,
        content=Section("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        templates=(Marks(("<|START_ACTION|>",)),),
        tokens=("<|START_ACTION|>", "<|END_ACTION|>", "<|START_RESPONSE|>"),
        thinking=Thinking("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    ToolFormat(
        name="command-r",
        opening="Action: ```json\n[\n    ",
        call='{\n        "tool_name": "$name",\n        "parameters": $arguments\n    }',
        custom_call='{\n        "tool_name": "$name",\n        "parameters": {"input": $json_input}\n    }',
        between=",\n    ",
        closing="\n]```",
        templates=(Marks(("<|START_OF_TURN_TOKEN|>", "Action:", "tool_name"), absent=("<|START_ACTION|>",)),),
    ),
    ToolFormat(
        name="deepseek-v3",
        opening="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```<｜tool▁call▁end｜>",
        custom_call=(
            '<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n{"input": $json_input}\n```<｜tool▁call▁end｜>'
        ),
        between="\n",
        closing="<｜tool▁calls▁end｜>",
        templates=(Marks(("<｜tool▁calls▁begin｜>", "```json")),),
    ),
    ToolFormat(
        name="deepseek-v3.1",
        opening="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>",
        custom_call='<｜tool▁call▁begin｜>$name<｜tool▁sep｜>{"input": $json_input}<｜tool▁call▁end｜>',
        closing="<｜tool▁calls▁end｜>",
        templates=(Marks(("<｜tool▁calls▁begin｜>",), absent=("```json",)),),
        tokens=("<｜tool▁calls▁begin｜>",),
    ),
    ToolFormat(
        name="mistral-v11",
        call="[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments",
        custom_call='[TOOL_CALLS]$name[CALL_ID]$id[ARGS]{"input": $json_input}',
        id_pattern=_MISTRAL_ID,
        templates=(Marks(("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]")),),
        tokens=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
    ),
    ToolFormat(
        name="mistral-v13",
        call="[TOOL_CALLS]$name[ARGS]$arguments",
        custom_call='[TOOL_CALLS]$name[ARGS]{"input": $json_input}',
        templates=(Marks(("[TOOL_CALLS]", "[ARGS]"), absent=("[CALL_ID]",)),),
        tokens=("[TOOL_CALLS]", "[ARGS]"),
        thinking=Thinking("[THINK]", "[/THINK]"),
    ),
    _MISTRAL_V3,
    replace(
        _MISTRAL_V3,
        name="mistral-v3-tekken",
        opening="[TOOL_CALLS][",
        templates=(Marks(("[TOOL_CALLS]",), absent=("[ARGS]", "[TOOL_CALLS] [")),),
        tokens=("[TOOL_CALLS]",),
    ),
    replace(
        _PHI4_MINI,
        name="functools",
        opening="functools[",
        closing="]",
        templates=(Marks(("functools[",)),),
        tokens=(),
    ),
    _PHI4_MINI,
    ToolFormat(
        name="llama-pythonic",
        opening="[",
        call="$name($arguments)",
        custom_call="$name(input=$json_input)",
        between=", ",
        closing="]",
        style=ArgumentStyle.PYTHON,
        text_before=False,
        templates=(Marks(("func_name1(",)), Marks(("<|header_start|>",), absent=('"parameters": ',))),
        tokens=("<|python_start|>",),
    ),
    ToolFormat(
        name="llama3-json",
        call='{"name": "$name", "parameters": $arguments}',
        custom_call='{"name": "$name", "parameters": {"input": $json_input}}',
        text_before=False,
        parallel=False,
        templates=(
            Marks(("<|start_header_id|>", "ipython", '"parameters": ')),
            Marks(("<|header_start|>", "ipython", '"parameters": ')),
        ),
    ),
    replace(
        GENERIC,
        name="hermes",
        templates=(Marks(("<tool_call>", "</tool_call>"), absent=("<function=", "<arg_key>")),),
        tokens=("<tool_call>", "</tool_call>"),
        aliases=("qwen2.5", "qwen3", "chatml"),
    ),
    ToolFormat(
        name="gemma3",
        call='{"name": "$name", "parameters": $arguments}',
        custom_call='{"name": "$name", "parameters": {"input": $json_input}}',
        text_before=False,
        parallel=False,
        tools_shown=(
            "You can call functions. These are the functions, as a JSON list:\n"
            "$tools\n\n"
            "To call one, answer with nothing but this, with its name and a dictionary of its arguments:\n"
            "$calls"
        ),
        tools_as_list=True,
        templates=(Marks(("<start_of_turn>",)),),
        tokens=("<start_of_turn>",),
        thinking=Thinking("<|channel>thought\n", "<channel|>"),  # of Gemma 4
    ),
)

_THINK = Thinking("<think>", "</think>")
"""The reasoning section of all other families; in a template, the section of a family counts first."""

_SWITCHES = (Switch("enable_thinking", on=True, off=False), Switch("thinking", on=True, off=False))
"""Variables that turn reasoning on or off in templates. ``reasoning_effort`` is left out: its values differ, and most
families that have it cannot turn reasoning off.
"""


def tool_formats() -> dict[str, ToolFormat]:
    """Returns all forms by their names and aliases."""
    return {name: family for family in (*FAMILIES, GENERIC) for name in (family.name, *family.aliases)}


def tool_format(name: str) -> ToolFormat:
    """Returns the form with a name. Raises ``ValueError`` if there is none.

    >>> tool_format("llama3-json").call
    '{"name": "$name", "parameters": $arguments}'
    """
    formats = tool_formats()
    if name not in formats:
        raise ValueError(f"{name!r} is not a form of tool calls; the forms are {', '.join(sorted(formats))}")
    return formats[name]


def detect_format(template: str | None, names: Collection[str] = (), *, name: str | None = None) -> ToolFormat:
    """Returns the form of tool calls of a model, with its reasoning section.

    Args:
        template: chat template of the model, if it has one.
        names: texts of its vocabulary's special and user-defined tokens; they decide if the template says nothing about
            tools.
        name: name of a form, instead of detection; the reasoning section is the template's in any case.

    Raises ``ModelError`` if the template is not a Jinja template, and ``ValueError`` for an unknown name.

    If neither template nor tokens identify a family, the result is the generic form: calls in JSON between
    ``<tool_call>`` tags, which the prompt explains.
    """
    form = _family_form(template or "", names) if name is None else tool_format(name)
    return replace(form, thinking=detect_thinking(template))


def detect_thinking(template: str | None) -> Thinking | None:
    """Returns the reasoning section of a chat template, with the variable that turns it on or off."""
    if not template:
        return None
    for thinking in (*(family.thinking for family in FAMILIES if family.thinking is not None), _THINK):
        mark = thinking.mark or thinking.end
        if mark in template or _escape(mark) in template:
            used = free_variables(template)
            return replace(thinking, switch=next((s for s in _SWITCHES if s.variable in used), None))
    return None


def _family_form(template: str, names: Collection[str]) -> ToolFormat:
    for family in FAMILIES:
        if any(marks.match(template) for marks in family.templates):
            return family
    for family in FAMILIES:
        if family.tokens and all(token in names for token in family.tokens):
            return family
    return GENERIC


def _escape(text: str) -> str:
    """Returns a text as it is spelled in a string of a template's source."""
    return text.replace("\n", "\\n")
