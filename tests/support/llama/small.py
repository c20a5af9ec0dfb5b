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

WIDTH, INNER, HEADS = 32, 32, 1

_SIZES = {
    "llama.block_count": 1,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": HEADS,
    "llama.rope.dimension_count": WIDTH // HEADS,
}
_QUOTE = 2.7
_LIKED = ((rb"<\|im_end\|>", 0.5), (rb'"[,}\]]?', _QUOTE), (rb"[\[{}\]]", 1.1), (rb" ?[a-z]{1,9}|[0-9]", 0.0))
"""Patterns of tokens, and by how much their logits exceed those of words; other tokens have far smaller logits."""


def write_small_model(path: Path) -> Path:
    """Writes the file: the demo model's metadata with other sizes, and random weights."""
    return write_demo_like(path, _SIZES, _tensors())


def _tensors() -> dict[str, np.ndarray]:
    """Weights by name. The first number of a state is the same for all tokens, so that ``output`` can like some."""
    rng = np.random.default_rng(0)
    vocabulary = load_vocabulary(default_model_path())
    tokens = [vocabulary.token_bytes(token) or b"" for token in range(vocabulary.n_vocab)]
    for token in vocabulary.eos:
        tokens[token] = b"<|im_end|>"

    def made(*shape: int, scale: float = 0.3) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float16)

    embedding, output = made(len(tokens), WIDTH, scale=1.0), made(len(tokens), WIDTH, scale=0.25)
    embedding[:, 0] = 12
    liked = [next((much for pattern, much in _LIKED if re.fullmatch(pattern, text)), -8.0) for text in tokens]
    output[:, 0] = np.array(liked, np.float16) / 2
    output[np.equal(liked, _QUOTE), 1:] = 0  # a string ends where no word is liked very much
    norm = np.ones(WIDTH, np.float32)
    block = {"attn_norm": norm, "ffn_norm": norm}
    block |= {name: made(WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    block |= {name: made(INNER, WIDTH) for name in ("ffn_gate", "ffn_up")}
    block["ffn_down"] = made(WIDTH, INNER)
    block["attn_output"][0] = block["ffn_down"][0] = 0
    layer = {f"blk.0.{name}.weight": tensor for name, tensor in block.items()}
    return {"token_embd.weight": embedding, "output_norm.weight": norm, "output.weight": output, **layer}
