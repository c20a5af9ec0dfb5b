"""Ranges of the sampler's options. They are known without llama.cpp, which takes long to be imported."""

from __future__ import annotations

SEEDS = 2**32 - 1
"""Number of seeds: 0 to ``SEEDS - 1``. llama.cpp takes the next number, ``LLAMA_DEFAULT_SEED``, for a fresh seed."""

MAX_PENALTY = 2
"""The greatest ``presence_penalty`` and ``frequency_penalty``, either way, as for OpenAI. Beyond: ``ValueError``."""


def later_seed(seed: int, number: int) -> int:
    """The seed of the answer of a ``number`` (from 0) of several that have seeds of their own, from ``seed`` on."""
    return (seed + number) % SEEDS
