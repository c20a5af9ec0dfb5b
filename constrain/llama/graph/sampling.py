"""The choices of one answer inside the graph of a context."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np

from constrain.errors import ModelError
from constrain.language.grammar import Kind
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
        if sampling.seed is not None:  # the answer's own chains have the seed itself and the next ones
            sampling = replace(sampling, seed=(sampling.seed + SEEDS // 2) % SEEDS)
        self._chain = Chain(sampling, n_vocab, n_ctx, first=self._mask.pointer)

    def is_ready(self, matcher: AnswerMatcher) -> bool:
        """Whether the token after the next evaluation is chosen in the graph.

        It is not if the grammar asks for a temperature of its own, or near a limit on tokens; from there on, tokens are
        chosen in main memory.

        Raises ``ModelError`` if llama.cpp cannot use the samplers.
        """
        if matcher.temperature is not None or self._may_end_early(matcher):
            self._detach()
            return False
        if not self._is_attached:
            if self._was_attached:  # llama.cpp takes a chain only once
                return False
            self._attach()
        return True

    def _may_end_early(self, matcher: AnswerMatcher) -> bool:
        """Whether a limit removes tokens from the mask, or may soon end the string that is being written."""
        if not matcher.near_limit:
            return False
        unlimited = np.zeros_like(self._row)
        matcher.fill_bitmask(unlimited, True)  # noqa: FBT003
        matcher.fill_bitmask(self._row)
        return matcher.lexeme[0] == Kind.TEXT or not np.array_equal(unlimited, self._row)

    def allow(self, matcher: AnswerMatcher) -> None:
        """Sets the mask of the next evaluation."""
        matcher.fill_bitmask(self._row)
        self._mask.set_bits(self._row)

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
        return token if self._row[token >> 5] >> (token & 31) & 1 else self._likeliest()

    def _likeliest(self) -> int:
        """The likeliest allowed token. Raises ``ModelError`` if llama.cpp does not tell the probabilities.

        llama.cpp takes the last candidate, allowed or not, where the rounded probabilities add up to less than its
        random number: about once in ten million tokens.
        """
        probabilities = llama_cpp.llama_get_sampled_probs_ith(self._pointer, -1)
        if not probabilities:
            raise ModelError("llama.cpp chose a token in its graph that the mask forbids; this is a fault, report it")
        count = llama_cpp.llama_get_sampled_probs_count_ith(self._pointer, -1)
        likely = np.ctypeslib.as_array(probabilities, (count,))
        candidates = llama_cpp.llama_get_sampled_candidates_ith(self._pointer, -1)
        tokens = np.ctypeslib.as_array(candidates, (count,)) if candidates else np.arange(count)
        allowed = self._row[tokens >> 5] >> (tokens & 31).astype(np.uint32) & 1
        return int(tokens[np.where(allowed, likely, -1).argmax()])

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
