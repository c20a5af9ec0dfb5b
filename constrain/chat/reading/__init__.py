"""Reading: what a model writes, piece by piece, becomes events and a reply.

``reply`` is what ``generation`` calls where tools, reasoning or refusals are possible; ``progress`` where they are
not, read first. ``reader`` takes an answer apart along its trees, with ``incoming`` for what has not been read yet.
``events`` are what a stream yields; ``text`` makes characters of bytes and finds stop texts; ``text_tokens`` finds the
tokens of a piece of text.
"""
