"""llama.cpp's sampler chain over chosen candidates."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.llama.binding import Candidates
from constrain.llama.decoding.dry import DrySamplers
from constrain.llama.decoding.ranges import SEEDS, seed_of
from constrain.llama.decoding.sampler import Chain, Sampling
from tests.support import for_each

N_VOCAB = 50
N_CTX = 100


def choose(
    chain: Chain, logits: dict[int, float], candidates: Candidates | None = None, temperature: float | None = None
) -> int:
    candidates = candidates or Candidates(N_VOCAB)
    for place, (token, logit) in enumerate(sorted(logits.items())):
        candidates.buffer[place] = (token, logit, 0)
    return chain.choose(candidates, len(logits), temperature)


def test_frequencies_are_the_softmax() -> None:
    chain = Chain(Sampling(temperature=2, top_k=0, top_p=1, min_p=0, seed=5), N_VOCAB, N_CTX)
    logits = {3: 2.0, 17: 0.0, 40: -2.0}
    candidates = Candidates(N_VOCAB)
    counts = Counter(choose(chain, logits, candidates) for _ in range(4_000))
    weights = {token: math.exp(logit / 2) for token, logit in logits.items()}
    for token, weight in weights.items():
        assert counts[token] / 4_000 == pytest.approx(weight / sum(weights.values()), abs=0.03)


@for_each(
    "options, kept", [({"top_k": 2}, {3, 17}), ({"top_p": 0.5}, {3}), ({"min_p": 0.3}, {3, 17}), ({}, {3, 17, 40})]
)
def test_tokens_are_left_out(options: dict[str, float], kept: set[int]) -> None:
    chain = Chain(
        Sampling(**{"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 5, **options}), N_VOCAB, N_CTX
    )
    assert {choose(chain, {3: 1.0, 17: 0.0, 40: -1.5}) for _ in range(500)} == kept


@pytest.mark.parametrize("temperature", [None, 0.5])
def test_seeds_are_reproducible(temperature: float | None) -> None:
    def draw(seed: int | None) -> list[int]:
        chain = Chain(Sampling(temperature=1, seed=seed), N_VOCAB, N_CTX)
        return [choose(chain, dict.fromkeys(range(40), 0.0), temperature=temperature) for _ in range(30)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert draw(None) != draw(None)


def test_logit_bias_adds_and_forbids() -> None:
    chain = Chain(Sampling(temperature=0, logit_bias={1: -math.inf, 2: 3.0}), N_VOCAB, N_CTX)
    assert choose(chain, {1: 9.0, 2: 0.0, 3: 2.0}) == 2
    assert choose(chain, {1: 9.0}) == 1
    sampled = Chain(Sampling(temperature=1, logit_bias={1: -math.inf, 3: math.inf}), N_VOCAB, N_CTX)
    assert {choose(sampled, {1: 9.0, 2: 0.0, 3: -5.0}) for _ in range(50)} == {3}
    assert {choose(sampled, {1: 9.0}) for _ in range(50)} == {1}


def test_repetition_is_penalized() -> None:
    chain = Chain(Sampling(temperature=0, repeat_penalty=2), N_VOCAB, N_CTX)
    assert choose(chain, {1: 3.0, 2: 2.0}) == 1
    chain.accept(1)
    assert choose(chain, {1: 3.0, 2: 2.0}) == 2


def penalized(logits: dict[int, float], taken: list[int], *, presence: float, frequency: float) -> dict[int, float]:
    """The definition in OpenAI's documentation."""
    counts = Counter(taken)
    return {
        token: logit - counts[token] * frequency - (counts[token] > 0) * presence for token, logit in logits.items()
    }


@for_each("presence, frequency", [(0.7, 0.0), (0.0, 0.3), (1.5, 0.25), (-1.0, 0.5), (-2.0, -2.0)])
def test_penalties_are_subtracted_once_and_as_often_as_a_token_was_taken(presence: float, frequency: float) -> None:
    chain = Chain(Sampling(temperature=0, presence_penalty=presence, frequency_penalty=frequency), N_VOCAB, 300)
    random = np.random.default_rng(3)
    taken: list[int] = []
    for _ in range(300):  # the first tokens count as much as the last ones
        allowed = random.choice(N_VOCAB, 20, replace=False)
        logits = {int(token): float(logit) for token, logit in zip(allowed, random.normal(size=20), strict=True)}
        wanted = penalized(logits, taken, presence=presence, frequency=frequency)
        token = choose(chain, logits)
        assert token == max(wanted, key=lambda token: wanted[token])
        chain.accept(token)
        taken.append(token)


def test_penalties_come_before_the_temperature() -> None:
    sampling = Sampling(temperature=2, top_k=0, top_p=1, min_p=0, seed=5, presence_penalty=1.0)
    chain = Chain(sampling, N_VOCAB, N_CTX)
    chain.accept(3)
    candidates = Candidates(N_VOCAB)
    counts = Counter(choose(chain, {3: 1.0, 17: 0.0}, candidates) for _ in range(4_000))
    assert counts[3] / 4_000 == pytest.approx(0.5, abs=0.03)


DRAWN: list[tuple[dict[str, Any], dict[int, float], set[int]]] = [
    # options, logits, and the tokens that can be chosen
    ({"typical_p": 0.3}, {3: 1.0, 17: 0.0, 40: -1.5}, {3}),
    ({"typical_p": 0.5}, {3: 1.0, 17: -200.0}, {3}),
    ({"typical_p": 0.5, "logit_bias": {3: -math.inf}}, {3: 1.0, 17: 0.0, 40: -9.0}, {17}),
    ({"top_n_sigma": 0.5}, {3: 1.0, 17: 0.0, 40: -1.5}, {3}),
    ({"top_n_sigma": -1.0}, {3: 1.0, 17: 0.0, 40: -1.5}, {3, 17, 40}),
    ({"xtc_probability": 1.0, "xtc_threshold": 0.2}, {3: 1.0, 17: 0.0, 40: -1.5}, {17, 40}),
    ({"xtc_probability": 1.0, "xtc_threshold": 0.2}, {3: 1.0, 40: -3.0}, {3, 40}),
    ({"xtc_probability": 1.0}, {40: 1.0}, {40}),
    ({"xtc_probability": 1.0, "xtc_threshold": 0.2, "temperature": 0.0}, {3: 1.0, 17: 0.0, 40: -9.0}, {17}),
    ({"dynatemp_range": 0.5, "temperature": 0.0}, {3: 1.0, 17: 0.5}, {3, 17}),
    ({"mirostat": 1}, {3: 1.0}, {3}),
    ({"mirostat": 1}, {3: 1.0, 17: -200.0}, {3}),
    ({"mirostat": 2, "top_k": 1}, {3: 1.0, 17: 0.5}, {3, 17}),
    ({"mirostat": 2, "mirostat_tau": 0.01, "mirostat_eta": 1.0}, {3: 5.0, 17: 0.0}, {3}),
    ({"mirostat": 2, "temperature": 0.0}, {3: 1.0, 17: 0.9}, {3}),
    ({"samplers": ["temperature"], "top_k": 1}, {3: 1.0, 17: 0.5}, {3, 17}),
    ({"samplers": ["top_k"], "top_k": 1, "temperature": 5.0}, {3: 1.0, 17: 0.5}, {3}),
    ({"samplers": [], "temperature": 0.0}, {3: 1.0, 17: 0.5}, {3, 17}),
    ({"samplers": [], "presence_penalty": 2.0, "logit_bias": {3: -math.inf}}, {3: 1.0, 17: 0.5}, {17}),
]


@for_each("options, logits, kept", DRAWN)
def test_samplers_of_llama_cpp_choose_among_the_allowed(
    options: dict[str, Any], logits: dict[int, float], kept: set[int]
) -> None:
    sampling = Sampling(**{"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 5, **options})
    chain, candidates = Chain(sampling, N_VOCAB, N_CTX), Candidates(N_VOCAB)
    for _ in range(30):
        choose(chain, logits, candidates)
    assert {choose(chain, logits, candidates) for _ in range(200)} == kept


def test_the_order_of_the_samplers_counts() -> None:
    logits = {3: 2.0, 17: 1.0, 40: 0.0}
    found = [
        {choose(Chain(Sampling(**options, samplers=order), N_VOCAB, N_CTX), logits) for _ in range(100)}
        for options in ({"temperature": 10.0, "top_k": 0, "top_p": 0.6, "min_p": 0.0},)
        for order in (["top_p", "temperature"], ["temperature", "top_p"])
    ]
    assert found == [{3}, {3, 17}]


@for_each(
    "options, prompt, taken, logits, expected",
    ({"repetition_penalty": 2.0}, [4], [], {4: 3.0, 5: 2.0}, 5),
    ({"repetition_penalty": 2.0}, [4], [5], {4: 3.0, 5: 2.9, 6: 1.6}, 6),
    ({"repeat_penalty": 2.0}, [4], [], {4: 3.0, 5: 2.0}, 4),
    ({"repeat_penalty": 2.0, "repeat_last_n": 1}, [], [4], {4: 3.0, 5: 2.0}, 5),
    ({"repeat_penalty": 2.0, "repeat_last_n": 1}, [], [4, 6], {4: 3.0, 5: 2.0}, 4),
    ({"repeat_penalty": 2.0}, [], [4, *[6] * 64], {4: 3.0, 5: 2.0}, 4),
    ({"repeat_penalty": 2.0, "repeat_last_n": -1}, [], [4, *[6] * 64], {4: 3.0, 5: 2.0}, 5),
    ({"presence_penalty": 2.0}, [], [4, *[6] * 64], {4: 3.0, 5: 2.0}, 5),
    ({"presence_penalty": 2.0, "repeat_last_n": 64}, [], [4, *[6] * 64], {4: 3.0, 5: 2.0}, 4),
    ({"presence_penalty": 2.0, "repeat_last_n": 0}, [], [4], {4: 3.0, 5: 2.0}, 4),
    ({"dry_multiplier": 5.0}, [1, 2, 3, 4], [1, 2, 3], {4: 3.0, 5: 2.0}, 5),
    ({"dry_multiplier": 5.0}, [1, 2, 3, 4, 1, 2, 3], [], {4: 3.0, 5: 2.0}, 5),
    ({"dry_multiplier": 5.0}, [], [7, 4, 3], {4: 3.0, 5: 2.0}, 4),
    ({"dry_multiplier": 5.0, "dry_allowed_length": 4}, [1, 2, 3, 4], [1, 2, 3], {4: 3.0, 5: 2.0}, 4),
    ({"dry_multiplier": 5.0, "dry_penalty_last_n": 3}, [1, 2, 3, 4], [1, 2, 3], {4: 3.0, 5: 2.0}, 4),
    ({"dry_multiplier": 5.0, "samplers": ["temperature"]}, [1, 2, 3, 4], [1, 2, 3], {4: 3.0, 5: 2.0}, 4),
)
@for_each("temperature", [None, 1e-6])
def test_tokens_are_counted_in_prompt_and_answer(
    options: dict[str, Any],
    prompt: list[int],
    taken: list[int],
    logits: dict[int, float],
    expected: int,
    temperature: float | None,
) -> None:
    sampling = Sampling(temperature=0, seed=1, dry_sequence_breakers=(), **options)
    chain = Chain(sampling, N_VOCAB, N_CTX, prompt=prompt, dry=lambda: DrySamplers(None))
    for number, token in enumerate(taken):
        if number == 1:
            choose(chain, logits, temperature=temperature)
        chain.accept(token)
    assert choose(chain, logits, temperature=temperature) == expected


def test_breakers_end_repetitions(model: constrain.Model) -> None:
    [comma, *rest] = [model.vocabulary.encode(text.encode())[0] for text in (",", "a", "b", "c", "d")]  # type: ignore[misc]
    first, second, third, fourth = rest
    candidates = Candidates(model.vocabulary.n_vocab)
    found = []
    for breakers in ((), (",",)):
        sampling = Sampling(temperature=0, dry_multiplier=5.0, dry_sequence_breakers=breakers)
        chain = Chain(
            sampling,
            model.vocabulary.n_vocab,
            N_CTX,
            prompt=[first, second, comma, third, first, second, comma],
            dry=lambda: model.context.dry,
        )
        found.append(choose(chain, {third: 3.0, fourth: 2.0}, candidates))
    assert found == [fourth, third]


def test_dry_samplers_are_kept_and_copied() -> None:
    made = DrySamplers(None)
    sampling = [Sampling(temperature=0, dry_multiplier=float(1 + each), dry_sequence_breakers=()) for each in range(12)]
    chains = [Chain(each, N_VOCAB, N_CTX, prompt=[1, 2, 3, 4], dry=lambda: made) for each in (*sampling, *sampling)]
    assert len(made._made) == 8
    for token in (1, 2, 3):
        chains[0].accept(token)
    assert choose(chains[0], {4: 3.0, 5: 2.9}) == 5
    assert choose(chains[12], {4: 3.0, 5: 2.9}) == 4


BAD: dict[str, list[Any]] = {
    "temperature": [-1, math.nan, math.inf],
    "top_k": [-1, 1 << 31],
    "top_p": [1.5],
    "min_p": [-0.1],
    "typical_p": [1.1],
    "seed": [-1, 1 << 32],
    "mirostat": [3],
    "mirostat_tau": [math.inf],
    "xtc_probability": [-0.1],
    "repetition_penalty": [0],
    "repeat_penalty": [0],
    "repeat_last_n": [-2],
    "presence_penalty": [2.1],
    "frequency_penalty": [-2.1, math.nan],
    "dry_sequence_breakers": [["a" * 41], ["a\0"], ["a" * 40] * 4 + ["b"]],
    "samplers": [["greedy"], ["top_k"] * 33],
    "logit_bias": [{1: math.nan}],
}


@for_each("name, value", [(name, value) for name, values in BAD.items() for value in values])
def test_options_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        Sampling(**{name: value})


@pytest.mark.parametrize("token", [-1, N_VOCAB])
def test_a_bias_for_a_token_out_of_range_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match="logit_bias"):
        Chain(Sampling(logit_bias={token: 1.0}), N_VOCAB, N_CTX)


def test_there_are_as_many_seeds_as_llama_cpp_has() -> None:
    assert SEEDS == llama_cpp.LLAMA_DEFAULT_SEED
    assert [seed_of(*each) for each in ((7, 0), (7, 2), (SEEDS - 1, 1), (-1, 0))] == [7, 9, 0, SEEDS - 1]


def test_a_temperature_of_one_choice_replaces_that_of_the_chain() -> None:
    def draw(chain: Chain, temperature: float | None) -> int:
        return choose(chain, {3: 1.0, 17: 0.0}, temperature=temperature)

    hot = Chain(Sampling(temperature=2, top_k=0, top_p=1, min_p=0, seed=5), N_VOCAB, N_CTX)
    assert {draw(hot, 0) for _ in range(200)} == {3}
    cold = Chain(Sampling(temperature=0, top_k=0, top_p=1, min_p=0, seed=5), N_VOCAB, N_CTX)
    drawn = [draw(cold, 0.5) for _ in range(4_000)]
    assert drawn.count(17) / len(drawn) == pytest.approx(1 / (1 + math.exp(2)), abs=0.03)
    assert {draw(cold, None) for _ in range(200)} == {3}


def test_biases_and_penalties_apply_at_another_temperature() -> None:
    def draw(chain: Chain, temperature: float) -> int:
        return choose(chain, {1: 0.0, 2: 0.0, 3: 0.0}, temperature=temperature)

    sampling = Sampling(temperature=1, seed=5, logit_bias={1: -math.inf}, presence_penalty=2)
    chain = Chain(sampling, N_VOCAB, N_CTX)
    chain.accept(3)
    assert {draw(chain, 0) for _ in range(20)} == {2}
    counts = Counter(draw(chain, 1.5) for _ in range(2_000))
    assert counts[1] == 0
    assert counts[2] > counts[3] > 0
