"""Only the broken field again: values are judged as soon as they are complete, and rejected ones are written anew.

    tokens --feed--> scanner --complete values--> judge --accepted--> the reader of the answer, streams
                                                    |
                                                    +--rejected--> the answer goes back to where the value began

A value that is not judged yet is held: readers and streams get whole tokens up to its beginning.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.errors import OutputValidationError, pointer_to
from constrain.llama.decoding.rejections import Rejections, Step, Weights, reduce
from constrain.partial.scanner import Scanner
from constrain.types.field_checks import TypeChecks, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from constrain.language.result import ResultType
    from constrain.llama.decoding.answer_matcher import AnswerMatcher
    from constrain.partial.scanner import Path, Scanned
    from constrain.vocabulary.vocabulary import Vocabulary

MAX_RETRIES = 10
"""Values of one answer that may be written again. Beyond: `OutputValidationError`."""

_SAME_VALUE = 50
"""How often one value may be written again in other tokens, which nobody has to judge."""

_NOTHING_LEFT = "no other value is possible"

_KEY = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*$')
"""A key at the end of a text, with its colon."""


@dataclass(frozen=True, slots=True)
class Retried:
    """A value that was rejected while the answer was written.

    Attributes:
        path: path of the value: keys and positions.
        value: the value, as parsed JSON.
        message: why it was rejected.
        tokens: tokens that were taken back.
    """

    path: tuple[str | int, ...]
    value: Any
    message: str
    tokens: int


class Judges:
    """What judges the values of an answer: functions by pointer, and the validators of its type.

    Args:
        checks: functions that take a value as parsed JSON, by JSON Pointer; ``*`` stands for any key or position. They
            reject a value by ``False``, ValueError or AssertionError.
        result: type of the answer.
    """

    def __init__(self, checks: Mapping[str, Callable[[Any], object]], result: ResultType) -> None:
        self._checks = [(_steps(pointer), check) for pointer, check in checks.items()]
        self._type = None if result.adapter is None else TypeChecks(result.adapter)

    def judges(self, path: Path) -> bool:
        """Returns whether anything judges the value at a path."""
        return bool(self._own(path)) or (self._type is not None and self._type.judges(path))

    def judge(self, path: Path, text: str, before: Mapping[str, Any]) -> Verdict | None:
        """Returns why a value is rejected; ``None`` if it is not. For the arguments see ``TypeChecks.judge``."""
        for check in self._own(path):
            if (message := _complaint(check, json.loads(text))) is not None:
                return Verdict(message)
        if self._type is not None and self._type.judges(path):
            return self._type.judge(path, text, before)
        return None

    def _own(self, path: Path) -> list[Callable[[Any], object]]:
        return [check for steps, check in self._checks if _matches(steps, path)]


class FieldChecks:
    """Judges the values of one answer; an ``AnswerCheck`` of ``llama.decoding.answer``.

    Args:
        judges: what judges values.
        retries: how often one field may be written again.
        temperature: temperature of the sampling.
        show: takes the bytes of a token that is accepted; returns whether the answer must stop.
        vocabulary: vocabulary of the model.

    Attributes:
        retried: the rejected values, in order.
    """

    def __init__(
        self,
        judges: Judges,
        retries: int,
        temperature: float,
        show: Callable[[bytes], bool],
        vocabulary: Vocabulary,
    ) -> None:
        self._vocabulary = vocabulary
        self.retried: list[Retried] = []
        self._judges, self._retries, self._temperature, self._show = judges, retries, temperature, show
        self._written: list[bytes] = []
        self._tokens: list[int] = []
        self._ends: list[int] = []
        self._n_shown = 0
        self._scanner = Scanner()
        self._open: list[tuple[Path, int]] = []  # values that are still to be judged, and where they begin
        self._begun: dict[Path, int] = {}  # all values that have begun
        self._due: list[Scanned] = []
        self._choices: dict[int, tuple[int, float, Weights | None]] = {}  # by number of the token: see ``Step``
        self._rejections: dict[int, Rejections] = {}  # by number of the token in which the value begins
        self._verdicts: dict[tuple[Path, str], Verdict] = {}  # of rejected values
        self._tries: Counter[Path] = Counter()
        self._weights: Weights | None = None  # of the present choice
        self._n_same = 0  # times in a row that a rejected value was written in other tokens

    def feed(self, token: int, data: bytes) -> bool:
        """Takes the next token of the answer and its bytes; returns whether the answer must stop."""
        self._tokens.append(token)
        self._read(data)
        return not self._due and self._show_accepted()

    def _read(self, data: bytes) -> None:
        self._written.append(data)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(data))
        if not self._scanner.is_complete:
            self._note(self._scanner.feed(data.decode("latin-1")))

    def _note(self, found: list[Scanned]) -> None:
        for scanned in found:
            each = scanned._replace(path=tuple(map(_utf8, scanned.path)))
            if each.kind == "begin":
                self._begun[each.path] = each.begin
            if each.kind == "grow" or not self._judges.judges(each.path):
                continue
            if each.kind == "begin":
                self._open.append((each.path, each.begin))
            else:
                self._due.append(each)

    def _show_accepted(self) -> bool:
        """Shows the tokens in front of the first value that is still to be judged."""
        first = min((begin for _, begin in self._open), default=None)
        until = len(self._written) if first is None else bisect_right(self._ends, first)
        stops = False
        for data in self._written[self._n_shown : until]:
            stops |= self._show(data)
        self._n_shown = max(self._n_shown, until)
        return stops

    @property
    def is_due(self) -> bool:
        """Whether values are complete and not judged."""
        return bool(self._due)

    def judge(self, *, is_final: bool, may_go_back: bool = True) -> int | None:
        """Judges the values that are complete; returns how many tokens are kept. Raises ``OutputValidationError``."""
        if is_final and not self._scanner.is_complete:
            self._note(self._scanner.finish())
        while self._due:
            each = self._due[0]
            text = self._text(each.begin, each.end)
            value = json.dumps(json.loads(text))
            known = self._verdicts.get((each.path, value))
            verdict = known or self._judges.judge(each.path, text, self._before(each.path))
            if verdict is not None:
                self._verdicts[each.path, value] = verdict
                return self._reject(each, text, verdict, is_known=known is not None, may_go_back=may_go_back)
            self._due.pop(0)
            self._open.remove((each.path, each.begin))
        self._show_accepted()
        return None

    def _text(self, begin: int, end: int) -> str:
        return b"".join(self._written)[begin:end].decode()

    def _before(self, path: Path) -> dict[str, Any]:
        """The members of the object around a value that stand before it."""
        if not path or isinstance(path[-1], int):
            return {}
        text = b"".join(self._written)
        begin, end = self._begun.get(path[:-1], 0), self._begun[path]
        head = _KEY.sub("", text[begin:end].decode()).rstrip().rstrip(",")
        before: dict[str, Any] = json.loads(head + "}")
        return before

    def _reject(self, each: Scanned, text: str, verdict: Verdict, *, is_known: bool, may_go_back: bool) -> int:
        path, begin, end = each.path, each.begin, each.end
        if verdict.field is not None:
            path = (*path, verdict.field)
            begin = self._begun.get(path, begin)
        first = bisect_right(self._ends, begin)
        last = min(bisect_right(self._ends, end - 1 + (text[-1:].isalnum() and path == each.path)), len(self._ends) - 1)
        self._tries[path] += not is_known
        if not is_known:
            self.retried.append(Retried(path, json.loads(text), verdict.message, len(self._tokens) - first))
        if not may_go_back:
            self._refuse(path, "the time is up")
        steps, is_chosen = self._chosen(begin, first, last)
        self._n_same = self._n_same + 1 if is_known else 0
        is_over = self._tries[path] > self._retries or len(self.retried) > MAX_RETRIES
        if not is_chosen or self._n_same > _SAME_VALUE:
            self._refuse(path, _NOTHING_LEFT)
        if is_over:
            many = len(self.retried) > MAX_RETRIES
            self._refuse(path, f"an answer has at most {MAX_RETRIES} retries" if many else f"retries={self._retries}")
        self._rejections = {at: known for at, known in self._rejections.items() if at <= first}
        place = self._place(first)
        rejections = self._rejections.setdefault(first, Rejections(self._vocabulary))
        rejections.add(steps, b"".join(self._written)[place:end])
        self._go_back(first)
        return first

    def _chosen(self, begin: int, first: int, last: int) -> tuple[list[Step], bool]:
        """Returns the choices that wrote a value from a token on, and whether there are any, that token's included."""
        spell = self._vocabulary.token_bytes
        reaching = [
            number
            for number, (token, *_) in self._choices.items()
            if number <= last and self._place(number) + len(spell(token)) > begin
        ]
        steps = [Step(self._tokens[first:number], *self._choices[number]) for number in reaching if number >= first]
        return steps, bool(reaching)

    def _place(self, number: int) -> int:
        """Returns the offset of a token."""
        return self._ends[number - 1] if number else 0

    def _refuse(self, path: Path, why: str) -> NoReturn:
        """Raises the error about a field for which no accepted value was found."""
        tried = [each for each in self.retried if each.path == path]
        shown = "; ".join(f"{json.dumps(each.value)[:80]}: {each.message}" for each in tried)
        raise OutputValidationError(
            f"{len(tried)} values of this field were rejected ({why}): {shown}",
            text=b"".join(self._written).decode(errors="replace"),
            pointer=pointer_to(path),
        )

    def _go_back(self, first: int) -> None:
        """Forgets the tokens from one on, and reads those before it again."""
        written, tokens = self._written[:first], self._tokens[:first]
        self._scanner = Scanner()
        self._written, self._ends, self._tokens, self._open, self._begun = [], [], tokens, [], {}
        self._choices = {number: each for number, each in self._choices.items() if number < first}
        for data in written:
            self._read(data)
        self._open = [each for each in self._open if each[0] not in {one.path for one in self._due}]
        self._due = []

    def adjust(
        self, tokens: Sequence[int], candidates: NDArray[Any], temperature: float | None, matcher: AnswerMatcher
    ) -> None:
        """Reduces the logits of tokens that lead to rejected values. Raises an error if none is left."""
        used = self._temperature if temperature is None else temperature
        self._weights = Weights(candidates, used)
        for first, rejections in self._rejections.items():
            if first == len(tokens):
                rejections.settle(matcher)
            shares = rejections.shares(tokens[first:]) if first <= len(tokens) else {}
            if shares and not reduce(candidates, shares, used):
                self._refuse(self.retried[-1].path, _NOTHING_LEFT)

    def chose(self, tokens: Sequence[int], token: int) -> None:
        """Records how likely the chosen token was."""
        weights = self._weights
        assert weights is not None
        self._choices[len(tokens)] = token, weights.of(token), weights if weights.are_few else None


def _complaint(check: Callable[[Any], object], value: Any) -> str | None:
    try:
        return f"{getattr(check, '__name__', 'the check')} returned False" if check(value) is False else None
    except (ValueError, AssertionError) as error:
        return str(error) or type(error).__name__


def _steps(pointer: str) -> tuple[str, ...]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(
            f"checks has the key {pointer!r:.80}; it must be a JSON Pointer, such as '/name' or '/items/*/id'"
        )
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _matches(steps: tuple[str, ...], path: Path) -> bool:
    return len(steps) == len(path) and all(step in ("*", str(part)) for step, part in zip(steps, path, strict=True))


def _utf8(step: str | int) -> str | int:
    """A key whose bytes were read as characters; one with escapes is read already."""
    if isinstance(step, int):
        return step
    try:
        return step.encode("latin-1").decode()
    except UnicodeError:
        return step
