"""Votes: one value from several samples of an answer, with the agreement on each of its fields.

``complete(..., n=5, vote=True)`` calls ``election``, which is read first. ``ballots`` reads the samples and writes the
winner, ``similarity`` says how much two values have in common, and ``alignment`` lines up the items of lists by their
content.
"""
