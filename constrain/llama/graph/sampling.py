"""The choices of one answer inside the graph of a context."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np

from constrain.errors import ModelError
from constrain.llama.decoding.ranges import SEEDS
from constrain.llama.decoding.sampler import Chain
from constrain.llama.graph.mask_sampler import MaskSampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.decoding.answer_matcher import AnswerMatcher
    from constrain.llama.decoding.sampler import Sampling

_SEQUENCE = 0


class GraphSampling:
    """Has llama.cpp choose the tokens of an answer in its graph, under the mask of a matcher.

    Args:
        pointer: the context, as llama.cpp's pointer. It has one sequence.
        sampling: how to sample.
        n_vocab: number of tokens in the vocabulary.
        n_ctx: the most tokens of an answer.
    """

    def __init__(self, pointer: llama_cpp.llama_context_p, sampling: Sampling, n_vocab: int, n_ctx: int) -> None:
        self._pointer = pointer
        self._mask = MaskSampler(n_vocab)
        self._row = np.zeros(-(-n_vocab // 32), np.uint32)
        self._is_attached = self._was_attached = False
        if sampling.seed is not None:  # the answer's own chain, which makes the first choice, has the seed itself
            sampling = replace(sampling, seed=(sampling.seed + 1) % SEEDS)
        self._chain = Chain(sampling, n_vocab, n_ctx, first=self._mask.pointer)

    def prepare(self, matcher: AnswerMatcher) -> bool:
        """Sets the mask of the next evaluation; returns whether the token after it is chosen in the graph.

        Not if the grammar asks for a temperature of its own; from there on, tokens are chosen in main memory.

        Raises ``ModelError`` if llama.cpp cannot use the samplers.
        """
        if matcher.temperature is not None:
            self._detach()
            return False
        if not self._is_attached:
            if self._was_attached:  # llama.cpp takes a chain only once
                return False
            self._attach()
        matcher.fill_bitmask(self._row)
        self._mask.allow(self._row)
        return True

    def record(self, tokens: Sequence[int]) -> None:
        """Counts tokens that the answer has taken."""
        for token in tokens:
            self._chain.accept(token)

    def take(self) -> int:
        """The token that the last evaluation has chosen. Raises ``ModelError`` if there is none."""
        self._mask.check()
        token: int = llama_cpp.llama_get_sampled_token_ith(self._pointer, -1)
        if token < 0:
            raise ModelError(
                "llama.cpp cannot choose tokens in its graph with these options on this device; "
                "load the model without mask_in_graph"
            )
        return token

    def close(self) -> None:
        """Detaches the samplers from the context, and frees them."""
        self._detach()
        self._chain.close()
        self._mask.close()

    def _attach(self) -> None:
        self._is_attached = self._was_attached = True
        attached = llama_cpp.llama_set_sampler(self._pointer, _SEQUENCE, self._chain.pointer)
        self._mask.check()
        if not attached:
            raise ModelError("llama.cpp cannot use samplers in the graph of this model; load it without mask_in_graph")

    def _detach(self) -> None:
        if self._is_attached:
            llama_cpp.llama_set_sampler(self._pointer, _SEQUENCE, None)
        self._is_attached = False
