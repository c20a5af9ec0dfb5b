"""Structural tags: XGrammar's language of free text, tags and schemas, which vLLM and SGLang take in requests.

- ``source``: ``StructuralTag``, the public class
- ``formats``: the formats of a tag as data; ``reading``: JSON to formats, with the place of every error
- ``marks``: texts with special tokens, and the free text before them
- ``graph``: states and edges, some of them regular; ``styles``: notations of arguments other than JSON
- ``grammar``: formats to a ``Grammar``; ``showing``: formats as a short text for a prompt
"""
