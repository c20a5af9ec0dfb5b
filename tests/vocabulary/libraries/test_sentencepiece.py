"""SentencePiece models: the bytes of their pieces, or why they are not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import constrain
from tests.support.tokenizers_made import EXACT_PIECES, sentence_pieces

sentencepiece = pytest.importorskip("sentencepiece")

KINDS: dict[str, dict[str, Any]] = {
    "as Llama 2": {"vocab_size": 380, "model_type": "bpe", "byte_fallback": True},
    "as Gemma": {
        "vocab_size": 380,
        "model_type": "bpe",
        "byte_fallback": True,
        "add_dummy_prefix": False,
        "user_defined_symbols": ["<tool>", "\n\n"],
        "control_symbols": ["<turn>"],
    },
    "unigram": {"vocab_size": 45},
}


@pytest.fixture(scope="module", params=KINDS)
def processor(request: pytest.FixtureRequest) -> Any:
    return sentencepiece.SentencePieceProcessor(model_proto=sentence_pieces(**EXACT_PIECES, **KINDS[request.param]))


def joined(vocabulary: constrain.Vocabulary, tokens: list[int]) -> bytes:
    return b"".join(map(vocabulary.token_bytes, tokens))


def test_the_pieces_of_a_text_join_to_it(processor: Any) -> None:
    vocabulary = constrain.Vocabulary.from_sentencepiece(processor)
    assert vocabulary.encode is not None
    for text in ("hello world", "the  quick", "日本語", "Größe {}"):
        assert joined(vocabulary, processor.encode(text)).removeprefix(b" ") == text.encode()
        assert joined(vocabulary, vocabulary.encode(text.encode())) == text.encode()


def test_pieces_are_bytes_and_special_by_their_kind() -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentence_pieces(**EXACT_PIECES, **KINDS["as Gemma"]))
    vocabulary = constrain.Vocabulary.from_sentencepiece(processor, n_vocab=512)
    assert vocabulary.token_bytes(processor.piece_to_id("<0x0A>")) == b"\n"
    assert vocabulary.token_bytes(processor.piece_to_id("<tool>")) == b"<tool>"
    assert vocabulary.token_bytes(processor.piece_to_id("▁w")) == b" w"
    assert vocabulary.special == {0, 1, 2, processor.piece_to_id("<turn>")}
    assert vocabulary.eos == (2,)
    assert vocabulary.n_vocab == 512


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(sentence_pieces(**EXACT_PIECES, **KINDS["as Llama 2"]))
    from_file = constrain.Vocabulary.from_sentencepiece(path)
    loaded = constrain.Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor(model_file=str(path)))
    assert from_file.fingerprint == loaded.fingerprint
    path.write_bytes(b"no model")
    with pytest.raises(constrain.ModelError, match=r"tokenizer\.model: cannot be read as a SentencePiece model"):
        constrain.Vocabulary.from_sentencepiece(path)
    with pytest.raises(constrain.ModelError, match="cannot be read"):
        constrain.Vocabulary.from_sentencepiece(tmp_path / "none.model")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "spaces are dropped": ({**EXACT_PIECES, "remove_extra_whitespaces": True}, "the text ' ' join to ''"),
    "NFKC": (
        {"remove_extra_whitespaces": False, "byte_fallback": True, "vocab_size": 999, "hard_vocab_limit": False},
        "join to ",
    ),
    "spaces after words": ({**EXACT_PIECES, "treat_whitespace_as_suffix": True}, "join to .* is not understood"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_changes_texts_is_refused(name: str) -> None:
    options, message = REFUSED[name]
    model = sentence_pieces(**{"vocab_size": 45, **options})
    with pytest.raises(constrain.ModelError, match=message):
        constrain.Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor(model_proto=model))


def test_other_objects_are_named() -> None:
    with pytest.raises(TypeError, match=r"processor must be a sentencepiece\.SentencePieceProcessor, not int"):
        constrain.Vocabulary.from_sentencepiece(5)
    with pytest.raises(constrain.ModelError, match="it has no model"):
        constrain.Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor())
