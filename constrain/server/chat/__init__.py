"""Chat completions: ``POST /v1/chat/completions``.

``endpoint`` is called by ``app`` and read first; ``request`` reads a body with the readers of ``server.requests``,
``response`` writes a finished answer and ``stream`` one that is still written.
"""
