"""Batches of tokens, in the form that ``llama_decode`` takes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import llama_cpp
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Tokens: TypeAlias = NDArray[np.intc]
"""Token ids, int32 of shape (n,)."""

FORCED_TOGETHER = 32
"""Forced tokens of one answer that are evaluated together; more are evaluated in groups of this size. Log-probabilities
change no group, because groups of other sizes may be rounded differently. llama.cpp reserves memory for the logits of
this many tokens: 4 bytes for each token of the vocabulary, one megabyte per row for the largest."""


def next_group(done: int, end: int, first_read: int) -> int:
    """Returns how many tokens of a sequence are evaluated next, from number ``done`` on.

    Args:
        done: number of tokens that are evaluated already.
        end: number of tokens to evaluate in all.
        first_read: number of the first token after which logits may be read: the one before the forced tokens.
    """
    return min(end, max(done, first_read) + FORCED_TOGETHER) - done


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens to be evaluated next.

    Attributes:
        sequence: the number of the sequence, 0 to ``count`` - 1.
        position: tokens that the sequence already has.
        tokens: the new tokens, at least one.
        outputs: number of last tokens after which the logits are read.
    """

    sequence: int
    position: int
    tokens: Tokens = field(repr=False)
    outputs: int


class Batch:
    """A ``llama_batch`` over numpy arrays, with room for ``size`` tokens."""

    def __init__(self, size: int) -> None:
        self._token = np.zeros(size, np.int32)
        self._position = np.zeros(size, np.int32)
        self._sequence = np.zeros(size, np.int32)
        self._wanted = np.zeros(size, np.int8)
        self._one = np.ones(size, np.int32)  # each token belongs to one sequence
        steps = self._sequence.itemsize * np.arange(size, dtype=np.uintp)
        self._addresses = self._sequence.ctypes.data + steps
        self.batch = llama_cpp.llama_batch()
        batch = self.batch
        batch.token = _pointer(self._token, llama_cpp.llama_token)
        batch.pos = _pointer(self._position, llama_cpp.llama_pos)
        batch.n_seq_id = _pointer(self._one, ctypes.c_int32)
        batch.seq_id = _pointer(self._addresses, ctypes.POINTER(llama_cpp.llama_seq_id))
        batch.logits = _pointer(self._wanted, ctypes.c_int8)

    def fill(self, pieces: Sequence[Piece]) -> list[int]:
        """Writes the pieces one after another; returns the index of the last token of each."""
        rows = []
        end = 0
        for piece in pieces:
            start, end = end, end + len(piece.tokens)
            self._token[start:end] = piece.tokens
            self._position[start:end] = np.arange(piece.position, piece.position + len(piece.tokens))
            self._sequence[start:end] = piece.sequence
            self._wanted[start:end] = 0
            self._wanted[end - piece.outputs : end] = 1
            rows.append(end - 1)
        self.batch.n_tokens = end
        return rows


def _pointer(array: NDArray[Any], kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
