"""Tokenizers of other libraries: the bytes of their tokens, or why they are not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain.vocabulary.libraries.checks import TEXTS
from tests.support import for_each
from tests.support.tokenizers_made import (
    BYTE_TOKENS,
    EXACT_PIECES,
    byte_fallback,
    byte_level,
    encoding,
    sentence_pieces,
    unigram,
    untrained,
)

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import decoders, models, normalizers, pre_tokenizers  # noqa: E402

KINDS: dict[str, Callable[[], Any]] = {
    "byte-level": lambda: byte_level(add_prefix_space=False),
    "byte-level with a space in front": lambda: byte_level(add_prefix_space=True),
    "byte fallback": byte_fallback,
    "unigram": unigram,
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]()


def joined(vocabulary: constrain.Vocabulary, tokens: list[int]) -> bytes:
    return b"".join(map(vocabulary.token_bytes, tokens))


def test_the_tokens_of_a_text_join_to_it(tokenizer: Any) -> None:
    vocabulary = constrain.Vocabulary.from_tokenizers(tokenizer)
    for text in ("hello world, how are you", "the quick brown", "日本語の文", "Größe", "a  b"):
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        assert joined(vocabulary, tokens).removeprefix(b" ") == text.encode()
        assert vocabulary.encode is not None
        assert joined(vocabulary, vocabulary.encode(text.encode())) == text.encode()


def test_the_bytes_of_byte_level_tokens() -> None:
    vocabulary = constrain.Vocabulary.from_tokenizers(byte_level(add_prefix_space=False))
    texts = {vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)}
    assert {bytes([byte]) for byte in range(256)} <= texts
    assert {b" world", b"hello", "Größe".encode()} <= texts
    assert (vocabulary.eos, vocabulary.special, vocabulary.special_tokens) == ((1,), {0, 1}, {"<s>": 0})


def test_byte_tokens_are_bytes_and_unknown_is_special() -> None:
    tokenizer = byte_fallback()
    vocabulary = constrain.Vocabulary.from_tokenizers(tokenizer)
    for byte, name in enumerate(BYTE_TOKENS):
        assert vocabulary.token_bytes(tokenizer.token_to_id(name)) == bytes([byte])
    assert vocabulary.special == {0, 1, 2}
    assert vocabulary.eos == (2,)


@pytest.mark.parametrize("make", [byte_level, byte_fallback])
def test_encode_spells_any_bytes_without_special_tokens_or_a_space(make: Callable[[], Any]) -> None:
    vocabulary = constrain.Vocabulary.from_tokenizers(make())
    assert vocabulary.encode is not None
    rng = Random(0)
    samples = [rng.randbytes(rng.randint(0, 12)) for _ in range(200)]
    samples += [b"a</s><s>b", b" x", b"x ", "▁a".encode(), b"\0", *(text.encode() for text in TEXTS)]
    for text in samples:
        tokens = vocabulary.encode(text)
        assert joined(vocabulary, tokens) == text
        assert not vocabulary.special.intersection(tokens)


def test_the_tokenizer_stays_as_it_is() -> None:
    tokenizer = byte_fallback()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=7)
    before = tokenizer.to_str()
    vocabulary = constrain.Vocabulary.from_tokenizers(tokenizer)
    assert vocabulary.encode is not None
    assert len(vocabulary.encode(b"hello world and more")) > 3
    assert tokenizer.to_str() == before
    assert not tokenizer.encode_special_tokens


def test_added_tokens_are_their_text() -> None:
    tokenizer = untrained()
    tokenizer.add_tokens(["<tool>", "a b", "日本"])
    vocabulary = constrain.Vocabulary.from_tokenizers(tokenizer)
    assert [vocabulary.token_bytes(token) for token in range(256, 260)] == [b"", b"<tool>", b"a b", "日本".encode()]


def test_added_tokens_may_be_spelled_as_others_are() -> None:
    tokenizer = spaced()
    tokenizer.add_tokens(["▁▁", "\n\n", "<0x0A>"])
    vocabulary = constrain.Vocabulary.from_tokenizers(tokenizer)
    found = {name: vocabulary.token_bytes(tokenizer.token_to_id(name)) for name in ("▁▁", "\n\n", "<0x0A>")}
    assert found == {"▁▁": b"  ", "\n\n": b"\n\n", "<0x0A>": b"\n"}
    assert vocabulary.encode is not None
    assert joined(vocabulary, vocabulary.encode("▁▁  <0x0A>\n\n".encode())) == "▁▁  <0x0A>\n\n".encode()


def test_ids_may_have_holes() -> None:
    holes = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 4, "ab": 9, "</s>": 7}, [("a", "b")]))
    holes.pre_tokenizer, holes.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    holes.add_special_tokens(["</s>"])
    vocabulary = constrain.Vocabulary.from_tokenizers(holes)
    assert [vocabulary.token_bytes(t) for t in range(vocabulary.n_vocab)] == [
        *(b"a", b"", b"", b"", b"b", b"", b"", b"", b"", b"ab")
    ]
    assert vocabulary.eos == (7,)


def test_the_model_may_have_more_ids() -> None:
    tokenizer = untrained()
    vocabulary = constrain.Vocabulary.from_tokenizers(tokenizer, n_vocab=300)
    assert (vocabulary.n_vocab, vocabulary.token_bytes(299)) == (300, b"")
    tokenizer.add_special_tokens(["<pad>"])  # an id without logits
    assert constrain.Vocabulary.from_tokenizers(tokenizer, n_vocab=257).n_vocab == 257
    with pytest.raises(constrain.ModelError, match="n_vocab is 256, but the tokenizer has the token 256"):
        constrain.Vocabulary.from_tokenizers(tokenizer, n_vocab=256)
    with pytest.raises(constrain.ModelError, match="at most 65536 more"):
        constrain.Vocabulary.from_tokenizers(tokenizer, n_vocab=10**12)


def test_ends_of_generation_are_given_or_known_by_name() -> None:
    tokenizer = untrained()
    tokenizer.add_special_tokens(["<|im_end|>", "<halt>"])
    assert constrain.Vocabulary.from_tokenizers(tokenizer).eos == (256, 257)
    assert constrain.Vocabulary.from_tokenizers(tokenizer, eos="<halt>").eos == (258,)
    assert constrain.Vocabulary.from_tokenizers(tokenizer, eos=["<halt>", 256]).eos == (256, 258)
    with pytest.raises(constrain.ModelError, match="eos names '<no>'"):
        constrain.Vocabulary.from_tokenizers(tokenizer, eos="<no>")
    with pytest.raises(constrain.ModelError, match="id 999 is out of range"):
        constrain.Vocabulary.from_tokenizers(tokenizer, eos=999)
    with pytest.raises(constrain.ModelError, match="name them with eos="):
        constrain.Vocabulary.from_tokenizers(tokenizer, eos=[])


def word_pieces() -> Any:
    model = models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]")
    return untrained(model=model, decoder=decoders.WordPiece())


def added(text: str) -> Any:
    tokenizer = untrained()
    tokenizer.add_tokens([text])
    return tokenizer


def spaced(**parts: Any) -> Any:
    names = {name: token for token, name in enumerate(["<unk>", *BYTE_TOKENS, "▁", *map(chr, range(33, 127))])}
    model = parts.pop("model", None) or models.BPE(names, [], byte_fallback=True, unk_token="<unk>")
    steps = parts.pop("steps", [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    usual = {"normalizer": normalizers.Replace(" ", "▁"), "decoder": decoders.Sequence(steps)}
    return untrained(model=model, **{"pre_tokenizer": pre_tokenizers.Digits(), **usual, **parts})


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "WordPiece": (word_pieces, "decoder WordPiece drops the spaces"),
    "no decoder": (lambda: spaced(decoder=decoders.Sequence([])), "no decoder"),
    "BPEDecoder": (lambda: untrained(decoder=decoders.BPEDecoder()), "decoder BPEDecoder writes a space"),
    "CTC": (lambda: untrained(decoder=decoders.CTC()), "CTC merges tokens"),
    "a pattern in the decoder": (
        lambda: spaced(steps=[decoders.Replace(tokenizers.Regex("▁+"), " ")]),
        r"decoder replaces \{'Regex'",
    ),
    "a text in the decoder": (lambda: spaced(steps=[decoders.Replace("▁▁", " ")]), "may stand across tokens"),
    "spaces after bytes": (
        lambda: spaced(steps=[decoders.ByteFallback(), decoders.Replace("▁", " ")]),
        "decoder has Replace where",
    ),
    "the end of a text": (
        lambda: spaced(
            steps=[decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 0, 1)]
        ),
        "decoder has Strip where",
    ),
    "bytes that are not decoded": (lambda: spaced(steps=[decoders.Replace("▁", " ")]), r"'\\n' join to '<0x0A>'"),
    "lower case": (lambda: untrained(normalizer=normalizers.Lowercase()), "Lowercase changes upper case"),
    "NFKC": (
        lambda: untrained(normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.NFKC()])),
        "normalizer NFKC replaces characters",
    ),
    "a replacement": (lambda: untrained(normalizer=normalizers.Replace("x", "y")), "normalizer replaces .*'x'"),
    "another space": (lambda: spaced(normalizer=normalizers.Replace(" ", "_")), "does not read as a space"),
    "white space": (lambda: spaced(pre_tokenizer=pre_tokenizers.Whitespace()), "pre-tokenizer Whitespace drops"),
    "a delimiter": (
        lambda: spaced(pre_tokenizer=pre_tokenizers.Split(",", "removed")),
        "pre-tokenizer Split removes text",
    ),
    "ends of words": (
        lambda: untrained(model=models.BPE({"a": 0, "b</w>": 1}, [], end_of_word_suffix="</w>")),
        "end_of_word_suffix is '</w>'",
    ),
    "no byte-level reading": (lambda: untrained(pre_tokenizer=pre_tokenizers.Digits()), r"the text ' ' join to ''"),
    "a part written in Python": (
        lambda: untrained(pre_tokenizer=pre_tokenizers.PreTokenizer.custom(object())),
        r"^tokenizers\.Tokenizer: its parts cannot be read: .*Custom",
    ),
    "an added token with two texts": (lambda: added("é"), "added token 165 stands for 'é', but .* reads it as"),
}


@for_each("name", REFUSED)
def test_a_tokenizer_that_is_not_exact_is_refused_with_the_reason(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(constrain.ModelError, match=message):
        constrain.Vocabulary.from_tokenizers(make())


ACCEPTED: dict[str, Callable[[], Any]] = {
    "NFC": lambda: untrained(normalizer=normalizers.NFC()),
    "a byte-level normalizer": lambda: untrained(
        normalizer=normalizers.ByteLevel(), pre_tokenizer=pre_tokenizers.Digits()
    ),
    "splits": lambda: untrained(
        pre_tokenizer=pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(tokenizers.Regex(r"\d{1,3}"), "isolated"),
                pre_tokenizers.Punctuation("isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
            ]
        )
    ),
    "spaces without one in front": spaced,
    "Metaspace after bytes": lambda: spaced(
        normalizer=None,
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="always"),
        steps=[decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()],
    ),
}


@for_each("name", ACCEPTED)
def test_encode_is_exact_for_texts_that_the_tokenizer_would_change(name: str) -> None:
    vocabulary = constrain.Vocabulary.from_tokenizers(ACCEPTED[name]())
    assert vocabulary.encode is not None
    for text in (b"e\xcc\x81", "\u212b".encode(), b" x  1234,", "▁ﬁ".encode()):
        assert joined(vocabulary, vocabulary.encode(text)) == text


@for_each("given", [None, 5, "tokenizer.json", object()])
def test_other_objects_are_named(given: object) -> None:
    with pytest.raises(TypeError, match=r"tokenizer must be a tokenizers\.Tokenizer"):
        constrain.Vocabulary.from_tokenizers(given)


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


def test_other_objects_are_no_encodings() -> None:
    with pytest.raises(TypeError, match=r"encoding must be a tiktoken\.Encoding, not str"):
        constrain.Vocabulary.from_tiktoken("cl100k_base")


sentencepiece = pytest.importorskip("sentencepiece")

PIECES: dict[str, dict[str, Any]] = {
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


@pytest.fixture(scope="module", params=PIECES)
def processor(request: pytest.FixtureRequest) -> Any:
    return sentencepiece.SentencePieceProcessor(model_proto=sentence_pieces(**EXACT_PIECES, **PIECES[request.param]))


def test_the_pieces_of_a_text_join_to_it(processor: Any) -> None:
    vocabulary = constrain.Vocabulary.from_sentencepiece(processor)
    assert vocabulary.encode is not None
    for text in ("hello world", "the  quick", "日本語", "Größe {}"):
        assert joined(vocabulary, processor.encode(text)).removeprefix(b" ") == text.encode()
        assert joined(vocabulary, vocabulary.encode(text.encode())) == text.encode()


def test_pieces_are_bytes_and_special_by_their_kind() -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentence_pieces(**EXACT_PIECES, **PIECES["as Gemma"]))
    vocabulary = constrain.Vocabulary.from_sentencepiece(processor, n_vocab=512)
    assert vocabulary.token_bytes(processor.piece_to_id("<0x0A>")) == b"\n"
    assert vocabulary.token_bytes(processor.piece_to_id("<tool>")) == b"<tool>"
    assert vocabulary.token_bytes(processor.piece_to_id("▁w")) == b" w"
    assert vocabulary.special == {0, 1, 2, processor.piece_to_id("<turn>")}
    assert vocabulary.eos == (2,)
    assert vocabulary.n_vocab == 512


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(sentence_pieces(**EXACT_PIECES, **PIECES["as Llama 2"]))
    from_file = constrain.Vocabulary.from_sentencepiece(path)
    loaded = constrain.Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor(model_file=str(path)))
    assert from_file.fingerprint == loaded.fingerprint
    path.write_bytes(b"no model")
    with pytest.raises(constrain.ModelError, match=r"tokenizer\.model: cannot be read as a SentencePiece model"):
        constrain.Vocabulary.from_sentencepiece(path)
    with pytest.raises(constrain.ModelError, match="cannot be read"):
        constrain.Vocabulary.from_sentencepiece(tmp_path / "none.model")


NOT_EXACT: dict[str, tuple[dict[str, Any], str]] = {
    "spaces are dropped": ({**EXACT_PIECES, "remove_extra_whitespaces": True}, "the text ' ' join to ''"),
    "NFKC": (
        {"remove_extra_whitespaces": False, "byte_fallback": True, "vocab_size": 999, "hard_vocab_limit": False},
        "join to ",
    ),
    "spaces after words": ({**EXACT_PIECES, "treat_whitespace_as_suffix": True}, "join to .* is not understood"),
}


@pytest.mark.parametrize("name", NOT_EXACT)
def test_a_model_that_changes_texts_is_refused(name: str) -> None:
    options, message = NOT_EXACT[name]
    model = sentence_pieces(**{"vocab_size": 45, **options})
    with pytest.raises(constrain.ModelError, match=message):
        constrain.Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor(model_proto=model))


def test_other_objects_are_no_models() -> None:
    with pytest.raises(TypeError, match=r"processor must be a sentencepiece\.SentencePieceProcessor, not int"):
        constrain.Vocabulary.from_sentencepiece(5)
    with pytest.raises(constrain.ModelError, match="it has no model"):
        constrain.Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor())
