"""``Plan``: a request whose options are checked and whose prompt is ready; and then its compiled language, too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from constrain.engine import compiling as _compiling
from constrain.given import Given
from constrain.language.policies import CompileOptions
from constrain.llama.decoding.ranges import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from constrain.chat.reading.progress import Progress
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.chat.tools.kinds import Tool
    from constrain.engine.constraint import Constraint, Matcher
    from constrain.generation.options import AnswerSettings
    from constrain.language.result import ResultType
    from constrain.llama.decoding.answer import LogitAdjuster
    from constrain.llama.decoding.sampler import Chain, Sampling
    from constrain.llama.model import Model
    from constrain.private_folders import Directory
    from constrain.vocabulary.vocabulary import Vocabulary

SCHEMA, TOOLS = "the schema of the answer", "the tools"
"""Names, in error messages, of the texts that a prompt shows in addition to the caller's text."""


@dataclass(frozen=True, slots=True)
class Language:
    """The language of an answer: the arguments of ``compile``."""

    schema: object
    policies: CompileOptions = field(default_factory=CompileOptions)

    def compile(self, vocabulary: Vocabulary, *, cache: Directory = None) -> Constraint:
        """Compiles the language for a vocabulary."""
        return _compiling.compile_any(self.schema, vocabulary, close_objects=True, cache=cache, **self.policies)


@dataclass(frozen=True, slots=True)
class Plan:
    """A request that is checked: ``planning.make_plan`` makes it, ``planning.add_constraint`` adds what is compiled.

    Attributes:
        model: model that answers.
        language: language of the answer; None for free text.
        tokens: token ids of the prompt.
        progress: function that makes the reader of one answer, from the answer's number (among several for the prompt)
            and, if an observer wants to know, the object that finds the tokens of its text.
        sampling: options for choosing tokens.
        settings: the other options.
        result: type of the answer; with tools, type of its content.
        tools: tools of the answer, by name.
        call_or_content: function that makes the object which adjusts logits until one answer has become content or a
            call; None if there is no such choice.
        shown: function that returns the texts that the prompt adds to the caller's text, by name.
        insertion: function from the reader of one answer to the object that shows the model the tools that it calls
            (``Answer.insert``); None if the prompt shows all tools.
        request: token ids behind a draft that ask for the answer; empty for an answer without a draft.
        given: sources and tables of the schema and of the arguments of calls.
        shared: function that returns how many tokens at the beginning of the prompt other requests share, for the
            prompt cache on disk; None if the request is private.
        is_greedy: whether a single answer has the temperature 0 in place of that of ``sampling``.
        may_be_cut: whether free text is an answer, so that a limit may cut it anywhere.
        prefix: token ids that the answer begins with.
        constraint: compiled language of the answer; None for free text, and until it is compiled.
        compile_seconds: wall-clock seconds that compiling took.
        drafts: compiled language of a draft; None for no draft.
        number: number of the answer, among several for one prompt.
        prepared: what observers have prepared for all answers, by their names.
    """

    model: Model
    language: Language | None
    tokens: list[int]
    progress: Callable[[int, TextTokens | None], Progress]
    sampling: Sampling
    settings: AnswerSettings
    result: ResultType
    tools: Mapping[str, Tool] = field(default_factory=dict)
    call_or_content: Callable[[Sampling], LogitAdjuster] | None = None
    shown: Callable[[], dict[str, str]] = dict
    insertion: Callable[[Any], Callable[[Sequence[int]], Sequence[int]]] | None = None
    request: tuple[int, ...] = ()
    given: Given = field(default_factory=Given)
    shared: Callable[[], int] | None = None
    is_greedy: bool = False
    may_be_cut: bool = False
    prefix: tuple[int, ...] = ()
    constraint: Constraint | None = None
    compile_seconds: float = 0.0
    drafts: Constraint | None = None
    number: int = 0
    prepared: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt, with the request behind a draft."""
        return len(self.tokens) + len(self.request)

    def chain(self, sampling: Sampling) -> Chain:
        """Returns a new chain of samplers for an answer to the prompt."""
        from constrain.llama.decoding.sampler import Chain

        model = self.model
        return Chain(
            sampling,
            model.vocabulary.n_vocab,
            model.n_ctx,
            prompt=self.tokens,
            dry=lambda: model.context.dry,
        )

    def describe_token(self, token: int) -> tuple[str, bytes]:
        """Returns the text and the bytes of a token; for a special token its name."""
        data = self.model.vocabulary.token_bytes(token)
        return data.decode("utf-8", "backslashreplace") if data else self.model.tokenizer.name(token), data

    def describe_shown(self, hint: str) -> str:
        """Describes how many tokens of the prompt are added texts, for an error message; empty if there are none.

        ``hint`` tells the caller how to leave the schema out.
        """
        encode = self.model.vocabulary.encode
        assert encode is not None
        described = [
            f"about {len(encode(text.encode(errors='replace')))} of which are {what}"
            for what, text in self.shown().items()
            if text
        ]
        if not described:
            return ""
        left_out = f" ({hint})" if self.shown().get(SCHEMA) else ""
        return f", {' and '.join(described)} that the model is shown{left_out}"

    def samples(self, count: int) -> list[Plan]:
        """Returns the plans of so many answers; the seed of each, if any, is this seed plus its number."""
        return [self._sample(number) if count > 1 else self for number in range(count)]

    def _sample(self, number: int) -> Plan:
        sampling = self.sampling
        own_seed = None if sampling.seed is None else seed_of(sampling.seed, number)
        return replace(self, sampling=replace(sampling, seed=own_seed), is_greedy=False, number=number)

    @property
    def used_sampling(self) -> Sampling:
        """The options for choosing tokens."""
        return replace(self.sampling, temperature=0.0) if self.is_greedy else self.sampling

    def start(self, max_tokens: int | None) -> Matcher:
        """Returns a matcher at the beginning of the answer, with a token budget. Only with a constraint."""
        assert self.constraint is not None
        settings = self.settings
        return self.constraint.matcher(
            max_tokens,
            max_string_tokens=settings.max_string_tokens,
            max_number_tokens=settings.max_number_tokens,
            max_reasoning_tokens=settings.max_reasoning_tokens,
        )

    @property
    def starter(self) -> Callable[[int], Matcher] | None:
        """``start``; None for free text."""
        return None if self.constraint is None else self.start
