"""``Lark``: a grammar text for answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrain.language.source import Source

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar


_INSTRUCTION = "Answer with a text that this Lark grammar generates, and nothing else"
_DESCRIBED = "Answer with a text of this kind, and nothing else"


@dataclass(frozen=True, slots=True)
class Lark(Source):
    """A Lark grammar that an answer matches as a whole. It may stand wherever a schema may.

    Args:
        text: the grammar, in the syntax of the ``lark`` package with patterns of Rust's ``regex`` crate. Lexemes are as
            long as they can be, of all terminals that may stand there; where that could lead into a dead end, every
            way to divide a text counts. ``"a"{2,4}`` counts; in terminals, ``&`` is "and" and ``~`` is "not".
            ``%ignore`` is for text between lexemes, ``%json {...}`` for a value of a JSON Schema,
            ``%regex {"substring_words": "..."}`` for words of a text that follow one another (or ``substring_chars``,
            ``substring_chunks`` with a list), ``<|name|>`` for the special token of that name.
        start: the rule that the whole text must match.
        description: a description for prompts, in place of a grammar that is too long or too hard to read.

    Compiling raises ``GrammarError``, or ``PatternError`` for a pattern, with line and column, for wrong or unsupported
    text.

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
                raise TypeError(f"text, start and description of a Lark grammar must be str, not {value!r}")

    def grammar(self) -> Grammar:
        """Returns the grammar. Raises ``GrammarError``, ``PatternError`` and ``LimitError``."""
        from constrain.lark.grammar import lark_grammar

        return lark_grammar(self)

    def render(self) -> str:
        """Returns the description, or else the grammar's text."""
        return (self.description or self.text).strip("\n")

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"{_DESCRIBED if self.description else _INSTRUCTION}:\n{self.render()}"
