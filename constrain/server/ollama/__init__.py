"""Ollama's API: ``/api/chat``, ``/api/generate``, ``/api/embed``, and the paths about models.

``app`` calls ``routes``: read it first. ``request`` reads the bodies of chat and generate, with ``fields``,
``options`` and ``messages``; ``lines`` writes their answers, and errors; ``texts`` reads texts that get
vectors; ``endpoint`` joins them to a model. ``models`` lists and describes models; ``names`` finds them.
"""
