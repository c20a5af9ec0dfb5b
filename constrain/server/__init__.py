"""An endpoint that speaks OpenAI's protocol, over HTTP: ``constrain serve``.

``cli.serve`` makes an ``Application`` (in ``app``, read first) and runs it (``run``), with ``settings``, ``config`` and
``logs``.

- ``http``: what any endpoint needs: errors, keys, hosts, connections
- ``requests``: bodies, and the fields that several endpoints read
- ``sandbox``: requests read and compiled in processes of their own
- ``serving``: models, and answers on their schedulers
- ``chat``, ``responses``, ``completions``, ``embeddings``: one endpoint each
- ``openapi``: the description of all of them
"""
