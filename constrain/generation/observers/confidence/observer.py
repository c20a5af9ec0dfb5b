"""The observer of ``confidence``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.generation.observers.choices import find_choices
from constrain.generation.observers.confidence.alternatives import Replay
from constrain.generation.observers.confidence.fields import Confidence
from constrain.generation.observers.observer import Observer

if TYPE_CHECKING:
    from constrain.chat.reading.progress import Outcome, Progress
    from constrain.generation.observers.choices import Choices
    from constrain.generation.observers.observer import Observers
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Answer, Questions


class ConfidenceObserver(Observer):
    """Reports ``fields``. Its choices are recorded by another observer, ``choices``."""

    asks = True

    def __init__(self, plan: Plan, choices: Choices) -> None:
        self._plan = plan
        self._choices = choices
        self._known: Confidence | None = None

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer:
        """Returns the observer of a new answer."""
        return cls(plan, find_choices(others))

    def questions(self, answer: Answer, progress: Progress) -> Questions[None]:
        """Asks about the finished answer what its fields need to know: see ``Confidence.questions``."""
        self._known = self._weigh(answer, progress)
        yield from self._known.questions()

    def finish(self, answer: Answer, progress: Progress, outcome: Outcome) -> dict[str, Any]:  # noqa: ARG002
        """Returns the parts of the finished answer with their probabilities."""
        return {"fields": (self._known or self._weigh(answer, progress)).fields()}

    def _weigh(self, answer: Answer, progress: Progress) -> Confidence:
        """Returns what is known of the finished answer."""
        plan, vocabulary, choices = self._plan, self._plan.model.vocabulary, self._choices.finished(answer)
        constraint, replay = plan.constraint, None
        if constraint is not None:
            replay = Replay(
                start=partial(plan.start, answer.limit),
                bitmask=lambda: constraint.allocate_bitmask()[0],
                tokens=answer.tokens,
                token_bytes=vocabulary.token_bytes,
                eos=frozenset(vocabulary.eos),
                take=answer.follow,
                preceding=answer.preceding,
                starts=[choice.index for choice in choices],
            )
        pieces = [vocabulary.marked_bytes(token) for token in answer.tokens]
        return Confidence(pieces, self._choices.logprobs, choices, progress.located(), replay)
