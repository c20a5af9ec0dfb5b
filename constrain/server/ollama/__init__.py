"""Ollama's API: ``/api/chat``, ``/api/generate``, ``/api/embed``, and the paths about models.

``app`` calls ``routes``: read it first. ``request`` reads the bodies of chat and generate, with ``fields``,
``options``, ``thinking`` and ``messages``; ``lines`` writes their answers; ``endpoint`` joins them to a model.
``texts`` and ``embeddings`` do the same for vectors. ``models`` lists and describes models; ``names``
finds them, and ``errors`` writes errors.
"""
