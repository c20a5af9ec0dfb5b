"""Random queries run in the databases that they are for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import constrain
from tests.support import Tokens, Walker, byte_vocabulary, databases
from tests.support.postgresql import running


def queries(source: Any, count: int) -> Iterator[str]:
    vocabulary = byte_vocabulary()
    walker, tokens = Walker(constrain.compile(constrain.sql(source), vocabulary), vocabulary), Tokens(vocabulary)
    for seed in range(count):
        yield walker.text(Random(seed), tokens, 50 + 10 * (seed % 10)).decode()


@pytest.mark.slow(but=("shop",))
@pytest.mark.parametrize("name", databases.NAMES)
def test_every_query_runs_in_sqlite(name: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("".join(databases.statements(name)))
    for query in queries(connection, 20):
        connection.execute(query).fetchall()
    connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("name", databases.NAMES)
def test_every_query_runs_in_postgresql(name: str, server: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    address = server.replace("/postgres", f"/{name}")
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("".join(databases.statements(name)))
        for query in queries(address, 40):
            connection.execute(query.encode())


@pytest.mark.slow
def test_types_of_postgresql_are_kept(server: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(TYPES)
        allowed = constrain.compile(constrain.sql(server, tables=["kept", "kept_names"]), byte_vocabulary())
        assert allowed.accepts("SELECT id FROM kept WHERE mood <> 'it''s ok'")
        assert not allowed.accepts("SELECT id FROM kept WHERE mood = 'bad'")
        assert not allowed.accepts("SELECT id FROM kept WHERE id = 5")
        for query in queries(server, 60):
            connection.execute(query.encode())


TYPES = """
CREATE TYPE mood AS ENUM ('good', 'it''s ok');
CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0);
CREATE TABLE kept (id UUID PRIMARY KEY, mood mood, n positive, j JSON, b JSONB, a INT[], c BYTEA, m MONEY, i INTERVAL,
  p POINT, t TIMESTAMPTZ, z TIMETZ, x XML, ip INET, bits BIT(3), s SMALLINT, r REAL, ch CHAR(3), v TSVECTOR);
CREATE MATERIALIZED VIEW kept_names AS SELECT id, n FROM kept;
"""
