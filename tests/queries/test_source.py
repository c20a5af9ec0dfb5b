"""What databases are read, what a caller may leave out, what prompts show, and what is refused."""

from __future__ import annotations

import re
import sqlite3
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import constrain
from constrain import GrammarError
from constrain.generation.planning import shown_prompt
from constrain.queries.kinds import kind_of, kind_of_class
from constrain.queries.source import MAX_SHOWN
from tests.support import byte_vocabulary, for_each

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, "full address" TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, total REAL);
"""

SHOWN = """customers(id, name, "full address")
orders(id, customer_id -> customers.id, total)"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "my%20 shop.db"
    with sqlite3.connect(found) as connection:
        connection.executescript(SHOP)
    connection.close()
    return found


def test_a_database_is_read_wherever_it_is(path: Path) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    engine = sqlalchemy.create_engine(f"sqlite:///{quote(str(path))}")
    with engine.connect() as opened:
        sources: list[Any] = [SHOP, path, str(path), connection, engine, opened]
        sources += [f"sqlite+pysqlite:///{quote(str(path))}", f"sqlite:///{quote(str(path))}"]
        for source in sources:
            assert constrain.sql(source).render() == SHOWN, source
    connection.close()
    engine.dispose()


def test_equal_databases_are_one_language(path: Path) -> None:
    assert constrain.sql(path) == constrain.sql(SHOP)
    assert constrain.sql(path) != constrain.sql(SHOP, limit=3)


def test_prompts_show_the_tables() -> None:
    expected = f"Answer with one PostgreSQL query over these tables, and nothing else:\n{SHOWN}"
    assert constrain.sql(SHOP, "postgresql").describe() == expected


@for_each(
    "options, shown",
    ({"tables": ["customers"]}, 'customers(id, name, "full address")'),
    ({"tables": ["orders"]}, "orders(id, customer_id, total)"),
    ({"columns": {"customers": ["name"]}}, "customers(name)\norders(id, customer_id, total)"),
    ({"deny": ["orders"]}, 'customers(id, name, "full address")'),
    ({"deny": ["customers.full address", "orders.customer_id"]}, "customers(id, name)\norders(id, total)"),
    (
        {"tables": ["orders"], "columns": {"customers": ["name"]}, "deny": ["customers.id"]},
        "orders(id, customer_id, total)",
    ),
)
def test_a_caller_permits_a_part(options: Any, shown: str) -> None:
    assert constrain.sql(SHOP, **options).render() == shown


@for_each(
    "query",
    "SELECT * FROM customers",
    "SELECT name FROM customers",
    "SELECT customers.name FROM customers",
    "SELECT id FROM customers WHERE name IS NULL",
    "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers WHERE customers.name = 'a')",
    "SELECT COUNT(*) AS name FROM customers",
)
def test_what_is_denied_stands_nowhere(query: str) -> None:
    assert not constrain.compile(constrain.sql(SHOP, deny=["customers.name"]), byte_vocabulary()).accepts(query)


@for_each(
    "source, options, message",
    ("CREATE TABLE a (x INT); DROP TABLE a;", {}, "line 1, column 1: SQLite cannot read this statement: only CREATE"),
    (
        "CREATE TABLE a (x INT);\nCREATE TABEL b (y INT);",
        {},
        'line 2, column 1: .*near "TABEL": syntax error; correct it',
    ),
    ("CREATE TABLE a AS SELECT 1;", {}, "only CREATE statements are read"),
    ("ATTACH 'x.db' AS x;\nCREATE TABLE a (x INT);", {}, "line 1, column 1: .*only CREATE"),
    ("CREATE VIEW a AS SELECT x FROM b;", {}, "the table 'a' cannot be read: no such table: main.b; .* with deny"),
    ("CREATE INDEX i ON a (x);", {}, "line 1, column 1: .*no such table: main.a"),
    ("-- CREATE nothing", {}, "the database has no tables; name one that has some"),
    ("/no/such/file.db", {}, "there is no file '/no/such/file.db'; pass a file of SQLite, a URL, or"),
    ("sqlite:////no/such/file.db", {}, "there is no file '/no/such/file.db'"),
    (Path(__file__), {}, "cannot be read as a database of SQLite: file is not a database"),
    ("nosuch://localhost/x", {}, "the database cannot be read: Can't load plugin: sqlalchemy.dialects:nosuch"),
    ("postgresql+psycopg://nobody@127.0.0.1:1/x", {}, "the database cannot be read: .*onnection"),
    (SHOP, {"tables": ["custmers"]}, "tables names 'custmers', which does not exist; there are customers, orders"),
    (SHOP, {"deny": ["orders.totl"]}, "deny, orders, names 'totl', which does not exist; there are id, customer_id"),
    (SHOP, {"deny": ["orderz.total"]}, "deny names 'orderz', which does not exist"),
    (SHOP, {"columns": {"orders": ["totl"]}}, r"columns\['orders'\] names 'totl'"),
    (SHOP, {"deny": ["orders", "customers"]}, "no table is left that a query may read: permit one"),
)
def test_a_database_that_cannot_be_read_is_refused(source: Any, options: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=f"^{message}|{message}"):
        constrain.sql(source, **options)


@for_each(
    "options, error, message",
    ({"dialect": "mysql"}, ValueError, "dialect is 'mysql'; it must be 'sqlite' or 'postgresql'"),
    ({"statements": ("delete",)}, ValueError, r"statements is \('delete',\); it must be \('select',\)"),
    ({"limit": 0}, ValueError, "limit is 0; it must be a whole number from 1"),
    ({"limit": True}, ValueError, "limit is True"),
    ({"tables": "orders"}, TypeError, "tables must be a list of names, not 'orders'"),
    ({"columns": {"orders": "id"}}, TypeError, "orders must be a list of names, not 'id'"),
    ({"source": 5}, TypeError, "source must be a connection of sqlite3, .* not 5"),
)
def test_wrong_options_are_named(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        constrain.sql(**{"source": SHOP, **options})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'constrain-llm[sql]'")):
        constrain.sql("postgresql://localhost/x")


@for_each(
    "declared, kind",
    ("BIGINT", "exact"),
    ("DECIMAL(10, 2)", "exact"),
    ("double precision", "float"),
    ("NVARCHAR(10)", "text"),
    ("timestamp with time zone", "datetime"),
    ("DATETIME", "datetime"),
    ("date", "date"),
    ("TIME", "time"),
    ("interval", "plain"),
    ("BLOB", "plain"),
    ("uuid", "plain"),
    ("jsonb", "other"),
    ("bool", "bool"),
)
def test_declared_types_have_kinds(declared: str, kind: str) -> None:
    assert kind_of(declared, "postgresql") == kind


def test_types_of_sqlalchemy_have_kinds() -> None:
    postgresql = pytest.importorskip("sqlalchemy.dialects.postgresql")
    domain = postgresql.DOMAIN("positive", postgresql.INTEGER())
    given = [postgresql.TIMESTAMP(), postgresql.ENUM("a", name="e"), postgresql.JSONB(), postgresql.MONEY(), domain]
    assert [*map(kind_of_class, given)] == ["datetime", "plain", "other", "plain", "exact"]


def test_the_prompt_shows_the_tables_of_a_large_database_that_a_question_needs() -> None:
    columns = ", ".join(f"value{number} TEXT" for number in range(9))
    filler = "".join(f"CREATE TABLE stuff{number} (id INTEGER, {columns});\n" for number in range(80))
    wanted = (
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT);\n"
        "CREATE TABLE salesOrders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, day DATE);\n"
    )
    queries = constrain.sql(filler + wanted)
    shown = shown_prompt(None, "Which orders were made in May?", schema=queries)
    assert "The database has 82 tables." in shown
    assert "salesOrders(id, customer_id -> customers.id, day)" in shown
    assert "customers(id, city)" in shown, "it is joined to the other one"
    assert len(queries.for_question("Which orders?").render()) <= MAX_SHOWN < len(queries.render())
    narrowed = queries.for_question("Which orders?")
    assert constrain.compile(narrowed, byte_vocabulary()).accepts("SELECT value3 FROM stuff7"), "no query is excluded"
    small = constrain.sql(wanted)
    assert small.for_question("Which stuff?") is small
