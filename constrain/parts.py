"""Languages made of parts: sequences, choices and repetitions of schemas, patterns, grammars and texts."""

from __future__ import annotations

from constrain.composition import choice, repeat, sequence, text
from constrain.language.source import Source
from constrain.structural.source import StructuralTag

__all__ = ["Source", "StructuralTag", "choice", "repeat", "sequence", "text"]
