"""The parser for grammar texts: its tables are those of its grammar."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest

from constrain.lark.reading.parser import GRAMMAR, make_parser, parser
from tools.generate_lark_tables import GRAMMARS, is_current

TEXTS = (
    'start: "a"\n',
    '// c\n\nstart: (A | b{2,3} "x"~4..5)? [/c/i] ~D & "e".."f" -> alias\n',
    'a[lazy, stop=/x/, max_tokens=3, capture="p",]: A\nb[]: "x"\n',
    "%import common (INT, WS)\n%ignore WS\n%import common.A -> B\n",
)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda path: path.name)
def test_the_tables_are_those_of_the_grammar(grammar: Path) -> None:
    """Otherwise: python -m tools.generate_lark_tables."""
    assert is_current(grammar)


@pytest.mark.slow
def test_with_another_version_of_lark_the_parser_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    parser.cache_clear()
    loaded = [parser().parse(text) for text in TEXTS]
    monkeypatch.setattr(lark, "__version__", "0")
    parser.cache_clear()
    assert [parser().parse(text) for text in TEXTS] == loaded == [make_parser(GRAMMAR).parse(text) for text in TEXTS]
    parser.cache_clear()
