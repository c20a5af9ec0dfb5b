"""The time that llama.cpp takes to evaluate several tokens at once, measured: cost(n)."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np
from llama_cpp._internals import LlamaContext

from constrain.errors import ModelError
from constrain.llama.contexts.batch import Batch, Piece
from constrain.llama.threads.threads import Threads
from constrain.llama.weights.texts import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = (1, 2, 3, 4, 6, 8, 16)
"""Numbers of tokens that are measured. In layouts of several rows, three tokens may cost more than four."""

_POSITION = 64
"""Tokens that are there before the measured ones: a short prompt."""

_ROUNDS = 5
"""Measurements of each number of tokens, of which the median counts; they alternate, so that noise falls on all."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of one evaluation, by the number of tokens.

    Attributes:
        n_threads: threads that computed one token, and several.
        every: with the logits after every token.
        last: with the logits after the last token only.
    """

    n_threads: tuple[int, int]
    every: Mapping[int, float]
    last: Mapping[int, float]


def measure_costs(llama: llama_cpp.Llama) -> Costs:
    """Measures a loaded model, in a context of its own with the settings of the ``Llama``.

    Uses as many threads as are free. Raises ``ModelError`` if llama.cpp cannot make the context or fails.
    """
    parameters = llama_cpp.llama_context_params.from_buffer_copy(llama.context_params)
    parameters.n_ctx = 2 * (_POSITION + max(SIZES))
    parameters.n_batch = parameters.n_ubatch = max(_POSITION, *SIZES)
    parameters.n_outputs_max = max(SIZES)
    parameters.n_seq_max = 1
    try:
        context = LlamaContext(model=llama._model, params=parameters, verbose=False)
    except ValueError as error:
        raise ModelError(f"{llama.model_path}: there is too little memory to measure it") from error
    try:
        return _measure(llama, context)
    finally:
        context.close()  # type: ignore[no-untyped-call]


def _measure(llama: llama_cpp.Llama, context: LlamaContext) -> Costs:
    pointer = context.ctx
    memory = llama_cpp.llama_get_memory(pointer)
    threads = Threads(pointer)
    batch = Batch(max(_POSITION, *SIZES))
    words = llama.tokenize(SAMPLE.encode(), add_bos=False, special=False)
    tokens = np.resize(np.asarray(words, dtype=np.intc), _POSITION + max(SIZES))

    def evaluate(position: int, count: int, outputs: int) -> float:
        batch.fill([Piece(0, position, tokens[position : position + count], outputs)])
        started = time.perf_counter()
        if status := threads.decode(batch.batch):
            raise ModelError(f"{llama.model_path}: evaluation failed: llama_decode returned {status}")
        llama_cpp.llama_synchronize(pointer)
        return time.perf_counter() - started

    def prepare() -> None:
        if not llama_cpp.llama_memory_seq_rm(memory, 0, _POSITION, -1):  # recurrent models cannot go back
            llama_cpp.llama_memory_clear(memory, False)  # noqa: FBT003
            evaluate(0, _POSITION, 1)

    evaluate(0, _POSITION, 1)
    cases = [(size, outputs) for size in SIZES for outputs in {1, size}]
    times: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    for _ in range(_ROUNDS):
        for size, outputs in cases:
            prepare()
            times[size, outputs].append(evaluate(_POSITION, size, outputs))
    found = {case: statistics.median(each) for case, each in times.items()}
    return Costs(
        (llama_cpp.llama_n_threads(pointer), llama_cpp.llama_n_threads_batch(pointer)),
        {size: found[size, size] for size in SIZES},
        {size: found[size, 1] for size in SIZES},
    )
