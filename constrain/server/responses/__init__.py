"""Responses: ``/v1/responses``.

``app`` calls ``endpoint``: read it first. ``request`` reads a body, with ``input`` for the conversation, ``repeated``
for fields that the response repeats and ``results`` for the results of calls; ``server.requests`` reads tools,
``tool_choice`` and formats.
``output`` writes a finished answer, ``events`` an answer in progress, with order and ``sequence_number`` of the events.
``store`` says how responses are kept, so that clients can read and continue them: ``memory_store`` keeps them in the
memory of one server, ``sql_store`` in a database that several share.
"""
