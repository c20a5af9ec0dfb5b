"""The parser for grammar texts, made by the ``lark`` package from the grammar in dialect.lark.

Making it takes over half a second. Its tables are kept in tables.json, for one version of the package
(tools/generate_lark_tables.py); with another version, the parser is made anew.
"""

from __future__ import annotations

import io
import json
import pickle
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

GRAMMAR = Path(__file__).with_name("dialect.lark")


@cache
def parser() -> Lark:
    """Returns the parser. Its trees have the names of the rules, and tokens with their places."""
    return load_parser(GRAMMAR)


def load_parser(grammar: Path) -> Lark:
    """Returns the parser for a grammar, from the tables beside it if they are of this version of ``lark``."""
    import lark

    kept = json.loads(grammar.with_name("tables.json").read_text("ascii"), object_hook=_with_numbers)
    if lark.__version__ == kept["version"]:
        return lark.Lark.load(io.BytesIO(pickle.dumps(kept["tables"])))
    return make_parser(grammar)


def _with_numbers(members: dict[str, Any]) -> dict[Any, Any]:
    """Returns an object of a JSON text with numbers as keys, where its keys are numbers."""
    return {int(key) if key.isdigit() else key: value for key, value in members.items()}


def make_parser(grammar: Path) -> Lark:
    """Returns the parser for a grammar, made anew."""
    from lark import Lark

    return Lark(grammar.read_text(encoding="utf-8"), parser="lalr", lexer="contextual", maybe_placeholders=True)
