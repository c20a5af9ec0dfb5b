"""Formats: the texts of the keyword ``format``.

``keywords.format`` asks ``expressions`` by name. ``definitions`` is what a format allows by its definition, where
``expressions`` keeps to less, for negation; ``generated`` is what is written in generation, where readers take less
than the format allows. ``hosts`` has the names and addresses that several formats are made of, ``idn`` the
internationalized ones. Read ``expressions`` first.

A new format: a function and a row of ``_EXPRESSIONS`` in ``expressions``, and a row of ``CASES`` in
tests/json_schema/formats/test_formats.py. If its definition allows more than is written, also a name in
``WIDER_FORMATS`` and a row in ``definitions``; if usual readers take less, a row in ``generated``.
"""
