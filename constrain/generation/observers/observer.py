"""``Observer``: what tells about an answer and never changes it; and the table of all observers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.progress import Outcome, Progress
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.engine.constraint import Constraint
    from constrain.generation.options import AnswerSettings
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Answer, Questions
    from constrain.vocabulary.vocabulary import Vocabulary

OBSERVERS: dict[str, str] = {
    "logprobs": ".logprobs:Logprobs",
    "unbias": ".choices:Choices",
    "confidence": ".confidence.fields:ConfidenceObserver",
    "trace": ".trace:Trace",
    "captures": ".captures:CapturesObserver",
    "quotes": ".quotes:QuotesObserver",
    "certificate": ".certificate.certifying:CertificateObserver",
}
"""The observers, each as ``"module:Class"``, by the option that asks for them. Their reports come in this order.

Modules with a dot in front are in this package. A name that is no option is asked for by every answer: the observer
itself says whether there is anything to report.
"""


class Written(NamedTuple):
    """A finished answer: its tokens, the reader of its text, and what this has read."""

    answer: Answer
    progress: Progress
    outcome: Outcome


class Later:
    """A report that takes long to make of a finished answer. Can be pickled, and made in another process.

    Attributes:
        name: what is made, for messages.
    """

    name: ClassVar[str]

    def make(self, vocabulary: Vocabulary, constraint: Constraint | None = None) -> Any:
        """Returns what ``add`` takes; ``None`` beyond a limit.

        ``constraint``: the compiled language of the answer, if it is there already.
        """
        raise NotImplementedError

    def add(self, completion: Any, made: Any) -> Any:
        """Returns a ``Completion`` with the report; if nothing was made, ``limits_met`` has the limit."""
        raise NotImplementedError


class Observer:
    """Watches one answer and reports on it. A subclass overrides the methods that it needs.

    An observer that is a ``TokenObserver``, too, also sees masks, choices and tokens.

    Attributes:
        asks: whether ``questions`` is called.
        text_tokens: the finder of the tokens of the text, whose records stand in ``TextDelta.logprobs``.
    """

    asks: ClassVar[bool] = False
    text_tokens: TextTokens | None = None

    @classmethod
    def check(cls, plan: Plan) -> Plan:
        """Returns a checked plan as the observer needs it. Raises ``ValueError`` if there is nothing to observe."""
        return plan

    @classmethod
    def prepare(cls, plan: Plan) -> Any:
        """Returns what the observers of all answers to a compiled plan need, for ``Plan.prepared``."""

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer | None:  # noqa: ARG003
        """Returns the observer of a new answer; ``None`` if there is nothing to report.

        ``others``: the other observers of the answer.
        """
        return cls()

    def events(self, answer: Answer) -> list[StreamEvent]:  # noqa: ARG002
        """Returns events for a stream that are new since the last call."""
        return []

    def questions(self, answer: Answer, progress: Progress) -> Questions[None]:
        """Asks for the logits after further tokens, once the answer is finished."""
        raise NotImplementedError

    def finish(self, written: Written) -> Mapping[str, Any] | Later | None:
        """Returns the report on the finished answer, by the names under which ``Completion`` has it."""
        raise NotImplementedError


def find_observers(settings: AnswerSettings) -> dict[str, type[Observer]]:
    """Returns the observers that the options ask for."""
    return {name: load_observer(name) for name in OBSERVERS if getattr(settings, name, True)}


def load_observer(name: str) -> type[Observer]:
    """Returns the class of an observer."""
    module, _, found = OBSERVERS[name].partition(":")
    kind: type[Observer] = getattr(import_module(module, __package__), found)
    return kind


class Observers(dict[str, "Observer | None"]):
    """The observers of one answer, by their names in the table. One that another needs comes before it.

    ``others[name]`` begins an observer that is not there yet; ``others.get(name)`` does not.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan
        for name in find_observers(plan.settings):
            _ = self[name]

    def __missing__(self, name: str) -> Observer | None:
        self[name] = begun = load_observer(name).begin(self._plan, self)
        return begun

    def all(self) -> list[Observer]:
        """Returns the observers that have something to report."""
        return [each for each in self.values() if each is not None]
