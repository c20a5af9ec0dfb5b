"""Ranges of the sampler's options. They are known without llama.cpp, which takes long to be imported."""

from __future__ import annotations

SEEDS = 2**32 - 1
"""Number of seeds: 0 to ``SEEDS - 1``. llama.cpp takes the next number, ``LLAMA_DEFAULT_SEED``, for a fresh seed."""

MAX_PENALTY = 2
"""The greatest ``presence_penalty`` and ``frequency_penalty``, either way, as for OpenAI. Beyond: ``ValueError``."""


def seed_of(given: int, number: int = 0) -> int:
    """The sampler's seed for a number of any size, and for answer ``number`` (from 0) of several to one prompt."""
    return (given + number) % SEEDS
