"""Spelling: the texts of values.

``formats``, ``shapes`` and ``emission`` call this package for expressions. ``canonical`` is the one spelling of
strings; those of numbers are in ``numbers``. ``punctuation`` is brackets, commas and the white space around them.
``languages`` asks the kernel about patterns: is there a text, do two overlap?
"""
