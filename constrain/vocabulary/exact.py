"""Exact encoding: bytes to token ids whose bytes are the same again, whatever the tokenizer does to a text."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.vocabulary.table import Tokens

_INVALID_UTF8 = re.compile("([\udc80-\udcff]+)")
"""Runs of bytes that are not UTF-8, as ``surrogateescape`` decodes them."""


class ExactEncoder:
    """The ``encode`` of a vocabulary whose tokenizer reads UTF-8.

    Attributes:
        name: the tokenizer, for messages.
        tokens: the vocabulary; assigned once it is made.
    """

    tokens: Tokens

    def __init__(self, name: str, continue_text: Callable[[bytes], list[int]]) -> None:
        """``continue_text``: the tokenizer's ids for UTF-8 in the middle of a text."""
        self.name = name
        self._continue_text = continue_text

    def __call__(self, text: bytes) -> list[int]:
        """Tokenizes bytes in the middle of a text: no special ids, no added space, and exactly these bytes.

        Bytes that are not UTF-8, or that the tokenizer would change, become one token each. Raises ``ModelError`` if
        the vocabulary has no token for such a byte.
        """
        tokens: list[int] = []
        for part in _INVALID_UTF8.split(text.decode("utf-8", "surrogateescape")):
            raw = part.encode("utf-8", "surrogateescape")
            written = [] if not raw or _INVALID_UTF8.match(part) else self._continue_text(raw)
            tokens += written if self._text(written) == raw else self._bytewise(raw)
        return tokens

    def _bytewise(self, text: bytes) -> list[int]:
        try:
            return [self._byte_tokens[byte] for byte in text]
        except KeyError as error:
            byte = f"it has no token for the byte {error.args[0]:#04x}"
            raise ModelError(f"the vocabulary of {self.name} cannot spell {text!r}: {byte}") from None

    @cached_property
    def _byte_tokens(self) -> dict[int, int]:
        texts = ((token, self.tokens.token_bytes(token)) for token in range(self.tokens.n_vocab))
        return {text[0]: token for token, text in texts if len(text) == 1}

    def _text(self, tokens: Iterable[int]) -> bytes:
        return b"".join(map(self.tokens.token_bytes, tokens))
