"""Which tokens are in the KV cells of each sequence, and which sequence a new prompt should take.

What a prompt has in common with any sequence, in use or not, is taken over without being evaluated again; and also what
it has in common with one whose slot was overwritten since, as long as there is room for it in main memory. Only
sequences of the same partition count: who asks in one partition cannot tell what was asked in another.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from constrain.errors import ModelError
from constrain.llama.contexts.aside import Aside, States, reusable_prefix
from constrain.llama.contexts.sequences import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from constrain.llama.contexts.sequences import Tokens
    from constrain.llama.decoding.sampler import Chain


_WORTH_COPYING = 8
_COPIED_CELLS_PER_TOKEN = 256
"""A prefix is copied if it saves the evaluation of 8 tokens, and of one for every 256 cells that are copied: on
processors, evaluating a token takes as long as copying some 500 cells of the same model."""

ASIDE_PART = 4
"""Overwritten sequences take up to one fourth of what the context takes, in main memory."""


class Evaluator(States, Protocol):
    """What slots need of a model (``constrain.llama.contexts.sequences.Sequences``)."""

    @property
    def count(self) -> int:
        """Number of sequences."""

    @property
    def n_ctx(self) -> int:
        """The most tokens of one sequence."""

    @property
    def n_batch(self) -> int:
        """The most tokens of one evaluation."""

    @property
    def n_vocab(self) -> int:
        """Number of tokens in the vocabulary."""

    @property
    def one_state(self) -> bool:
        """Whether a sequence can only go on, or begin anew."""

    @property
    def leaves_a_core(self) -> bool:
        """Whether another thread can compute while this evaluates."""

    def cut(self, sequence: int, length: int) -> bool:
        """Shortens a sequence; whether that is possible. If not, it is empty then."""

    def copy(self, source: int, target: int, length: int) -> bool:
        """Makes the beginning of one sequence all of another; whether that is possible. If not, it is empty then."""

    def clear(self, sequence: int) -> None:
        """Makes a sequence empty."""

    def evaluate(self, pieces: Sequence[Piece]) -> list[int]:
        """Evaluates tokens; returns where the logits after each piece are. Raises ``ModelError``, with all empty."""

    def logits(self, place: int) -> NDArray[np.float32]:
        """Logits, float32 of shape (n_vocab,)."""

    def sample(self, place: int, chain: Chain) -> int:
        """Chooses from the whole vocabulary, and tells the chain."""

    def close(self) -> None:
        """Frees what it holds."""


@dataclass(eq=False, slots=True)
class Slot:
    """The record of one sequence.

    Attributes:
        index: number of the sequence.
        buffer: its tokens are the first ``length`` of these; int32 of shape (n_ctx,).
        length: how many tokens are in its KV cells.
        busy: whether somebody writes to it.
        released: when it was last released: the smaller, the longer ago.
        partition: whose tokens these are.
    """

    index: int
    buffer: Tokens
    length: int = 0
    busy: bool = False
    released: int = 0
    partition: str = ""

    @property
    def tokens(self) -> Tokens:
        """The tokens in its KV cells: a view."""
        return self.buffer[: self.length]


class Slots:
    """The slots of an evaluator, each for one sequence. Not to be used by two threads at once.

    Without ``keep_prompts`` nothing is taken over: every prompt is evaluated from its beginning.
    ``worth_copying``: tokens that must be saved before a prefix is copied.
    """

    def __init__(self, evaluator: Evaluator, *, keep_prompts: bool = True) -> None:
        self._evaluator = evaluator
        self._keep_prompts = keep_prompts
        self._slots = [Slot(index, np.zeros(evaluator.n_ctx, np.intc)) for index in range(evaluator.count)]
        self._clock = 0
        room = evaluator.n_ctx * evaluator.count // ASIDE_PART
        self._aside = Aside(evaluator, room, one_state=evaluator.one_state)
        self.worth_copying = max(_WORTH_COPYING, evaluator.n_ctx // _COPIED_CELLS_PER_TOKEN)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def take(self, wanted: Tokens, partition: str = "") -> Slot | None:
        """A slot to write to, with what its partition knows of the beginning of ``wanted``, but never its last two.

        The slot that was released longest ago is overwritten, except where another one can go on and loses little: so
        what the others hold stays known. What it held is put aside. ``None`` if all slots are busy.
        """
        idle = [slot for slot in self._slots if not slot.busy]
        if not idle:
            return None
        source = self._best(wanted, partition)
        target = min(idle, key=lambda slot: (slot.length > 0, slot.released))
        known = self._known(source, wanted, partition)
        if known and not source.busy and source.length - known < self.worth_copying:
            target = source
        target.busy = True
        try:
            if self._keep_prompts:
                self._exchange(target, wanted, known, partition)
            if target.partition != partition:
                self.clear(target)
                target.partition = partition
            if not self.fill(target, wanted):
                self._cut(target, self._known(target, wanted, partition))
        except BaseException:
            self.release(target)
            raise
        return target

    def _exchange(self, target: Slot, wanted: Tokens, known: int, partition: str) -> None:
        """Puts aside what a slot holds, and takes back what serves better than the ``known`` tokens of the slots."""
        present = target.tokens
        with self._empty_after_errors(target):
            now = self._aside.exchange(
                target.index, present, wanted, known, owner=target.partition, partition=partition
            )
            if now is present:
                return
            target.partition = partition
            if not len(now):
                self._evaluator.clear(target.index)
            target.buffer[: len(now)] = now
            target.length = len(now)

    def fill(self, target: Slot, wanted: Tokens) -> bool:
        """Makes the beginning of ``wanted`` that another slot knows all of ``target``, if that is worth copying.

        If it could not be copied after all, ``target`` is as it was, or empty.
        """
        partition = target.partition
        source = self._best(wanted, partition)
        length = self._known(source, wanted, partition)
        if source is target or length < self._known(target, wanted, partition) + self.worth_copying:
            return False
        return self.copy(source, target, length)

    def release(self, slot: Slot) -> None:
        """Lets others write to a slot. What it holds stays known until one does."""
        self._clock += 1
        slot.released = self._clock
        slot.busy = False

    def copy(self, source: Slot, target: Slot, length: int) -> bool:
        """Makes the first ``length`` tokens of ``source`` all of ``target``; whether that is possible.

        If not, ``target`` is as it was, or empty.
        """
        if self._evaluator.one_state and length != source.length:
            return False
        with self._empty_after_errors(target):
            possible = self._evaluator.copy(source.index, target.index, length)
            target.buffer[:length] = source.buffer[:length]
            target.length = length if possible else 0
            target.partition = source.partition
        return possible

    def cut(self, slot: Slot, length: int) -> None:
        """Shortens a slot to its first ``length`` tokens at most; where that is not possible, it is empty then."""
        self._cut(slot, max(0, min(slot.length, length)))

    def clear(self, slot: Slot) -> None:
        """Frees the KV cells of a slot."""
        self._evaluator.clear(slot.index)
        slot.length = 0

    def forget(self) -> None:
        """Frees what was put aside."""
        self._aside.clear()

    def evaluate(self, pieces: Sequence[tuple[Slot, Tokens, bool]]) -> list[int]:
        """Evaluates tokens after those that slots have, and whether their logits are wanted; returns where these are.

        Raises ``ModelError``, with all slots empty, if that fails.
        """
        try:
            places = self._evaluator.evaluate(
                [Piece(slot.index, slot.length, tokens, wants) for slot, tokens, wants in pieces]
            )
        except ModelError:
            for slot in self._slots:
                self.clear(slot)
            raise
        for slot, tokens, _ in pieces:
            end = slot.length + len(tokens)
            slot.buffer[slot.length : end] = tokens
            slot.length = end
        return places

    def _best(self, wanted: Tokens, partition: str) -> Slot:
        """The slot that knows most of the beginning of ``wanted``, for a partition."""
        return max(self._slots, key=lambda slot: (self._known(slot, wanted, partition), not slot.busy, slot.released))

    def _known(self, slot: Slot, wanted: Tokens, partition: str) -> int:
        """How many tokens of a slot can serve ``wanted``, for a partition."""
        if not self._keep_prompts or slot.partition != partition:
            return 0
        length = reusable_prefix(slot.tokens, wanted)
        return 0 if self._evaluator.one_state and length != slot.length else length

    def _cut(self, slot: Slot, length: int) -> None:
        if length == slot.length:
            return
        with self._empty_after_errors(slot):
            if length and self._evaluator.cut(slot.index, length):
                slot.length = length
            else:
                self.clear(slot)

    @contextlib.contextmanager
    def _empty_after_errors(self, slot: Slot) -> Iterator[None]:
        """Empties a slot where changing it ends with an error: its KV cells may hold anything then."""
        try:
            yield
        except BaseException:
            self.clear(slot)
            raise
