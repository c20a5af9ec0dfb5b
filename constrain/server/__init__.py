"""An endpoint that speaks OpenAI's protocol, over HTTP: ``constrain serve``.

``cli.serve`` makes an ``Application`` (in ``app``, read first) and runs it (``run``), with ``settings``, ``config`` and
``logs``.

- ``http``: what any endpoint needs: errors, keys, hosts, connections
- ``requests``: bodies, and the fields that several endpoints read
- ``sandbox``: requests read and compiled in processes of their own
- ``serving``: models, and answers on their schedulers
- ``chat``, ``responses``, ``completions``, ``embeddings``: one endpoint each
- ``openapi``: the description of all of them

A request passes these stages, each with a record of its own:

1. bytes, read and parsed (``requests.body``);
2. ``ChatRequest``, ``CompletionRequest``, ``ResponsesRequest`` or ``EmbeddingRequest``: checked, and all that its
   endpoint needs to answer;
3. ``requests.question.Question``: what the model is asked, alike for all endpoints whose model writes;
4. ``generation.job.Plan``, which lacks its constraint; ``sandbox.compiling`` finds that, or has it compiled;
5. ``generation.job.Job`` and ``Run``: ready, and on the model's scheduler (``serving.generation.Answers``).
"""
