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
    """A Lark grammar that the whole answer matches; ``compile`` and ``generate`` take it instead of a schema.

    Args:
        text: the grammar, in the syntax of the ``lark`` package, with patterns of Rust's ``regex`` crate. A lexeme is
            the longest match of all terminals that may stand at its place; where that could lead into a dead end,
            every way to divide the text counts. Beyond Lark, ``"a"{2,4}`` counts, ``&`` and ``~`` in terminals mean
            "and" and "not", ``name[lazy]``, ``name[suffix="..."]`` and ``name[stop="..."]`` end a rule where it first
            matches, ``name[capture]`` gives its text a name, ``%json {...}`` reads a value of a JSON Schema,
            ``%regex {"substring_words": "..."}`` consecutive words of a text (also ``substring_chars``, and
            ``substring_chunks`` with a list), and ``<|name|>`` the special token of that name.
        start: name of the rule that the whole text must match.
        description: text that prompts show instead of the grammar, for one that is long or hard to read.

    ``compile`` and ``generate`` raise ``GrammarError``, or ``PatternError`` for a pattern, with line and column, if the
    grammar is malformed or not supported.

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

    @property
    def may_capture(self) -> bool:
        """Whether the grammar may have captures."""
        return "capture" in self.text

    def render(self) -> str:
        """Returns the description, or else the grammar's text."""
        return (self.description or self.text).strip("\n")

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"{_DESCRIBED if self.description else _INSTRUCTION}:\n{self.render()}"
