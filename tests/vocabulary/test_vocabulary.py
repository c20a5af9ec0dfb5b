"""Vocabularies: token bytes, special ids and ends of generation, against llama.cpp and in hand-made files."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import gguf
import pytest

import constrain
from constrain.vocabulary.gguf.metadata import read_metadata
from tests.support import LONG, REAL_VOCABULARIES, data_folder, demo_model, each_row, for_each
from tests.support.gguf_files import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, finish, write_gguf

if TYPE_CHECKING:
    from pathlib import Path

    import llama_cpp


def texts(vocabulary: constrain.Vocabulary) -> list[bytes]:
    return [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]


def real_file(name: str) -> Path:
    return demo_model() if name == "smollm2" else data_folder() / "vocabs" / f"ggml-vocab-{name}.gguf"


@pytest.fixture(scope="module", params=["smollm2", *(REAL_VOCABULARIES if LONG else ("phi-3", "gemma-4"))])
def loaded(request: pytest.FixtureRequest) -> llama_cpp.Llama:
    import llama_cpp

    return llama_cpp.Llama(str(real_file(request.param)), vocab_only=True, verbose=False)


@pytest.fixture(scope="module")
def plain(loaded: llama_cpp.Llama) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_gguf(loaded.model_path)


@pytest.fixture(scope="module")
def full(loaded: llama_cpp.Llama) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_llama(loaded)


@pytest.mark.slow(but=("smollm2", "phi-3"))
def test_token_bytes_and_ends_of_generation_are_those_of_llama_cpp(
    loaded: llama_cpp.Llama, plain: constrain.Vocabulary
) -> None:
    import llama_cpp

    vocabulary, pointer = plain, loaded._model.vocab
    assert vocabulary.n_vocab == llama_cpp.llama_vocab_n_tokens(pointer)
    buffer = ctypes.create_string_buffer(4096)
    for token in range(vocabulary.n_vocab):
        length = llama_cpp.llama_token_to_piece(pointer, token, buffer, len(buffer), 0, False)
        assert vocabulary.token_bytes(token) == buffer.raw[:length], token
    ends = [token for token in range(vocabulary.n_vocab) if llama_cpp.llama_vocab_is_eog(pointer, token)]
    assert vocabulary.eos == tuple(ends)
    assert vocabulary.special.issuperset(ends)


@pytest.mark.slow(but=("smollm2", "phi-3"))
def test_from_llama_is_from_gguf_with_encode(plain: constrain.Vocabulary, full: constrain.Vocabulary) -> None:
    assert (plain.n_vocab, plain.eos, plain.special) == (full.n_vocab, full.eos, full.special)
    assert plain.fingerprint == full.fingerprint
    assert texts(plain) == texts(full)
    assert plain.encode is None
    assert full.encode is not None


SPELLED = [
    *(b"", b"a", b" a", b"  a  ", b'{"name": "\xc3\xa9t\xc3\xa9", "tags": [1.5, -2e10]}\n', b"\n\n\t x"),
    "日本語 🙂 e\u0301".encode(),
    *(b"</s>", b"<|im_end|><|eot_id|><eos><|endoftext|><turn|>", b"</</s>s><<s>/s>", b"\xe6\x97", b"\xc3", b"a\x80b"),
]


@pytest.mark.parametrize("text", SPELLED)
@pytest.mark.slow(but=("smollm2", "phi-3"))
def test_encode_spells_exactly_and_never_with_special_tokens(full: constrain.Vocabulary, text: bytes) -> None:
    assert full.encode is not None
    tokens = full.encode(text)
    assert b"".join(map(full.token_bytes, tokens)) == text
    assert not full.special.intersection(tokens)


@pytest.mark.slow(but=("smollm2", "phi-3"))
def test_encode_is_the_usual_tokenization(loaded: llama_cpp.Llama, full: constrain.Vocabulary) -> None:
    vocabulary = full
    assert vocabulary.encode is not None
    text = 'Sure, here it is: {"city": "Paris", "population": 2102650}'
    usual = loaded.tokenize(text.encode(), add_bos=False, special=False)
    if vocabulary.token_bytes(usual[0]).startswith(b" "):
        text = " " + text
    assert vocabulary.encode(text.encode()) == usual


def test_encode_says_what_the_vocabulary_cannot_spell() -> None:
    import llama_cpp

    vocabulary = constrain.Vocabulary.from_llama(llama_cpp.Llama(str(demo_model()), vocab_only=True, verbose=False))
    assert vocabulary.encode is not None
    with pytest.raises(constrain.ModelError, match=r"cannot spell .*: it has no token for the byte 0x04"):
        vocabulary.encode(b"a\x04b")
    with pytest.raises(constrain.ModelError, match="0xf1"):
        vocabulary.encode(b"\xf1")


class Tokenizer(NamedTuple):
    """A vocabulary as a GGUF file has it, and the bytes of its tokens."""

    model: str
    tokens: list[str]
    types: list[int]
    texts: list[bytes]
    special: set[int]
    pre: str | None = None


SPACES = (["▁a", "<0x41>", "é", "<eos>"], [NORMAL, BYTE, NORMAL, CONTROL], [b" a", b"A", b"\xc3\xa9", b""])

TOKENIZERS = {
    "byte-level BPE": Tokenizer(
        "gpt2",
        # "日" is outside the alphabet; "<0x0A>" is a byte in SentencePiece only.
        ["a", "Ġa", "Ċ", "Ã©", "Ã", "<user>", "<|end|>", "日", "é", "<0x0A>"],
        [NORMAL] * 5 + [USER_DEFINED, CONTROL, NORMAL, NORMAL, NORMAL],
        [b"a", b" a", b"\n", b"\xc3\xa9", b"\xc3", b"<user>", b"", b"", b"\xe9", b"<0x0A>"],
        {6},
    ),
    "SentencePiece": Tokenizer(
        "llama",
        ["<unk>", "<s>", "</s>", "<0x0A>", "<0xfF>", "▁a▁b", "▁", "[x▁y]", "unused", "é"],
        [UNKNOWN, CONTROL, CONTROL, BYTE, BYTE, NORMAL, NORMAL, USER_DEFINED, UNUSED, NORMAL],
        [b"", b"", b"", b"\n", b"\xff", b" a b", b" ", "[x▁y]".encode(), b"", "é".encode()],
        {0, 1, 2, 8},
    ),
    "BPE with spaces as in SentencePiece": Tokenizer("gemma4", *SPACES, {3}),
    "the same, by its pre-tokenizer": Tokenizer("gpt2", *SPACES, {3}, pre="sarvam-moe"),
    "escapes of RWKV": Tokenizer(
        "rwkv", [r"a\n\t\r\x00\xfF\\\'", "b", "<s>"], [NORMAL, NORMAL, CONTROL], [b"a\n\t\r\x00\xff\\'", b"b", b""], {2}
    ),
    "text as it is, of PLaMo 2": Tokenizer(
        "plamo2", ["a▁ b", "<0x00>", "<|plamo:eos|>"], [NORMAL, BYTE, CONTROL], ["a▁ b".encode(), b"\0", b""], {2}
    ),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_tokens_of_every_kind_of_tokenizer_are_decoded(tmp_path: Path, name: str) -> None:
    model, tokens, types, expected, special, pre = TOKENIZERS[name]
    end = types.index(CONTROL) if model != "llama" else 2
    numbers = {"tokenizer.ggml.eos_token_id": end}
    path = write_gguf(tmp_path / "v.gguf", model, [t.encode() for t in tokens], types, numbers=numbers, pre=pre)
    vocabulary = constrain.Vocabulary.from_gguf(path)
    assert texts(vocabulary) == expected
    assert vocabulary.eos == (end,)
    assert vocabulary.special == special


def test_a_vocabulary_may_have_several_ends_of_generation(tmp_path: Path) -> None:
    tokens = [b"a", b"<|eot_id|>", b"<stop>", b"<other>", b"<|file_sep|>", b"<PRE>"]
    numbers = {"tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.eom_token_id": 3}
    path = write_gguf(tmp_path / "v.gguf", "gpt2", tokens, [NORMAL] + [CONTROL] * 5, numbers=numbers)
    assert constrain.Vocabulary.from_gguf(path).eos == (1, 2, 3, 4)


def test_end_of_message_does_not_end_the_generation_where_channels_are_used(tmp_path: Path) -> None:
    tokens = [b"a", b"<|end|>", b"<|return|>", b"<|call|>"]
    numbers = {"tokenizer.ggml.eos_token_id": 2}
    path = write_gguf(tmp_path / "v.gguf", "gpt2", tokens, [NORMAL] + [CONTROL] * 3, numbers=numbers)
    vocabulary = constrain.Vocabulary.from_gguf(path)
    assert vocabulary.eos == (2, 3)
    assert 1 in vocabulary.special


def test_ids_beyond_the_tokenizer_have_no_text(tmp_path: Path) -> None:
    numbers = {"tokenizer.ggml.eos_token_id": 1}
    path = write_gguf(tmp_path / "v.gguf", "gpt2", [b"a", b"<e>"], [NORMAL, CONTROL], numbers=numbers, rows=5)
    assert texts(constrain.Vocabulary.from_gguf(path)) == [b"a", b"", b"", b"", b""]
    numbers["llama.vocab_size"] = 7
    write_gguf(path, "gpt2", [b"a", b"<e>"], [NORMAL, CONTROL], numbers=numbers)
    assert constrain.Vocabulary.from_gguf(path).n_vocab == 7


def test_token_types_may_be_missing(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "v.gguf", "gpt2", [b"a", b"b"])
    assert texts(constrain.Vocabulary.from_gguf(path)) == [b"a", b""]


@each_row(
    "model, tokens, types, message",
    ("bert", [b"a", b"b"], [NORMAL, CONTROL], "WordPiece"),
    ("klingon", [b"a", b"b"], [NORMAL, CONTROL], "'klingon' is not supported"),
    ("llama", [b"<0xZZ>", b"b"], [BYTE, CONTROL], "byte token 0"),
    ("rwkv", [rb"\xZZ", b"b"], [NORMAL, CONTROL], "bad escape"),
    ("gpt2", [b"a", b"b"], [NORMAL], "one int32 for each of the 2 tokens"),
    ("gpt2", ["日".encode(), b"b"], [NORMAL, CONTROL], "none of the 2 tokens has a text"),
)
def test_a_tokenizer_that_cannot_be_used_is_refused_with_the_file(
    tmp_path: Path, model: str, tokens: list[bytes], types: list[int], message: str
) -> None:
    path = write_gguf(tmp_path / "v.gguf", model, tokens, types, numbers={"tokenizer.ggml.eos_token_id": 1})
    with pytest.raises(constrain.ModelError, match=message) as caught:
        constrain.Vocabulary.from_gguf(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("version", "message"), [(1, "version 1 "), (0x03000000, "big-endian"), (3, "no tokenizer")])
def test_other_versions_of_the_format_and_files_without_a_tokenizer_are_refused(
    tmp_path: Path, version: int, message: str
) -> None:
    (tmp_path / "v.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, 0))
    with pytest.raises(constrain.ModelError, match=message):
        constrain.Vocabulary.from_gguf(tmp_path / "v.gguf")


@pytest.mark.slow
def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "v.gguf", "llama", [b"a", b"", b"b" * 300, b"c"], [1, 1, 1, 3], rows=4)
    metadata = whole.read_bytes()[: -4 * 4 * 4 - 32]
    for size in range(0, len(metadata), 1 if LONG else 7):
        (tmp_path / "cut.gguf").write_bytes(metadata[:size])
        with pytest.raises(constrain.ModelError, match=r"truncated|not a GGUF file"):
            read_metadata(tmp_path / "cut.gguf", arrays=("tokenizer.ggml.tokens",), tensors=("token_embd.weight",))


STRINGS = {
    "short": [b"a%d" % number for number in range(3000)],
    "long": [b"x" * 255, b"y" * 256, b"z" * 70_000, b"a"],
    "empty": [b"", b"", b"", b"a", b"", b"b", b"", b""],
    "zero bytes": [b"\0" * 7, b"a\0\0\0\0\0\0\0\0b", b"\1" + b"\0" * 15, b"c"],
    "more than a window": [b"%07d" % number for number in range(100_000)],
    "one too long in between": [*[b"ab"] * 2000, b"x" * 1000, *[b"cd"] * 2000],
}


@pytest.mark.slow(only=("more than a window",))
@pytest.mark.parametrize("case", STRINGS)
def test_string_arrays_are_read_and_skipped(tmp_path: Path, case: str) -> None:
    writer = gguf.GGUFWriter(tmp_path / "s.gguf", "llama")
    writer.add_array("skipped", STRINGS[case])
    writer.add_array("wanted", STRINGS[case])
    writer.add_uint32("after", 42)
    finish(writer)
    metadata = read_metadata(tmp_path / "s.gguf", arrays=("wanted",))
    assert metadata.values["wanted"].to_list() == STRINGS[case]
    assert metadata.values["after"] == 42
    assert "skipped" not in metadata.values


def test_from_tokens_drops_the_bytes_of_special_ids_and_keeps_encode() -> None:
    given: dict[str, Any] = {"eos": [2], "special": [1], "encode": lambda text: [0] * len(text)}
    vocabulary = constrain.Vocabulary.from_tokens([b"a", b"<pad>", b"</s>", b"a"], **given)
    assert vocabulary.encode is not None
    assert vocabulary.encode(b"aa") == [0, 0]
    assert texts(vocabulary) == [b"a", b"", b"", b"a"]
    assert (vocabulary.n_vocab, vocabulary.eos, vocabulary.special) == (4, (2,), {1, 2})


@for_each(
    "tokens, ids, message",
    ([b"a", b""], {"eos": [2]}, "end-of-generation id 2 is out of range"),
    ([b"a", b""], {"eos": [-1]}, "id -1"),
    ([b"a", b""], {"eos": [1], "special": [7]}, "special id 7"),
    ([b"a", b""], {"eos": []}, "no end-of-generation"),
    ([], {"eos": []}, "no end-of-generation"),
    ([b"", b""], {"eos": [0]}, "none of the 2 tokens has a text"),
    (["a", b""], {"eos": [1]}, "token 0 is str, not bytes"),
)
def test_from_tokens_says_what_is_wrong(tokens: list[bytes], ids: dict[str, list[int]], message: str) -> None:
    with pytest.raises(constrain.ModelError, match=message):
        constrain.Vocabulary.from_tokens(tokens, **ids)


def test_token_bytes_refuses_an_id_out_of_range() -> None:
    vocabulary = constrain.Vocabulary.from_tokens([b"a", b""], eos=[1])
    for token in (-1, 2, 1 << 40):
        with pytest.raises(IndexError, match=f"token id {token} is out of range"):
            vocabulary.token_bytes(token)
