"""Evaluated prompts on disk without a model: a state is any bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from constrain.llama.prompt_cache.folder import PROMPT_CACHE_BYTES
from constrain.llama.prompt_cache.prompts import ContextPrompts, PromptCache

IDENTITY = b"a model, a context and a build".ljust(32)


def prompts_in(
    directory: Path,
    *,
    identity: bytes = IDENTITY,
    limit: int = PROMPT_CACHE_BYTES,
    n_ctx: int = 400,
    one_state: bool = False,
) -> tuple[PromptCache, ContextPrompts]:
    """A cache as a new process has it, and the prompts of its context."""
    cache = PromptCache(str(directory), limit)
    return cache, ContextPrompts(cache, lambda: identity, n_ctx, one_state=one_state)


def tokens_of(count: int, seed: int = 0) -> NDArray[np.intc]:
    return np.random.default_rng(seed).integers(0, 31, count).astype(np.intc)


def keep(directory: Path, tokens: NDArray[np.intc], partition: str = "", **options: int) -> None:
    """Writes a file as one process would; the state is the tokens."""
    cache, prompts = prompts_in(directory, **options)  # type: ignore[arg-type]
    prompts.keep(tokens, tokens.astype(np.uint8), partition)
    cache.close()


def restored(directory: Path, wanted: NDArray[np.intc], partition: str = "") -> list[int] | None:
    """The state that another process restores for a prompt; None if there is none."""
    prompts = prompts_in(directory)[1]
    found = prompts.find(wanted, partition)
    states: list[list[int]] = []
    if found is None or prompts.restore(found, lambda state: states.append(state.tolist()) is None) is None:
        return None
    return states[0]
