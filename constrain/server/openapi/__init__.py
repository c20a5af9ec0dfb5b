"""The OpenAPI 3.1 description of the server: ``GET /openapi.json``.

``app`` calls ``document``: read it first. ``operations`` lists paths, ``bodies`` their requests and responses,
``messages`` those of Anthropic's endpoints; ``shapes`` reduces the ``openai`` package's types to the members that this
server reads and writes.
"""
