"""Chat: conversations with tools, from messages to a prompt and from written text to a reply.

``generation`` and ``server`` are the callers. Read ``tools`` first (what a model may call), then ``families`` (in
which form each model family calls), ``prompt`` (messages to token ids), ``answers`` (the language of an answer, as a
grammar) and ``reading`` (what was written, piece by piece).
"""
