"""Sandbox: processes in which requests are read and compiled, so that each can be ended at any time.

``serving`` opens a ``session`` for a request. Read ``worker`` first (the program that forks a process per request) and
``children`` (how it looks after them), then ``workers`` (the program, seen from the server) and ``session``.
``reading`` reads bodies in such a process, ``compiling`` compiles constraints, ``reporting`` makes reports on answers
that take as long; ``parts`` names the part of a request that takes too long.
"""
