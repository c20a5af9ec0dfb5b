"""Reading: the bytes that a model writes become events and a reply.

Read ``progress`` first: answers without tools, reasoning and refusals. ``reply`` reads answers with them;
``generation`` calls both. ``reader`` takes an answer apart along its trees, with ``incoming`` for the bytes that are
not read yet. ``events`` are the items of a stream; ``text`` decodes characters and finds stop texts; ``text_tokens``
finds the tokens of a piece of text, and ``places`` where the values stand.
"""
