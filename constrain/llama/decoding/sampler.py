"""The choice of one of the allowed tokens, with temperature and penalties, by llama.cpp's own sampler chain."""

from __future__ import annotations

import math
import secrets
import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.llama.decoding.ranges import MAX_PENALTY, SEEDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.llama.binding import Candidates

_REPEAT_WINDOW = 64
"""Last tokens to which ``repeat_penalty`` applies: llama.cpp's default."""

_LARGEST_BIAS = 1e9
"""The logit bias that replaces an infinite one: large enough to decide, and finite, since infinity would make NaN."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample; the defaults are llama.cpp's.

    Attributes:
        temperature: divides the logits. 0 takes the most likely token; then only ``logit_bias`` and the penalties
            still matter.
        top_k: keep the ``top_k`` most likely tokens; 0 for all.
        top_p: keep the most likely tokens whose probabilities add up to ``top_p``; 1 for all.
        min_p: keep tokens that are at least ``min_p`` times as likely as the most likely one; 0 for all.
        seed: seed of the random numbers, 0 to 2**32 - 2; ``None`` for a fresh one.
        repeat_penalty: divides the logits of tokens among the last 64 generated ones; 1 for none.
        presence_penalty: subtracted once from the logits of tokens in the answer; -2 to 2, 0 for none.
        frequency_penalty: subtracted once for each occurrence of the token in the answer; -2 to 2, 0 for none.
        logit_bias: added to the logits of these token ids; may be infinite.

    Raises ``ValueError`` for a value out of range.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int | None = None
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(0 <= self.temperature < math.inf, "temperature", self.temperature, "a finite number, 0 or more")
        _require(self.top_k >= 0, "top_k", self.top_k, "0 (all) or more")
        _require(0 <= self.top_p <= 1, "top_p", self.top_p, "between 0 and 1")
        _require(0 <= self.min_p <= 1, "min_p", self.min_p, "between 0 and 1")
        _require(0 < self.repeat_penalty < math.inf, "repeat_penalty", self.repeat_penalty, "a finite number above 0")
        for name in ("presence_penalty", "frequency_penalty"):
            penalty = getattr(self, name)
            _require(abs(penalty) <= MAX_PENALTY, name, penalty, f"between -{MAX_PENALTY} and {MAX_PENALTY}")
        if self.seed is not None:
            _require(0 <= self.seed < SEEDS, "seed", self.seed, f"between 0 and {SEEDS - 1}")
        for token, bias in self.logit_bias.items():
            _require(not math.isnan(bias), f"logit_bias[{token}]", bias, "a number")


def _require(holds: bool, name: str, value: object, what: str) -> None:  # noqa: FBT001
    if not holds:
        raise ValueError(f"{name} is {value!r}; it must be {what}")


class Chain:
    """A llama.cpp sampler chain for one answer; it has its own random numbers and counts of tokens.

    Args:
        sampling: how to sample.
        n_vocab: number of tokens in the vocabulary.
        n_ctx: the most tokens of an answer.
        first: a sampler of llama.cpp that comes before the others and belongs to the chain; ``None`` for none.
    """

    def __init__(self, sampling: Sampling, n_vocab: int, n_ctx: int, *, first: Any = None) -> None:
        self._sampling, self._n_vocab, self._n_ctx = sampling, n_vocab, n_ctx
        self._others: dict[float, Chain] = {}
        for token in sampling.logit_bias:
            _require(0 <= token < n_vocab, "a key of logit_bias", token, f"a token id below {n_vocab}")
        self.pointer = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        self._free = weakref.finalize(self, llama_cpp.llama_sampler_free, self.pointer)
        if first is not None:
            self._add(first)
        repeats, subtracts = sampling.repeat_penalty != 1, (sampling.frequency_penalty, sampling.presence_penalty)
        self._counts = repeats or any(subtracts)
        if sampling.logit_bias:
            biases = (llama_cpp.llama_logit_bias * len(sampling.logit_bias))()
            for entry, (token, bias) in zip(biases, sampling.logit_bias.items(), strict=True):
                entry.token = token
                entry.bias = max(-_LARGEST_BIAS, min(bias, _LARGEST_BIAS))
            self._add(llama_cpp.llama_sampler_init_logit_bias(n_vocab, len(biases), biases))
        if repeats:
            self._add(
                llama_cpp.llama_sampler_init_penalties(n_vocab, _REPEAT_WINDOW, sampling.repeat_penalty, 0.0, 0.0)
            )
        if any(subtracts):  # these penalties apply to the whole answer
            self._add(llama_cpp.llama_sampler_init_penalties(n_vocab, n_ctx, 1.0, *subtracts))
        self._n_adjusting = llama_cpp.llama_sampler_chain_n(self.pointer)
        if sampling.temperature == 0:
            self._add(llama_cpp.llama_sampler_init_greedy())
            return
        if sampling.top_k > 0:
            self._add(llama_cpp.llama_sampler_init_top_k(sampling.top_k))
        if sampling.top_p < 1:
            self._add(llama_cpp.llama_sampler_init_top_p(sampling.top_p, 1))
        if sampling.min_p > 0:
            self._add(llama_cpp.llama_sampler_init_min_p(sampling.min_p, 1))
        self._add(llama_cpp.llama_sampler_init_temp(sampling.temperature))
        seed = secrets.randbelow(SEEDS) if sampling.seed is None else sampling.seed
        self._add(llama_cpp.llama_sampler_init_dist(seed))

    def _add(self, sampler: Any) -> None:
        llama_cpp.llama_sampler_chain_add(self.pointer, sampler)

    def choose(self, candidates: Candidates, count: int, temperature: float | None = None) -> int:
        """Chooses one of the first ``count`` candidates and returns its id.

        ``temperature`` replaces the chain's own for this choice. Biases and penalties apply all the same.
        """
        candidates.present(count)
        if temperature is None or temperature == self._sampling.temperature:
            llama_cpp.llama_sampler_apply(self.pointer, candidates.reference)
        else:
            for place in range(self._n_adjusting):
                adjusting = llama_cpp.llama_sampler_chain_get(self.pointer, place)
                llama_cpp.llama_sampler_apply(adjusting, candidates.reference)
            llama_cpp.llama_sampler_apply(self._at(temperature).pointer, candidates.reference)
        return candidates.selected()

    def _at(self, temperature: float) -> Chain:
        """The chain for another temperature, without biases and penalties; it has its own random numbers."""
        if temperature not in self._others:
            seed = self._sampling.seed
            plain = replace(
                self._sampling,
                temperature=temperature,
                seed=None if seed is None else (seed + 1 + len(self._others)) % SEEDS,
                repeat_penalty=1.0,
                presence_penalty=0.0,
                frequency_penalty=0.0,
                logit_bias={},
            )
            self._others[temperature] = Chain(plain, self._n_vocab, self._n_ctx)
        return self._others[temperature]

    def close(self) -> None:
        """Frees the chain. A finalizer would free it too, but could suppress a ``KeyboardInterrupt``."""
        for other in self._others.values():
            other.close()
        self._free()

    def accept(self, token: int) -> None:
        """Counts a token that the answer has taken."""
        if self._counts:
            llama_cpp.llama_sampler_accept(self.pointer, token)
