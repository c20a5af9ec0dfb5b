"""Requests with tools, reasoning or refusals: from options to a job, whose answers become replies."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.chat.answers.answer import Answer
from constrain.chat.answers.choice import read_choice
from constrain.chat.answers.choices import REFUSAL, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.fork import fork_of
from constrain.chat.families.format import Section, Thinking, ToolFormat
from constrain.chat.prompt.conversation import ThinkingState, conversation_prompt, format_of, function_of
from constrain.chat.reading.reply import ReplyProgress
from constrain.chat.tools.definition import as_tools
from constrain.chat.tools.kinds import FunctionTool
from constrain.composition.parts import as_part
from constrain.generation.job import SCHEMA, TOOLS, Language, Plan
from constrain.generation.options import split_options
from constrain.json_schema.policies import Policies
from constrain.language.grammar import Grammar
from constrain.language.policies import CHOICES, DEFAULTS, refuse_compile_options
from constrain.language.result import result_type
from constrain.language.schema_text import parse_schema, schema_text
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions, Options, Request
    from constrain.language.policies import CompileOptions
    from constrain.language.result import ResultType
    from constrain.llama.lookup import Prompt
    from constrain.llama.model import Model

_BESIDE_CALLS = "If you call no tool: "


def plan_chat(model: Model, prompt: Prompt, schema: Any, given: Options) -> Plan:
    """Checks everything and tokenizes the conversation. Raises as ``complete`` does."""
    options: ChatOptions = {**given}  # type: ignore[typeddict-item]
    sampling, request = split_options(options)
    tools = as_tools(options.get("tools") or ())
    choice = read_choice(options.get("tool_choice"), tools)
    result = result_type(schema)
    content = _content(schema, strict=options.get("strict", False))
    has_json = isinstance(content, Value) or any(isinstance(tool, FunctionTool) for tool in tools)
    policies = _policies(options, has_json=has_json)
    template = model.tool_template if tools else model.chat_template
    form = format_of(model.tokenizer, template, options.get("tool_format"))
    thinks = options.get("thinking")
    wants_reasoning = schema is None if thinks is None else thinks
    about_schema = _shown(request, result, has_tools=bool(tools), allow_refusal=bool(options.get("allow_refusal")))
    prompted = conversation_prompt(
        model.tokenizer,
        template,
        [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt,
        tools=tools,
        form=form,
        variables=_switched(form.thinking, wanted=wants_reasoning),
        shown=about_schema,
    )
    answer = Answer(
        form,
        special=_named(form, model.vocabulary.special_tokens),
        tools=tuple(map(_callable, tools)),
        calls=choice.calls,
        allowed=choice.allowed,
        parallel=_is_parallel(options.get("parallel_tool_calls")) and not choice.single,
        content=content,
        refusal=bool(options.get("allow_refusal")),
        reasoning=_reasoning(prompted.thinking, wanted=wants_reasoning),
        policies=policies,
    )
    by_name = {tool.name: tool for tool in tools}
    progress = partial(ReplyProgress, answer, by_name, result, request.stops, prompted.tokens, wants_reply=bool(tools))

    def shown() -> dict[str, str]:
        return {SCHEMA: about_schema, TOOLS: "\n".join(json.dumps(function_of(tool)) for tool in tools)}

    return Plan(
        model,
        Language(answer),
        lambda: prompted.tokens,
        progress,
        sampling,
        request,
        fork_of(answer, model.vocabulary),
        shown,
    )


def _callable(tool: Tool) -> FunctionCalls | CustomCalls:
    if isinstance(tool, FunctionTool):
        return FunctionCalls(tool.name, schema_text(tool.schema), typed=tool.signature is not None)
    return CustomCalls(tool.name, tool.format)


def _content(schema: Any, *, strict: bool) -> Value | Source | None:
    """What answers without calls are. Raises what ``complete`` does for the schema, ``strict`` included."""
    if schema is None or isinstance(schema, Source | Grammar):
        refuse_compile_options({"strict": strict}, "schema is none; tools say for themselves whether they are strict")
        part = schema if schema is None else as_part(schema, "schema")
        assert part is None or isinstance(part, Source)
        return part
    text = schema_text(schema, tightened=True)
    if strict:
        from constrain.json_schema.strict.subset import require_strict

        require_strict(parse_schema(text))
    return Value(text, typed=is_type(schema))


def _is_parallel(given: object) -> bool:
    if given is not None and not isinstance(given, bool):
        raise TypeError(f"parallel_tool_calls is {given!r}; it must be True or False")
    return given is not False


def _policies(options: ChatOptions, *, has_json: bool) -> Policies:
    """The policies for arguments and content. Raises ``ValueError`` for those that do not apply."""
    if options.get("registry") is not None:
        raise ValueError(
            "registry cannot be used together with tools, refusals, or a model that reasons; write the schemas that "
            "are referred to under $defs"
        )
    given: Mapping[str, Any] = {**DEFAULTS, **options}
    if not has_json:
        asked: CompileOptions = {name: given[name] for name in CHOICES}  # type: ignore[assignment]
        refuse_compile_options(asked, "there is none: neither schema nor a tool has one")
    return Policies(**{name: given[name] for name in CHOICES}, close_objects=True)


def _switched(thinking: Thinking | None, *, wanted: bool) -> dict[str, object]:
    """The variable of the template that has the model reason, or not."""
    switch = thinking and thinking.switch
    return {switch.variable: switch.on if wanted else switch.off} if switch else {}


def _reasoning(state: ThinkingState, *, wanted: bool) -> Reasoning:
    if state is ThinkingState.OPEN:
        return Reasoning.OPENED
    return Reasoning.OPTIONAL if state is ThinkingState.POSSIBLE and wanted else Reasoning.NONE


def _shown(request: Request, result: ResultType, *, has_tools: bool, allow_refusal: bool) -> str:
    """What the prompt says about content: the same for every ``tool_choice``, so that a next turn begins alike."""
    shown = request.shown(result)
    if not shown:
        return ""
    if allow_refusal:
        shown += f'\nIf you cannot answer, write "{REFUSAL}" and the reason instead.'
    return f"{_BESIDE_CALLS}{shown}" if has_tools else shown


def _named(form: ToolFormat, special_tokens: Mapping[str, int]) -> tuple[str, ...]:
    """The special tokens that a form is written with."""
    structure = "\0".join(_texts(form))
    return tuple(sorted(name for name in special_tokens if name in structure))


def _texts(form: ToolFormat | Thinking | Section) -> Iterator[str]:
    for field in fields(form):
        value = getattr(form, field.name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, Thinking | Section):
            yield from _texts(value)
