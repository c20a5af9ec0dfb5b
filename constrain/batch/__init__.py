"""Batches: a file with one prompt a line, and answers to all of them.

``constrain batch`` (in ``cli.batch``) is the caller. Read ``lines`` first (what a line asks for), then ``files``
(input, answers, which lines have one already, and a note of what the answers are from) and ``run``, which answers each
line once, however often it is interrupted.
"""
