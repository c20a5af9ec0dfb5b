"""Encodings of tiktoken: their tokens are bytes already."""

from __future__ import annotations

from random import Random

import pytest

import constrain
from tests.support.tokenizers_made import encoding

pytest.importorskip("tiktoken")


def test_tokens_are_those_of_the_encoding() -> None:
    vocabulary = constrain.Vocabulary.from_tiktoken(encoding(), n_vocab=300)
    assert [vocabulary.token_bytes(token) for token in (0, 255, 256, 259, 260)] == [
        *(b"\0", b"\xff", b"he", b"hello", b" w")
    ]
    assert vocabulary.token_bytes(261) == "日".encode()[:2]
    assert [vocabulary.token_bytes(token) for token in range(262, 300)] == [b""] * 38
    assert (vocabulary.n_vocab, vocabulary.eos, vocabulary.special) == (300, (265,), {265, 267})
    assert vocabulary.special_tokens == {"<|x|>": 267}
    assert constrain.Vocabulary.from_tiktoken(encoding(), eos="<|x|>").eos == (267,)


def test_encode_is_the_usual_tokenization_of_any_bytes() -> None:
    made = encoding()
    vocabulary = constrain.Vocabulary.from_tiktoken(made)
    assert vocabulary.encode is not None
    assert vocabulary.encode(b"hello world") == made.encode_ordinary("hello world")
    rng = Random(0)
    for text in [b"<|endoftext|>", "日".encode(), *(rng.randbytes(9) for _ in range(100))]:
        tokens = vocabulary.encode(text)
        assert b"".join(map(vocabulary.token_bytes, tokens)) == text
        assert not vocabulary.special.intersection(tokens)


def test_an_encoding_that_drops_text_is_refused() -> None:
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    words = tiktoken.Encoding("words", pat_str=r"\w+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256})
    with pytest.raises(
        constrain.ModelError, match=r"tiktoken\.Encoding 'words': the tokens of the text ' ' join to ''"
    ):
        constrain.Vocabulary.from_tiktoken(words)


def test_other_objects_are_named() -> None:
    with pytest.raises(TypeError, match=r"encoding must be a tiktoken\.Encoding, not str"):
        constrain.Vocabulary.from_tiktoken("cl100k_base")
