"""The tables of ``grammars/tests``: texts that each ready grammar accepts, and texts that it rejects."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import constrain
from constrain.lark import lark_grammar
from tests.support import byte_vocabulary, tomllib

FOLDER = Path(__file__).resolve().parents[3] / "grammars"


class Table(NamedTuple):
    accepted: list[str]
    rejected: list[str]


@cache
def table(name: str) -> Table:
    return Table(**tomllib.loads((FOLDER / "tests" / f"{name}.toml").read_text(encoding="utf-8")))


@cache
def constraint(name: str) -> constrain.Constraint:
    """The grammar over a vocabulary of bytes."""
    return constrain.compile(lark_grammar(constrain.grammars.load(name)), byte_vocabulary())
