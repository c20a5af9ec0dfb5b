"""Responses: ``/v1/responses``.

``endpoint`` is called by ``app`` and read first. ``request`` reads a body, with ``input`` for the conversation and
``repeated`` for fields that the response repeats; tools, ``tool_choice`` and formats are read by ``server.requests``.
``output`` writes a finished answer, ``events`` one that is still written: their order and ``sequence_number``.
``store`` keeps responses so that clients can read them again and go on from them.
"""
