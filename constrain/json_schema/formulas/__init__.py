"""Formulas: logic over shapes, for ``not``, ``if``, ``oneOf`` and all that needs a complement.

``keywords`` makes formulas, ``values`` and ``emission`` read their automata. The formulas themselves are in
``shapes.data``. Read the files in this order:

- ``formulas``: decision diagrams; ``complements`` and ``disjoint``: what ``not`` means, and when it is not needed
- ``shape_automaton``: the automaton that formulas become; ``cases``: the answers that a member's value gives
- ``exploration``: the one search for states; ``arrays`` and ``objects`` list the members that may come next, and
  ``object_questions`` decides the formulas by them
- ``independent_keys`` and ``remembered``: where one automaton for all keys would be too large
- ``closing`` and ``alternatives``: objects without undeclared keys, for generation
"""
