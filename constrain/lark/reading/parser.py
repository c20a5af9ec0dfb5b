"""The parser for grammar texts, made by the ``lark`` package from the grammar in dialect.lark.

Making it takes over half a second. Its tables are kept in ``tables``, for one version of the package
(tools/generate_lark_tables.py); with another version, the parser is made anew.
"""

from __future__ import annotations

import io
import pickle
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from lark import Lark

GRAMMAR = Path(__file__).with_name("dialect.lark")


@cache
def parser() -> Lark:
    """Returns the parser. Its trees have the names of the rules, and tokens with their places."""
    from constrain.lark.reading import tables

    return load_parser(GRAMMAR, tables)


def load_parser(grammar: Path, tables: ModuleType) -> Lark:
    """Returns the parser for a grammar, from its tables if they are of this version of ``lark``."""
    import lark

    if lark.__version__ == tables.VERSION:
        return lark.Lark.load(io.BytesIO(pickle.dumps(tables.TABLES)))
    return make_parser(grammar)


def make_parser(grammar: Path) -> Lark:
    """Returns the parser for a grammar, made anew."""
    from lark import Lark

    return Lark(grammar.read_text(encoding="utf-8"), parser="lalr", lexer="contextual", maybe_placeholders=True)
