"""Formulas: logic over shapes, for ``not``, ``if``, ``oneOf`` and all that needs a complement.

``keywords`` makes formulas, ``values`` and ``emission`` read their automata. The formulas themselves are in
``shapes.data``. Read the files in this order:

- ``formulas``: decision diagrams; ``complements`` and ``disjoint``: what ``not`` means, and when it is not needed
- ``shape_automaton``: what is made of formulas; ``cases``: the questions that a member's value answers
- ``exploration``: the one search for states; ``arrays`` and ``objects`` say which members may come next, and
  ``object_questions`` what these decide
- ``independent_keys`` and ``remembered``: where one automaton for all keys would be too large
- ``closing`` and ``alternatives``: undeclared keys are left out
"""
