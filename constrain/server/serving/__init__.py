"""Serving: models, and answers written by them.

Every endpoint calls ``answering`` or ``endpoint``: from the body of a request to its response or stream. ``generation``
makes requests ready in threads beside the event loop, and writes answers on a model's scheduler. ``models`` come into
memory and leave it; ``model_files`` checks their files. ``sizes`` and ``waiting`` help, ``extension`` is the member
``constrain`` of responses, ``metrics`` counts.
"""
