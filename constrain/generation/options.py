"""The options of answers in groups, and the keyword arguments that all ways to generate share.

A new option is a field of a group, with its meaning in the group's docstring, and a key of a ``TypedDict``, from which
type checkers take its type.
"""

from __future__ import annotations

import inspect
import numbers
import operator
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar

from constrain.arguments import Flag, Option, lists_options, meanings_of, option, options_of
from constrain.errors import DraftError
from constrain.generation.exclusions import MIN_VOTERS, RULES, describe, refuse_together
from constrain.language.grammar import Grammar
from constrain.language.policies import CompileOptions, Compiling, refuse_compile_options
from constrain.language.source import Source
from constrain.llama.decoding.sampling import NEUTRAL, Sampling, is_neutral
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.language.result import ResultType

    AnyTools = Sequence[Tool | Callable[..., Any] | Mapping[str, Any]]


MAX_NUMBER_TOKENS = 64
"""Default of ``max_number_tokens``: tokens of one number, after which masks allow only tokens that end it.

A token has at least one digit. A 64-bit float needs at most 17 significant digits, a 128-bit integer 39.
"""

TOP_LOGPROBS = (0, 20)
"""Least and greatest ``top_logprobs``, as at OpenAI."""


TOOLS_SHOWN = ("auto", "names", "all")
"""Values of the option ``tools_shown``."""

WHOLE_PROMPT = "whole"
"""Value of the option ``cache_prompt`` that keeps all of a prompt."""

WITH_PROMPT = "prompt"
"""Value of the option ``certificate`` that also keeps the token ids of the prompt."""


class Options(CompileOptions, total=False):
    """Keyword arguments of ``generate``, ``complete``, ``stream`` and their variants; all are optional.

    Unknown names raise ``TypeError``, values out of range ``ValueError``.
    """

    max_tokens: int | None
    max_string_tokens: int | None
    max_number_tokens: int | None
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int | None
    stop: str | Sequence[str]
    logit_bias: Mapping[int, float]
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    repeat_last_n: int | None
    repetition_penalty: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    dynatemp_range: float
    dynatemp_exponent: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breakers: Sequence[str]
    samplers: str | Sequence[str]
    logprobs: bool
    top_logprobs: int
    confidence: bool
    trace: bool
    certificate: bool | Literal["prompt"]
    prefix: str | Sequence[int]
    unbias: bool
    cache_prompt: bool | Literal["whole"]
    timeout: float | None
    retries: int
    checks: Mapping[str, Callable[[Any], object]]
    show_schema: bool | str
    draft: bool | int


class ValueOptions(Options, total=False):
    """The keyword arguments of ``ChatOptions`` that do not change the type of an answer's value."""

    tool_choice: Any
    tools_shown: Literal["auto", "names", "all"]
    parallel_tool_calls: bool
    tool_format: str | None
    thinking: bool | Literal["adaptive"] | None
    max_reasoning_tokens: int | None
    reasoning_effort: str | None
    template_variables: Mapping[str, Any]


class VotedOptions(ValueOptions, total=False):
    """``ValueOptions``, and the keyword arguments of an answer by vote."""

    n: int | None
    vote: bool


class ChatOptions(ValueOptions, total=False):
    """``Options``, and keyword arguments for tools, refusals and reasoning; all are optional."""

    tools: Sequence[Tool | Callable[..., Any] | Mapping[str, Any]]
    allow_refusal: bool


AnyOptions = TypeVar("AnyOptions", bound=Options)


def leaves_temperature_open(options: Options) -> bool:
    """Returns whether options say nothing about how tokens are sampled, so that the most likely ones may be taken."""
    given: Mapping[str, Any] = options
    says_how = given.keys() & {"temperature", "top_p", "top_k", "min_p"} or any(
        name in given and not is_neutral(name, given[name]) for name in _DRAWING
    )
    return not options.get("unbias") and not says_how


def split_options(options: Options) -> tuple[Sampling, AnswerSettings]:
    """Splits options into sampling and settings of an answer; leaves out options for compiling and conversations.

    Raises ``TypeError`` and ``ValueError``.
    """
    given: dict[str, Any] = {name: _read(name, value) for name, value in options.items()}
    if unknown := given.keys() - ChatOptions.__annotations__.keys():
        raise TypeError(unknown_names("options", unknown, ChatOptions.__annotations__, _INSTEAD))
    chosen = {key: given.pop(key) for key in _SAMPLING_KEYS & given.keys()}
    sampling = Sampling(**(_unbiased(chosen) if given.get("unbias") else chosen))
    return sampling, AnswerSettings(**{key: value for key, value in given.items() if key in _SETTINGS_KEYS})


_INSTEAD = {
    **dict.fromkeys(
        ("response_format", "response_model", "output_type", "json_schema", "guided_json", "format"),
        "write schema=, with a class or a JSON Schema",
    ),
    **dict.fromkeys(("regex", "pattern", "guided_regex"), "write schema=constrain.Regex(...)"),
    **dict.fromkeys(("grammar", "guided_grammar"), "write schema=constrain.Lark(...) or constrain.Gbnf(...)"),
    **dict.fromkeys(("choices", "guided_choice"), "write schema=typing.Literal[...], or call constrain.choose"),
    **dict.fromkeys(("max_completion_tokens", "num_predict", "n_predict", "max_length"), "write max_tokens="),
    **dict.fromkeys(("system", "system_prompt"), 'write prompt=[{"role": "system", "content": ...}, ...]'),
    **dict.fromkeys(("n_ctx", "n_threads", "n_gpu_layers"), "it is an option of constrain.Model"),
    "messages": "they are the prompt",
    "stream": "call constrain.stream",
    "functions": "write tools=",
}
"""Names of options in other programs, and what to write in their place."""

MODELS_OWN: dict[str, Any] = {**NEUTRAL, "logit_bias": {}}
"""Options for sampling from the model's own distribution, as ``unbias`` does."""


def _unbiased(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options for sampling with ``unbias``. Raises ``ValueError`` for others than the model's own."""
    others = {name: value != MODELS_OWN[name] for name, value in given.items() if name in MODELS_OWN}
    refuse_together(unbias=True, **others)
    return {**MODELS_OWN, **given}


def add_defaults(defaults: AnyOptions, given: ChatOptions) -> ChatOptions:
    """Returns options with defaults for missing ones. With ``unbias``, sampling has no other default than the seed."""
    used = {name: value for name, value in defaults.items() if not (given.get("unbias") and name in MODELS_OWN)}
    return {**used, **given}  # type: ignore[typeddict-item]


def read_voters(options: Options, n: int | None = None, *, vote: bool = False) -> int | None:
    """Returns the number of answers that vote on one answer; None without a vote. Raises ``ValueError``.

    ``options``: options of the answer, some of which need a vote, and others exclude it.
    """
    asked = {name: options.get(name) for name in ("unbias", "certificate")}
    refuse_together(n=n is not None, vote=vote, voters=(n or 0) >= MIN_VOTERS, **asked)
    return n


def _read(name: str, value: Any) -> Any:
    """Returns an option with any numeric type converted to a plain number. Raises ``TypeError``."""
    if name == "draft":
        return _read_draft(value)
    declared = OPTIONS.get(name)
    if declared is None or not declared.is_number or (value is None and declared.may_be_none):
        return value
    if not isinstance(value, bool):
        if not declared.is_whole and isinstance(value, numbers.Real):
            return float(value)
        if declared.is_whole and isinstance(value, SupportsIndex):
            return operator.index(value)
    what = "a whole number" if declared.is_whole else "a number"
    raise TypeError(f"{name} is {value!r:.80}; it must be {what}{' or None' if declared.may_be_none else ''}")


def _read_draft(value: Any) -> bool | int:
    if isinstance(value, bool):
        return value
    if not isinstance(value, SupportsIndex):
        raise TypeError(f"draft is {value!r:.80}; it must be True, False or a whole number of tokens")
    return operator.index(value)


def is_json_schema(schema: object) -> bool:
    """Returns whether a schema is a JSON Schema or a type."""
    return not (schema is None or isinstance(schema, Grammar | Source))


def compile_options(options: Options, schema: object) -> CompileOptions:
    """Returns the options for compiling. Raises ``ValueError`` for options that do not apply to ``schema``."""
    ours: CompileOptions = {key: value for key, value in options.items() if key in _COMPILE_KEYS}  # type: ignore[assignment]
    if schema is None:
        refuse_compile_options(ours, "there is no schema")
    return ours


def options_beside(options: AnyOptions, schema: object) -> AnyOptions:
    """Returns the options for one answer of several.

    Policies are dropped if its schema is not a JSON Schema, and ``draft`` if it is free text.
    """
    if is_json_schema(schema):
        return options
    # Arguments of tools are JSON, so tools need policies with every schema.
    about_schema = {"strict", "registry", "sources", "tables"} if options.get("tools") else _COMPILE_KEYS
    if schema is None and not options.get("tools"):
        about_schema = {*about_schema, "draft"}
    others: AnyOptions = {key: value for key, value in options.items() if key not in about_schema}  # type: ignore[assignment]
    return others


_DRAWING = ("typical_p", "top_n_sigma", "xtc_probability", "dynatemp_range", "mirostat")
"""Further options that say how tokens are sampled, unless they have no effect."""


def _require_flag(name: str, value: object, text: str) -> None:
    """Raises ``ValueError`` unless a value is ``True``, ``False`` or a text."""
    if not (isinstance(value, bool) or value == text):
        raise ValueError(f"{name} is {value!r:.80}; it must be True, False or {text!r}")


@dataclass(frozen=True)
class Limits:
    """The beginning, the length and the end of an answer.

    Attributes:
        prefix: beginning of the answer, which it keeps: a text or token ids; empty by default. A text is split into
            tokens as it is. The prefix counts for ``max_tokens``, and for the probabilities in ``fields`` and
            ``log_mass``. ``PrefixError``, a ``ValueError``, if no answer begins like this.
            ``run_tools`` gives it to the first answer only.
        max_tokens: the most tokens of the answer, without the end of generation; ``None`` (the default) for the rest of
            the context. An answer with a schema is complete within the limit: at it, open strings end after their last
            whole word, and arrays and objects are closed. ``BudgetError`` if no answer fits. Free text is cut, even
            before its beginning.
        max_string_tokens: soft limit on the tokens of one string; ``None`` (the default) for no limit. It stops models
            that repeat themselves inside a string. At the limit the string ends after its current word, or after the
            word before it if that takes more than 8 further tokens. A string that the schema requires to be longer
            gets the length it needs. Keys that the schema does not name are limited, too; constants are not.
        max_number_tokens: soft limit on the tokens of one number (64); ``None`` for no limit. It stops models that
            write digits without end: a 64-bit float needs at most 17 digits, a 128-bit integer 39.
        max_reasoning_tokens: soft limit on the tokens of the reasoning. ``None`` (the default) is half of
            ``max_tokens`` for answers with a schema or a required call, and otherwise no limit: reasoning and text are
            cut where ``max_tokens`` are used up.
        stop: a text or a list of texts that end the answer. Without a schema, the answer is cut before the text. With a
            schema, the answer is completed as briefly as possible from there, so that it stays valid.
        timeout: seconds after which the answer is completed as briefly as possible (without a schema, it ends at once);
            ``None`` (the default) for no limit. They count from when the model begins with the prompt; waiting for
            other answers does not count.
        retries: how often one field of a JSON answer may be written again because a validator rejects it; 0 by default.
            With 1 or more, the validators of a type judge each field, item and model as soon as it is complete; what
            they reject is written again, and of a model only the field that ``RejectedFieldError`` names.
            ``Completion.retried`` tells what was rejected; after 10 retries in an answer, or ``retries`` of one field,
            ``OutputValidationError`` is raised.
        checks: functions that judge parts of a JSON answer, by JSON Pointer (``*`` for any key or position), as soon as
            they are complete; empty by default. A function takes the part as parsed JSON, and rejects it by ``False``,
            ValueError or AssertionError: then it is written again (``retries``).
    """

    prefix: str | Sequence[int] = option(())
    max_tokens: int | None = option(
        None,
        Flag("Tokens that the answer may have.", least=1),
        least=0,
        fields=("max_completion_tokens", "max_output_tokens", "max_tokens"),
    )
    max_string_tokens: int | None = option(None, Flag("Tokens after which a string is ended."), least=1)
    max_number_tokens: int | None = option(
        MAX_NUMBER_TOKENS, Flag("Tokens after which a number is ended; 0 for no limit.", least=0), least=1
    )
    max_reasoning_tokens: int | None = option(None, least=1, fields=("thinking_budget", "reasoning.max_tokens"))
    stop: str | Sequence[str] = option((), fields=("stop", "stop_sequences"))
    timeout: float | None = option(None, Flag("Seconds after which the answer is ended early."), least=0)
    retries: int = option(0, least=0, in_batch=False)
    checks: Mapping[str, Callable[[Any], object]] = option({}, in_batch=False)


@dataclass(frozen=True)
class Prompting:
    """The prompt.

    Attributes:
        show_schema: whether the prompt shows the schema to the model (``True``): as a short text in front of the first
            user message, with a reminder in later ones. A text of your own that contains ``{schema}`` replaces it.
        tools_shown: what the prompt shows of the tools. ``"names"``: their names, each with a few words; once the model
            has written the name of a tool, it is shown this tool's description and parameters, and goes on with the
            call. ``"all"``: all descriptions and parameters. ``"auto"`` (the default): the names if the rest would take
            more than a quarter of the context, and the model's chat template allows it.
        cache_prompt: what the prompt cache of the ``Model`` keeps on disk, for later processes. ``True`` (the default)
            keeps what other requests share: all in front of the text of the user's last message (system prompt, tools,
            schema, earlier turns), if it is long. ``"whole"`` keeps the whole prompt, for prompts that are one long
            text with a changing end. ``False`` marks the request as private: nothing of it is written to disk, and
            nothing is read from there.
        draft: whether the model first thinks in plain text, and then writes the answer in view of this draft; ``False``
            by default. ``True`` allows 256 tokens, but at most half of all; a number is its limit. The draft counts
            for ``max_tokens``, and leaves enough of it for an answer. A draft has half of the ``timeout`` at most.
            ``Completion.draft`` has its text.
    """

    show_schema: bool | str = option(True, Flag("Whether the prompt shows the schema."))
    tools_shown: Literal["auto", "names", "all"] = option(
        "auto",
        Flag("Show tools whole, or their names and each one once it is called."),
        choices=TOOLS_SHOWN,
    )
    cache_prompt: bool | Literal["whole"] = option(
        True,
        Flag("Neither keep anything of the prompts on disk nor read it from there.", "no_prompt_cache", sets=False),
        Flag("Keep whole evaluated prompts on disk, not only what others share.", "cache_whole_prompt", WHOLE_PROMPT),
    )
    draft: bool | int = option(
        False,
        Flag("Have the model think in plain text before it writes the answer.", sets=True),
        Flag("The same, with this number of tokens at most.", "draft_tokens", least=1, default="256, at most half"),
    )


@dataclass(frozen=True)
class Reports:
    """Probabilities and proofs.

    Attributes:
        logprobs: whether to report the natural logarithm of the probability of each token, in ``Completion.logprobs``
            and ``TextDelta.logprobs``; ``False`` by default. Answers stay the same, but for ties, and take somewhat
            longer: the model also computes the probabilities of forced tokens.
        top_logprobs: number of most likely tokens to report at each position, 0 (the default) to 20.
        confidence: whether to report, in ``Completion.fields``, how likely each part of the answer was, and what else
            was likely; ``False`` by default. Answers stay the same, but for ties, and take somewhat longer: the model
            also computes the probabilities of forced tokens.
        trace: whether to report, in ``Completion.trace`` and ``TraceDelta``, what was known in the place of each token:
            how many tokens were allowed, what the model and the grammar expected; ``False`` by default. Answers stay
            the same, but for ties, and take somewhat longer.
        certificate: whether ``Completion.certificate`` has a proof, which anyone can check, that the answer is one of
            its schema or grammar; ``False`` by default. ``True`` keeps only the hash of the prompt; ``"prompt"`` also
            its token ids, with which ``constrain verify`` can repeat the answer. Answers stay the same. The first
            certificate of a model reads the whole file, for its hash.
        unbias: whether each answer that votes is weighted by the share of the probability that the constraint left
            (importance sampling), so that the vote stands for the model's own distribution; ``False`` by default. The
            answers are then sampled from this distribution, at temperature 1.
    """

    logprobs: bool = option(False)
    top_logprobs: int = option(0, least=TOP_LOGPROBS[0], most=TOP_LOGPROBS[1])
    confidence: bool = option(
        False, Flag("Report how likely each part of the answer was, and what else was.", sets=True)
    )
    trace: bool = option(False, in_batch=False)
    certificate: bool | Literal["prompt"] = option(False)
    unbias: bool = option(False, Flag("Weight the answers that vote, to undo the bias of the masks.", sets=True))


@dataclass(frozen=True)
class Conversation:
    """Tools, refusals and reasoning.

    Attributes:
        tools: tools that the model may call, in the order in which the prompt shows them: functions, results of
            ``tool``, ``CustomTool`` objects, or JSON objects as OpenAI defines them. With tools, the value of the
            answer is a ``Reply``.
        tool_choice: ``"auto"`` (the default) lets the model choose between content and calls, ``"required"`` demands
            calls, ``"none"`` forbids them. A tool or its name demands one call of this tool; a list demands calls
            of tools in the list. A JSON object as OpenAI defines it is accepted, too.
        parallel_tool_calls: whether an answer may have several calls (``True``), if the model's family can write
            several. A fifth call of the same tool with the same arguments ends the answer.
        tool_format: name of the form in which calls are written, such as ``"hermes"`` or ``"llama3-json"``; ``None``
            (the default) for the form of the model's chat template.
        allow_refusal: whether the model may answer with a ``Refusal`` instead of a value of ``schema``; ``False`` by
            default.
        thinking: whether a model that can reason does so before its answer; ``None`` (the default) for only if there
            is no schema; ``"adaptive"`` for whenever the model likes. A ``draft`` takes the place of the reasoning.
        reasoning_effort: how much a model that can reason does so: ``"none"``, ``"minimal"``, ``"low"``, ``"medium"``,
            ``"high"``, ``"xhigh"`` or ``"max"``; ``None`` (the default) leaves it to the model. A template with a
            variable of this name gets the word, or the nearest of ``"low"``, ``"medium"`` and ``"high"``. Each but
            ``"none"`` is a wish to reason, unless ``thinking`` says otherwise.
        template_variables: variables for the model's chat template, by name, such as ``{"enable_thinking": False}``;
            empty by default. Those that turn reasoning on or off take the place of ``thinking``.
    """

    tools: Sequence[Tool | Callable[..., Any] | Mapping[str, Any]] = option(())
    tool_choice: Any = option("auto")
    parallel_tool_calls: bool = option(True)
    tool_format: str | None = option(None)
    allow_refusal: bool = option(False)
    thinking: bool | Literal["adaptive"] | None = option(None, fields=("thinking", "enable_thinking", "think"))
    reasoning_effort: str | None = option(None, fields=("reasoning_effort", "reasoning.effort"))
    template_variables: Mapping[str, Any] = option({}, fields=("chat_template_kwargs",))


@dataclass(frozen=True)
class AnswerSettings(Limits, Prompting, Reports):
    """The checked options of one answer, except those for sampling."""

    stops: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not (value >= least and (most is None or value <= most)):
                seconds = " seconds" if name == "timeout" else ""
                said = f"{least}{seconds} or more" if most is None else f"{least} to {most}"
                raise ValueError(f"{name} is {value}; it must be {said}")
        if self.max_reasoning_tokens is None and self.max_tokens is not None:
            object.__setattr__(self, "max_reasoning_tokens", max(1, self.max_tokens // 2))
        if self.draft is not True and self.draft is not False:
            if self.draft < 1:
                raise DraftError(f"draft is {self.draft}; it must be True, False, or 1 token or more")
            if self.max_tokens is not None and self.draft >= self.max_tokens:
                raise DraftError(
                    f"draft is {self.draft} and max_tokens is {self.max_tokens}; max_tokens counts the draft and the "
                    "answer, so it must be greater"
                )
        refuse_together(prefix=self.prefix, draft=self.draft)
        refuse_together(top_logprobs=self.top_logprobs, logprobs=self.logprobs)
        if self.tools_shown not in TOOLS_SHOWN:
            raise ValueError(f"tools_shown is {self.tools_shown!r:.80}; it must be 'auto', 'names' or 'all'")
        _require_flag("cache_prompt", self.cache_prompt, WHOLE_PROMPT)
        _require_flag("certificate", self.certificate, WITH_PROMPT)
        stops = (self.stop,) if isinstance(self.stop, str) else self.stop
        stops = tuple(stops) if isinstance(stops, Iterable) else (stops,)
        if not all(isinstance(text, str) for text in stops):
            raise TypeError(f"stop is {self.stop!r:.80}; it must be a text or a list of texts")
        if "" in stops:
            raise ValueError("stop contains an empty text, which would end every answer at once")
        object.__setattr__(self, "stops", stops)
        if isinstance(self.show_schema, str) and "{schema}" not in self.show_schema:
            raise ValueError("show_schema is a text without {schema}; write {schema} where the schema belongs")

    def describe_schema(self, result: ResultType) -> str:
        """Returns the text about the schema that the prompt shows."""
        from constrain.json_schema import hint

        if self.show_schema is False or (result.document is None and result.source is None):
            return ""
        if self.show_schema is True:
            return hint.describe(result.document) if result.source is None else result.source.describe()
        rendered = hint.render(result.document) if result.source is None else result.source.render()
        return self.show_schema.replace("{schema}", rendered)


class _Varying(float):
    """A default that depends on the other options; 0 or this number."""

    def __repr__(self) -> str:
        return f"0 or {float(self)}"


GROUPS = (Limits, Sampling, Prompting, Reports, Compiling, Conversation)
"""All groups of options."""

OPTIONS: dict[str, Option] = {name: each for group in GROUPS for name, each in options_of(group).items()}
"""The declarations of all options, by name."""

MAY_BE_NONE = frozenset(name for name, each in OPTIONS.items() if each.may_be_none)
"""Options that may be ``None``; in JSON, where null otherwise means that a field is missing, null is ``None`` there."""

_COMPILE_KEYS = frozenset(options_of(Compiling))
_SAMPLING_KEYS = frozenset(options_of(Sampling))
_SETTINGS_KEYS = frozenset(options_of(AnswerSettings))
_RANGES: dict[str, tuple[Any, Any]] = {
    name: OPTIONS[name].range for name in OPTIONS if name in _SETTINGS_KEYS and OPTIONS[name].is_number
}

OPTION_DEFAULTS: dict[str, Any] = {
    **{name: each.default for name, each in OPTIONS.items()},
    "temperature": _Varying(Sampling().temperature),
}
"""The default of each option, for signatures and documentation."""


def _meanings() -> Iterator[tuple[str, str]]:
    """Yields what docstrings say about each option, with the options that it needs and excludes."""
    for group in GROUPS:
        for name, entry in meanings_of(group).items():
            told = [(describe(rule), rule.why) for rule in RULES if rule.option == name and (rule.python or rule.field)]
            rules = [f"{said[0].upper()}{said[1:]}: {why}." for said, why in told]
            more = " ".join(rules).replace("`", "``")
            yield name, "\n".join((entry, *textwrap.wrap(more, 112, initial_indent=" " * 8, subsequent_indent=" " * 8)))


MEANINGS = dict(_meanings())
"""What is to be known about each option; entries about several options are those of each."""


def _about(names: Iterable[str]) -> str:
    """Returns the entries about some options, in the order of the groups."""
    kept = set(names)
    return "\n".join(dict.fromkeys(entry for name, entry in MEANINGS.items() if name in kept))


takes_options = lists_options(ChatOptions, OPTION_DEFAULTS, f"Options:\n{_about(OPTIONS)}")
"""Decorator of the functions that take ``ChatOptions``: ``help`` lists the options with their meaning."""

_OWN = {"Options": Options.__annotations__, "ChatOptions": ChatOptions.__annotations__.keys() - Options.__annotations__}
for _kind in (Options, ChatOptions):  # for readers of the reference; type checkers read the annotations
    _first, _, _rest = inspect.cleandoc(_kind.__doc__ or "").partition("\n\n")
    _kind.__doc__ = "\n\n".join((_first, f"Attributes:\n{_about(_OWN[_kind.__name__])}", _rest)).rstrip()
