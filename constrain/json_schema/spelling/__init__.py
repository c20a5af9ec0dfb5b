"""Spelling: how values are written.

``formats``, ``shapes`` and ``emission`` call this package for expressions. ``canonical`` is the one spelling of
strings, ``numbers`` that of numbers: intervals and multiples in exact arithmetic, with ``cells`` (decimals that read as
one IEEE double). ``punctuation`` is brackets, commas and the white space beside them. ``languages`` answers questions
about patterns, by way of the kernel: is there a text, do two overlap?
"""
