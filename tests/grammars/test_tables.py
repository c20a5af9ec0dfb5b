"""Ready grammars: each is documented, and accepts and rejects what its table says."""

from __future__ import annotations

import pytest

from constrain import grammars
from tests.support.grammars.reserved_words import TABLE, Names, definition
from tests.support.grammars.tables import FOLDER, constraint, table

FEWEST = 8
"""Texts of each kind in a table."""


@pytest.mark.parametrize("name", grammars.names())
def test_texts_are_accepted_and_rejected(name: str) -> None:
    assert [text for text in table(name).accepted if not constraint(name).accepts(text)] == []
    assert [text for text in table(name).rejected if constraint(name).accepts(text)] == []
    assert constraint(name).accepts(grammars.describe(name).example)


@pytest.mark.parametrize("name", grammars.names())
def test_every_grammar_says_what_it_is_and_where_the_format_is_defined(name: str) -> None:
    text = grammars.load(name).text
    header = text[: text.index("\n\n")].splitlines()
    assert all(line == "//" or line.startswith("// ") for line in header)
    assert header[0].endswith(".")
    assert header[1] == "//"
    assert header[2].startswith("// Source: ")
    assert header.count("// Example:") == 1


@pytest.mark.parametrize("name", grammars.names())
def test_every_table_has_enough_texts_and_none_twice(name: str) -> None:
    for texts in table(name):
        assert len(texts) == len(set(texts)) >= FEWEST
    assert not set(table(name).accepted) & set(table(name).rejected)


def test_every_table_has_a_grammar() -> None:
    assert {path.stem for path in (FOLDER / "tests").iterdir()} == set(grammars.names())


@pytest.mark.parametrize("names", TABLE, ids=lambda names: names.grammar)
def test_names_exclude_exactly_the_reserved_words(names: Names) -> None:
    assert definition(names) in grammars.load(names.grammar).text
