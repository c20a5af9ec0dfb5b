"""From a prompt, a schema and options to a plan: the prompt's tokens, and the language of the answer.

All requests take one path. A plain text is a conversation of one message without tools, and its answer is a text of the
schema. If calls, refusals or reasoning are possible, the answer is a text of an ``AnswerLanguage`` and is read as a
reply.
"""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.arguments import integer
from constrain.chat.answers.call_or_content import make_call_or_content
from constrain.chat.answers.choice import read_choice
from constrain.chat.answers.choices import REFUSAL, Calls, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import Section, Thinking, ToolFormat
from constrain.chat.prompt.conversation import DraftWords, ThinkingState, conversation_prompt, format_of, function_of
from constrain.chat.prompt.messages import conversation
from constrain.chat.prompt.shaping import list_name
from constrain.chat.reading.progress import TextProgress
from constrain.chat.reading.reply import ReplyProgress
from constrain.chat.tools.definition import as_tools
from constrain.chat.tools.kinds import FunctionTool
from constrain.composition.parts import as_part
from constrain.engine.compiling import warn_of_keywords
from constrain.errors import DraftError, ModelError, PrefixError, UnsupportedSchemaError
from constrain.generation.exclusions import refuse_together
from constrain.generation.introducing import Introductions, exceed_share, structure_tokens
from constrain.generation.observers.observer import find_observers
from constrain.generation.options import (
    compile_options,
    leaves_temperature_open,
    split_options,
    takes_options,
)
from constrain.generation.plan import SCHEMA, TOOLS, Language, Plan
from constrain.generation.quoting import with_given
from constrain.generation.reasoning import read_reasoning, switch_reasoning
from constrain.given import GIVEN, read_given
from constrain.language.grammar import Grammar
from constrain.language.policies import CHOICES, DEFAULTS, GENERATION, Policies, refuse_compile_options
from constrain.language.result import result_type
from constrain.language.schema_text import JsonSchema, parse_schema
from constrain.language.source import Source
from constrain.llama.lookup import as_model
from constrain.quotes.keyword import PROMPT, has_folded_quotes, may_have_quotes
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Unpack

    from constrain.chat.prompt.conversation import RenderedPrompt
    from constrain.chat.prompt.messages import Prompt
    from constrain.chat.reading.progress import Progress
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.chat.tools.kinds import Tool
    from constrain.engine.constraint import Constraint
    from constrain.generation.options import AnswerSettings, ChatOptions, Options
    from constrain.given import Given
    from constrain.language.result import ResultType
    from constrain.llama.lookup import AnyModel
    from constrain.llama.model import Model
    from constrain.quotes.keyword import Texts
    from constrain.vocabulary.vocabulary import Vocabulary

_IF_NO_CALL = "If you call no tool: "

DRAFT_PLACE = "(the draft of the model)"
"""Text in the place of a draft, where a prompt is shown to people."""

_THINK = "First think about it in plain text, in a few sentences. Do not give the answer in its final form yet."
"""Text that asks for a draft."""


_ANY_TEXT = Regex("(?s).*")
"""The language of a draft."""


def prepare(model: Model, prompt: Prompt, schema: Any, options: Options) -> Plan:
    """Checks the options, tokenizes the prompt and compiles the schema. Raises the errors of ``complete``."""
    plan = make_plan(model, prompt, schema, options)
    started = time.perf_counter()
    constraint = None if plan.language is None else plan.language.compile(model.vocabulary)
    if constraint is not None:
        warn_of_keywords(constraint)
    return add_constraint(plan, constraint, time.perf_counter() - started)


def add_constraint(plan: Plan, constraint: Constraint | None, compile_seconds: float) -> Plan:
    """Returns a plan with its compiled language, ready for the model.

    Raises ``ValueError`` for ``unbias`` with a grammar that has temperatures of its own, and for a prefix that no
    answer begins with.
    """
    model, settings = plan.model, plan.settings
    if len(plan.prefix) > model.n_ctx:
        raise PrefixError(f"the prefix has {len(plan.prefix)} tokens, and the context holds {model.n_ctx}")
    if settings.unbias and constraint is not None and plan.result.document is None:
        tempered = (each.name for each in constraint.grammar.terminals if each.temperature is not None)
        refuse_together(unbias=True, tempered=next(tempered, None))
    if plan.sampling.dry_multiplier:  # the first sampler of a kind takes long, and a server begins answers at once
        plan.chain(plan.sampling).close()
    plan = replace(
        plan,
        constraint=constraint,
        compile_seconds=compile_seconds,
        prepared={name: each.prepare(plan) for name, each in find_observers(settings).items()},
        drafts=Language(_ANY_TEXT).compile(model.vocabulary) if settings.draft else None,
    )
    if plan.prefix and constraint is not None:
        _require_prefix(plan)
    return plan


def _require_prefix(plan: Plan) -> None:
    """Raises ``PrefixError`` if no answer of any length begins with the prefix."""
    matcher, prefix = plan.start(None), plan.prefix
    known = matcher.accept_many(prefix)
    if known < len(prefix):
        why = matcher.explain(prefix[known])
        raise PrefixError(f"no answer begins with the prefix; {why}, after {known} of its {len(prefix)} tokens")


def _observed(plan: Plan) -> Plan:
    """Returns a plan as its observers need it. Raises ``ValueError`` if there is nothing to observe."""
    for each in find_observers(plan.settings).values():
        plan = each.check(plan)
    return plan


@takes_options
def shown_prompt(model: AnyModel, prompt: Prompt, *, schema: Any = None, **options: Unpack[ChatOptions]) -> str:
    """Returns the text that a model reads for a prompt, without generating anything.

    The text is that of the model's chat template, with the schema and the tools as the model is shown them. Special
    tokens stand in it by their names, such as ``<|im_start|>``. Arguments and errors are those of ``complete``.

    With ``draft``, ``DRAFT_PLACE`` stands in the place of the draft, and behind it the text that asks for the answer.

    >>> "Answer with JSON in this format:" in shown_prompt(None, "How old is Ada?", schema=int)
    True
    """
    loaded = as_model(model)
    plan = make_plan(loaded, prompt, schema, options)
    behind = DRAFT_PLACE + loaded.tokenizer.show(plan.request) if plan.request else ""
    return loaded.tokenizer.show(plan.tokens) + behind


def make_plan(model: Model, prompt: Prompt, schema: Any, given: Options, prefill: str = "") -> Plan:
    """Checks the options and tokenizes the prompt, without compiling the schema. Raises the errors of ``complete``.

    ``prefill``: text that the content of the answer begins with. It does not count for ``max_tokens``.
    """
    options: ChatOptions = {**given}  # type: ignore[typeddict-item]
    sampling, settings = split_options(options)
    tools = as_tools(options.get("tools") or ())
    template = model.tool_template if tools else model.chat_template
    form = format_of(model.tokenizer, template, options.get("tool_format"))
    result = result_type(schema)
    material = read_given(options, _said(prompt))
    if result.given is not None:
        result = with_given(result, material)
        schema, options["sources"], options["tables"] = result.schema, None, None
    answer = _make_answer_language(model, schema, options, tools, form, material)
    language = _text_language(schema, options) if answer is None else None
    may_be_text = schema is None and (answer is None or answer.calls is not Calls.REQUIRED)
    if may_be_text and options.get("max_reasoning_tokens") is None:  # reasoning is cut like text
        settings = replace(settings, max_reasoning_tokens=settings.max_tokens or None)
    refuse_together(
        draft=settings.draft,
        schema=schema is not None,
        tools=bool(tools),
        thinking=options.get("thinking") is True,
        unbias=settings.unbias,
        reply=answer is not None,
        checks=bool(settings.retries or settings.checks),
        json_schema=result.document is not None,
    )
    if settings.draft:
        options.pop("thinking", None)
    variables, wants_reasoning = switch_reasoning(
        form.thinking, template, options, by_default=schema is None and not settings.draft
    )
    if result.source is not None:
        result = replace(result, source=result.source.for_question("\n".join(map(str, _said(prompt)[PROMPT]))))
    about_schema = _describe_answer(
        settings, result, has_tools=bool(tools), allow_refusal=bool(options.get("allow_refusal"))
    )
    render = partial(
        conversation_prompt,
        model.tokenizer,
        template,
        prompt,
        tools=tools,
        form=form,
        variables=variables,
        shown=about_schema,
        draft=_draft_words(has_tools=bool(tools), is_shown=bool(about_schema)) if settings.draft else None,
    )
    prompted = _render_tools(render, model, tools, settings.tools_shown)
    if settings.draft and prompted.thinking is ThinkingState.OPEN:
        raise DraftError("this model reasons before each answer, so it needs no draft; leave draft out")

    def shown() -> dict[str, str]:
        shown_tools = [function_of(tool) for tool in tools]
        if prompted.introduce is not None:
            shown_tools = [list_name(tool) for tool in shown_tools]
        return {SCHEMA: about_schema, TOOLS: "\n".join(map(json.dumps, shown_tools))}

    if answer is not None:
        answer = replace(answer, reasoning=read_reasoning(prompted.thinking, wanted=wants_reasoning))
    prefix = prefill_tokens(answer, model.vocabulary, prefill) if prefill else _read_prefix(settings, model)
    if prefill and settings.max_tokens is not None:
        settings = replace(settings, max_tokens=settings.max_tokens + len(prefix))
    plan = Plan(
        model,
        language,
        prompted.tokens,
        _text_progress(result, settings, language),
        sampling,
        settings,
        result,
        shown=shown,
        request=prompted.request,
        shared=_shared(settings, prompted.tokens, prompted.count_shared),
        is_greedy=language is not None and not settings.draft and leaves_temperature_open(options),
        prefix=prefix,
        given=material,
    )
    if answer is None:
        return _observed(plan)
    by_name = {tool.name: tool for tool in tools}
    is_free = schema is None and answer.calls is Calls.NONE
    is_greedy = not is_free and not settings.draft and answer.reasoning is Reasoning.NONE
    reply = partial(ReplyProgress, answer, by_name, result, settings.stops, prompted.tokens, wants_reply=bool(tools))
    plan = replace(
        plan,
        language=Language(answer),
        progress=reply,
        tools=by_name,
        call_or_content=make_call_or_content(answer, model.vocabulary),
        is_greedy=is_greedy and leaves_temperature_open(options),
        may_be_cut=may_be_text,
        insertion=prompted.introduce and partial(Introductions, answer, model.vocabulary, prompted.introduce),
    )
    return _observed(plan)


def _render_tools(
    render: Callable[..., RenderedPrompt], model: Model, tools: Sequence[Tool], shown: str
) -> RenderedPrompt:
    """Returns the prompt of a conversation, with the definitions or the names of its tools.

    ``"auto"`` shows all definitions to templates without a place for those of called tools. Raises ``ModelError``.
    """
    if tools and (shown == "names" or (shown == "auto" and exceed_share(model, tools))):
        try:
            return render(by_name=True)
        except ModelError:
            if shown == "names":
                raise
    return render()


def _draft_words(*, has_tools: bool, is_shown: bool) -> DraftWords:
    """Returns the texts of a conversation with a draft; they are the same for every ``tool_choice``."""
    answer = "give the answer in the format above" if is_shown else "answer" if has_tools else "give the answer"
    return DraftWords(_THINK, f"Now call a tool, or {answer}." if has_tools else f"Now {answer}.")


def _make_answer_language(
    model: Model,
    schema: Any,
    options: ChatOptions,
    tools: Sequence[Tool],
    form: ToolFormat,
    given: Given,
) -> AnswerLanguage | None:
    """Returns the language of an answer with calls, refusals or reasoning; None if the answer can only be a text.

    The result says nothing about a reasoning section yet: the prompt decides whether there is one.
    """
    choice = read_choice(options.get("tool_choice"), tools)
    is_parallel = _is_parallel(options.get("parallel_tool_calls"))
    if not (tools or options.get("allow_refusal") or form.thinking or form.content):
        return None
    content = _content_language(schema, strict=options.get("strict", False))
    return AnswerLanguage(
        form,
        special=_find_special_tokens(form, model.vocabulary.special_tokens),
        tools=tuple(_make_calls(tool, given) for tool in tools),
        calls=choice.calls,
        allowed=choice.allowed,
        parallel=is_parallel and not choice.single,
        content=content,
        refusal=bool(options.get("allow_refusal")),
        policies=_read_policies(options, content, tools),
        registry=options.get("registry"),
    )


def plan_continuation(model: Model, tokens: list[int], schema: Any, options: Options) -> Plan:
    """Plans an answer that continues the given tokens: no chat template is applied and the schema is not shown."""
    sampling, settings = split_options(options)
    result = result_type(schema)
    given = read_given(options)
    if result.given is not None:
        result = with_given(result, given)
        schema, options = result.schema, {**options, "sources": None, "tables": None}
    language = _text_language(schema, options)
    progress = _text_progress(result, settings, language)
    is_greedy = language is not None and leaves_temperature_open(options)
    shared = _shared(settings, tokens, lambda: 0)
    return _observed(
        Plan(
            model,
            language,
            tokens,
            progress,
            sampling,
            settings,
            result,
            shared=shared,
            is_greedy=is_greedy,
            prefix=_read_prefix(settings, model),
            given=given,
        )
    )


def _read_prefix(settings: AnswerSettings, model: Model) -> tuple[int, ...]:
    """Returns the token ids of ``prefix``. Raises ``PrefixError`` and ``TypeError``."""
    given, vocabulary = settings.prefix, model.vocabulary
    if isinstance(given, str):
        assert vocabulary.encode is not None
        return tuple(vocabulary.encode(given.encode("utf-8", "surrogatepass")))
    tokens = tuple(integer("a token id of prefix", token) for token in given)
    for token in tokens:
        if not 0 <= token < vocabulary.n_vocab:
            raise PrefixError(f"prefix has the token id {token}; the model has {vocabulary.n_vocab} tokens")
        if token in vocabulary.eos:
            raise PrefixError(f"prefix has the token id {token}, which ends an answer; leave it out")
    return tokens


def prefill_tokens(answer: AnswerLanguage | None, vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    """Returns the token ids of the beginning of an answer whose content begins with a text.

    ``answer``: language of the answer; ``None`` for one that is only text.
    """
    before = ""
    assert vocabulary.encode is not None
    if answer is not None and answer.reasoning is Reasoning.OPENED and answer.format.thinking is not None:
        before += answer.format.thinking.end
    if answer is not None and answer.format.content is not None:
        before += answer.format.content.begin
    tokens = structure_tokens(before, () if answer is None else answer.special, vocabulary)
    return (*tokens, *vocabulary.encode(text.encode("utf-8", "surrogatepass")))


def _shared(settings: AnswerSettings, tokens: Sequence[int], count: Callable[[], int]) -> Callable[[], int] | None:
    """Returns ``Plan.shared`` for the option ``cache_prompt``; ``count`` counts what requests share by default."""
    if settings.cache_prompt is False:
        return None
    return count if settings.cache_prompt is True else lambda: len(tokens)


def _text_language(schema: Any, options: Options) -> Language | None:
    """Returns the language of an answer without calls; None for free text."""
    policies = compile_options(options, schema)
    return None if schema is None else Language(schema, policies)


def _text_progress(
    result: ResultType, settings: AnswerSettings, language: Language | None
) -> Callable[[int, TextTokens | None], Progress]:
    def progress(_: int, tokens: TextTokens | None) -> Progress:
        return TextProgress(result, settings.stops, tokens, cuts=language is None)

    return progress


def _said(prompt: Prompt) -> dict[str, Texts]:
    """Returns the user's messages as a source of quotes."""
    return {PROMPT: tuple(message.content for message in conversation(prompt) if message.role == "user")}


def _make_calls(tool: Tool, given: Given) -> FunctionCalls | CustomCalls:
    """Describes the calls of a tool for the grammar of the answer: its name, and the language of its arguments."""
    if isinstance(tool, FunctionTool):
        text = tool.schema_text
        if may_have_quotes(text) and has_folded_quotes(parse_schema(text)):
            raise UnsupportedSchemaError(f"the tool {tool.name} has a quote with fold, which only content may have")
        return FunctionCalls(tool.name, given.bind(text), typed=tool.signature is not None)
    return CustomCalls(tool.name, tool.format)


def _content_language(schema: JsonSchema | Source | Grammar | None, *, strict: bool) -> Value | Source | None:
    """Returns the language of content next to calls.

    Raises the errors of ``complete`` for the schema, ``strict`` included.
    """
    if schema is None or isinstance(schema, Source | Grammar):
        refuse_compile_options({"strict": strict}, "schema is none; tools say for themselves whether they are strict")
        part = schema if schema is None else as_part(schema, "schema")
        assert part is None or isinstance(part, Source)
        return part
    if strict:
        from constrain.json_schema.strict.subset import require_strict

        require_strict(parse_schema(schema.text))
    return Value(schema.text, typed=schema.is_typed)


def _is_parallel(given: object) -> bool:
    if given is not None and not isinstance(given, bool):
        raise TypeError(f"parallel_tool_calls is {given!r}; it must be True or False")
    return given is not False


def _read_policies(options: ChatOptions, content: object, tools: Sequence[Tool]) -> Policies:
    """Returns the policies for arguments and content. Raises ``ValueError`` for policies that do not apply."""
    given: Mapping[str, Any] = {**DEFAULTS, **GENERATION, **options}
    refuse_together(registry=given["registry"] is not None, json_schema=isinstance(content, Value))
    if not isinstance(content, Value) and not any(isinstance(tool, FunctionTool) for tool in tools):
        asked = {name: given[name] for name in (*CHOICES, *GIVEN) if name in options}
        refuse_compile_options(asked, "there is none: neither schema nor a tool has one")  # type: ignore[arg-type]
    return Policies(**{name: given[name] for name in CHOICES}, close_objects=True)


def _describe_answer(settings: AnswerSettings, result: ResultType, *, has_tools: bool, allow_refusal: bool) -> str:
    """Returns the text about content in the prompt.

    It is the same for every ``tool_choice``, so that turns share a prefix.
    """
    shown = settings.describe_schema(result)
    if not shown:
        return ""
    if allow_refusal:
        shown += f'\nIf you cannot answer, write "{REFUSAL}" and the reason instead.'
    return f"{_IF_NO_CALL}{shown}" if has_tools else shown


def _find_special_tokens(form: ToolFormat, special_tokens: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the names of the special tokens that the structure of a form contains."""
    structure = "\0".join(_texts(form))
    return tuple(sorted(name for name in special_tokens if name in structure))


def _texts(form: ToolFormat | Thinking | Section) -> Iterator[str]:
    for field in fields(form):
        value = getattr(form, field.name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, Thinking | Section):
            yield from _texts(value)
