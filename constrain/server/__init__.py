"""The HTTP endpoint that speaks OpenAI's, Anthropic's and Ollama's protocols: ``constrain serve``.

``cli.serve`` makes an ``Application`` (in ``app``: read it first) and runs it (``run``), with ``settings``, made from
``config``, and ``logs``. ``dialects`` lists what the server speaks, each dialect a folder below that imports no other;
``paths`` has other spellings of paths.

- ``http``: basics of any endpoint: errors, keys, hosts, connections
- ``requests``: bodies, and the fields that several endpoints read
- ``sandbox``: processes in which requests are read and compiled
- ``serving``: models, and answers on their schedulers
- ``chat``, ``responses``, ``completions``, ``embeddings``: one endpoint each
- ``messages``: Anthropic's endpoints
- ``ollama``: all endpoints of Ollama's API
- ``llama_server``: llama-server's own endpoints
- ``playground``: a page that shows answers token by token, and the endpoint behind it
- ``openapi``: the description of all endpoints

A request passes through these stages, each with its own record:

1. bytes, read and parsed (``requests.body``);
2. ``ChatRequest``, ``CompletionRequest``, ``ResponsesRequest``, ``MessagesRequest``, ``EmbeddingRequest``,
   ``OllamaRequest`` or ``ContinuationRequest``: checked fields;
3. ``requests.question.Question``: the question to the model, the same for all endpoints that write text;
4. ``generation.plan.Plan``, without its constraint; ``sandbox.compiling`` finds or compiles the constraint;
5. the ``Plan`` with it, and ``generation.running.Run``: ready, and on the model's scheduler
   (``serving.generation.Answers``).
"""
