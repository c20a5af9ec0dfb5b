"""A scripted model for one sequence: subclasses make its logits, and it notes what it evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.llama.binding import Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from constrain.llama.decoding.sampler import Chain

    Row = np.ndarray[Any, np.dtype[np.float32]]


class Inserting:
    """What an answer calls for tokens to insert: those of ``wanted``, by the number of the token behind them, once."""

    def __init__(self, wanted: Mapping[int, Sequence[int]]) -> None:
        self.wanted = dict(wanted)

    def __call__(self, tokens: Sequence[int]) -> Sequence[int]:
        return self.wanted.pop(len(tokens), ())


class Alone:
    """What ``Decoding`` asks of a context. ``calls``: the tokens that were evaluated together."""

    leaves_a_core = True

    def __init__(self, n_vocab: int, n_ctx: int = 400) -> None:
        self.n_vocab, self.n_ctx = n_vocab, n_ctx
        self.candidates = Candidates(n_vocab)
        self.evaluated: list[int] = []
        self.calls: list[list[int]] = []

    def next_logits(self) -> Row:
        """The logits after the tokens in ``evaluated``."""
        raise NotImplementedError

    def prefill(
        self,
        tokens: Sequence[int],
        deadline: float | None = None,  # noqa: ARG002
        *,
        n_forced: int = 0,
        read: Callable[[Row], None] | None = None,
    ) -> int:
        n_prompt = len(tokens) - n_forced
        self.evaluated = list(tokens[:n_prompt])
        self.calls.append(list(tokens))
        for token in tokens[n_prompt:]:
            if read is not None:
                read(self.next_logits())
            self.evaluated.append(token)
        return 0

    def decode(self, tokens: Sequence[int], read: Callable[[Row], None] | None = None) -> None:
        self.calls.append(list(tokens))
        for number, token in enumerate(tokens):
            if number and read is not None:
                read(self.next_logits())
            self.evaluated.append(token)

    def logits(self, row: int = -1) -> Row:
        assert row == -1
        return self.next_logits()

    def sample(self, chain: Chain, row: int = -1) -> int:
        logits = self.logits(row)
        for token in range(self.n_vocab):
            self.candidates.buffer[token] = (token, logits[token], 0)
        return chain.choose(self.candidates, self.n_vocab)
