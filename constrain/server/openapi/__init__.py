"""The OpenAPI 3.1 description of the server: ``GET /openapi.json``.

``app`` calls ``document``: read it first. ``operations`` lists paths, each as an ``operation``, ``bodies`` their
requests and responses; ``messages`` has those of Anthropic's endpoints, ``playground`` those of the playground,
``llama_server`` those of llama-server and LM Studio, and ``ollama`` those of Ollama's API. ``shapes`` reduces the
``openai`` package's types to the members that this server reads and writes.
"""
