"""The description of the server in OpenAPI 3.1: ``GET /openapi.json``.

``document`` is called by ``app`` and read first; ``operations`` lists paths, ``bodies`` what they take and answer with,
``shapes`` cuts the ``openai`` package's types down to what the server reads and writes.
"""
