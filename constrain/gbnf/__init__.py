"""GBNF: the grammars of llama.cpp, to a ``Grammar``.

Read ``source`` first (the public class ``Gbnf``), then ``reading``: a text as data, by the parser that the ``lark``
package makes from gbnf.lark, with its tables kept in tables.json. ``grammar`` makes the rules: what is regular becomes
terminals, as long as lexing loses no text by it. ``spelling`` has their names, ``dialects`` the two kinds of texts.
"""

from __future__ import annotations

from constrain.gbnf.source import Gbnf

__all__ = ["Gbnf"]
