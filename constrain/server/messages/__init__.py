"""Messages: Anthropic's API, ``/v1/messages`` and ``/v1/messages/count_tokens``, and its form of the list of models.

``app`` calls ``endpoint``, which lists the models, too: read it first. ``request`` reads a body with the readers of
``server.requests``; ``conversation`` converts its messages to chat messages, ``tools`` its tools and ``tool_choice``.
``response`` writes a finished answer, ``stream`` an answer in progress, and ``errors`` errors.
"""
