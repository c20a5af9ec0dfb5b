"""Slots: the prompt cache, kept apart by API key (partition): the tokens of each sequence, and which a prompt reuses.

A new prompt reuses the beginning that it shares with any sequence, active or idle, and with stored states of
overwritten sequences while main memory has room for them. Beginnings that many requests share are also on disk
(``llama.prompt_cache``). Only sequences of the same partition count, so a request in one partition cannot tell what was
asked in another.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from constrain.errors import ModelError
from constrain.llama.contexts.batch import Piece
from constrain.llama.contexts.stored_states import States, StoredStates, reusable_prefix
from constrain.llama.prompt_cache.prompts import WORTH_RESTORING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from constrain.llama.contexts.batch import Tokens
    from constrain.llama.decoding.sampler import Chain
    from constrain.llama.prompt_cache.prompts import ContextPrompts, KeptPrompt


_WORTH_COPYING = 8
_COPIED_CELLS_PER_TOKEN = 256
"""Tokens that copying must save: 8, and one for every 256 cells of a sequence, as up to all of them are copied. On
processors, evaluating one token takes as long as copying some 500 cells of the same model."""

STORED_STATES_SHARE = 4
"""States of overwritten sequences take at most this part (one fourth) of the memory of the context, in main memory."""


class BatchEvaluator(States, Protocol):
    """The methods of a model that slots need (``constrain.llama.contexts.sequences.Sequences``)."""

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
    def n_outputs(self) -> int:
        """The most tokens of one evaluation after which logits can be read."""

    @property
    def n_vocab(self) -> int:
        """Number of tokens in the vocabulary."""

    @property
    def one_state(self) -> bool:
        """Whether each sequence has only one state, after its last token (recurrent models)."""

    @property
    def leaves_a_core(self) -> bool:
        """Whether a core is free for another thread during an evaluation."""

    def cut(self, sequence: int, length: int) -> bool:
        """Shortens a sequence. Returns whether that worked; if not, the sequence is empty."""

    def copy(self, source: int, target: int, length: int) -> bool:
        """Replaces a sequence by the beginning of another. Returns whether that worked; if not, it is empty."""

    def clear(self, sequence: int) -> None:
        """Removes all tokens of a sequence from the KV cache."""

    def evaluate(self, pieces: Sequence[Piece]) -> list[int]:
        """Evaluates tokens; returns the index of each piece's logits. If it fails, all are empty: ``ModelError``."""

    def logits(self, index: int) -> NDArray[np.float32]:
        """The logits at an index, float32 of shape (n_vocab,)."""

    def sample(self, index: int, chain: Chain) -> int:
        """Samples from the whole vocabulary and updates the chain."""

    def close(self) -> None:
        """Frees the context."""


@dataclass(eq=False, slots=True)
class Slot:
    """The record of one sequence.

    Attributes:
        index: number of the sequence.
        buffer: int32 of shape (n_ctx,); its first ``length`` tokens are those of the sequence.
        length: number of tokens in the KV cells.
        busy: whether a request uses the slot.
        released: counter value of the last release; smaller is longer ago.
        partition: the partition that the tokens belong to.
    """

    index: int
    buffer: Tokens
    length: int = 0
    busy: bool = False
    released: int = 0
    partition: str = ""

    @property
    def tokens(self) -> Tokens:
        """The tokens in the KV cells, as a view."""
        return self.buffer[: self.length]


class Slots:
    """The slots of an evaluator, one for each sequence. Not to be used by two threads at once.

    Without ``keep_prompts`` nothing is reused: every prompt is evaluated from its beginning.
    ``worth_copying``: tokens that must be saved before a prefix is copied. ``prompts``: evaluated prompts on disk;
    ``None`` for none.
    """

    def __init__(
        self, evaluator: BatchEvaluator, *, keep_prompts: bool = True, prompts: ContextPrompts | None = None
    ) -> None:
        self._evaluator = evaluator
        self._keep_prompts = keep_prompts
        self._slots = [Slot(index, np.zeros(evaluator.n_ctx, np.intc)) for index in range(evaluator.count)]
        self._clock = 0
        room = evaluator.n_ctx * evaluator.count // STORED_STATES_SHARE
        self._stored_states = StoredStates(evaluator, room, one_state=evaluator.one_state)
        self._prompts = prompts if keep_prompts else None
        self.worth_copying = max(_WORTH_COPYING, evaluator.n_ctx // _COPIED_CELLS_PER_TOKEN)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def take(self, wanted: Tokens, partition: str = "", *, on_disk: bool = False) -> Slot | None:
        """Takes a free slot that holds all known tokens of ``wanted`` for the partition, except the last two.

        An idle slot that already holds them is continued if little else in it is lost. Otherwise another is
        overwritten, and its state is stored: the one nearest to the slots in use, because adjacent ones are evaluated
        together, and of several the one released longest ago. Returns ``None`` if all slots are busy.

        ``on_disk``: whether tokens count as known that are on disk.
        """
        idle = [slot for slot in self._slots if not slot.busy]
        if not idle:
            return None
        source = self._best(wanted, partition)
        busy = [slot.index for slot in self._slots if slot.busy]
        target = min(idle, key=lambda slot: (slot.length > 0, _distance(slot.index, busy), slot.released))
        known = self._known(source, wanted, partition)
        if known and not source.busy and source.length - known < self.worth_copying:
            target = source
        target.busy = True
        try:
            kept = self._prompts.find(wanted, partition) if on_disk and self._prompts is not None else None
            least = 0 if kept is None else kept.usable - WORTH_RESTORING
            if self._keep_prompts:
                self._exchange(target, wanted, max(known, least), partition)
            if target.partition != partition:
                self.clear(target)
                target.partition = partition
            if kept is not None and self._known(self._best(wanted, partition), wanted, partition) <= least:
                self._restore(target, kept)
            if not self.fill(target, wanted):
                self._cut(target, self._known(target, wanted, partition))
        except BaseException:
            self.release(target)
            raise
        return target

    def _exchange(self, target: Slot, wanted: Tokens, known: int, partition: str) -> None:
        """Stores the state of a slot, and restores a stored one with more of ``wanted`` than ``known`` tokens."""
        present = target.tokens
        with self._empty_after_errors(target):
            now = self._stored_states.exchange(
                target.index, present, wanted, known, owner=target.partition, partition=partition
            )
            if now is present:
                return
            target.partition = partition
            if not len(now):
                self._evaluator.clear(target.index)
            target.buffer[: len(now)] = now
            target.length = len(now)

    def _restore(self, target: Slot, kept: KeptPrompt) -> None:
        """Restores a state from disk, if its file can be used."""
        assert self._prompts is not None
        with self._empty_after_errors(target):
            now = self._prompts.restore(kept, partial(self._evaluator.restore, target.index))
            if now is None:
                return
            if not len(now):
                self._evaluator.clear(target.index)
            target.buffer[: len(now)] = now
            target.length = len(now)

    def end_to_keep(self, prompt: Tokens, known: int, shared: Callable[[], int] | None, partition: str) -> int:
        """The number of tokens of a prompt after which ``keep`` is to be called; 0 for none.

        ``known``: tokens that need no evaluation; ``shared``: see ``Request``.
        """
        return 0 if self._prompts is None else self._prompts.end_to_keep(prompt, known, shared, partition)

    def keep(self, slot: Slot) -> None:
        """Has the state of a slot written to disk."""
        assert self._prompts is not None
        self._prompts.keep(slot.tokens, self._evaluator.save(slot.index), slot.partition)

    def fill(self, target: Slot, wanted: Tokens) -> bool:
        """Copies the known beginning of ``wanted`` from another slot, if that is worth it; returns whether it did.

        If copying fails, ``target`` is unchanged or empty.
        """
        partition = target.partition
        source = self._best(wanted, partition)
        length = self._known(source, wanted, partition)
        if source is target or length < self._known(target, wanted, partition) + self.worth_copying:
            return False
        return self.copy(source, target, length)

    def release(self, slot: Slot) -> None:
        """Frees a slot for other requests; its tokens stay known until it is overwritten."""
        self._clock += 1
        slot.released = self._clock
        slot.busy = False

    def copy(self, source: Slot, target: Slot, length: int) -> bool:
        """Replaces ``target`` by the first ``length`` tokens of ``source``; returns whether that worked.

        If not, ``target`` is unchanged or empty.
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
        """Shortens a slot to at most its first ``length`` tokens; empties it if llama.cpp cannot do that."""
        self._cut(slot, max(0, min(slot.length, length)))

    def clear(self, slot: Slot) -> None:
        """Removes all tokens of a slot from the KV cache."""
        self._evaluator.clear(slot.index)
        slot.length = 0

    def forget(self) -> None:
        """Frees the stored states."""
        self._stored_states.clear()

    def spare(self, length: int) -> tuple[int, ...]:
        """The numbers of idle slots that can take a token along: not longer than ``length``, which would cost more."""
        if self._evaluator.one_state:
            return ()
        return tuple(slot.index for slot in self._slots if not slot.busy and slot.length < length)

    def evaluate(self, pieces: Sequence[tuple[Slot, Tokens, int]], along: Sequence[int] = ()) -> list[int]:
        """Evaluates pieces: slot, tokens, number of last tokens after which logits are read.

        Returns the index of the logits after each piece; those after the tokens before it come before.

        ``along``: numbers of idle slots that take as many tokens along, so that the evaluation costs less; they are
        removed again. Raises ``ModelError`` if the evaluation fails; all slots are empty then.
        """
        wanted = [Piece(slot.index, slot.length, tokens, outputs) for slot, tokens, outputs in pieces]
        if along:
            like = wanted[0]
            wanted += [Piece(index, self._slots[index].length, like.tokens, like.outputs) for index in along]
            wanted.sort(key=lambda piece: piece.sequence)
        try:
            rows = self._evaluator.evaluate(wanted)
        except ModelError:
            for slot in self._slots:
                self.clear(slot)
            raise
        for slot, tokens, _ in pieces:
            end = slot.length + len(tokens)
            slot.buffer[slot.length : end] = tokens
            slot.length = end
        if not along:
            return rows
        for index in along:
            self._remove_behind(self._slots[index])
        row_of = {piece.sequence: row for piece, row in zip(wanted, rows, strict=True)}
        return [row_of[slot.index] for slot, _, _ in pieces]

    def _remove_behind(self, slot: Slot) -> None:
        """Removes the tokens that a slot took along."""
        with self._empty_after_errors(slot):
            if not (slot.length and self._evaluator.cut(slot.index, slot.length)):
                self.clear(slot)

    def _best(self, wanted: Tokens, partition: str) -> Slot:
        """The slot that knows most of the beginning of ``wanted``, for a partition."""
        return max(self._slots, key=lambda slot: (self._known(slot, wanted, partition), not slot.busy, slot.released))

    def _known(self, slot: Slot, wanted: Tokens, partition: str) -> int:
        """The number of tokens of a slot that ``wanted`` can reuse, for a partition."""
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
        """Empties a slot if changing it raises an error, because its KV cells are unknown then."""
        try:
            yield
        except BaseException:
            self.clear(slot)
            raise


def _distance(index: int, others: Sequence[int]) -> int:
    """The distance to the nearest of other numbers; 0 if there are none."""
    return min((abs(index - other) for other in others), default=0)
