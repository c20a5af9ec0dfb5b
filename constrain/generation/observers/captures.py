"""Captures of a finished answer: which of its parts may have any, how they are found, and where they are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Reply
from constrain.chat.tools.calls import CustomCall
from constrain.engine import compiling as _compiling
from constrain.engine.captures import CAPTURES_LIMIT, Captures
from constrain.errors import LimitError
from constrain.generation.observers.observer import Later, Observer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.progress import Part
    from constrain.engine.constraint import Constraint
    from constrain.generation.observers.observer import Observers, Written
    from constrain.generation.plan import Language, Plan
    from constrain.vocabulary.vocabulary import Vocabulary


class CapturesObserver(Observer):
    """Reports ``captures``, also those of calls."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer:  # noqa: ARG003
        """Returns the observer of a new answer."""
        return cls(plan)

    def finish(self, written: Written) -> Later | dict[str, Captures]:
        """Returns the parts of the finished answer that may have captures; no captures if there are none."""
        constraint, language, tokens = self._plan.constraint, self._plan.language, tuple(written.answer.tokens)
        if constraint is None or language is None or not constraint.has_captures:
            return {"captures": Captures()}
        parts = written.progress.parts(b"".join(map(constraint.vocabulary.marked_bytes, tokens)))
        return FindCaptures(language, tokens, tuple(parts)) if parts else {"captures": Captures()}


@dataclass(frozen=True, slots=True)
class FindCaptures(Later):
    """The parts of an answer that may have captures.

    Attributes:
        language: language of the answer. Its policies are those of all parts.
        tokens: tokens of the answer; they tell which tokens by id the text has.
        parts: the parts.
    """

    name = "captures"
    language: Language
    tokens: tuple[int, ...]
    parts: tuple[Part, ...]

    def make(self, vocabulary: Vocabulary, constraint: Constraint | None = None) -> list[Captures | None]:
        """Returns the captures of each part; none for one that was cut, and ``None`` beyond a limit."""
        return [self._find(part, vocabulary, constraint) for part in self.parts]

    def _find(self, part: Part, vocabulary: Vocabulary, whole: Constraint | None) -> Captures | None:
        source, policies = self.language.schema if part.source is None else part.source, self.language.policies
        try:
            found = whole if part.source is None else None
            if found is None:
                found = _compiling.compile_any(source, vocabulary, close_objects=True, **policies)
            if part.source is None:
                return found._captures_of_tokens(self.tokens) or Captures()
            return found.captures(part.text) if found.accepts(part.text) else Captures()
        except LimitError:
            return None

    def add(self, completion: Any, made: Sequence[Captures | None] | None) -> Any:
        """Returns the answer with the captures of its parts; beyond a limit, ``limits_met`` has MAX_CAPTURE_WORK."""
        content: Captures | None = Captures()
        inputs, limits = dict[int, Captures | None](), completion.limits_met
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
