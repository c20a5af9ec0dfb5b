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
    from lark import Lark

GRAMMAR = Path(__file__).with_name("dialect.lark")


@cache
def parser() -> Lark:
    """Returns the parser. Its trees have the names of the rules, and tokens with their places."""
    import lark

    from constrain.lark.reading.tables import TABLES, VERSION

    if lark.__version__ == VERSION:
        return lark.Lark.load(io.BytesIO(pickle.dumps(TABLES)))
    return make_parser()


def make_parser() -> Lark:
    """Returns the parser, made from its grammar."""
    from lark import Lark

    return Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", lexer="contextual", maybe_placeholders=True)
