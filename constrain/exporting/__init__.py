"""Exporting: a ``Grammar`` as GBNF, as Lark or as a regular expression, with the very same language.

``exporter`` has the way from end to end: read it first. ``constrain.grammars.export`` and ``Constraint.export`` call
it.

- ``draft``: the rules as automata whose edges are ``arcs``. Loops with a counter become repetitions (``loops``), other
  memory is written out (``memory``), bytes become ``characters``; what no target can say is refused here.
- ``recursion``: the rules without empty texts and without left recursion.
- ``nodes``: the regular expressions that definitions are made of. ``terminals`` makes them of a terminal's expression,
  ``reduction`` of an automaton. ``plan`` collects the definitions.
- ``notations`` write the text.
"""
