"""The dialects of GBNF, and how a text of them differs from Lark."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["gbnf", "xgrammar"]
"""The server whose grammars a text is one of: llama.cpp, or one with XGrammar."""

_RULE = re.compile(r"^[ \t]*[\w.-]+\s*::=", re.MULTILINE)


def has_rules(text: str) -> bool:
    """Returns whether a line of a text begins with a name and ``::=``, as in GBNF and EBNF, and never in Lark."""
    return _RULE.search(text) is not None
