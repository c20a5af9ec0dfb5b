"""Lark grammars: text in the syntax of the ``lark`` package and of llguidance's dialect of it, to a ``Grammar``.

- ``source``: the public class ``Lark``; ``grammar``: the whole front end
- ``reading``: a grammar text as data, with places for errors
- ``literals``: strings, ranges and patterns to expressions; ``common``: the terminals of Lark's ``common`` library
- ``substrings``: parts of given texts; ``terminals``: terminals, each one expression
- ``rules``: rules, each one automaton; ``lexemes``: rules that are one lexeme and end at their first match
- ``embedded``: JSON Schemas, and numbers after ``%regex``
- ``parameters``: parametric rules, one rule for each value; ``token_options``: limits on tokens, temperatures
- ``named``: grammars with names, as data and in llguidance's JSON; ``library``: grammars inside and beside a grammar
- ``sql_tables``: the grammar of SQL over tables with known names
- ``lexing``: ignored text, and terminals whose longest match could lead into a dead end

The ``lark`` package is imported for the first text. Patterns have the syntax of Rust's ``regex`` crate, the longest
match decides where a lexeme ends, and terminals may match the empty text. The kernel proves that the longest match
never leads into a dead end (``kernel/README.md``, "Lexing, and its proof"), or ``lexing.splitting`` makes it so.
"""

from __future__ import annotations

from constrain.lark.grammar import lark_grammar
from constrain.lark.source import Lark

__all__ = ["Lark", "lark_grammar"]
