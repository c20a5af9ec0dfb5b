"""Prompts in which only the template's text names special tokens.

A message must never act as a mark of the template; nor must tools, arguments and results. So this module inserts a
noncharacter (a code point that Unicode reserves for a program's own use) into every special token's text in them before
the template is rendered. Afterwards only the template's text can match a special token, even if the template trims,
splits or repeats the messages. The noncharacter is removed before the text is tokenized.

A template may also join parts of a message and so make a special token's text that was not there before. To notice
this, the prompt is rendered a second time with a noncharacter behind every character that can begin a special token. If
both renderings name the same special tokens, the first is used (in it, the template sees tags such as ``</think>``
unchanged). Otherwise the second is used, in which no part of a message can be special.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.vocabulary.tokenizer import SpecialToken, Tokenizer

Mark = Callable[[str], str]
"""A function that marks an untrusted text, so that no part of it is taken for a special token."""

_NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]


def token_names(tokenizer: Tokenizer) -> dict[str, str]:
    """Returns the template variables that name the tokens at the beginning and end of a text."""
    return {"bos_token": tokenizer.name(tokenizer.bos), "eos_token": tokenizer.name(tokenizer.eos)}


def unused_noncharacter(texts: Iterable[str]) -> str:
    """Returns a noncharacter that stands in none of the texts. Raises ``ValueError`` if all 32 do."""
    searched = list(texts)
    for character in _NONCHARACTERS:
        if not any(character in text for text in searched):
            return character
    raise ValueError("the messages contain all 32 noncharacters U+FDD0 to U+FDEF; remove one of them")


def guarded_tokens(
    tokenizer: Tokenizer, texts: Iterable[str], write: Callable[[Mark], str], *, continues: bool = False
) -> list[int]:
    """Returns the token ids of a prompt in which only trusted texts name special tokens.

    Args:
        tokenizer: tokenizer of the model.
        texts: all texts of the prompt, trusted or not.
        write: function that writes the prompt; it passes untrusted texts through its argument. Called twice.
        continues: whether another text stands in front of this one; then no begin-of-text token does.
    """
    specials = tokenizer.special_tokens
    mark = unused_noncharacter(texts)
    parts = _partition(write(_Marker(specials, mark, every_beginning=False).mark), specials)
    certain = _partition(write(_Marker(specials, mark, every_beginning=True).mark), specials)
    if [part for part in parts if isinstance(part, int)] != [part for part in certain if isinstance(part, int)]:
        parts = certain
    tokens: list[int] = []
    for index, part in enumerate(parts):
        if isinstance(part, int):
            tokens.append(part)
        elif continues and index == 0:
            tokens += tokenizer.encode(part.replace(mark, "").encode())
        else:
            tokens += tokenizer.tokenize(part.replace(mark, ""))
    return tokens if continues else tokenizer.with_bos(tokens)


def trusted_tokens(tokenizer: Tokenizer, text: str) -> list[int]:
    """Returns the token ids of a text in which names of special tokens stand for these tokens."""
    parts = _partition(text, tokenizer.special_tokens)
    return [token for part in parts for token in ([part] if isinstance(part, int) else tokenizer.tokenize(part))]


class _Marker:
    """Inserts a mark behind the first character of special tokens' texts, or of every possible beginning of one."""

    def __init__(self, specials: Sequence[SpecialToken], mark: str, *, every_beginning: bool) -> None:
        self._texts = [special.text for special in specials]
        self._first = {text[0] for text in self._texts}
        self._mark = mark
        self._every_beginning = every_beginning

    def mark(self, content: str) -> str:
        """Returns an untrusted text with its marks."""
        if self._every_beginning:
            return "".join(c + self._mark if c in self._first else c for c in content)
        if self._first.isdisjoint(content):
            return content
        for text in self._texts:
            while text in content:
                content = content.replace(text, text[0] + self._mark + text[1:])
        return content


def _partition(text: str, specials: Sequence[SpecialToken]) -> list[int | str]:
    """Splits a text at special tokens, longest first, as llama.cpp does; returns ids and the texts between them."""
    parts: list[int | str] = [text]
    for special in specials:
        if special.text not in text:
            continue
        split: list[int | str] = []
        for part in parts:
            if isinstance(part, int):
                split.append(part)
                continue
            pieces = part.split(special.text)
            for index, piece in enumerate(pieces):
                before = piece.lstrip(_SPACE) if index and special.strips_after else piece
                last = index == len(pieces) - 1
                between = before.rstrip(_SPACE) if not last and special.strips_before else before
                split += [between] if between else []
                split += [] if last else [special.id]
        parts = split
    return parts


_SPACE = " \t\n\v\f\r"
"""Characters that C's ``isspace`` counts as white space."""
