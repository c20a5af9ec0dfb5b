"""Shapes: what a value may be.

``keywords``, ``formulas`` and ``values`` work on shapes. Read ``data`` first: goals (what a value at some place must
satisfy) and shapes (of one JSON type each). ``goals`` is what all of them ask of a compilation, ``goal`` tells where a
goal comes from. Then ``shapes`` (disjunctions), and one type: ``numeric`` with ``number_texts``, ``strings``,
``arrays``, or ``objects`` with ``keys`` and ``key_partition`` (keys that no one declared). ``combined`` is arrays and
objects under formulas.
"""
