"""Compositions: schemas, patterns, grammars and literals put together into one language.

- ``source``: the functions that are called, and what they return
- ``parts``: what parts may be; ``nodes``: how they are put together
- ``texts``: regular parts, joined; ``ways``: from one part that is not regular to the next
- ``grammar``: all of it as one ``Grammar``; ``boundaries``: the proof that every lexeme ends by itself
"""

from __future__ import annotations

from constrain.composition.source import choice, repeat, sequence, text

__all__ = ["choice", "repeat", "sequence", "text"]
