"""``Lark``: a grammar text that an answer matches; and places in such texts, that errors point at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from constrain.errors import ConstrainError, GrammarError
from constrain.language.source import Source

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar

_Error = TypeVar("_Error", bound=ConstrainError)

_INSTRUCTION = "Answer with a text that this Lark grammar generates, and nothing else"
_DESCRIBED = "Answer with a text of this kind, and nothing else"

_EXCERPT_WIDTH = 80
"""Characters of a line that an error shows."""


@dataclass(frozen=True, slots=True)
class Lark(Source):
    """A Lark grammar that an answer matches as a whole. It may stand wherever a schema may.

    Args:
        text: the grammar, in the syntax of the ``lark`` package with patterns of Rust's ``regex`` crate. Lexemes are as
            long as they can be, of all terminals that may stand there. ``%ignore`` is for what may stand between
            lexemes, ``%json {...}`` for a value of a JSON Schema, ``%regex {"substring_words": "..."}`` for words of a
            text that follow one another (or ``substring_chars``, ``substring_chunks`` with a list), ``<|name|>`` for
            the special token of that name.
        start: the rule that the whole text must match.
        description: what prompts say of the language, where the grammar itself would be too long or too hard to read.

    What is wrong or not supported is found out when the grammar is compiled: a ``GrammarError``, or a ``PatternError``
    for a pattern, with line and column.

    >>> from constrain import Lark, Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> sums = compile(Lark('start: /[0-9]+/ ("+" /[0-9]+/)*'), vocabulary)
    >>> sums.accepts("1+23"), sums.accepts("1+")
    (True, False)
    """

    text: str
    start: str = field(default="start", kw_only=True)
    description: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for value in (self.text, self.start, self.description):
            if not isinstance(value, str):
                raise TypeError(f"a grammar, the name of its start and its description are texts, not {value!r}")

    def grammar(self) -> Grammar:
        """What the text says. Raises ``GrammarError``, ``PatternError`` and ``LimitError``."""
        from constrain.lark.grammar import lark_grammar

        return lark_grammar(self)

    def render(self) -> str:
        """The description, or else the grammar's text."""
        return (self.description or self.text).strip("\n")

    def describe(self) -> str:
        """The instruction that is added to the prompt."""
        return f"{_DESCRIBED if self.description else _INSTRUCTION}:\n{self.render()}"


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """The line and column of a place (an index into the text), both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def place(text: str, at: int) -> str:
    """The place in words."""
    return "line {}, column {}".format(*line_and_column(text, at))


def excerpt(text: str, at: int) -> str:
    """The line around a place, as far as it fits, and below it a mark at the place."""
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[begin : len(text) if end < 0 else end].rstrip("\r")
    column = at - begin
    cut = max(0, column - _EXCERPT_WIDTH // 2)
    before = "".join("\t" if char == "\t" else " " for char in line[cut:column])
    return f"    {line[cut : cut + _EXCERPT_WIDTH]}\n    {before}^"


def placed(kind: type[_Error], text: str, at: int, message: str) -> _Error:
    """An error of some kind: what is wrong at a place in the text."""
    line, column = line_and_column(text, at)
    return kind(f"{message}\n{excerpt(text, at)}", line=line, column=column)


def error_at(text: str, at: int, message: str) -> GrammarError:
    """What is wrong with a grammar at a place in its text."""
    return placed(GrammarError, text, at, message)
