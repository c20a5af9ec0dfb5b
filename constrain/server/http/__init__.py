"""HTTP: what any endpoint needs.

``app`` and every endpoint call this package. ``account`` (what is known of a request) and ``errors`` (in OpenAI's
shape) come first. ``protocol``, ``listening`` and ``connection`` are about sockets and clients that leave; ``events``
is what is sent while an answer is written; ``auth``, ``hosts`` and ``cors`` are about who may ask.
"""
