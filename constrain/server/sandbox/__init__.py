"""Sandbox: processes in which requests are read and compiled, so that each can be ended at any time.

``serving`` opens a ``session`` for a request. Read ``worker`` first (the program that forks a process per request),
then ``workers`` and ``children`` (the program and its processes, seen from outside) and ``session``. ``reading`` reads
bodies in such a process, ``compiling`` compiles constraints, ``capturing`` finds captures in answers, ``certifying``
makes their certificates; ``parts`` names the part of a request that takes too long.
"""
