"""Measures what llama.cpp takes to evaluate several tokens at once."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import llama_cpp
import numpy as np

from constrain.errors import ModelError
from constrain.llama.contexts.batch import FORCED_TOGETHER, Batch, Piece
from constrain.llama.costs.table import Costs
from constrain.llama.threads.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from constrain.llama.contexts.sequences import Sequences

Kind = Literal["every", "last", "together"]
"""A table of ``Costs``."""

SIZES: dict[Kind, tuple[int, ...]] = {
    "every": (1, 2, 3, 4, 6, 8, 16),
    "last": (1, 2, 3, 4, 6, 8, 16),
    "together": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
}
"""Numbers of tokens that are measured. In layouts of several rows, three tokens may cost more than four."""

_POSITION = 64
"""Tokens of a short prompt before those that are measured, in a context that is made to measure."""

_ROUNDS = 5
"""Measurements of each number of tokens; they alternate, so that noise falls on all."""

_SECONDS = 1.0
"""Seconds after which no further round begins. The first two are always finished: seconds for a large model."""

_STEADY = 1.25
"""Ratio of the median to the least of the measurements of a size up to which they count as undisturbed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs, and whether nothing seems to have disturbed the measurement, so that they are worth keeping."""

    costs: Costs
    is_steady: bool


def measure_sequences(sequences: Sequences) -> Measured:
    """Measures the evaluations of a scheduler, in its own context; all sequences must be empty.

    Raises ``ModelError`` if llama.cpp fails.
    """
    meter = Meter(sequences.pointer, n_sequences=sequences.count, n_outputs=sequences.n_outputs, path=sequences.path)
    return meter.measure(("last", "together"))


def measure_context(pointer: llama_cpp.llama_context_p, path: str) -> Measured:
    """Measures the evaluations of a context with one sequence, which must be empty. Raises ``ModelError``."""
    kinds: list[Kind] = ["every"]
    return Meter(pointer, n_sequences=1, n_outputs=FORCED_TOGETHER, path=path).measure(kinds)


class Meter:
    """Measures a context; its sequences must be empty, and they are empty again afterwards.

    Args:
        pointer: the context, as llama.cpp's pointer.
        n_sequences: number of its sequences.
        n_outputs: the most tokens of one evaluation after which logits can be read.
        path: path of the model, for errors.
    """

    def __init__(self, pointer: llama_cpp.llama_context_p, *, n_sequences: int, n_outputs: int, path: str) -> None:
        self._pointer = pointer
        self._memory = llama_cpp.llama_get_memory(pointer)
        self._threads = Threads(pointer)
        self._n_sequences, self._n_outputs, self._path = n_sequences, n_outputs, path
        self._room = llama_cpp.llama_n_ctx_seq(pointer)
        self._most = min(llama_cpp.llama_n_batch(pointer), self._room)
        self._batch = Batch(self._most)
        n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(llama_cpp.llama_get_model(pointer)))
        self._tokens = np.random.default_rng(0).integers(0, n_vocab, self._most).astype(np.intc)
        self._position = 0

    def begin_after(self, length: int) -> None:
        """Gives every sequence so many tokens, which stay before the measured ones; at most the size of a batch."""
        self._position = length
        for sequence in range(self._n_sequences):
            self._evaluate([Piece(sequence, 0, self._tokens[:length], 1)])

    def measure(self, kinds: Collection[Kind], *, seconds: float = _SECONDS) -> Measured:
        """Measures these tables, in rounds until ``seconds`` are over. Raises ``ModelError`` if llama.cpp fails."""
        cases: list[tuple[Kind, int]] = []
        for kind in kinds:
            most = self._n_sequences if kind == "together" else self._room - self._position
            outputs = self._n_outputs if kind != "last" else self._most
            cases += [(kind, size) for size in SIZES[kind] if size <= min(most, outputs, self._most)]
        times: dict[tuple[Kind, int], list[float]] = {case: [] for case in cases}
        self._time("every", 1)  # the first evaluation prepares llama.cpp
        begun = time.perf_counter()
        try:
            for number in range(_ROUNDS):
                for kind, size in cases:
                    times[kind, size].append(self._time(kind, size))
                if number and time.perf_counter() - begun > seconds:
                    break
        finally:
            self._threads.restore()
        llama_cpp.llama_memory_clear(self._memory, False)  # noqa: FBT003 - the data may stay
        noise = statistics.median(statistics.median(each) / min(each) for each in times.values())
        tables: dict[Kind, dict[int, float]] = {"every": {}, "last": {}, "together": {}}
        for (kind, size), each in times.items():
            tables[kind][size] = min(each)
        return Measured(Costs(self._threads.most, **tables), noise <= _STEADY)

    def _time(self, kind: Kind, size: int) -> float:
        """Returns the seconds of one evaluation; removes its tokens."""
        at, tokens = self._position, self._tokens
        if kind == "together":
            pieces = [Piece(sequence, at, tokens[:1], 1) for sequence in range(size)]
        else:
            pieces = [Piece(0, at, tokens[:size], size if kind == "every" else 1)]
        seconds = self._evaluate(pieces)
        for piece in pieces:
            if not llama_cpp.llama_memory_seq_rm(self._memory, piece.sequence, at, -1):  # recurrent: cannot go back
                llama_cpp.llama_memory_seq_rm(self._memory, piece.sequence, -1, -1)
                if at:
                    self._evaluate([Piece(piece.sequence, 0, tokens[:at], 1)])
        return seconds

    def _evaluate(self, pieces: Sequence[Piece]) -> float:
        self._batch.fill(pieces)
        started = time.perf_counter()
        if status := self._threads.decode(self._batch.batch):
            raise ModelError(f"{self._path}: evaluation failed: llama_decode returned {status}")
        llama_cpp.llama_synchronize(self._pointer)
        return time.perf_counter() - started
