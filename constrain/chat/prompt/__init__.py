"""Prompts: texts, or messages and tools, through a model's chat template to token ids. There is no other way to one.

``generation.planning`` calls ``conversation``. Read ``messages`` first (messages in OpenAI's shape, checked), then
``template`` (rendering), ``abilities`` (what a template does by itself, found out with probes), ``shaping`` (what it
cannot do, written as text), ``guarding`` (no text of a message becomes a special token) and ``conversation``.
The text that shows a schema to the model is ``language.hint``.
"""
