"""Writes the tables of parsers for grammar texts: ``tables.json`` beside each file of ``GRAMMARS``.

Run from the root of the repository: ``python -m tools.generate_lark_tables``. To make a parser takes the ``lark``
package over half a second, to load it a fiftieth of one.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from pathlib import Path

import lark

from constrain.lark.reading.parser import make_parser

PACKAGE = Path(__file__).parents[1] / "constrain"
GRAMMARS = (
    PACKAGE / "lark" / "reading" / "dialect.lark",
    PACKAGE / "gbnf" / "gbnf.lark",
)


def is_current(grammar: Path) -> bool:
    """Returns whether the tables of a grammar are made from it, by this version of ``lark``."""
    path = grammar.with_name("tables.json")
    kept = json.loads(path.read_text(encoding="ascii")) if path.exists() else {}
    return (kept.get("version"), kept.get("digest")) == (lark.__version__, _digest(grammar))


def _digest(grammar: Path) -> str:
    return hashlib.sha256(grammar.read_bytes()).hexdigest()


def tables(grammar: Path) -> str:
    """Returns the content of the file with the tables for a grammar."""
    saved = io.BytesIO()
    make_parser(grammar).save(saved)
    made = {"version": lark.__version__, "digest": _digest(grammar), "tables": pickle.loads(saved.getvalue())}
    return json.dumps(made, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    for each in GRAMMARS:
        if not is_current(each):
            each.with_name("tables.json").write_text(tables(each), encoding="ascii")
