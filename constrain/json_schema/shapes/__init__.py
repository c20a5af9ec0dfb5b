"""Shapes: the values that a schema allows, one JSON type each.

``keywords``, ``formulas`` and ``values`` work on shapes. Read ``data`` first: goals (constraints on the value at one
place) and shapes (of one JSON type each). ``goals`` is the interface of a compilation's working memory; ``goal`` finds
the schema of a goal. Then ``shapes`` (disjunctions), and one type: ``strings`` with ``quotes``, ``arrays``, or
``objects`` with ``keys`` and ``key_partition`` (undeclared keys); the shape of numbers is in the package ``numbers``.
``combined``: arrays and objects under formulas; ``tables``: the values of a table.
"""
