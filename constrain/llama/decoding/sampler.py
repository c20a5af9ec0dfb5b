"""The choice of one of the allowed tokens, with temperature and penalties, by llama.cpp's own sampler chain."""

from __future__ import annotations

import secrets
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.llama.decoding.ranges import SEEDS
from constrain.llama.decoding.sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.llama.binding import Candidates
    from constrain.llama.decoding.dry import DrySamplers

__all__ = ["Chain", "Sampling"]

_REPEAT_WINDOW = 64
"""Last tokens to which ``repeat_penalty`` applies: llama.cpp's default."""

_MIROSTAT_TOKENS = 100
"""Likeliest tokens from which the first version of Mirostat estimates the distribution: llama.cpp's number."""

_NEVER = 1e-30
"""Least probability of a token, as a fraction of the likeliest token's, in front of samplers of llama.cpp that take
logarithms of probabilities: those of less likely tokens may round to 0. No such token is ever chosen."""

_ADJUSTING = ("penalties", "dry")
"""Steps of the chain that adjust logits, and leave no token out."""

_LARGEST_BIAS = 1e9
"""The logit bias that replaces an infinite one: large enough to decide, and finite, since infinity would make NaN."""


class Chain:
    """A llama.cpp sampler chain for one answer; it has its own random numbers and counts of tokens.

    Args:
        sampling: how to sample.
        n_vocab: number of tokens in the vocabulary.
        n_ctx: the most tokens of an answer.
        first: a sampler of llama.cpp that comes before the others and belongs to the chain; ``None`` for none.
        prompt: tokens of the prompt, which ``repetition_penalty`` and DRY count, too.
        dry: function that returns the maker of DRY samplers for the model; ``None`` where no sampling has them.
    """

    def __init__(
        self,
        sampling: Sampling,
        n_vocab: int,
        n_ctx: int,
        *,
        first: Any = None,
        prompt: Sequence[int] = (),
        dry: Callable[[], DrySamplers] | None = None,
    ) -> None:
        self._sampling, self._n_vocab, self._n_ctx = sampling, n_vocab, n_ctx
        self._prompt, self._dry = prompt, dry
        self._others: dict[float, Chain] = {}
        self._taken: list[int] = []
        self._counting: list[tuple[Any, Sequence[int]]] = []  # samplers that count tokens, and those counted at first
        for token in sampling.logit_bias:
            if not 0 <= token < n_vocab:
                raise ValueError(f"a key of logit_bias is {token}; it must be a token id below {n_vocab}")
        self.pointer = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        self._free = weakref.finalize(self, llama_cpp.llama_sampler_free, self.pointer)
        if first is not None:
            self._add(first)
        if sampling.logit_bias:
            biases = (llama_cpp.llama_logit_bias * len(sampling.logit_bias))()
            for entry, (token, bias) in zip(biases, sampling.logit_bias.items(), strict=True):
                entry.token = token
                entry.bias = max(-_LARGEST_BIAS, min(bias, _LARGEST_BIAS))
            self._add(llama_cpp.llama_sampler_init_logit_bias(n_vocab, len(biases), biases))
        seed = secrets.randbelow(SEEDS) if sampling.seed is None else sampling.seed
        names = sampling.samplers
        if sampling.mirostat:  # it takes the place of all samplers that leave tokens out, as in llama.cpp
            names = (*(name for name in names if name in _ADJUSTING), "temperature")
        for name in names if not self._is_greedy else (name for name in names if name in _ADJUSTING):
            self._add_step(name, seed)
        self._add(self._last(seed))

    @property
    def _is_greedy(self) -> bool:
        """Whether the most likely token is always chosen, so that samplers which leave tokens out are not needed."""
        sampling = self._sampling
        may_drop = sampling.xtc_probability or sampling.typical_p < 1 or sampling.dynatemp_range
        is_used = bool(sampling.mirostat) or ("temperature" in sampling.samplers and not may_drop)
        return sampling.temperature == 0 and is_used

    def _last(self, seed: int) -> Any:
        """Returns the sampler that chooses."""
        sampling = self._sampling
        if self._is_greedy:
            return llama_cpp.llama_sampler_init_greedy()
        if not sampling.mirostat:
            return llama_cpp.llama_sampler_init_dist(seed)
        self._add(llama_cpp.llama_sampler_init_min_p(_NEVER, 1))
        tau, eta = sampling.mirostat_tau, sampling.mirostat_eta
        if sampling.mirostat == 1:
            return llama_cpp.llama_sampler_init_mirostat(self._n_vocab, seed, tau, eta, _MIROSTAT_TOKENS)
        return llama_cpp.llama_sampler_init_mirostat_v2(seed, tau, eta)

    def _add_step(self, name: str, seed: int) -> None:
        """Adds the samplers of a step, if its options have any effect."""
        sampling = self._sampling
        if name == "penalties":
            self._add_penalties()
        elif name == "dry":
            self._add_dry()
        elif name == "top_n_sigma" and sampling.top_n_sigma > 0:
            self._add(llama_cpp.llama_sampler_init_top_n_sigma(sampling.top_n_sigma))
        elif name == "top_k" and sampling.top_k > 0:
            self._add(llama_cpp.llama_sampler_init_top_k(sampling.top_k))
        elif name == "typ_p" and sampling.typical_p < 1:
            self._add(llama_cpp.llama_sampler_init_min_p(_NEVER, 1))
            self._add(llama_cpp.llama_sampler_init_typical(sampling.typical_p, 1))
        elif name == "top_p" and sampling.top_p < 1:
            self._add(llama_cpp.llama_sampler_init_top_p(sampling.top_p, 1))
        elif name == "min_p" and sampling.min_p > 0:
            self._add(llama_cpp.llama_sampler_init_min_p(sampling.min_p, 1))
        elif name == "xtc" and sampling.xtc_probability > 0:
            xtc = llama_cpp.llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, 1, seed)
            self._add(xtc)
        elif name == "temperature" and sampling.dynatemp_range > 0:
            dynamic = sampling.temperature, sampling.dynatemp_range, sampling.dynatemp_exponent
            self._add(llama_cpp.llama_sampler_init_temp_ext(*dynamic))
        elif name == "temperature":
            self._add(llama_cpp.llama_sampler_init_temp(sampling.temperature))

    def _add_penalties(self) -> None:
        sampling, n_ctx = self._sampling, self._n_ctx
        of_answer = (sampling.frequency_penalty, sampling.presence_penalty)
        last = sampling.repeat_last_n
        window = _REPEAT_WINDOW if last is None else self._window(last, n_ctx)
        if sampling.repeat_penalty != 1:
            self._add_counting(self._penalties(window, sampling.repeat_penalty, 0.0, 0.0))
        if any(of_answer):  # these apply to the whole answer, unless the request says otherwise
            self._add_counting(self._penalties(n_ctx if last is None else window, 1.0, *of_answer))
        if sampling.repetition_penalty != 1:
            of_all = self._penalties(n_ctx + len(self._prompt), sampling.repetition_penalty, 0.0, 0.0)
            self._add_counting(of_all, self._prompt)

    @staticmethod
    def _window(given: int, most: int) -> int:
        """Returns how many tokens a sampler keeps: llama.cpp reserves memory for all of them."""
        return most if given < 0 else min(given, most)

    def _penalties(self, window: int, *penalties: float) -> Any:
        return llama_cpp.llama_sampler_init_penalties(self._n_vocab, window, *penalties)

    def _add_dry(self) -> None:
        sampling = self._sampling
        if not sampling.dry_multiplier:
            return
        assert self._dry is not None, "the caller has no DRY samplers"
        window = self._window(sampling.dry_penalty_last_n, self._n_ctx + len(self._prompt))
        self._add_counting(self._dry().make(sampling, window), self._prompt)

    def _add_counting(self, sampler: Any, counted: Sequence[int] = ()) -> None:
        """Adds a sampler that counts tokens, after it has counted some."""
        for token in counted:
            llama_cpp.llama_sampler_accept(sampler, token)
        self._add(sampler)
        self._counting.append((sampler, counted))

    def _add(self, sampler: Any) -> None:
        llama_cpp.llama_sampler_chain_add(self.pointer, sampler)

    def choose(self, candidates: Candidates, count: int, temperature: float | None = None) -> int:
        """Chooses one of the first ``count`` candidates and returns its id.

        ``temperature`` replaces the chain's own for this choice. Biases and penalties apply all the same.
        """
        candidates.present(count)
        chain = self if temperature is None else self._at(temperature)
        llama_cpp.llama_sampler_apply(chain.pointer, candidates.reference)
        return candidates.selected()

    def _at(self, temperature: float) -> Chain:
        """The chain for a temperature: another one has its own random numbers, and counts the same tokens."""
        if temperature == self._sampling.temperature:
            return self
        if temperature not in self._others:
            seed, names = self._sampling.seed, self._sampling.samplers
            sampling = replace(
                self._sampling,
                temperature=temperature,
                dynatemp_range=0.0,
                samplers=names if "temperature" in names else (*names, "temperature"),
                seed=None if seed is None else (seed + 1 + len(self._others)) % SEEDS,
            )
            other = Chain(sampling, self._n_vocab, self._n_ctx, prompt=self._prompt, dry=self._dry)
            self._others[temperature] = other
            for token in self._taken:
                other.accept(token)
        return self._others[temperature]

    def close(self) -> None:
        """Frees the chain. A finalizer would free it too, but could suppress a ``KeyboardInterrupt``."""
        for other in self._others.values():
            other.close()
        self._free()

    def accept(self, token: int) -> None:
        """Counts a token that the answer has taken."""
        if self._counting:
            llama_cpp.llama_sampler_accept(self.pointer, token)
            self._taken.append(token)
            for other in self._others.values():
                other.accept(token)

    def forget(self, count: int) -> None:
        """Counts the last ``count`` tokens no more; the random numbers go on."""
        if not self._counting or not count:
            return
        del self._taken[max(0, len(self._taken) - count) :]
        for sampler, counted in self._counting:
            llama_cpp.llama_sampler_reset(sampler)
            for token in (*counted, *self._taken):
                llama_cpp.llama_sampler_accept(sampler, token)
        for other in self._others.values():
            other.forget(count)
