"""States of overwritten sequences, stored in main memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Protocol

import llama_cpp
import numpy as np

from constrain.system import map_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORTH_KEEPING = 16
_LOST_PART = 8
"""Tokens that must otherwise be lost before a state is stored: at least 16, and one eighth of the sequence. Storing a
sequence takes about as long as evaluating one hundredth of its tokens, and not every conversation goes on."""


ALWAYS_EVALUATED = 2
"""Tokens at the end of a prompt that are evaluated even if they are known."""


class States(Protocol):
    """States of a context after a sequence of tokens, as bytes."""

    def save(self, sequence: int) -> NDArray[np.uint8] | None:
        """The state of a sequence; ``None`` if llama.cpp cannot give it or there is no memory for it."""

    def restore(self, sequence: int, state: NDArray[np.uint8]) -> bool:
        """Sets the state of a sequence. Returns whether that worked; if not, the sequence may hold anything."""


class ContextStates:
    """The states of the sequences of a llama.cpp context."""

    def __init__(self, context: llama_cpp.llama_context_p) -> None:
        self._context = context

    def save(self, sequence: int) -> NDArray[np.uint8] | None:
        """See ``States``."""
        size = llama_cpp.llama_state_seq_get_size(self._context, sequence)
        if not size:  # llama.cpp reports a failure this way
            return None
        try:
            # Separate pages: on the heap, blocks of so many sizes would leave as much memory again unused.
            pages = map_memory(size)
        except (OSError, MemoryError):  # without memory the sequence is evaluated again later; no answer fails
            return None
        state = np.frombuffer(pages, np.uint8)
        written = llama_cpp.llama_state_seq_get_data(self._context, _address(state), len(state), sequence)
        return state if written == len(state) else None

    def restore(self, sequence: int, state: NDArray[np.uint8]) -> bool:
        """See ``States``."""
        read = llama_cpp.llama_state_seq_set_data(self._context, _address(state), len(state), sequence)
        return bool(read == len(state))


@dataclass(frozen=True, slots=True)
class _Sequence:
    partition: str
    tokens: NDArray[np.intc]
    state: NDArray[np.uint8] = field(repr=False)


class StoredStates:
    """Stored states of earlier sequences: at most ``room`` tokens together, the oldest are dropped first.

    ``one_state``: a sequence can only continue after its last token (recurrent models). A state serves only requests
    of the partition that its tokens came from, and other partitions cannot tell that it is stored.
    """

    def __init__(self, states: States, room: int, *, one_state: bool) -> None:
        self._states = states
        self._room = room
        self._one_state = one_state
        self._kept: list[_Sequence] = []

    def exchange(
        self,
        sequence: int,
        present: NDArray[np.intc],
        wanted: NDArray[np.intc],
        known: int = 0,
        *,
        owner: str = "",
        partition: str = "",
    ) -> NDArray[np.intc]:
        """Stores the state of a sequence if much of it would be lost, and restores a better one for ``wanted``.

        Args:
            sequence: the number of the sequence in the context.
            present: its tokens, int32 of shape (n,).
            wanted: the tokens to be evaluated.
            known: how many of the wanted tokens are available elsewhere.
            owner: the partition of the present tokens.
            partition: the partition that asks for the wanted tokens.

        Returns the tokens that the sequence holds now; none if llama.cpp could not restore a state.
        """
        shared = self.usable(present, wanted) if owner == partition else 0
        own = [one for one in self._kept if one.partition == partition]
        best = max(own, key=lambda one: self.usable(one.tokens, wanted), default=None)
        lost = len(present) - shared
        if lost >= max(_WORTH_KEEPING, len(present) // _LOST_PART):
            self._keep(sequence, present.copy(), owner)
        if best is None or self.usable(best.tokens, wanted) < max(shared, known) + _WORTH_KEEPING:
            return present
        self._kept = [one for one in self._kept if one is not best]
        return best.tokens if self._states.restore(sequence, best.state) else best.tokens[:0]

    def clear(self) -> None:
        """Frees the memory of all stored states."""
        self._kept = []

    def usable(self, known: NDArray[np.intc], wanted: NDArray[np.intc]) -> int:
        """The number of tokens of ``wanted`` that need no evaluation after the known ones."""
        length = reusable_prefix(known, wanted)
        return 0 if self._one_state and length < len(known) else length

    def _keep(self, sequence: int, tokens: NDArray[np.intc], partition: str) -> None:
        # The new state replaces each older one that it covers: all of its tokens, and the two always evaluated.
        follow = [0] * ALWAYS_EVALUATED
        kept = [
            one
            for one in self._kept
            if one.partition != partition or self.usable(tokens, np.append(one.tokens, follow)) < len(one.tokens)
        ]
        while kept and sum(len(one.tokens) for one in kept) + len(tokens) > self._room:
            del kept[0]
        self._kept = kept  # frees dropped states before the new state takes their room
        state = self._states.save(sequence)
        if state is not None:
            kept.append(_Sequence(partition, tokens, state))


def _address(state: NDArray[np.uint8]) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def reusable_prefix(known: NDArray[np.intc], wanted: NDArray[np.intc]) -> int:
    """The number of tokens of ``wanted`` that need no evaluation; the last two are always evaluated.

    The last token is evaluated for its logits. Evaluated alone it would go through llama.cpp's kernels for single
    tokens, which round differently from those for prompts; the answer would depend on whether the prompt was known.
    """
    return common_prefix(known, wanted[:-ALWAYS_EVALUATED])


def common_prefix(one: NDArray[np.intc], other: NDArray[np.intc]) -> int:
    """The number of equal tokens at the beginning of both."""
    length = min(len(one), len(other))
    differ = np.flatnonzero(one[:length] != other[:length])
    return int(differ[0]) if len(differ) else length


def match_groups(known: NDArray[np.intc], groups: Sequence[Sequence[int]]) -> tuple[NDArray[np.intc], int, list[int]]:
    """Returns the tokens of all groups, how many of them need no evaluation, and where the other groups end.

    Only whole groups need none, since rounding depends on the group; and never the last one.

    ``known``: the tokens that are there, int32 of shape (n,).
    """
    wanted = np.asarray(list(chain.from_iterable(groups)), dtype=np.intc)
    ends = list(accumulate(map(len, groups)))
    length = common_prefix(known, wanted)
    kept = max((end for end in ends[:-1] if end <= length), default=0)
    return wanted, kept, [end for end in ends if end > kept]
