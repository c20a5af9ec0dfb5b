"""Compositions: schemas, patterns, grammars and literals joined into one language.

- ``source``: the public functions, and the class of their results
- ``parts``: the kinds of parts; ``nodes``: sequences, choices and repetitions of parts; ``labels``: parts in messages
- ``texts``: joined regular parts; ``ways``: paths from one non-regular part to the next
- ``grammar``: the whole composition as one ``Grammar``; ``boundaries``: the proof that every lexeme ends by itself
"""

from __future__ import annotations

from constrain.composition.source import choice, repeat, sequence, text

__all__ = ["choice", "repeat", "sequence", "text"]
