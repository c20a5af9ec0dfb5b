"""Completions of texts: ``POST /v1/completions``.

``endpoint`` is called by ``app`` and read first; ``request`` reads a body, ``response`` writes answers, whole or in
pieces, with ``logprobs`` in the shape that this endpoint has of them.
"""
