"""Chat completions: ``POST /v1/chat/completions``.

``app`` calls ``endpoint``: read it first. ``request`` reads a body with the readers of ``server.requests``;
``response`` writes a finished answer, ``stream`` an answer in progress.
"""
