"""``Gbnf``: a grammar of llama.cpp for answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, get_args

from constrain.arguments import without_mark
from constrain.gbnf.dialects import Dialect
from constrain.language.source import GrammarSource
from constrain.language.wrong_schema import refuse_file_name

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar


@dataclass(frozen=True, slots=True, repr=False)
class Gbnf(GrammarSource):
    r"""A grammar of llama.cpp that the whole answer matches; ``compile`` and ``generate`` take it instead of a schema.

    Args:
        text: the grammar; its first rule in effect is ``root``. Rules may be left-recursive, and names may have ``_``.
            ``<name>`` is the token of that name, ``<[id]>`` the token with that id, ``!<name>`` and ``!<[id]>`` any
            token but this one.
        description: text that prompts show instead of the grammar, for one that is long or hard to read.
        dialect: ``"gbnf"``, or ``"xgrammar"`` for XGrammar's EBNF, where names may have ``.``, and ``\x`` takes any
            number of digits. Its lookaheads and macros (``TagDispatch``) are refused.

    ``compile`` and ``generate`` raise ``GrammarError`` with line and column if the grammar is malformed.

    >>> from constrain import Gbnf, Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> sums = compile(Gbnf('root ::= sum \n sum ::= [0-9]+ | sum "+" sum'), vocabulary)
    >>> sums.accepts("1+23"), sums.accepts("1+")
    (True, False)
    """

    kind: ClassVar[str] = "GBNF"
    text: str
    description: str = field(default="", kw_only=True)
    dialect: Dialect = field(default="gbnf", kw_only=True)

    def __post_init__(self) -> None:
        for value in (self.text, self.description):
            if not isinstance(value, str):
                raise TypeError(f"text and description of a GBNF grammar must be str, not {value!r}")
        if self.dialect not in get_args(Dialect):
            raise ValueError(f"dialect is {self.dialect!r}; it must be 'gbnf' or 'xgrammar'")
        object.__setattr__(self, "text", without_mark(self.text))

    def grammar(self) -> Grammar:
        """Returns the grammar. Raises ``GrammarError`` and ``LimitError``."""
        from constrain.gbnf.grammar import gbnf_grammar

        refuse_file_name(self.text)
        return gbnf_grammar(self.text, self.dialect)
