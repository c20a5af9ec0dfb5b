"""A small tokenizer and a LLaMA of random weights, as transformers has them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tokenizers_made import byte_level


def make_tokenizer(padding_side: str) -> Any:
    """A byte-level tokenizer; skips the test without transformers."""
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=byte_level(add_prefix_space=False),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<s>",
        padding_side=padding_side,
        model_input_names=["input_ids", "attention_mask"],
    )


def make_model(n_vocab: int) -> Any:
    """A model with so many logits; skips the test without torch."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=n_vocab,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config).eval()
