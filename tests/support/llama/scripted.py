"""A scripted model: its next token is a function of all tokens before it, so that every answer is known beforehand."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

import constrain
from constrain.llama.contexts.batch import FORCED_TOGETHER, Piece
from constrain.llama.costs.table import ASSUMED, estimate
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.scheduling.request import Request
from constrain.llama.scheduling.scheduler import Scheduler

N_VOCAB = 32
EOS = 31
TOKENS = [bytes([65 + token]) for token in range(N_VOCAB - 1)] + [b""]


def following(tokens: Sequence[int]) -> int:
    """The token that the scripted model likes best after others: it depends on all of them."""
    return (7 * sum(tokens) + 3 * len(tokens)) % (N_VOCAB - 1)


class Scripted:
    """A model whose next token is a function of all tokens before it. It checks what it is asked to do."""

    leaves_a_core = True

    def __init__(self, *, count: int = 4, n_ctx: int = 400, n_batch: int = 128, one_state: bool = False) -> None:
        self.count, self.n_ctx, self.n_batch, self.n_vocab, self.one_state = count, n_ctx, n_batch, N_VOCAB, one_state
        self.n_outputs = min(n_batch, max(count, FORCED_TOGETHER))
        self.cells: list[list[int]] = [[] for _ in range(count)]
        self.batches: list[list[tuple[int, int, int]]] = []
        self.evaluated = 0
        self.copied: list[int] = []
        self.closed = False
        self.forgets = False  # whether it takes no state back
        self.fails_at = -1
        self.gate: threading.Semaphore | None = None
        self.seconds = 0.0  # of all evaluations, as if each cost what is assumed
        self._logits: dict[int, np.ndarray[Any, np.dtype[np.float32]]] = {}

    def cut(self, sequence: int, length: int) -> bool:
        assert 0 < length <= len(self.cells[sequence])
        if self.one_state and length != len(self.cells[sequence]):
            self.clear(sequence)
            return False
        del self.cells[sequence][length:]
        return True

    def copy(self, source: int, target: int, length: int) -> bool:
        assert source != target
        self.copied.append(length)
        self.cells[target] = list(self.cells[source])
        return self.cut(target, length)

    def save(self, sequence: int) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        return np.array(self.cells[sequence], np.uint8)

    def restore(self, sequence: int, state: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
        if self.forgets:
            self.cells[sequence] = [0]
            return False
        self.cells[sequence] = state.tolist()
        return True

    def clear(self, sequence: int) -> None:
        self.cells[sequence] = []

    def evaluate(self, pieces: Sequence[Piece]) -> list[int]:
        assert not self.closed
        order = [piece.sequence for piece in pieces]
        assert order == sorted(set(order)), "llama.cpp would split this"
        assert len({len(piece.tokens) for piece in pieces}) == 1, "llama.cpp would split this"
        assert 1 <= sum(len(piece.tokens) for piece in pieces) <= self.n_batch
        if self.gate is not None:
            self.gate.acquire()
        if len(self.batches) == self.fails_at:
            self.cells = [[] for _ in range(self.count)]
            self.batches.append([])
            raise constrain.ModelError("evaluation failed")
        assert sum(piece.outputs for piece in pieces) <= self.n_outputs
        self.batches.append([(piece.sequence, piece.position, len(piece.tokens)) for piece in pieces])
        self._logits = {}
        self.seconds += estimate(ASSUMED.together, sum(len(piece.tokens) for piece in pieces))
        rows, end = [], 0
        for piece in pieces:
            cells = self.cells[piece.sequence]
            assert len(cells) == piece.position
            cells += map(int, piece.tokens)
            assert len(cells) <= self.n_ctx
            self.evaluated += len(piece.tokens)
            end += len(piece.tokens)
            assert 0 <= piece.outputs <= len(piece.tokens)
            for behind in range(piece.outputs):
                logits = -np.arange(N_VOCAB, dtype=np.float32)
                logits[following(cells[: len(cells) - behind])] = 10
                self._logits[end - 1 - behind] = logits
            rows.append(end - 1)
        return rows

    def logits(self, index: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return self._logits[index]

    def sample(self, index: int, chain: Chain) -> int:
        del chain
        return int(self._logits[index].argmax())

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def request(prompt: Sequence[int], *, max_tokens: int = 20, **options: Any) -> Request:
    answer = Answer(
        list(prompt),
        Chain(Sampling(temperature=0), N_VOCAB, 400),
        None,
        eos={EOS},
        encode=list,
        token_bytes=TOKENS.__getitem__,
        max_tokens=max_tokens,
        wants_stop=options.pop("wants_stop", lambda _: False),
    )
    return Request(answer, **options)


def run(scheduler: Scheduler, *requests: Request) -> None:
    """Submits requests, lets the model go on if a gate holds it back, and waits until all are answered."""
    for one in requests:
        scheduler.submit(one)
    gate = getattr(scheduler._evaluator, "gate", None)
    if gate is not None:
        gate.release(10**4)
    for one in requests:
        one.done.result(30)


def expected(prompt: Sequence[int], length: int = 20) -> list[int]:
    tokens = list(prompt)
    for _ in range(length):
        tokens.append(following(tokens))
    return tokens[len(prompt) :]
