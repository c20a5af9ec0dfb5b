"""Prompts in which only the template's text names special tokens.

What a message says must never act as the template's own marks; nor must tools, arguments and results. So a
noncharacter (a code point that Unicode reserves for a program's own use) is put into every special token's text found
in them before the template is rendered; afterwards only the template's text can still match a special token, whatever
the template did to the messages: trim, split, or repeat them. The noncharacter is taken out again before the text is
tokenized.

A template may also join parts of a message, and so make a special token's text that was not there before. To notice,
the prompt is rendered a second time with every character marked that can begin a special token. If both renderings
name the same special tokens, the first is used (there the template sees tags such as ``</think>`` as they are),
otherwise the second, in which nothing in a message can be special.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.vocabulary.tokenizer import SpecialToken, Tokenizer

Mark = Callable[[str], str]
"""Marks a text that is not trusted, so that nothing in it is taken for a special token."""

_NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]


def token_names(tokenizer: Tokenizer) -> dict[str, str]:
    """The variables by which templates name the tokens that begin and end a text."""
    return {"bos_token": tokenizer.name(tokenizer.bos), "eos_token": tokenizer.name(tokenizer.eos)}


def guarded_tokens(tokenizer: Tokenizer, texts: Iterable[str], write: Callable[[Mark], str]) -> list[int]:
    """The token ids of a prompt in which only trusted texts name special tokens.

    Args:
        tokenizer: of the model.
        texts: all texts that the prompt is made of, trusted or not.
        write: writes the prompt; what is not trusted, it passes through its argument first. Called twice.
    """
    specials = tokenizer.special_tokens
    mark = _unused_noncharacter(texts)
    parts = _partition(write(_Marker(specials, mark, every_beginning=False).marked), specials)
    certain = _partition(write(_Marker(specials, mark, every_beginning=True).marked), specials)
    if [part for part in parts if isinstance(part, int)] != [part for part in certain if isinstance(part, int)]:
        parts = certain
    tokens: list[int] = []
    for part in parts:
        tokens += [part] if isinstance(part, int) else tokenizer.tokenize(part.replace(mark, ""))
    return tokenizer.with_bos(tokens)


def _unused_noncharacter(texts: Iterable[str]) -> str:
    searched = list(texts)
    for character in _NONCHARACTERS:
        if not any(character in text for text in searched):
            return character
    raise ValueError("the messages contain every one of the noncharacters U+FDD0 to U+FDEF")


class _Marker:
    """Puts a mark behind the first character of special tokens' texts, or of whatever might become one."""

    def __init__(self, specials: Sequence[SpecialToken], mark: str, *, every_beginning: bool) -> None:
        self._texts = [special.text for special in specials]
        self._first = {text[0] for text in self._texts}
        self._mark = mark
        self._every_beginning = every_beginning

    def marked(self, content: str) -> str:
        """A text that is not trusted, with its marks."""
        if self._every_beginning:
            return "".join(c + self._mark if c in self._first else c for c in content)
        if self._first.isdisjoint(content):
            return content
        for text in self._texts:
            while text in content:
                content = content.replace(text, text[0] + self._mark + text[1:])
        return content


def _partition(text: str, specials: Sequence[SpecialToken]) -> list[int | str]:
    """Splits a text at special tokens, longest first, as llama.cpp does: ids, and the texts between them."""
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
"""What C's ``isspace`` takes for white space."""
