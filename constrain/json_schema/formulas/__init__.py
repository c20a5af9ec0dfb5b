"""Formulas: logic over shapes, for ``not``, ``if``, ``oneOf`` and all that needs a complement.

``keywords`` makes formulas, ``values`` and ``emission`` read their automata. Read ``formulas`` first (decision
diagrams), then ``complements`` and ``disjoint``; the formulas themselves are in ``shapes.data``. ``shape_automaton``
with ``arrays``, ``objects`` and ``object_questions`` makes automata of them; ``independent_keys`` and ``remembered``
do so where one automaton for all keys would be too large. ``closing`` and ``alternatives`` leave undeclared keys out.
"""
