"""From a prompt, a schema and options to a job: the prompt's tokens, and the language of the answer.

There is one way for all requests. A plain text is a conversation of one message without tools; its answer is a text of
the schema. Where there may be calls, refusals or reasoning, the answer is a text of an ``AnswerLanguage``, and is read
as a reply.
"""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.chat.answers.choice import read_choice
from constrain.chat.answers.choices import REFUSAL, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.fork import fork_of
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import Section, Thinking, ToolFormat
from constrain.chat.prompt.conversation import ThinkingState, conversation_prompt, format_of, function_of
from constrain.chat.reading.progress import TextProgress
from constrain.chat.reading.reply import ReplyProgress
from constrain.chat.tools.definition import as_tools
from constrain.chat.tools.kinds import FunctionTool
from constrain.composition.parts import as_part
from constrain.generation.job import SCHEMA, TOOLS, Language, Plan
from constrain.generation.options import compile_options, split_options
from constrain.json_schema.policies import Policies
from constrain.language.grammar import Grammar
from constrain.language.policies import CHOICES, DEFAULTS, refuse_compile_options
from constrain.language.result import result_type
from constrain.language.schema_text import is_type, parse_schema, schema_text
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from constrain.chat.prompt.messages import Prompt
    from constrain.chat.reading.progress import Progress
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.chat.tools.kinds import Tool
    from constrain.generation.job import Job
    from constrain.generation.options import AnswerSettings, ChatOptions, Options
    from constrain.language.policies import CompileOptions
    from constrain.language.result import ResultType
    from constrain.llama.model import Model

_BESIDE_CALLS = "If you call no tool: "


def prepare(model: Model, prompt: Prompt, schema: Any, options: Options) -> Job:
    """Checks the options, compiles the schema and tokenizes the prompt. Raises as ``complete`` does."""
    plan = make_plan(model, prompt, schema, options)
    started = time.perf_counter()
    constraint = None if plan.language is None else plan.language.compile(model.vocabulary)
    return plan.job(constraint, time.perf_counter() - started)


def prompt_tokens(model: Model, prompt: Prompt, *, shown: str = "", constrained: bool = False) -> list[int]:
    """The token ids of a prompt, ready for the answer; no text in it becomes a special token.

    Args:
        model: whose template and vocabulary are used.
        prompt: as for ``complete``.
        shown: a text to put in front of the user's first message; later ones get a reminder of it.
        constrained: the answer begins at once, so a template that can let the model think first must not.

    Raises ``ValueError`` and ``TypeError`` for a malformed prompt and ``ModelError`` if the chat template fails.
    """
    form = format_of(model.tokenizer, model.chat_template)
    variables = _switched(form.thinking, wanted=not constrained)
    return conversation_prompt(
        model.tokenizer, model.chat_template, prompt, form=form, variables=variables, shown=shown
    ).tokens


def make_plan(model: Model, prompt: Prompt, schema: Any, given: Options) -> Plan:
    """``prepare`` up to where the schema is compiled."""
    options: ChatOptions = {**given}  # type: ignore[typeddict-item]
    sampling, settings = split_options(options)
    tools = as_tools(options.get("tools") or ())
    template = model.tool_template if tools else model.chat_template
    form = format_of(model.tokenizer, template, options.get("tool_format"))
    result = result_type(schema)
    answer = _answer(model, schema, options, tools, form)
    language = _text_language(schema, options) if answer is None else None
    thinks = options.get("thinking")
    wants_reasoning = schema is None if thinks is None else thinks
    about_schema = _shown(settings, result, has_tools=bool(tools), allow_refusal=bool(options.get("allow_refusal")))
    prompted = conversation_prompt(
        model.tokenizer,
        template,
        prompt,
        tools=tools,
        form=form,
        variables=_switched(form.thinking, wanted=wants_reasoning),
        shown=about_schema,
    )

    def shown() -> dict[str, str]:
        return {SCHEMA: about_schema, TOOLS: "\n".join(json.dumps(function_of(tool)) for tool in tools)}

    if answer is None:
        progress = _text_progress(result, settings, language)
        return Plan(model, language, prompted.tokens, progress, sampling, settings, shown=shown)
    answer = replace(answer, reasoning=_reasoning(prompted.thinking, wanted=wants_reasoning))
    by_name = {tool.name: tool for tool in tools}
    reply = partial(ReplyProgress, answer, by_name, result, settings.stops, prompted.tokens, wants_reply=bool(tools))
    fork = fork_of(answer, model.vocabulary)
    return Plan(model, Language(answer), prompted.tokens, reply, sampling, settings, fork, shown)


def _answer(
    model: Model, schema: Any, options: ChatOptions, tools: Sequence[Tool], form: ToolFormat
) -> AnswerLanguage | None:
    """The language of an answer that may hold calls, refusals or reasoning; None if it can only be a text.

    Whether there is reasoning depends on the prompt, and is left out.
    """
    choice = read_choice(options.get("tool_choice"), tools)
    is_parallel = _is_parallel(options.get("parallel_tool_calls"))
    if not (tools or options.get("allow_refusal") or form.thinking or form.content):
        return None
    content = _content(schema, strict=options.get("strict", False))
    return AnswerLanguage(
        form,
        special=_named(form, model.vocabulary.special_tokens),
        tools=tuple(map(_callable, tools)),
        calls=choice.calls,
        allowed=choice.allowed,
        parallel=is_parallel and not choice.single,
        content=content,
        refusal=bool(options.get("allow_refusal")),
        policies=_policies(options, content, tools),
        registry=options.get("registry"),
    )


def plan_continuation(model: Model, tokens: list[int], schema: Any, options: Options) -> Plan:
    """The same for a prompt that the model goes on with as it is: without a template, and nothing of the schema."""
    sampling, settings = split_options(options)
    language = _text_language(schema, options)
    return Plan(model, language, tokens, _text_progress(result_type(schema), settings, language), sampling, settings)


def _text_language(schema: Any, options: Options) -> Language | None:
    """The language of an answer that is a text of the schema, or any text."""
    policies = compile_options(options, schema)
    return None if schema is None else Language(schema, policies)


def _text_progress(
    result: ResultType, settings: AnswerSettings, language: Language | None
) -> Callable[[int, TextTokens | None], Progress]:
    def progress(_: int, tokens: TextTokens | None) -> Progress:
        return TextProgress(result, settings.stops, tokens, cuts=language is None)

    return progress


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


def _policies(options: ChatOptions, content: object, tools: Sequence[Tool]) -> Policies:
    """The policies for arguments and content. Raises ``ValueError`` for those that do not apply."""
    given: Mapping[str, Any] = {**DEFAULTS, **options}
    if given["registry"] is not None and not isinstance(content, Value):
        raise ValueError(
            "registry is about a JSON Schema as schema, and there is none; write what tools refer to under $defs"
        )
    if not isinstance(content, Value) and not any(isinstance(tool, FunctionTool) for tool in tools):
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


def _shown(settings: AnswerSettings, result: ResultType, *, has_tools: bool, allow_refusal: bool) -> str:
    """What the prompt says about content: the same for every ``tool_choice``, so that a next turn begins alike."""
    shown = settings.shown(result)
    if not shown:
        return ""
    if allow_refusal:
        shown += f'\nIf you cannot answer, write "{REFUSAL}" and the reason instead.'
    return f"{_BESIDE_CALLS}{shown}" if has_tools else shown


def _named(form: ToolFormat, special_tokens: Mapping[str, int]) -> tuple[str, ...]:
    """The names of the special tokens that a form is written with."""
    structure = "\0".join(_texts(form))
    return tuple(sorted(name for name in special_tokens if name in structure))


def _texts(form: ToolFormat | Thinking | Section) -> Iterator[str]:
    for field in fields(form):
        value = getattr(form, field.name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, Thinking | Section):
            yield from _texts(value)
