"""A model with the vocabulary and the chat template of the demo model, and so few weights that a token takes a
millisecond: for tests of what is done with a model, not of what it says.

It likes words of lower-case letters, sometimes begins or ends a string or a list, and seldom ends its answer.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from constrain.llama.loading import load_vocabulary
from constrain.llama.model import default_model_path
from tests.support.llama.babbler import write_demo_like
from tests.support.llama.transformer import Tensor, llama_tensors, sizes

WIDTH, INNER, HEADS = 32, 32, 1

_QUOTE = 2.7
_LIKED = ((rb"<\|im_end\|>", 0.5), (rb'"[,}\]]?', _QUOTE), (rb"[\[{}\]]", 1.1), (rb" ?[a-z]{1,9}|[0-9]", 0.0))
"""Patterns of tokens, and by how much their logits exceed those of words; other tokens have far smaller logits."""


def write_small_model(path: Path) -> Path:
    """Writes the file: the demo model's metadata with other sizes, and random weights."""
    return write_demo_like(path, sizes(WIDTH, INNER, HEADS, 1), _tensors())


def _tensors() -> dict[str, Tensor]:
    """Weights by name. The first number of a state is the same for all tokens, so that ``output`` can like some."""
    rng = np.random.default_rng(0)
    vocabulary = load_vocabulary(default_model_path())
    tokens = [vocabulary.token_bytes(token) or b"" for token in range(vocabulary.n_vocab)]
    for token in vocabulary.eos:
        tokens[token] = b"<|im_end|>"
    scales = {"token_embd": 1.0, "output": 0.25}

    def make(name: str, *shape: int) -> Tensor:
        return (scales.get(name, 0.3) * rng.standard_normal(shape)).astype(np.float16)

    found = llama_tensors(make, len(tokens), WIDTH, INNER, 1)
    found["token_embd.weight"][:, 0] = 12
    liked = [next((much for pattern, much in _LIKED if re.fullmatch(pattern, text)), -8.0) for text in tokens]
    found["output.weight"][:, 0] = np.array(liked, np.float16) / 2
    found["output.weight"][np.equal(liked, _QUOTE), 1:] = 0  # a string ends where no word is liked very much
    found["blk.0.attn_output.weight"][0] = found["blk.0.ffn_down.weight"][0] = 0
    return found
