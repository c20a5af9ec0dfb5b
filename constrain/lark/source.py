"""``Lark``: a grammar text for answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from constrain.arguments import without_mark
from constrain.language.source import GrammarSource
from constrain.language.wrong_schema import refuse_file_name
from constrain.lark.named import NamedGrammars

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar


_EXAMPLE = re.compile(r"^//\n// Example:\n(?://.*\n)*", re.MULTILINE)
"""The example in the comment of a ready grammar. A model that sees one copies it into its answer."""


@dataclass(frozen=True, slots=True, repr=False)
class Lark(GrammarSource):
    """A Lark grammar that the whole answer matches; ``compile`` and ``generate`` take it instead of a schema.

    Args:
        text: the grammar, in the syntax of the ``lark`` package, with patterns of Rust's ``regex`` crate. A lexeme is
            the longest match of all terminals that may stand at its place; where that could lead into a dead end,
            every way to divide the text counts. Beyond Lark, ``"a"{2,4}`` counts, ``&`` and ``~`` in terminals mean
            "and" and "not", ``name[lazy]``, ``name[suffix="..."]`` and ``name[stop="..."]`` end a rule where it first
            matches, ``name[capture]`` gives its text a name, ``%json {...}`` reads a value of a JSON Schema,
            ``%regex {"substring_words": "..."}`` consecutive words of a text (also ``substring_chars``, and
            ``substring_chunks`` with a list), ``<|name|>`` the token of that name, and ``<[5]>``, ``<[5-9,12]>``,
            ``<[^5]>`` or ``<[*]>`` one token by its id. Rules may be parametric (``rule::_``, ``%if``);
            ``%lark {...}`` is a grammar inside the grammar.
        start: name of the rule that the whole text must match.
        description: text that prompts show instead of the grammar, for one that is long or hard to read.
        grammars: grammars that rules refer to as ``@name``, by name: a ``str`` is a grammar text, anything else a JSON
            Schema or a type. ``text`` may also be llguidance's JSON with a list of grammars, of which the first is the
            one for the answer.

    ``compile`` and ``generate`` raise ``GrammarError``, or ``PatternError`` for a pattern, with line and column, if the
    grammar is malformed or not supported.

    >>> from constrain import Lark, Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> sums = compile(Lark('start: /[0-9]+/ ("+" /[0-9]+/)*'), vocabulary)
    >>> sums.accepts("1+23"), sums.accepts("1+")
    (True, False)
    """

    kind: ClassVar[str] = "Lark"
    text: str
    start: str = field(default="start", kw_only=True)
    description: str = field(default="", kw_only=True)
    grammars: Mapping[str, Any] = field(default=NamedGrammars(), kw_only=True)

    def __post_init__(self) -> None:
        for value in (self.text, self.start, self.description):
            if not isinstance(value, str):
                raise TypeError(f"text, start and description of a Lark grammar must be str, not {value!r}")
        if not isinstance(self.grammars, Mapping):
            raise TypeError(f"grammars of a Lark grammar must map names to grammars, not be {self.grammars!r}")
        object.__setattr__(self, "text", without_mark(self.text))
        object.__setattr__(self, "grammars", NamedGrammars(self.grammars))

    def grammar(self) -> Grammar:
        """Returns the grammar. Raises ``GrammarError``, ``PatternError`` and ``LimitError``."""
        from constrain.lark.grammar import lark_grammar

        refuse_file_name(self.text)
        return lark_grammar(self)

    def render(self) -> str:
        """Returns the description, or else the grammar's text without the example of a ready grammar."""
        return self.description.strip("\n") or _EXAMPLE.sub("", self.text).strip("\n")

    @property
    def may_capture(self) -> bool:
        """Whether the grammar may have captures."""
        return "capture" in self.text or any(
            isinstance(grammar, str) and "capture" in grammar for grammar in self.grammars.values()
        )
