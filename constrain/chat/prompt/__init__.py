"""Prompts of conversations: messages and tools through a model's chat template to token ids.

``generation.chat`` calls ``conversation``. Read ``messages`` first (messages in OpenAI's shape, checked), then
``abilities`` (what a template does by itself, found out with probes), ``shaping`` (what it cannot do, written as text)
and ``conversation``.
"""
