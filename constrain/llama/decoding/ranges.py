"""Ranges of the sampler's options, in a module that does not import llama.cpp, which takes long."""

from __future__ import annotations

SEEDS = 2**32 - 1
"""Number of seeds: 0 to ``SEEDS - 1``. llama.cpp reads the next number, ``LLAMA_DEFAULT_SEED``, as a fresh seed."""


def seed_of(given: int, number: int = 0) -> int:
    """The sampler's seed for a given number of any size; ``number`` counts the answers to one prompt from 0."""
    return (given + number) % SEEDS
