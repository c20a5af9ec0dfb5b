"""Captures of a finished answer: which of its parts may have any, how they are found, and where they are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.reading.reply import Reply
from constrain.chat.tools.calls import CustomCall
from constrain.engine import compiling as _compiling
from constrain.engine.captures import CAPTURES_LIMIT, Captures
from constrain.errors import LimitError
from constrain.generation.observers.observer import Later, Observer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.progress import Outcome, Progress
    from constrain.engine.constraint import Constraint
    from constrain.generation.completion import Completion
    from constrain.generation.observers.observer import Observers
    from constrain.generation.plan import Language, Plan
    from constrain.language.policies import CompileOptions
    from constrain.llama.decoding.answer import Answer
    from constrain.vocabulary.vocabulary import Vocabulary


class CapturesObserver(Observer):
    """Reports ``captures``, also those of calls."""

    def __init__(self, language: Language, vocabulary: Vocabulary) -> None:
        self._language = language
        self._vocabulary = vocabulary

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer | None:  # noqa: ARG003
        """Returns the observer of a new answer; ``None`` if its language gives no part a name."""
        language, constraint = plan.language, plan.constraint
        if language is None or constraint is None or not constraint.has_captures:
            return None
        return cls(language, constraint.vocabulary)

    def finish(self, answer: Answer, progress: Progress, outcome: Outcome) -> Later | None:  # noqa: ARG002
        """Returns the parts of the finished answer that may have captures; ``None`` if there are none."""
        schema, policies = self._language.schema, self._language.policies
        found = [
            Capturing(schema, policies, part.text, part.call, tuple(answer.tokens))
            if part.source is None
            else Capturing(part.source, policies, part.text, part.call)
            for part in progress.parts(b"".join(map(self._vocabulary.marked_bytes, answer.tokens)))
        ]
        return AllCaptures(tuple(found)) if found else None


@dataclass(frozen=True, slots=True)
class Capturing:
    """A part of an answer that may have captures.

    Attributes:
        schema: language of the part; with ``policies``, the arguments of ``compile``.
        policies: spelling of JSON.
        text: text of the part; special tokens are marked as by ``Vocabulary.marked_bytes``.
        call: number of the call whose input the part is; ``None`` for the content.
        tokens: tokens of the part, if it is the whole answer; they tell which tokens by id the text has.
    """

    schema: object
    policies: CompileOptions
    text: bytes
    call: int | None
    tokens: tuple[int, ...] | None = None

    def find(self, vocabulary: Vocabulary, whole: Constraint | None = None) -> Captures | None:
        """Returns the captures; none for a part that was cut, and ``None`` beyond a limit.

        ``whole``: the compiled language of the whole answer, if it is there already.
        """
        constraint = None if self.tokens is None else whole
        try:
            if constraint is None:
                constraint = _compiling.compile_any(self.schema, vocabulary, close_objects=True, **self.policies)
            if self.tokens is not None:
                return constraint._captures_of_tokens(self.tokens) or Captures()
            return constraint.captures(self.text) if constraint.accepts(self.text) else Captures()
        except LimitError:
            return None


@dataclass(frozen=True, slots=True)
class AllCaptures(Later):
    """The captures of all parts of an answer."""

    name = "captures"
    parts: tuple[Capturing, ...]

    def make(self, vocabulary: Vocabulary, constraint: Constraint | None = None) -> list[Captures | None]:
        """Returns the captures of each part."""
        return [part.find(vocabulary, constraint) for part in self.parts]

    def add(self, completion: Completion, made: Sequence[Captures | None] | None) -> Completion:
        """Returns the answer with the captures of its parts; beyond a limit, ``limits_met`` has MAX_CAPTURE_WORK."""
        content, inputs, limits = completion.captures, dict[int, Captures | None](), completion.limits_met
        for part, captures in zip(self.parts, made or [None] * len(self.parts), strict=True):
            if part.call is None:
                content = captures
            else:
                inputs[part.call] = captures
            if captures is None and CAPTURES_LIMIT not in limits:
                limits = (*limits, CAPTURES_LIMIT)
        return replace(completion, value=_with_inputs(completion.value, inputs), captures=content, limits_met=limits)


def _with_inputs(value: object, captures: dict[int, Captures | None]) -> object:
    if not isinstance(value, Reply) or not captures:
        return value
    calls = tuple(
        replace(call, captures=captures[number]) if isinstance(call, CustomCall) and number in captures else call
        for number, call in enumerate(value.calls)
    )
    return replace(value, calls=calls)
