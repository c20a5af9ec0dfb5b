"""Which queries are in the language over a database, and which are not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import constrain
from constrain import kernel
from constrain.work import asked
from tests.support import byte_vocabulary, databases, for_each

TABLES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, joined DATE, active BOOLEAN,
  more JSON);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, total REAL, placed TIMESTAMP);
CREATE TABLE items (order_id INTEGER REFERENCES orders (id), product TEXT, quantity INTEGER, price NUMERIC(10, 2));
CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, boss_id INTEGER REFERENCES staff (id));
CREATE TABLE "order" ("select" INTEGER, "a ""b" TEXT, Total INTEGER);
CREATE VIEW totals AS SELECT customer_id, SUM(total) AS total FROM orders GROUP BY customer_id;
"""


@cache
def compiled(dialect: Any, limit: int | None = None) -> constrain.Constraint:
    return constrain.compile(constrain.sql(TABLES, dialect, limit=limit), byte_vocabulary(), cache=False)


_FROM = "FROM customers JOIN orders ON customers.id = orders.customer_id LEFT JOIN items ON items.order_id = orders.id"

BOTH = [
    "SELECT * FROM customers",
    "SELECT id, name FROM customers WHERE country = 'NZ' AND joined >= '2024-02-29' ORDER BY name DESC, id LIMIT 10",
    "SELECT customers.name FROM customers WHERE customers.id NOT IN (SELECT customer_id FROM orders)",
    "SELECT DISTINCT country FROM customers WHERE name LIKE 'O''B%' ORDER BY 1",
    "SELECT COUNT(*) FROM orders WHERE total > 100.5 OR NOT (total BETWEEN -1 AND 5 OR customer_id IS NULL)",
    "SELECT COUNT(*) AS how_many, ROUND(AVG(price), 2) FROM items",
    "SELECT country, COUNT(*) FROM customers GROUP BY 1 HAVING COUNT(*) > 3 ORDER BY COUNT(*) DESC",
    "SELECT country, name, MAX(joined) FROM customers GROUP BY 1, 2 ORDER BY 2",
    "SELECT customers.id, SUM(orders.total) FROM orders JOIN customers ON orders.customer_id = customers.id GROUP BY 1",
    f"SELECT country, SUM(items.quantity * items.price) AS spent {_FROM} WHERE price > 1 GROUP BY 1 LIMIT 3",
    "SELECT AVG(orders.total * items.price) FROM items JOIN orders ON items.order_id = orders.id",
    "SELECT staff.name, staff_2.name FROM staff JOIN staff AS staff_2 ON staff.boss_id = staff_2.id",
    "SELECT id FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE orders.customer_id = customers.id AND id > 5)",
    "SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders WHERE id NOT IN (SELECT id FROM customers))",
    "SELECT price * (1 - quantity) / NULLIF(quantity, 0) + 2 FROM items",
    "SELECT UPPER(name) || ', ' || country AS place FROM customers WHERE active = TRUE",
    "SELECT more, name FROM customers WHERE more IS NOT NULL",
    "SELECT totals.total FROM customers LEFT JOIN totals ON totals.customer_id = customers.id",
]

NEITHER = {
    "a table that does not exist": "SELECT name FROM clients",
    "a column of another table": "SELECT total FROM customers",
    "a column of a table that is not joined": "SELECT orders.total FROM customers",
    "a name that two tables have": "SELECT id FROM orders JOIN customers ON orders.customer_id = customers.id",
    "a join over no key": "SELECT orders.total FROM orders JOIN customers ON orders.id = customers.id",
    "a join over different types": "SELECT total FROM orders JOIN customers ON orders.customer_id = customers.name",
    "a cross join": "SELECT orders.total FROM orders, customers",
    "a text for a number": "SELECT id FROM orders WHERE total > 'x'",
    "a number for a text": "SELECT name FROM customers WHERE name = 5",
    "a day that does not exist": "SELECT name FROM customers WHERE joined = '2023-02-29'",
    "a day of the first century": "SELECT name FROM customers WHERE joined = '0004-02-29'",
    "a sum of texts": "SELECT SUM(name) FROM customers",
    "a column that is not grouped": "SELECT name, COUNT(*) FROM customers",
    "fewer columns grouped": "SELECT name, country, COUNT(*) FROM customers GROUP BY 1",
    "an aggregate in WHERE": "SELECT name FROM customers WHERE COUNT(*) > 1",
    "a group of what has no equality": "SELECT more, COUNT(*) FROM customers GROUP BY 1",
    "a group of what has no equality, too": "SELECT DISTINCT more FROM customers",
    "an order that DISTINCT forbids": "SELECT DISTINCT name FROM customers ORDER BY country",
    "a number by 0": "SELECT total / 0 FROM orders",
    "numbers computed beforehand": "SELECT total + 999999999 * 999999999 FROM orders",
    "a comment": "SELECT total - -1 FROM orders",
    "a name of the result that is a column": "SELECT COUNT(*) AS name FROM customers",
    "a name that needs quotes": "SELECT select FROM order",
    "a subquery of the wrong type": "SELECT id FROM orders WHERE customer_id IN (SELECT name FROM customers)",
    "a statement that writes": "DELETE FROM customers",
    "two statements": "SELECT id FROM orders; DELETE FROM orders",
    "an end of the text": "SELECT name FROM customers WHERE name = 'x' OR 1=1",
}


@for_each("dialect", "sqlite", "postgresql")
@for_each("query", *BOTH)
def test_queries_that_run(query: str, dialect: str) -> None:
    assert compiled(dialect).accepts(query), query


@for_each("dialect", "sqlite", "postgresql")
@for_each("about", *NEITHER)
def test_queries_that_do_not_run(about: str, dialect: str) -> None:
    assert not compiled(dialect).accepts(NEITHER[about]), about


@for_each(
    "query, dialect",
    ('SELECT "select", "a ""b" FROM "order" WHERE Total > 1', "sqlite"),
    ('SELECT "select", "a ""b" FROM "order" WHERE "Total" > 1', "postgresql"),
    ("SELECT STRFTIME('%Y', joined), COUNT(*) FROM customers GROUP BY 1", "sqlite"),
    ("SELECT TO_CHAR(joined, 'YYYY'), COUNT(*) FROM customers GROUP BY 1", "postgresql"),
    ("SELECT EXTRACT(YEAR FROM joined) FROM customers", "postgresql"),
    ("SELECT ROUND(AVG(total), 1) FROM orders", "sqlite"),  # PostgreSQL rounds no floats to places
)
def test_what_one_dialect_alone_has(query: str, dialect: str) -> None:
    other = "sqlite" if dialect == "postgresql" else "postgresql"
    assert compiled(dialect).accepts(query)
    assert not compiled(other).accepts(query)


@for_each(
    "query, is_short",
    ("SELECT name FROM staff LIMIT 20", True),
    ("SELECT name FROM staff LIMIT 1", True),
    ("SELECT name FROM staff LIMIT 0", False),
    ("SELECT name FROM staff LIMIT 21", False),
    ("SELECT name FROM staff", False),
    ("SELECT COUNT(*) FROM staff", False),
)
def test_a_limit_always_stands_there(query: str, is_short: bool) -> None:
    assert compiled("sqlite", 20).accepts(query) == is_short


@for_each("name, dialect", ("shop", "sqlite"), ("shop", "postgresql"), ("hostile", "sqlite"))
def test_no_terminal_continues_with_what_may_follow_it(name: str, dialect: Any) -> None:
    grammar = constrain.sql(databases.statements(name)[0], dialect).grammar()
    assert grammar.self_delimiting
    assert asked(kernel.lexing_claims, replace(grammar, self_delimiting=False)) == (True, True)


def test_large_databases_leave_out_large_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.queries.scopes.MAX_SCOPES", 1)
    few = constrain.compile(constrain.sql(TABLES).grammar(), byte_vocabulary(), cache=False)
    assert few.accepts("SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.id")
    assert not few.accepts("SELECT COUNT(*) FROM orders JOIN items ON items.order_id = orders.id")
