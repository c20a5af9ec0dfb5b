"""Integrations: this library in the programs and loops of others.

``llm`` is the plugin for the program ``llm``, which finds it by an entry point.
"""
