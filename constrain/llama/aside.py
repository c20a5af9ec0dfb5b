"""Conversations that a context of one sequence puts aside while it evaluates another one."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORTH_KEEPING = 16
_LOST_PART = 8
"""What is put aside: at least 16 tokens would be lost, and one eighth of all: a copy of the whole sequence takes about
as long as evaluating one hundredth of its tokens, and not every conversation goes on."""


@dataclass(frozen=True, slots=True)
class _Sequence:
    tokens: NDArray[np.intc]
    state: NDArray[np.uint8] = field(repr=False)


class Aside:
    """States of earlier sequences in main memory: together at most ``n_ctx`` tokens, the oldest are dropped first.

    ``one_state``: a sequence can only go on after its last token (recurrent models).
    """

    def __init__(self, context: llama_cpp.llama_context_p, sequence: int, n_ctx: int, *, one_state: bool) -> None:
        self._context = context
        self._sequence = sequence
        self._n_ctx = n_ctx
        self._one_state = one_state
        self._kept: list[_Sequence] = []

    def exchange(self, present: NDArray[np.intc], wanted: NDArray[np.intc]) -> NDArray[np.intc]:
        """Puts what the context holds aside if much of it would be lost, and takes back what serves better.

        Args:
            present: the tokens in the context, int32 of shape (n,).
            wanted: the tokens to be evaluated.

        Returns the tokens that are in the context now; none if llama.cpp could not take a state back.
        """
        shared = self._usable(present, wanted)
        best = max(self._kept, key=lambda one: self._usable(one.tokens, wanted), default=None)
        lost = len(present) - shared
        if lost >= max(_WORTH_KEEPING, len(present) // _LOST_PART):
            self._keep(present.copy())
        if best is None or self._usable(best.tokens, wanted) < shared + _WORTH_KEEPING:
            return present
        self._kept = [one for one in self._kept if one is not best]
        size = len(best.state)
        data = best.state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        read = llama_cpp.llama_state_seq_set_data(self._context, data, size, self._sequence)
        return best.tokens if read == size else best.tokens[:0]

    def _usable(self, known: NDArray[np.intc], wanted: NDArray[np.intc]) -> int:
        length = common_prefix(known, wanted[:-1])
        return 0 if self._one_state and length < len(known) else length

    def _keep(self, tokens: NDArray[np.intc]) -> None:
        # What the new state can do as well is of no use any more.
        kept = [one for one in self._kept if self._usable(tokens, np.append(one.tokens, 0)) < len(one.tokens)]
        while kept and sum(len(one.tokens) for one in kept) + len(tokens) > self._n_ctx:
            del kept[0]
        state = np.empty(llama_cpp.llama_state_seq_get_size(self._context, self._sequence), np.uint8)
        data = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        written = llama_cpp.llama_state_seq_get_data(self._context, data, len(state), self._sequence)
        self._kept = [*kept, _Sequence(tokens, state)] if written == len(state) else kept


def common_prefix(one: NDArray[np.intc], other: NDArray[np.intc]) -> int:
    """The number of tokens at the beginning that are the same."""
    length = min(len(one), len(other))
    differ = np.flatnonzero(one[:length] != other[:length])
    return int(differ[0]) if len(differ) else length
