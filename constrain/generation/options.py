"""The options that all ways to generate share."""

from __future__ import annotations

import numbers
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from constrain.language.grammar import Grammar
from constrain.language.policies import CompileOptions, refuse_compile_options
from constrain.language.source import Source
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.language.result import ResultType
    from constrain.llama.decoding.sampler import Sampling


MAX_NUMBER_TOKENS = 64
"""Tokens of one number, unless ``max_number_tokens`` is given. A token is at least one digit; a 64-bit float has at
most 17 significant digits, a 128-bit integer 39. Beyond this, the number is ended.
"""

MAX_TOP_LOGPROBS = 20
"""Alternatives with log-probabilities that a request may ask for per token, as at OpenAI. Beyond: ValueError, or status
400.
"""


class Options(CompileOptions, total=False):
    """The keywords that ``generate``, ``complete`` and ``stream`` share; all may be left out.

    Attributes:
        max_tokens: most tokens to generate, end of generation not counted; by default what is left of the context. An
            answer with a schema is always complete: where the limit comes near, words are finished and open strings,
            arrays and objects are closed.
        max_string_tokens: soft limit on the tokens of one string, so that a model that loops in one comes out of it;
            none by default. Beyond it no word is begun in the string any more, and within 8 more tokens the string is
            closed. Where the schema wants a longer string, it becomes longer. Keys that the schema does not name are
            strings, too.
        max_number_tokens: soft limit on the tokens of one number (64); ``None`` for no limit. No number that is written
            on purpose takes as many.
        temperature: divisor of the logits (0.8). 0 takes the most likely allowed token; then ``top_p``, ``top_k``,
            ``min_p`` and ``seed`` have no effect.
        top_p: sample from the most likely tokens that together have this probability (0.95); 1 for all.
        top_k: sample from this many of the most likely tokens (40); 0 for all.
        min_p: sample from the tokens that are at least this times as likely as the most likely one (0.05); 0 for all.
        seed: makes sampling reproducible; 0 to 2**32 - 2. By default each answer has a fresh one.
        stop: a text or texts that end the answer. Without a schema the answer is cut before them. With one it goes
            on to its shortest end, since it could not be valid otherwise.
        logit_bias: added to the logits of these token ids; may be infinite.
        repeat_penalty: divisor of the logits of tokens among the last 64 of the answer; 1 (the default) for none.
        presence_penalty: subtracted from the logits of tokens that the answer has already; -2 to 2, 0 (the default)
            for none.
        frequency_penalty: subtracted from the logits of tokens, as often as the answer has them already; -2 to 2,
            0 (the default) for none.
        logprobs: whether the answer has the log-probabilities of its tokens (``Completion.logprobs``,
            ``TextDelta.logprobs``). Then forced tokens are evaluated one by one, and tokens that are written after a
            ``timeout`` are evaluated, too.
        top_logprobs: number of the most likely tokens that are reported in the place of each token; 0 (the default) to
            20. Needs ``logprobs=True``.
        timeout: seconds after which the answer is brought to its shortest end (without a schema, it just ends). They
            count from the model's turn on, not while other answers are waited for.
        show_schema: whether the prompt shows the schema (``True``), as a short text in front of the user's first
            message, of which later messages get a reminder; or a text of your own in its place, which holds
            ``{schema}``.
        whitespace, property_order, formats, numbers, precision, escapes, strict, registry: as for ``compile``; only
            with a JSON Schema or a type.
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
    logprobs: bool
    top_logprobs: int
    timeout: float | None
    show_schema: bool | str


class ChatOptions(Options, total=False):
    """Keywords for answers that are more than one text or value: calls of tools, reasoning, refusals.

    Attributes:
        tools: functions that the model may call, results of ``tool`` and ``CustomTool``, or JSON objects in OpenAI's
            shape. With them the value is a ``Reply``. The model sees them in this order.
        tool_choice: ``"auto"`` (the default: text or calls), ``"required"`` (calls), ``"none"`` (text); the name of a
            tool, or the tool itself, which is then called once; a list of tools, any of which is called; or a JSON
            object of OpenAI's.
        parallel_tool_calls: whether an answer may hold several calls (``True``, where the model's family has such
            answers). The fifth call of one tool with the same arguments is the last: small models repeat themselves.
        tool_format: the form in which calls are written, by name (``"hermes"``, ``"llama3-json"``, ...); by default
            that of the model's chat template.
        allow_refusal: whether the model may answer with a ``Refusal`` in place of the value of ``schema``.
        thinking: whether a model that can reason before its answer does so; by default only if there is no schema.
        max_reasoning_tokens: soft limit on the tokens of the reasoning; by default half of ``max_tokens``, if there is
            one.
    """

    tools: Sequence[Tool | Callable[..., Any] | Mapping[str, Any]]
    tool_choice: Any
    parallel_tool_calls: bool
    tool_format: str | None
    allow_refusal: bool
    thinking: bool | None
    max_reasoning_tokens: int | None


AnyOptions = TypeVar("AnyOptions", bound=Options)


def split_options(options: Options) -> tuple[Sampling, AnswerSettings]:
    """Splits options into sampling and settings of an answer; leaves out options for compiling and conversations.

    Raises ``TypeError`` and ``ValueError``.
    """
    # Imported here: llama_cpp takes long to import.
    from constrain.llama.decoding.sampler import Sampling

    given: dict[str, Any] = {name: _read(name, value) for name, value in options.items()}
    if unknown := given.keys() - ChatOptions.__annotations__.keys():
        raise TypeError(unknown_names("options", unknown, ChatOptions.__annotations__))
    sampling = Sampling(**{key: given.pop(key) for key in _SAMPLING_KEYS & given.keys()})
    return sampling, AnswerSettings(
        **{key: value for key, value in given.items() if key not in _COMPILE_KEYS | _CHAT_KEYS}
    )


def _read(name: str, value: Any) -> Any:
    """Returns an option with any numeric type converted to a plain number. Raises ``TypeError``."""
    if name not in _COUNTS | _NUMBERS or (value is None and name in MAY_BE_NONE):
        return value
    if not isinstance(value, bool):
        if name in _NUMBERS and isinstance(value, numbers.Real):
            return float(value)
        if name in _COUNTS and isinstance(value, SupportsIndex):
            return operator.index(value)
    what = "a whole number" if name in _COUNTS else "a number"
    raise TypeError(f"{name} is {value!r:.80}; it must be {what}{' or None' if name in MAY_BE_NONE else ''}")


def compile_options(options: Options, schema: object) -> CompileOptions:
    """Returns the options for compiling. Raises ``ValueError`` for options that do not apply to ``schema``."""
    ours: CompileOptions = {key: value for key, value in options.items() if key in _COMPILE_KEYS}  # type: ignore[assignment]
    if schema is None:
        refuse_compile_options(ours, "there is no schema")
    return ours


def options_beside(options: AnyOptions, schema: object) -> AnyOptions:
    """Returns the options for one answer of several: policies are dropped if its schema is not a JSON Schema."""
    if not (schema is None or isinstance(schema, Grammar | Source)):
        return options
    # Arguments of tools are JSON, so tools need policies with every schema.
    about_schema = {"strict", "registry"} if options.get("tools") else _COMPILE_KEYS
    others: AnyOptions = {key: value for key, value in options.items() if key not in about_schema}  # type: ignore[assignment]
    return others


_PENALTIES = ("repeat_penalty", "presence_penalty", "frequency_penalty")
_LIMITS = ("max_tokens", "max_string_tokens", "max_number_tokens", "max_reasoning_tokens")
_COUNTS = frozenset((*_LIMITS, "top_k", "seed", "top_logprobs"))
_NUMBERS = frozenset(("temperature", "top_p", "min_p", "timeout", *_PENALTIES))
MAY_BE_NONE = frozenset((*_LIMITS, "seed", "timeout", "tool_choice", "tool_format", "thinking", "registry"))
"""Options that may be ``None``; in JSON, where null otherwise means that a field is missing, null is ``None`` there."""

_CHAT_KEYS = frozenset(("tools", "tool_choice", "parallel_tool_calls", "tool_format", "allow_refusal", "thinking"))
_COMPILE_KEYS = frozenset(CompileOptions.__annotations__)
_SAMPLING_KEYS = frozenset(("temperature", "top_p", "top_k", "min_p", "seed", "logit_bias", *_PENALTIES))


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """The checked options of one answer, except those for sampling."""

    max_tokens: int | None = None
    max_string_tokens: int | None = None
    max_number_tokens: int | None = MAX_NUMBER_TOKENS
    max_reasoning_tokens: int | None = None
    stop: str | Sequence[str] = ()
    logprobs: bool = False
    top_logprobs: int = 0
    timeout: float | None = None
    show_schema: bool | str = True
    stops: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be 0 or more")
        for name in ("max_string_tokens", "max_number_tokens", "max_reasoning_tokens"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"{name} is {limit}; it must be 1 or more")
        if self.max_reasoning_tokens is None and self.max_tokens is not None:
            object.__setattr__(self, "max_reasoning_tokens", max(1, self.max_tokens // 2))
        if not 0 <= self.top_logprobs <= MAX_TOP_LOGPROBS:
            raise ValueError(f"top_logprobs is {self.top_logprobs}; it must be 0 to {MAX_TOP_LOGPROBS}")
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs needs logprobs=True")
        if self.timeout is not None and not self.timeout >= 0:
            raise ValueError(f"timeout is {self.timeout}; it must be 0 seconds or more")
        stops = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        if "" in stops:
            raise ValueError("stop contains an empty text, which would end every answer at once")
        object.__setattr__(self, "stops", stops)
        if isinstance(self.show_schema, str) and "{schema}" not in self.show_schema:
            raise ValueError("show_schema is a text without {schema}; write {schema} where the schema belongs")

    def describe_schema(self, result: ResultType) -> str:
        """Returns the text about the schema that the prompt shows."""
        from constrain.language import hint

        if self.show_schema is False or (result.document is None and result.source is None):
            return ""
        if self.show_schema is True:
            return hint.describe(result.document) if result.source is None else result.source.describe()
        rendered = hint.render(result.document) if result.source is None else result.source.render()
        return self.show_schema.replace("{schema}", rendered)
