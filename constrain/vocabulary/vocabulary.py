"""Vocabularies: the bytes of each token id, and the ids that are special."""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from constrain.arguments import integer
from constrain.errors import ModelError
from constrain.language.special import mark
from constrain.vocabulary.table import make_table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from llama_cpp import Llama

    from constrain.vocabulary.libraries.loading import Loaded
    from constrain.vocabulary.table import Encode, TokenTable
    from constrain.vocabulary.tokenizer import Tokenizer

_reading = threading.Lock()


class Vocabulary:
    """The tokens of one tokenizer, as bytes; immutable, shared by all constraints made for it.

    Attributes:
        n_vocab: number of token ids, including ids without text; the width of masks and logits.
        eos: the ids that end a generation, ascending; at least one.
        special: the ids that never stand for text (control, unknown and unused tokens), ``eos`` included.
        special_tokens: ids by name (``<|python_tag|>``) of the special tokens that have a name and do not end a
            generation.
        names: names by id of all special tokens that have one; a grammar may also use those that end a generation.
        encode: bytes to token ids, without special tokens or an added prefix space; ``None`` if unavailable.

    A new vocabulary reads its cached masks from disk (``CONSTRAIN_CACHE``, see ``compile``).

    >>> vocabulary = Vocabulary.from_tokens([b"a", b"ab", b"</s>"], eos=[2])
    >>> vocabulary.token_bytes(1), vocabulary.eos
    (b'ab', (2,))
    """

    __slots__ = (
        "__weakref__",
        "_core",
        "_fingerprint",
        "encode",
        "eos",
        "n_vocab",
        "names",
        "special",
        "special_tokens",
    )

    def __init__(self, table: TokenTable, encode: Encode | None = None) -> None:
        from constrain import kernel
        from constrain.cache import find_cache, restore_independent_tokens

        self.n_vocab = len(table.texts)
        self.eos = table.eos
        self.special = table.special
        self.encode = encode
        self.names: Mapping[int, str] = dict(table.names)
        named = {name: token for token, name in self.names.items() if token not in self.eos}
        self.special_tokens: Mapping[str, int] = named
        names = [(token, name.encode()) for name, token in named.items()]
        self._core = kernel.Vocabulary(table.texts, sorted(table.special), list(table.eos), names)
        self._fingerprint: bytes | None = None
        cache = find_cache()
        if cache is not None and cache.open():
            restore_independent_tokens(cache, self)

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of all tokens and of the ids that are special: the same for equal vocabularies, in any process."""
        if self._fingerprint is None:
            names = repr(sorted(self.names.items())).encode()
            self._fingerprint = hashlib.sha256(self._core.description() + names).digest()
        return self._fingerprint

    def _tokens_named(self, name: str) -> list[int]:
        """The ids of tokens with a name or text, special ones first; empty if there is none.

        >>> Vocabulary.from_tokens([b"a", b"<b>", b""], eos=[2], special={2: "</s>"})._tokens_named("<b>")
        [1]
        """
        special = [token for token, known in self.names.items() if known == name]
        text = name.encode("utf-8", "surrogatepass")
        return special or [token for token in self._core.beginnings_of(text) if self.token_bytes(token) == text]

    @classmethod
    def from_gguf(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Reads the vocabulary from the metadata of a GGUF file; reads no weights and needs no llama.cpp.

        The result has no ``encode``. Raises ``ModelError`` if the file cannot be opened, is damaged, is not a GGUF
        file, or holds no tokenizer whose tokens are known exactly as bytes.
        """
        from constrain.vocabulary.gguf.tokens import read_gguf_tokens

        return cls(read_gguf_tokens(path))

    @classmethod
    def from_llama(cls, llama: Llama) -> Vocabulary:
        """Reads the vocabulary of a loaded ``llama_cpp.Llama``, with ``encode``.

        The GGUF file of ``llama`` must still exist. Raises ``ModelError`` as ``from_gguf`` does.
        """
        from constrain.vocabulary.tokenizer import Tokenizer

        vocabulary = Tokenizer(llama, cls).vocabulary
        assert isinstance(vocabulary, cls)
        return vocabulary

    @classmethod
    def from_transformers(
        cls, tokenizer: Any, *, eos: Iterable[int | str] | int | str | None = None, n_vocab: int | None = None
    ) -> Vocabulary:
        """Reads the vocabulary of a tokenizer of Hugging Face transformers, with ``encode``.

        Args:
            tokenizer: a tokenizer that is built on the library tokenizers, as ``AutoTokenizer`` returns them.
            eos: ids or names of the tokens that end a generation; by default ``tokenizer.eos_token_id``. The decode
                loop must stop at each of them.
            n_vocab: number of ids of the model (``model.config.vocab_size``), if it is not the tokenizer's.

        All tokens, and texts of all kinds, are compared with the tokenizer. Raises ``ModelError`` if the bytes of its
        tokens are not known exactly: the message names the part of the tokenizer and the reason. ``TypeError`` for
        another object.
        """
        from constrain.vocabulary.libraries.hugging_face import load_transformers
        from constrain.vocabulary.libraries.loading import Sizing

        return cls._of_library(load_transformers(tokenizer, Sizing(eos, n_vocab)))

    @classmethod
    def from_tokenizers(
        cls, tokenizer: Any, *, eos: Iterable[int | str] | int | str | None = None, n_vocab: int | None = None
    ) -> Vocabulary:
        """Reads the vocabulary of a ``tokenizers.Tokenizer``, with ``encode``.

        As ``from_transformers``; by default, special tokens whose names llama.cpp knows (``</s>``, ``<|im_end|>``) end
        a generation.
        """
        from constrain.vocabulary.libraries.hugging_face import load_tokenizer
        from constrain.vocabulary.libraries.loading import Sizing

        return cls._of_library(load_tokenizer(tokenizer, Sizing(eos, n_vocab)))

    @classmethod
    def from_sentencepiece(
        cls, processor: Any, *, eos: Iterable[int | str] | int | str | None = None, n_vocab: int | None = None
    ) -> Vocabulary:
        """Reads the vocabulary of a ``sentencepiece.SentencePieceProcessor``, or of a model's file, with ``encode``.

        As ``from_transformers``; by default, the model's own ``eos_id`` ends a generation. A model whose normalizer
        replaces characters, or drops repeated spaces, is refused.
        """
        from constrain.vocabulary.libraries.loading import Sizing
        from constrain.vocabulary.libraries.sentence_pieces import load_processor

        return cls._of_library(load_processor(processor, Sizing(eos, n_vocab)))

    @classmethod
    def from_tiktoken(
        cls, encoding: Any, *, eos: Iterable[int | str] | int | str | None = None, n_vocab: int | None = None
    ) -> Vocabulary:
        """Reads the vocabulary of a ``tiktoken.Encoding``, with ``encode``.

        As ``from_transformers``; by default, special tokens whose names llama.cpp knows (``<|endoftext|>``,
        ``<|return|>``) end a generation.
        """
        from constrain.vocabulary.libraries.loading import Sizing
        from constrain.vocabulary.libraries.ranks import load_encoding

        return cls._of_library(load_encoding(encoding, Sizing(eos, n_vocab)))

    @classmethod
    def _of_library(cls, loaded: Loaded) -> Vocabulary:
        vocabulary = cls(loaded.table, loaded.encode)
        loaded.encode.tokens = vocabulary
        return vocabulary

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes],
        *,
        eos: Iterable[int],
        special: Iterable[int] | Mapping[int, str] = (),
        encode: Encode | None = None,
    ) -> Vocabulary:
        """Makes a vocabulary from the bytes of each token id, ``b""`` for ids without text.

        ``eos`` are the ids that end a generation; ``special`` are the ids that never stand for text. A mapping
        ``special`` also gives the names that grammars may use. The bytes of ``eos`` and ``special`` ids are ignored.
        Several ids may have equal bytes. Raises ``ModelError`` for an id out of range, an entry that is not ``bytes``,
        tokens that all lack text, or an empty ``eos``.
        """
        texts = list(tokens)
        for token, text in enumerate(texts):
            if not isinstance(text, bytes):
                raise ModelError(f"vocabulary: token {token} is {type(text).__name__}, not bytes")
        return cls(make_table(texts, special=special, eos=eos, where="vocabulary"), encode)

    def __copy__(self) -> Vocabulary:
        """Returns the vocabulary itself, which is immutable."""
        return self

    def __deepcopy__(self, _: object) -> Vocabulary:
        """Returns the vocabulary itself, which is immutable."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Vocabulary cannot be pickled; make it again from the GGUF file or the tokens")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token, ``b""`` for an id without text. Raises ``IndexError`` for an id out of range."""
        if not 0 <= integer("token_id", token_id) < self.n_vocab:
            raise IndexError(f"token id {token_id} is out of range: the vocabulary has {self.n_vocab}")
        text: bytes = self._core.token_bytes(token_id)
        return text

    def marked_bytes(self, token_id: int) -> bytes:
        r"""The bytes of a token as in ``token_bytes``; for a named special token, its name between bytes 0xFF and 0xFE.

        >>> vocabulary = Vocabulary.from_tokens([b"a", b"", b""], eos=[2], special={1: "<|sep|>"})
        >>> vocabulary.marked_bytes(1)
        b'\xff<|sep|>\xfe'
        """
        text = self.token_bytes(token_id)
        name = None if text or token_id in self.eos else self.names.get(token_id)
        return text if name is None else mark(name)

    def __repr__(self) -> str:
        return f"Vocabulary(n_vocab={self.n_vocab}, eos={self.eos}, special={len(self.special)} ids)"


class HasVocabulary(Protocol):
    """An object with a vocabulary, such as ``Model``, which this package cannot import."""

    vocabulary: Vocabulary


def as_vocabulary(given: object) -> Vocabulary:
    """Returns a vocabulary, or that of a model. Raises ``TypeError`` for other objects."""
    if isinstance(given, Vocabulary):
        return given
    if isinstance(own := getattr(given, "vocabulary", None), Vocabulary):  # a Model, without importing llama_cpp
        return own
    if any(base.__module__.partition(".")[0] == "llama_cpp" for base in type(given).__mro__):
        vocabulary = tokenizer_of(given).vocabulary  # type: ignore[arg-type]
        assert isinstance(vocabulary, Vocabulary)
        return vocabulary
    raise TypeError(
        f"the vocabulary is {given!r:.80}; it must be a Vocabulary (for example Vocabulary.from_gguf(path)) or a Model"
    )


def tokenizer_of(llama: Llama) -> Tokenizer:
    """The tokenizer of a ``llama_cpp.Llama``, with its vocabulary; the same object on every call.

    The ``Llama`` holds its tokenizer, so both live equally long. Raises ``ModelError``.
    """
    from constrain.vocabulary.tokenizer import Tokenizer

    with _reading:
        known: Tokenizer | None = llama.__dict__.get("_constrain_tokenizer")
        if known is None:
            known = llama.__dict__["_constrain_tokenizer"] = Tokenizer(llama, Vocabulary)
        return known


@cache
def byte_vocabulary() -> Vocabulary:
    """Returns a vocabulary in which token ``i`` is byte ``i``, and token 256 ends the generation."""
    return Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[256])
