"""Recorded calls and requests: a fast judge that a change of the code changed no answer.

Each row of the tables in ``tests/data/recorded`` is a call of the library, or a request to the server, with its answer.
``asking`` asks a row; ``test_recorded`` compares each answer with the recorded one; ``python -m tests.recorded`` writes
the answers again.
"""
