"""Embeddings: ``POST /v1/embeddings``.

``app`` calls ``endpoint``: read it first. ``request`` reads a body.
"""
