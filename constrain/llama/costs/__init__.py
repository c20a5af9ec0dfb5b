"""Costs: the seconds that llama.cpp takes for an evaluation, by the number of its tokens.

A processor reads the weights once for all tokens of an evaluation, so several tokens cost less than as many
evaluations; how much less depends on the formats of the weights. ``table`` has the numbers (read it first),
``measuring`` measures them, ``kept`` keeps them on disk, ``reporting`` logs them. ``scheduling`` and ``speculation``
decide by them.
"""
