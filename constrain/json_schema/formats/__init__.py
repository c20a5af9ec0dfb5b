"""Formats: the texts of the keyword ``format``.

``keywords.format`` looks formats up in ``expressions``, whose table LEFT_OUT says what an expression leaves out of its
format. ``definitions`` holds the full definitions of these formats, for negation. ``generated`` holds still narrower
texts for generation, since usual readers reject some of a format. ``hosts`` has names and addresses that several
formats contain, ``idn`` the internationalized ones, ``patterns`` regular expressions, ``moments`` days and times in
order. Read ``expressions`` first.

A new format: a function and a row of ``_EXPRESSIONS`` in ``expressions``, and a row of ``CASES`` in
tests/json_schema/formats/test_formats.py. If its definition is wider than its expression, also a row in ``LEFT_OUT``
and one in ``definitions``; if usual readers reject some of it, a row in ``generated``.
"""
