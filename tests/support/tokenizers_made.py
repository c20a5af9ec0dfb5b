"""Small tokenizers of other libraries, trained on a few sentences."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

SENTENCES = [
    "hello world, how are you",
    'Größe {"a": [1, 2.5], "b": true, "name": "Ada"}',
    "日本語の文",
    "the quick brown fox. don't",
] * 3

BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def untrained(**parts: Any) -> Any:
    """A byte-level ``tokenizers.Tokenizer`` whose tokens are the bytes and ``</s>``; ``parts`` replace its own."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = parts.pop("model", None)
    made = tokenizers.Tokenizer(model or tokenizers.models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    for name, part in parts.items():
        setattr(made, name, part)
    made.add_special_tokens(["</s>"])
    return made


def byte_level(**options: Any) -> Any:
    """A byte-level BPE, as GPT-2 and Llama 3 have it; ``options`` are those of its pre-tokenizer."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(**options)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"], show_progress=False
    )
    made.train_from_iterator(SENTENCES, trainer)
    return made


def byte_fallback() -> Any:
    """A BPE with spaces as in SentencePiece and a token for each byte, as Llama 2 has it."""
    tokenizers = pytest.importorskip("tokenizers")
    decoders, normalizers = tokenizers.decoders, tokenizers.normalizers
    made = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(parts)
    special = ["<unk>", "<s>", "</s>", *BYTE_TOKENS]
    made.train_from_iterator(
        SENTENCES, tokenizers.trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    described = json.loads(made.to_str())
    described["added_tokens"] = described["added_tokens"][:3]
    return tokenizers.Tokenizer.from_str(json.dumps(described))


def unigram() -> Any:
    """A Unigram model with spaces as in SentencePiece, which knows few characters."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.Unigram())
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=150, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(SENTENCES, trainer)
    return made


EXACT_PIECES = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
"""Options of a SentencePiece model that changes no text."""


def sentence_pieces(**options: Any) -> bytes:
    """A SentencePiece model."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, minloglevel=2, **options
    )
    return model.getvalue()


def encoding() -> Any:
    """A ``tiktoken.Encoding`` in which ids 262 to 264 have no token."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    for text in (b"he", b"ll", b"hell", b"hello", b" w", "日".encode()[:2]):
        ranks[text] = len(ranks)
    special = {"<|endoftext|>": 265, "<|x|>": 267}
    return tiktoken.Encoding("mine", pat_str=r"\s?\w+|\s+|[^\w\s]+", mergeable_ranks=ranks, special_tokens=special)
