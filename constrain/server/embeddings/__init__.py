"""Embeddings: ``POST /v1/embeddings``.

``endpoint`` is called by ``app`` and read first; ``request`` reads a body.
"""
