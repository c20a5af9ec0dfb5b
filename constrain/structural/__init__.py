"""Structural tags: XGrammar's language of free text, tags and schemas, which vLLM and SGLang take in requests.

- ``source``: ``StructuralTag``, the public class
- ``formats``: the formats of a tag as data; ``reading``: JSON to formats, with ``members`` for single members
- ``marks``: texts that may contain names of special tokens; ``styles``: notations of arguments besides JSON
- ``regular``: formats that are one expression; ``graph``: states and edges of a rule, where such expressions meet
- ``grammar``: formats to a ``Grammar``; ``showing``: formats as a short text for a prompt
"""
