"""Captures of a finished answer: which of its parts may have any, how they are found, and where they are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.reading.reply import Reply
from constrain.chat.tools.calls import CustomCall
from constrain.engine import compiling as _compiling
from constrain.engine.captures import CAPTURES_LIMIT, Captures
from constrain.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.engine.constraint import Constraint
    from constrain.generation.completion import Completion
    from constrain.language.policies import CompileOptions
    from constrain.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Capturing:
    """A part of an answer that may have captures. Can be pickled.

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

    def find(self, vocabulary: Vocabulary, constraint: Constraint | None = None) -> Captures | None:
        """Returns the captures; none for a part that was cut, and ``None`` beyond a limit.

        ``constraint``: the compiled language, if it is there already.
        """
        try:
            if constraint is None:
                constraint = _compiling.compile_any(self.schema, vocabulary, close_objects=True, **self.policies)
            if self.tokens is not None:
                return constraint._captures_of_tokens(self.tokens) or Captures()
            return constraint.captures(self.text) if constraint.accepts(self.text) else Captures()
        except LimitError:
            return None


def with_captures(completion: Completion, found: Iterable[tuple[Capturing, Captures | None]]) -> Completion:
    """Returns an answer with the captures of its parts; beyond a limit, ``limits_met`` has MAX_CAPTURE_WORK."""
    content, inputs, limits = completion.captures, dict[int, Captures | None](), completion.limits_met
    for part, captures in found:
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
