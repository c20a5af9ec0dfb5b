"""Sandbox: processes in which requests are read and compiled, so that any of them can be ended at any time.

``serving`` opens a ``session`` for a request. Read ``worker`` first (the program that forks a process for each
request), then ``workers`` and ``children`` (those programs and processes, seen from the server) and ``session``.
``reading`` has bodies read there, ``compiling`` constraints compiled; ``parts`` names the part that takes too long.
"""
