"""Prompts: a text, or messages and tools, become token ids through the model's chat template.

All prompts take this path.

``generation.planning`` calls ``conversation``. Read ``messages`` first (messages in OpenAI's form, checked), then
``template`` (rendering), ``abilities`` (detection of the features of a template, with probes), ``shaping`` (features
that a template lacks, as text; other shapes for a conversation that it refuses), ``guarding`` (no text of a message
becomes a special token) and ``conversation``.
``json_schema.hint`` makes the text that shows a schema to the model.
"""
