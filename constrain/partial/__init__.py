"""Values of an answer while it is written: events of their fields, and the value so far.

``stream(..., partial=True)`` calls ``reader``, which is read first. ``scanner`` finds where the values in a JSON text
begin and end, ``written`` keeps what is complete and what is not, and ``types`` makes of it a value of a Python type.
"""
