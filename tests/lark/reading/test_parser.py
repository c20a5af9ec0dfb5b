"""The parser for grammar texts: its tables are those of its grammar."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import lark
import pytest

import constrain
from constrain.lark.reading import tables
from constrain.lark.reading.driver import driver
from constrain.lark.reading.parser import GRAMMAR, make_parser, parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Token, Tree

GRAMMARS = sorted((Path(__file__).parents[3] / "grammars").rglob("*.lark"))
TEXTS = (
    'start: "a"\n',
    '// c\n\nstart: (A | b{2,3} "x"~4..5)? [/c/i] ~D & "e".."f" -> alias\n',
    'a[lazy, stop=/x/, max_tokens=3, capture="p",]: A\nb[]: "x"\n',
    "%import common (INT, WS)\n%ignore WS\n%import common.A -> B\n",
)


def test_the_tables_are_those_of_the_grammar() -> None:
    """Otherwise: python -m tools.generate_lark_tables."""
    assert hashlib.sha256(GRAMMAR.read_bytes()).hexdigest() == tables.DIGEST


def test_with_another_version_of_lark_the_parser_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    parser.cache_clear()
    loaded = [parser().parse(text) for text in TEXTS]
    monkeypatch.setattr(lark, "__version__", "0")
    parser.cache_clear()
    assert [parser().parse(text) for text in TEXTS] == loaded == [make_parser(GRAMMAR).parse(text) for text in TEXTS]
    parser.cache_clear()


def placed(tree: Tree[Token]) -> list[tuple[str, str, int | None]]:
    """The words of a tree, each with its kind and place."""
    words = tree.scan_values(lambda value: isinstance(value, lark.Token))
    return [(word.type, str(word), word.start_pos) for word in words]


@pytest.mark.parametrize("parse", [parser, lambda: make_parser(GRAMMAR)], ids=["from tables", "made anew"])
def test_the_driver_makes_the_trees_of_the_parser(parse: Callable[[], lark.Lark]) -> None:
    made = parse()
    texts = [*TEXTS, *(path.read_text(encoding="utf-8") + "\n" for path in GRAMMARS)]
    assert len(texts) > 20
    for text in texts:
        try:
            expected = made.parse(text)
        except lark.UnexpectedInput:
            assert driver(made)(text) is None
            continue
        found = driver(made)(text)
        assert found == expected
        assert placed(found) == placed(expected)


@pytest.mark.parametrize(
    "text",
    ["", "a", 'start: "a', "start: (A\n", "start: A )\n", "start: A | | \x00\n", "%import\n", 'start: "a" -> \n'],
)
def test_the_driver_has_no_tree_for_what_the_parser_refuses(text: str) -> None:
    try:
        expected = parser().parse(text)
    except lark.UnexpectedInput:
        expected = None
    assert driver(parser())(text) == expected
    if expected is None:
        with pytest.raises(constrain.GrammarError, match=r"unexpected|has no closing"):
            constrain.Lark(text.rstrip("\n")).grammar()
