"""Conversion of other grammar syntaxes to readable Lark: GBNF, and EBNF of ISO/IEC 14977.

``constrain.grammars.convert`` and ``constrain grammars --convert`` call ``lark_text``, in ``converter``. Read it first:

- ``parts``: a grammar as data, whichever syntax it was written in; ``regularity``: its regular rules and parts
- ``gbnf`` and ``ebnf`` read a text into these data; the ``lark`` package makes the parser for EBNF from ebnf.lark, with
  its tables kept in ``tables``
- ``plan``: which rules become terminals, and which texts are read character by character so that no text is lost;
  ``automata``: exceptions as rules, if even so a text would be lost
- ``names``, ``spelling`` and ``patterns``: names, strings and patterns in Lark's form; ``writing``: comments and layout
"""
