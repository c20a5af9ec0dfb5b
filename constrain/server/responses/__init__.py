"""Responses: ``/v1/responses``.

``endpoint`` is called by ``app`` and read first. ``request`` reads a body, with ``input`` for the conversation and
``tools`` for tools and formats. ``output`` writes a finished answer, ``events`` one that is still written; ``store``
keeps responses so that clients can read them again and go on from them.
"""
