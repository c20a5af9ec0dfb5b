"""Shapes: what a value may be.

A ``goal`` is what a value at some place must satisfy; ``goals`` makes goals and expands them into shapes, and is the
working memory of one compilation. Read ``goal`` first, then ``shapes`` (disjunctions of shapes), then one type:
``numeric`` with ``number_texts`` (how numbers are spelled), ``strings``, ``arrays``, or ``objects`` with ``keys`` and
``key_partition`` (keys that no one declared).
"""

from __future__ import annotations
