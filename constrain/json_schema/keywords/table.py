"""The tables of keywords: imports the modules that add to ``KEYWORDS``, and derives the tables."""

from __future__ import annotations

from constrain.json_schema.documents.keyword import KEYWORDS, Keyword
from constrain.json_schema.keywords import arrays, combinators, conditionals, names, numeric, objects, strings

__all__ = ["KEYWORDS", "Keyword"]

_MODULES = (arrays, combinators, conditionals, names, numeric, objects, strings)

KEYWORDS.derive()
