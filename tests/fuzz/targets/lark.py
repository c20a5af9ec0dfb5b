"""Lark grammars. An input is the text of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import constrain
from constrain import grammars
from tests.fuzz.judge import Meter
from tests.fuzz.mutation import Texts
from tests.fuzz.walking import random_of, vocabulary, walk

DECLARED = (constrain.GrammarError, constrain.PatternError, constrain.SchemaError, constrain.LimitError)
"""``SchemaError``: of a schema in ``%json``."""
MAX_SIZE = 3000


def run(data: bytes, meter: Meter) -> None:
    """Compiles the grammar and walks."""
    text = data.decode("utf-8", "surrogateescape")
    with meter.call("compile"):
        made = constrain.compile(constrain.Lark(text), vocabulary(), cache=False)
    walk(made, random_of(data), meter)


def seeds() -> Iterable[bytes]:
    """The smaller ones of the grammars that come with the package."""
    for name in sorted(grammars.names()):
        text = grammars.load(name).text.encode()
        if len(text) <= MAX_SIZE:
            yield text


def mutate(data: bytes, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """A changed text."""
    return _TEXTS.mutated(data, rng, mutate_bytes)


_WORDS = (
    "start: ", "\nstart: a", "\na: ", "\nb: ", "\n?c: ", "\n!d: ", "\n_e: ", "\nA: ", "\nB: ", "\n_C: ", "\nA.2: ",
    " a", " b", " A", " B",
    ' "a"', ' "b"', ' "ab"', ' "a"i', ' ""', ' "\\n"', ' "\\u00e9"', ' "\\x41"', ' "\\""', " /a/", " /[ab]+/",
    " /a*/", " /./s", " /a/imx",
    " /\\//", " /(?=a)/", " /a*?/", " /\\bfoo\\b/", ' "a".."z"', ' "0".."9"', " |", "\n  | ", " *", "+", "?", "~2",
    "~1..3", "~0", "~0..1",
    "~3..1", "~1000", "~99999999999", " (", ")", " [", "]", " -> x", "\n%import common.INT",
    "\n%import common.WORD -> A",
    "\n%import common (WS, NUMBER)", "\n%import python.NAME", "\n%import .x.y", "\n%ignore A", '\n%ignore " "',
    "\n%ignore /[ \\t]+/",
    "\n%declare X", "\n%override a: ", "\n%extend A: ", '\nv: %json {"type": "integer"}', ' %json {"enum": [1, 2]}',
    " %json {", "}",
    ' %regex {"substring_words": "a b c"}', ' %regex {"substring_chars": "abc"}',
    ' %regex {"substring_chunks": ["a", "bc"]}',
    " <|mark|>", " <|none|>", "<mark>", "\n// x\n", "# x", "\nt{x, y}: x y", " t{A, B}", " a a", "\n", " ", "\\", '"',
    "/", "'", ":", ".", ",",
    "start", "é", "😀", "\t", "\r\n", "\0", ' "\\d"', " WS", "\nWS: /\\s+/", "@", "&", "\nstart.1: ", "\n\n\n",
)  # fmt: skip
_WRAPS = (
    (" (", ")"),
    (" (", ")*"),
    (" (", ")+"),
    (" [", "]"),
    (' "', '"'),
    (" /", "/"),
    (" (", ")~2..4"),
    (" (", ")?"),
)
_TEXTS = Texts(_WORDS, _WRAPS)
