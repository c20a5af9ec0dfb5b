"""``Readings``: a matcher for grammars that ask for tokens by name or id, which follows all readings of the tokens.

Where a grammar has ``<[1234]>`` beside ordinary text, the token 1234 may be the one asked for, or a part of the text.
The kernel's matcher follows one reading. So a token is given to it twice: as its text, and as the mark of its class. If
both are possible, there are two matchers from then on, until they reach the same place again. A mask has the tokens
that any reading allows, and a text may end where it may end in any reading. Each reading can be completed by itself,
and keeps to the budget by itself. ``ScopedReadings`` also follow the rules that limit their tokens (``scopes``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from constrain import kernel
from constrain.arguments import integer, wrong_type
from constrain.engine.scopes import Reading
from constrain.errors import LimitError
from constrain.vocabulary.marked import MARKED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from constrain.engine.classes import Classes
    from constrain.engine.scopes import Run

MAX_READINGS = 64
"""Ways to read one text that a matcher follows at once: a token may count as itself, where the grammar names it, or as
its text, and may end a rule with ``max_tokens`` or not. Beyond: the further ways are dropped, and masks lack the tokens
that only those allow."""

_BETWEEN_COPIES = 256
"""Tokens after which all readings are copied, for a rollback, before their number changes again."""


_FORMATS = {"float32": "f", "uint32": "IiLl"}


class _Copy(NamedTuple):
    """The readings after some tokens; each has been one of its own since ``since`` tokens."""

    accepted: int
    since: int
    readings: list[AnyReading]

    def back_to(self, accepted: int) -> list[AnyReading]:
        """Returns the readings as they were after fewer tokens."""
        found = [_copied(reading) for reading in self.readings]
        for reading in found:
            reading.rollback(self.accepted - accepted)
        return found


class Readings:
    """All readings of one text; a base of a matcher, which itself stays at the beginning of the text."""

    _classes: Classes
    _tokens: list[int]
    _readings: list[AnyReading]
    _since: int  # number of tokens after which no reading has been added or dropped
    _copies: list[_Copy]
    _has_ended: bool
    _left_out: int | None  # number of tokens after which there were first too many readings

    def _begin(self, classes: Classes) -> None:
        self._classes = classes
        self.reset()

    def _copy(self, other: Readings) -> None:
        self._classes = other._classes
        self._tokens, self._copies = other._tokens.copy(), other._copies.copy()
        self._readings = [_copied(reading) for reading in other._readings]
        self._since, self._has_ended, self._left_out = other._since, other._has_ended, other._left_out

    # Reading

    def _checked(self, token_id: Any) -> int:
        token = integer("a token id", token_id)
        n_vocab = self._classes.vocabulary.n_vocab
        if not 0 <= token < n_vocab:
            raise IndexError(f"token id {token} is not in the vocabulary of {n_vocab} tokens")
        return token

    def accept(self, token_id: int) -> bool:
        """Takes an allowed token and moves on. For any other token, returns False and changes nothing."""
        token = self._checked(token_id)
        if self._has_ended:
            return False
        before, mark = self._readings, self._classes.mark(token)
        if mark is None:
            kept, added = [reading for reading in before if reading.accept(token)], []
        else:
            found = [_accept_both(reading, token, mark) for reading in before]
            kept = [reading for reading, (is_kept, _) in zip(before, found, strict=True) if is_kept]
            added = [other for _, other in found if other is not None]
        if not kept:
            return False
        after = self._distinct(kept + added)
        if len(after) > MAX_READINGS:
            after = after[:MAX_READINGS]
            self._left_out = len(self._tokens) if self._left_out is None else self._left_out
        if after != before:
            self._keep_copy(before, kept)
            self._since = len(self._tokens) + 1
        self._tokens.append(token)
        self._readings = after
        self._has_ended = token in self._classes.vocabulary.eos
        return True

    def _distinct(self, readings: list[AnyReading]) -> list[AnyReading]:
        """Returns the readings with different futures."""
        if len(readings) == 1:
            return readings
        return list({reading.place: reading for reading in reversed(readings)}.values())[::-1]

    def _keep_copy(self, before: list[AnyReading], moved: list[AnyReading]) -> None:
        """Copies the readings as they were before the present token, unless there is a copy that is near."""
        accepted = len(self._tokens)
        if self._copies and accepted - self._copies[-1].accepted < _BETWEEN_COPIES:
            return
        readings = [_copied(reading) if reading in moved else reading for reading in before]
        for reading in readings:
            assert isinstance(reading, kernel.Matcher)
            reading.rollback(reading.n_accepted - accepted)
        self._copies.append(_Copy(accepted, self._since, readings))

    def accept_many(self, token_ids: Sequence[int]) -> int:
        """Takes tokens up to the first that is not allowed; returns the number of tokens taken."""
        if not hasattr(token_ids, "__iter__"):
            raise wrong_type("token_ids", "a list of token ids", token_ids)
        for count, token in enumerate([self._checked(token) for token in token_ids]):
            if not self.accept(token):
                return count
        return len(token_ids)

    def rollback(self, count: int) -> None:
        """Takes back the last ``count`` accepted tokens. Raises ValueError if fewer were accepted."""
        back = integer("count", count)
        if not 0 <= back <= len(self._tokens):
            raise ValueError(f"cannot roll back {back} tokens of {len(self._tokens)} accepted")
        if back == 0:
            return
        target = len(self._tokens) - back
        again: list[int] = []
        if target >= self._since:
            for reading in self._readings:
                reading.rollback(back)
        else:
            later = (copy for copy in self._copies if copy.since <= target <= copy.accepted)
            earlier = (copy for copy in reversed(self._copies) if copy.accepted <= target)
            copy = next(later, None) or next(earlier)
            begin = min(target, copy.accepted)
            self._readings, self._since = copy.back_to(begin), min(copy.since, begin)
            self._copies = [each for each in self._copies if each.accepted <= begin]
            again = self._tokens[begin:target]
            target = begin
        del self._tokens[target:]
        self._has_ended = False
        if self._left_out is not None and self._left_out >= target:
            self._left_out = None
        for token in again:
            if not self.accept(token):
                raise LimitError("these tokens cannot be read again within the kernel's limits; make a new matcher")

    def reset(self) -> None:
        """Takes back all accepted tokens; the limits met so far are forgotten, too."""
        self._tokens, self._copies = [], []
        self._readings = self._first()
        self._since, self._has_ended, self._left_out = 0, False, None

    def _first(self) -> list[AnyReading]:
        """Returns the readings of no token."""
        return [kernel.Matcher(cast("kernel.Matcher", self))]

    @property
    def n_accepted(self) -> int:
        """Number of accepted tokens, end of generation included."""
        return len(self._tokens)

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return not self._has_ended and any(reading.is_accepting for reading in self._readings)

    @property
    def is_finished(self) -> bool:
        """Whether end of generation was accepted, or nothing else is possible."""
        return self._has_ended or all(reading.is_finished for reading in self._readings)

    # Masks

    def _words(self, *, unlimited: bool = False) -> NDArray[np.uint32]:
        """The mask of the next token; ``unlimited``: without regard to the budget."""
        import numpy as np

        marked = self._classes.marked
        n_words = marked.first // 32
        words: NDArray[np.uint32] = np.zeros(n_words + marked.count // 32, np.uint32)
        row: Any = np.empty_like(words)
        if self._has_ended:
            return words[:n_words]
        for reading in self._readings:
            reading.fill_bitmask(row, unlimited)
            words |= row
        if (marks := words[n_words:]).any():
            words[:n_words] |= self._classes.words(marks.tobytes())
        return words[:n_words]

    def fill_bitmask(self, bitmask: Buffer, unlimited: bool = False) -> None:  # noqa: FBT001, FBT002 - as in kernel.Matcher
        """Writes the mask of the next token (see ``kernel.Matcher``)."""
        words = _array("bitmask", bitmask, "uint32", self._classes.marked.first // 32, is_written=True)
        words[:] = self._words(unlimited=unlimited)

    def fill_candidates(self, logits: Buffer, candidates: Buffer, unlimited: bool = False) -> int:  # noqa: FBT001, FBT002 - as in kernel.Matcher
        """Writes the allowed tokens with their logits for llama.cpp's samplers; returns their number."""
        import numpy as np

        n_vocab = self._classes.vocabulary.n_vocab
        scores = _array("logits", logits, "float32", n_vocab)
        room = _view("candidates", candidates, "a contiguous, writable array of llama_token_data", is_written=True)
        if room.nbytes < 12 * n_vocab:
            raise ValueError(f"candidates must hold {n_vocab} llama_token_data (12 bytes each)")
        out: Any = np.frombuffer(room, np.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")]), n_vocab)
        bits = np.unpackbits(self._words(unlimited=unlimited).view(np.uint8), count=n_vocab, bitorder="little")
        tokens = np.flatnonzero(bits)
        found = out[: len(tokens)]
        found["id"], found["logit"], found["p"] = tokens, scores[tokens], 0
        return len(tokens)

    @property
    def lexeme(self) -> tuple[int, bytes, int, int, int | None]:
        """No lexeme: each reading has its own. Private."""
        return 0, b"", 0, 0, None

    @property
    def near_limit(self) -> bool:
        """Whether a limit may narrow one of the next masks, in some reading. Private."""
        return not self._has_ended and any(reading.near_limit for reading in self._readings)

    @property
    def is_cut(self) -> bool:
        """Whether no token of the budget is left, and the text could go on."""
        return not self._has_ended and all(reading.is_cut for reading in self._readings)

    @property
    def knows_mask(self) -> bool:
        """Whether the current mask is known. Private."""
        return self._has_ended or all(reading.knows_mask for reading in self._readings)

    @property
    def is_quick(self) -> bool:
        """Whether the next ``fill_...`` and ``accept`` only look up tables. Private."""
        return self._has_ended or all(reading.is_quick for reading in self._readings)

    def compute_mask(self) -> None:
        """Computes the current mask, if it is not known, without the GIL. Private."""
        for reading in self._readings:
            reading.compute_mask()

    def diagnose(self, token_id: int) -> tuple[bool, bool, bool, tuple[str, ...], int, list[int]]:
        """Private: use ``explain``. Finds whether a token is allowed in any reading, and if not, why."""
        token = self._checked(token_id)
        if self._has_ended:
            return False, False, False, (), 0, []
        ids = [each for each in (token, self._classes.mark(token)) if each is not None]
        found = [[reading.diagnose(each) for each in ids] for reading in self._readings]
        for each in (each for both in found for each in both):
            if each[0]:
                return each
        texts = [text for text, *_ in found]
        _, at_end, at_limit, limits, offset, _ = max(texts, key=lambda text: text[4])
        return False, at_end, at_limit, limits, offset, sorted({terminal for text in texts for terminal in text[5]})

    def expected(self) -> list[int]:
        """Private: use ``expected_terminals``. Returns the terminals that may continue or begin in any reading."""
        return [] if self._has_ended else sorted({each for reading in self._readings for each in reading.expected()})

    @property
    def temperature(self) -> float | None:
        """The temperature that the grammar asks for the next token: the highest one of all readings."""
        found = [reading.temperature for reading in self._readings]
        return max((each for each in found if each is not None), default=None)

    # Limits that were met

    @property
    def is_narrowed(self) -> bool:
        """Whether the budget or a limit has removed tokens from some mask on the way here."""
        return self._left_out is not None or any(reading.is_narrowed for reading in self._readings)

    @property
    def is_narrowed_by_budget(self) -> bool:
        """Whether the budget (``max_tokens``) has removed tokens from some mask on the way here."""
        return any(reading.is_narrowed_by_budget for reading in self._readings)

    @property
    def n_shortened(self) -> int:
        """Number of strings and numbers that a limit on their tokens has ended, or is ending, in some reading."""
        return max(reading.n_shortened for reading in self._readings)

    @property
    def limited_masks(self) -> int:
        """Number of masks on the way here without some allowed tokens, because a limit was met."""
        beyond = 0 if self._left_out is None else len(self._tokens) - self._left_out
        return max(beyond, *(reading.limited_masks for reading in self._readings))

    @property
    def limits_met(self) -> tuple[str, ...]:
        """Names of the limits that ``limited_masks`` counts."""
        names = dict.fromkeys(name for reading in self._readings for name in reading.limits_met)
        return (*names, *(() if self._left_out is None else ("MAX_READINGS",)))

    # Completions

    @property
    def min_tokens_left(self) -> int:
        """Number of tokens that ``completion_tokens`` returns."""
        return 0 if self._has_ended else min(reading.min_tokens_left for reading in self._readings)

    def completion_tokens(self) -> list[int]:
        """Returns the token ids of a short text that finishes from here; with a budget, one that fits into it."""
        if self._has_ended:
            return []
        first = self._classes.marked.first
        tokens = min(self._readings, key=lambda reading: reading.min_tokens_left).completion_tokens()
        return [token if token < first else self._classes.shown(token - first) for token in tokens]

    def shortest_completion(self) -> bytes:
        """Returns the bytes of a short text that finishes from here; of each set of tokens, one stands in it."""
        if self._has_ended:
            return b""
        return min((self._classes.spelled(each.shortest_completion()) for each in self._readings), key=len)

    def forced_bytes(self) -> bytes:
        """Returns the next bytes that every allowed text has; empty where there is a choice, or the text may end."""
        texts = [b""] if self._has_ended else [reading.forced_bytes() for reading in self._readings]
        first, last = min(texts), max(texts)  # the bytes that both begin with are those that all begin with
        same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
        return first[:same]

    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:
        """Private: use ``forced_tokens``. Forces nothing while there are several readings."""
        if not isinstance(before, bytes):
            raise wrong_type("before", "bytes", before)
        if self._has_ended or len(self._readings) > 1:
            return b"", []
        text, starts = self._readings[0].forced_after(before)
        end = text.find(MARKED)
        if end < 0:
            return text, starts
        text = text[:end]
        is_whole = text.decode("utf-8", "ignore").encode() == text
        return (text, [start for start in starts if start < len(before) + end]) if is_whole else (b"", [])


class ScopedReadings(Readings):
    """All readings of a text with scopes; each scope may begin, or end, between two tokens."""

    _run: Run

    def _begin_scoped(self, run: Run) -> None:
        self._run = run
        self._begin(run.scopes.classes)

    def _copy(self, other: Readings) -> None:
        assert isinstance(other, ScopedReadings)
        self._run = other._run
        super()._copy(other)

    def _first(self) -> list[AnyReading]:
        return self._distinct([Reading(self._run, kernel.Matcher(cast("kernel.Matcher", self)))])

    def _distinct(self, readings: list[AnyReading]) -> list[AnyReading]:
        """Returns one reading for each future, including the readings that begin or end a scope at this place."""
        found: dict[object, AnyReading] = {}
        waiting = readings[::-1]
        while waiting:
            reading = waiting.pop()
            if reading.place not in found:
                found[reading.place] = reading
                assert isinstance(reading, Reading)
                waiting += reading.others()[::-1]
        return list(found.values())

    def _keep_copy(self, before: list[AnyReading], moved: list[AnyReading]) -> None:
        """Keeps nothing: ``rollback`` reads the tokens again from the beginning."""

    def rollback(self, count: int) -> None:
        """Takes back the last ``count`` accepted tokens. Raises ValueError if fewer were accepted."""
        back = integer("count", count)
        if not 0 <= back <= len(self._tokens):
            raise ValueError(f"cannot roll back {back} tokens of {len(self._tokens)} accepted")
        if back == 0:
            return
        again = self._tokens[: len(self._tokens) - back]
        self.reset()
        for token in again:
            if not self.accept(token):
                raise LimitError("these tokens cannot be read again within the kernel's limits; make a new matcher")

    @property
    def limits_tokens(self) -> bool:
        """Whether the grammar limits the tokens of some part. Private."""
        return True


AnyReading = kernel.Matcher | Reading
"""One way to read a text, without scopes or with them."""


def _copied(reading: AnyReading) -> AnyReading:
    return reading.copy() if isinstance(reading, Reading) else kernel.Matcher(reading)


def _accept_both(reading: AnyReading, token: int, mark: int) -> tuple[bool, AnyReading | None]:
    """Moves a reading past a token, if possible; returns whether it moved, and a second reading if it has both ways."""
    if not reading.accept(token):
        return reading.accept(mark), None
    reading.rollback(1)
    if not reading.accept(mark):
        return reading.accept(token), None
    other = _copied(reading)
    other.rollback(1)
    return True, other if other.accept(token) else None


def _array(name: str, given: Buffer, kind: str, count: int, *, is_written: bool = False) -> NDArray[Any]:
    """Returns an argument as an array. Raises TypeError and ValueError."""
    import numpy as np

    view = _view(name, given, f"a contiguous{', writable' if is_written else ''} array", is_written=is_written)
    if view.itemsize != 4 or view.format[-1] not in _FORMATS[kind] or view.shape != (count,):
        raise ValueError(
            f"{name} must have shape ({count},) and items of type {kind}; this one has {view.ndim} dimension(s), "
            f"{view.nbytes // view.itemsize} items of format '{view.format}'"
        )
    return np.frombuffer(view, kind)


def _view(name: str, given: Buffer, wanted: str, *, is_written: bool) -> memoryview:
    """Returns the memory of an argument. Raises TypeError."""
    try:
        view = memoryview(given)
        if view.c_contiguous and not (is_written and view.readonly):
            return view
    except TypeError:  # no buffer
        pass
    raise wrong_type(name, f"{wanted} (numpy, or anything with the buffer protocol)", given)
