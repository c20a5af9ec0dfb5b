"""Text to token ids with llama.cpp's own tokenizer; ordinary text never becomes a special token.

``llama_tokenize`` with ``parse_special=False`` skips control tokens only. llama.cpp still matches user-defined tokens
(among them the channel tokens of some families), and in byte-level vocabularies a plain text such as ``</s>`` may merge
into a token that ends the generation. So the tokenizer checks each result: where the result holds a special id, the
text is cut inside the text of that token, and both sides are tokenized separately.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.errors import ModelError
from constrain.remembering import remembered
from constrain.vocabulary.exact import ExactEncoder
from constrain.vocabulary.gguf.tokens import read_gguf_tokens
from constrain.vocabulary.table import make_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.vocabulary.table import Encode, Tokens, TokenTable

_SPECIAL = (
    llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
)
"""Attributes of tokens that llama.cpp looks for in a text before it tokenizes the rest."""

_INFILL = {part: getattr(llama_cpp, f"llama_vocab_fim_{part}") for part in ("pre", "suf", "mid", "sep")}
"""Functions that find the tokens of models that fill a gap in a text: in front of the text before the gap, of the text
behind it, of the text in it, and of another file. They return -1 if there is none.
"""

_COUNTED_TEXTS, _COUNTED_BYTES = 8192, 4 << 20
"""Texts whose numbers of tokens are remembered, and bytes of these texts: 4 MiB; the least recently used go first."""

_NUL = b"\0"
"""A byte that merges with no other byte: text after it is tokenized as in the middle of a longer text."""


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that templates may name: its text, and whether white space on either side is dropped."""

    id: int
    text: str
    strips_before: bool
    strips_after: bool


class Tokenizer:
    """The tokenizer of one loaded model. ``make`` builds the vocabulary from the token table."""

    def __init__(self, llama: llama_cpp.Llama, make: Callable[[TokenTable, Encode], Tokens]) -> None:
        if not isinstance(llama, llama_cpp.Llama):
            raise ModelError(f"not a llama_cpp.Llama: {type(llama).__name__}")
        self._llama = llama  # Keeps the vocabulary below alive.
        self._vocabulary = llama._model.vocab
        self._in_use = threading.Lock()
        n_vocab: int = llama_cpp.llama_vocab_n_tokens(self._pointer)
        self.encode = ExactEncoder(llama.model_path, self._continued)
        self.vocabulary = make(self._table(read_gguf_tokens(llama.model_path), n_vocab), self.encode)
        self.encode.tokens = self.vocabulary
        self.adds_bos: bool = llama_cpp.llama_vocab_get_add_bos(self._pointer)
        self.adds_eos: bool = llama_cpp.llama_vocab_get_add_eos(self._pointer)
        self.bos: int = llama_cpp.llama_vocab_bos(self._pointer)
        self.eos: int = llama_cpp.llama_vocab_eos(self._pointer)
        self.infill: dict[str, int] = {part: find(self._pointer) for part, find in _INFILL.items()}
        lead = self._raw(_NUL)
        self._lead = lead if self._text(lead) == b" " + _NUL else []

    def close(self) -> None:
        """Waits until other threads have finished; from then on every method raises ``ModelError``."""
        with self._in_use:
            self._vocabulary = None

    @property
    def _pointer(self) -> Any:
        if self._vocabulary is None:
            raise ModelError(f"the model {self._llama.model_path} is closed")
        return self._vocabulary

    def _table(self, table: TokenTable, n_vocab: int) -> TokenTable:
        """The token table of the file, as wide as this model's logits and with llama.cpp's ends of generation."""
        if len(table.texts) < n_vocab:
            raise ModelError(f"{self._llama.model_path}: {len(table.texts)} tokens, but {n_vocab} in the loaded model")
        eos = [token for token in range(n_vocab) if llama_cpp.llama_vocab_is_eog(self._pointer, token)]
        special = {token: table.names.get(token, "") for token in table.special if token < n_vocab}
        return make_table(table.texts[:n_vocab], special=special, eos=eos, where=self._llama.model_path)

    @cached_property
    def special_tokens(self) -> tuple[SpecialToken, ...]:
        """The tokens that a template's text may name, longest text first: the order in which llama.cpp looks for them.

        Tokens of one character are left out: ordinary text contains the same character.
        """
        found = []
        for token in self.vocabulary.special:
            attributes = llama_cpp.llama_vocab_get_attr(self._pointer, token)
            text = self.name(token)
            if attributes & _SPECIAL and len(text) > 1:
                before = bool(attributes & llama_cpp.LLAMA_TOKEN_ATTR_LSTRIP)
                after = bool(attributes & llama_cpp.LLAMA_TOKEN_ATTR_RSTRIP)
                found.append(SpecialToken(token, text, before, after))
        return tuple(sorted(found, key=lambda token: -len(token.text.encode())))

    @cached_property
    def count(self) -> Callable[[str], int]:
        """Counts the tokens of a text, and remembers how many it has."""
        return remembered(_COUNTED_TEXTS, _COUNTED_BYTES, len)(lambda text: len(self.tokenize(text)))

    def name(self, token: int) -> str:
        """The name of a token in the vocabulary (``<|im_end|>``); ``""`` for -1, which stands for no token."""
        if token < 0:
            return ""
        text: bytes = llama_cpp.llama_vocab_get_text(self._pointer, token)
        return text.decode("utf-8", "replace")

    def show(self, tokens: Iterable[int]) -> str:
        """The text of tokens, with special tokens by their names, for people to read."""
        special = self.vocabulary.special
        written = (self.name(t).encode() if t in special else self.vocabulary.token_bytes(t) for t in tokens)
        return b"".join(written).decode("utf-8", "replace")

    def tokenize(self, text: str) -> list[int]:
        """Tokenizes a text as llama.cpp does at the start or after a special token; returns no special ids."""
        return self._plain(text.encode())

    def text_tokens(self, text: str) -> list[int]:
        """The token ids of a whole text: ``tokenize``, preceded by the begin-of-text token if the model uses one."""
        return self.with_bos(self.tokenize(text))

    def with_bos(self, tokens: list[int]) -> list[int]:
        """Adds the begin-of-text token in front, if the model uses one and the tokens do not begin with it."""
        if self.adds_bos and tokens[:1] != [self.bos]:
            return [self.bos, *tokens]
        return tokens

    def _plain(self, text: bytes) -> list[int]:
        """``_raw`` without special ids: the text is cut inside the text of each special token found."""
        tokens = self._raw(text)
        found = {self.name(token).encode() for token in tokens if token in self.vocabulary.special}
        found = {name for name in found if len(name) > 1 and name in text}
        if not found:
            return [token for token in tokens if token not in self.vocabulary.special]
        name = max(found, key=len)
        cut = text.index(name) + 1
        return self._plain(text[:cut]) + self._continued(text[cut:])

    def _continued(self, text: bytes) -> list[int]:
        """``_plain`` in the middle of a text: without the space that SentencePiece adds before a text."""
        return self._plain(_NUL + text)[len(self._lead) :] if self._lead else self._plain(text)

    def _text(self, tokens: Iterable[int]) -> bytes:
        return b"".join(map(self.vocabulary.token_bytes, tokens))

    def _raw(self, text: bytes) -> list[int]:
        """Calls ``llama_tokenize``, which neither adds nor parses special tokens here."""
        size = len(text) + 2
        while True:
            buffer = (llama_cpp.llama_token * size)()
            specials = (False, False)  # add_special, parse_special
            with self._in_use:
                count = llama_cpp.llama_tokenize(self._pointer, text, len(text), buffer, size, *specials)
            if count >= 0:
                return buffer[:count]
            size = -count
