"""SQL over known tables: their names are the only identifiers, and queries run in a database that has these tables."""

from __future__ import annotations

import contextlib
import sqlite3
from functools import cache
from random import Random
from typing import Any

import pytest

import constrain
from constrain import GrammarError, grammars
from tests.support import allowed, byte_vocabulary, for_each

TABLES = {"readers": ["id", "name", "born"], "loans": ["id", "reader_id", "day"], "order": ["select", "a b", 'c"d']}

ACCEPTED = [
    "SELECT * FROM readers",
    "select name from readers where born < 1990 order by name desc limit 3;",
    "SELECT readers.name, born FROM readers",
    "SELECT COUNT(*), AVG(born), MAX(LENGTH(name)) FROM readers",
    "SELECT day, COUNT(DISTINCT reader_id) FROM loans GROUP BY day HAVING COUNT(*) > 1 ORDER BY COUNT(*) DESC",
    "SELECT name FROM readers WHERE id IN (SELECT reader_id FROM loans WHERE day LIKE '2026%')",
    "SELECT name FROM readers WHERE born = (SELECT MIN(born) FROM readers)",
    "SELECT name, day FROM readers JOIN loans ON readers.id = loans.reader_id",
    "SELECT name FROM readers\nLEFT JOIN loans ON readers.id = reader_id\nWHERE day IS NULL",
    "SELECT readers.*, day FROM loans, readers",
    'SELECT "select", "a b" + 1, "c""d" FROM "order"',
    'SELECT name, "select" FROM readers CROSS JOIN loans JOIN "order" ON day = "a b"',
    'SELECT name FROM "order", loans LEFT JOIN readers ON day = name WHERE readers.id IN (SELECT reader_id FROM loans)',
    "SELECT name FROM readers GROUP BY name ORDER BY LENGTH(name) + 1 DESC",
    "SELECT CASE WHEN born > 2000 THEN 'young' ELSE 'old' END FROM readers",
]
REJECTED = [
    "SELECT * FROM customers",
    "SELECT age FROM readers",
    "SELECT day FROM readers",
    "SELECT loans.day FROM readers",
    "SELECT born FROM readers WHERE day = 1",
    "SELECT id, day FROM readers JOIN loans ON readers.id = reader_id",
    "SELECT name FROM readers, readers",
    'SELECT day FROM readers, loans, "order", loans',
    "SELECT day FROM readers JOIN loans ON day = 1 JOIN readers ON day = 2",
    "SELECT day FROM readers CROSS JOIN loans, readers",
    'SELECT name, day, "select" FROM readers JOIN loans ON readers.id = reader_id',
    'SELECT loans.day FROM readers, "order"',
    "SELECT name AS n FROM readers",
    "SELECT r.name FROM readers r",
    "SELECT sqlite_version() FROM readers",
    "SELECT name FROM readers WHERE COUNT(*) > 1",
    "SELECT name FROM readers ORDER BY COUNT(*)",
    "SELECT SUM(COUNT(*)) FROM readers",
    "SELECT SUM(*) FROM readers",
    "SELECT name FROM readers WHERE id IN (SELECT id, day FROM loans)",
    'SELECT "name" FROM readers',
    "SELECT select FROM order",
    "SELECT 1",
    "SELECT name FROM readers ORDER BY 9",
    "SELECT name FROM readers ORDER BY (9)",
    "SELECT COUNT(*) FROM readers GROUP BY 1",
    "SELECT name FROM readers LIMIT 99999999999999999999",
]

WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a list": (["readers"], TypeError, "tables must map the name of each table to a list of its columns"),
    "nothing": ({}, GrammarError, "tables is empty"),
    "no columns": ({"readers": []}, GrammarError, "the table 'readers' has no columns"),
    "a text as columns": ({"readers": "id"}, TypeError, "columns of the table 'readers' must be a list of names"),
    "a number": ({"readers": [1]}, TypeError, "name of a column of the table 'readers' must be str, not 1"),
    "no name": ({"": ["id"]}, GrammarError, "'' is no name of a table"),
    "a line break": ({"readers": ["a\nb"]}, GrammarError, "'a.nb' is no name of a column of the table 'readers'"),
    "half a character": ({"readers": ["\ud800"]}, GrammarError, "is no name of a column"),
}


@cache
def constraint(*names: str) -> constrain.Constraint:
    """Queries over some of the tables, or over all."""
    tables = {name: TABLES[name] for name in names or TABLES}
    return constrain.compile(grammars.load("sql_select", tables=tables), byte_vocabulary())


def test_words_of_any_database_and_capitals_are_quoted() -> None:
    text = grammars.load("sql_select", tables={"user": ["current_date", "userId", "born"]}).text
    assert all(f'"\\"{name}\\""' in text for name in ("user", "current_date", "userId"))
    assert '"born"' in text


def execute(query: str) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        for table, columns in TABLES.items():
            spelled = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
            database.execute(f'CREATE TABLE "{table}" ({spelled})')
        database.execute(query)


@pytest.mark.slow
@pytest.mark.parametrize("query", ACCEPTED)
def test_queries_over_the_tables_are_accepted_and_run(query: str) -> None:
    assert constraint().accepts(query)
    execute(query)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "most"), [(4, 4), (6, 3), (13, 2)])
def test_a_from_names_some_of_many_tables_each_once(count: int, most: int) -> None:
    names = [f"t{number}" for number in range(count)]
    tables = {name: [f"of_{name}"] for name in names}
    found = constrain.compile(grammars.load("sql_select", tables=tables), byte_vocabulary())
    rng = Random(count)
    for size in range(1, min(count, most + 1) + 1):
        for _ in range(8):
            chosen = rng.sample(names, size)
            joined = chosen[0] + "".join(rng.choice([f", {name}", f" CROSS JOIN {name}"]) for name in chosen[1:])
            assert found.accepts(f"SELECT * FROM {joined}") == (size <= most)
            assert not found.accepts(f"SELECT * FROM {joined}, {rng.choice(chosen)}")


@for_each("query", REJECTED)
def test_other_queries_are_rejected(query: str) -> None:
    assert not constraint().accepts(query)


@for_each("seed", range(20))
def test_random_queries_over_one_table_run(seed: int) -> None:
    matcher, row = constraint("order").matcher(), constraint("order").allocate_bitmask()[0]
    rng, query = Random(seed), b""
    for _ in range(40):
        token = int(rng.choice([each for each in allowed(matcher, row) if each < 256] or [0]))
        if not matcher.accept(token):
            break
        query += bytes([token])
    text = (query + bytes(matcher.shortest_completion())).decode()
    assert constraint("order").accepts(text)
    execute(text)


@for_each("tables, error, says", WRONG.values())
def test_names_that_no_database_has_are_told(tables: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        grammars.load("sql_select", tables=tables)


def test_prompts_show_the_tables_and_no_example() -> None:
    assert grammars.load("sql_select", tables=TABLES).render() == (
        "One SQL query over these tables:\n"
        "- readers with the columns id, name, born\n"
        "- loans with the columns id, reader_id, day\n"
        '- "order" with the columns "select", "a b", "c""d"'
    )


def test_tables_are_for_one_grammar() -> None:
    with pytest.raises(ValueError, match="tables are for the grammar 'sql_select', not for 'json'"):
        grammars.load("json", tables=TABLES)
