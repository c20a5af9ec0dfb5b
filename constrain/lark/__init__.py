"""Lark grammars: text in the syntax of the ``lark`` package, as it is given to OpenAI's custom tools, to a ``Grammar``.

- ``source``: the text, with the functions that a ``Source`` has; ``places``: places in it, for errors
- ``syntax``: what a grammar text is read into; ``reading``: reads it, with the parser of the ``lark`` package
- ``literals``: strings, ranges and patterns to expressions; ``common``: the terminals of Lark's ``common`` library
- ``substrings``: parts of given texts; ``terminals``: terminals, each one expression
- ``rules``: rules, each one automaton; ``embedded``: JSON Schemas; ``grammar``: all of it, put together
- ``gaps`` and ``separation``: ignored text, between lexemes only

The ``lark`` package reads the text and nothing else: patterns have the syntax of Rust's ``regex`` crate, the longest
match decides what is a lexeme, and what can match the empty text may. It is imported when a text is read.

That the longest match leads to no dead end is proved when the grammar is compiled: ``prove_lexing`` in
``engine/core/src/lexing_proof.cpp`` (``engine/core/README.md``, "Lexing, and its proof") refuses what it cannot prove.
"""

from __future__ import annotations

from constrain.lark.grammar import lark_grammar
from constrain.lark.source import Lark

__all__ = ["Lark", "lark_grammar"]
