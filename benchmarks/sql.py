"""SQL over a database: does every query run? Random queries are explained by SQLite and PostgreSQL.

    python benchmarks/sql.py --output benchmarks/results/sql.json
    python benchmarks/sql.py --walks 200 --only music --output /tmp/sql.json        some of them
    python benchmarks/sql.py --model --output /tmp/sql.json                        answers of the demo model, too

A walk chooses tokens of one byte, out of those that the mask allows, until the query ends. PostgreSQL is left out where
it is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from about import origin

import constrain

sys.path.append(str(Path(__file__).parent.parent))

from tests.support import databases
from tests.support.postgresql import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BYTES = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])

ASCII = np.arange(256) < 128

MAX_TOKENS = (60, 150, 400)
"""Budgets of walks, in turn: about the shortest query, a usual one, and a long one."""


def walk(constraint: constrain.Constraint, rng: Random, max_tokens: int) -> str:
    """A random query. In texts, half of the bytes are a quote or ASCII."""
    matcher, row, written = constraint.matcher(max_tokens=max_tokens), constraint.allocate_bitmask()[0], bytearray()
    while not matcher.is_finished:
        matcher.fill_bitmask(row)
        tokens = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        if len(tokens) > 100:
            tokens = (
                [0x27]
                if rng.random() < 0.2 and 0x27 in tokens
                else tokens[tokens < (128 if rng.random() < 0.7 else 256)]
            )
        token = int(rng.choice(tokens))
        assert matcher.accept(token)
        if token < 256:
            written.append(token)
    return written.decode()


@contextlib.contextmanager
def sqlite(name: str) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """A database in memory, and what explains a query there."""
    connection = sqlite3.connect(":memory:")
    connection.executescript("".join(databases.statements(name)))
    yield connection, lambda query: connection.execute(f"EXPLAIN {query}").fetchall() and None
    connection.close()


@contextlib.contextmanager
def postgresql(name: str, address: str) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """A database of PostgreSQL, and what explains a query there."""
    import psycopg

    server = address.replace("+psycopg", "")
    with psycopg.connect(server, autocommit=True) as made:
        made.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(server.replace("/postgres", f"/{name}"), autocommit=True) as connection:
        connection.execute("".join(databases.statements(name)).encode())

        def explain(query: str) -> None:
            connection.execute(f"EXPLAIN {query}".encode())

        yield address.replace("/postgres", f"/{name}"), explain


def measure(name: str, source: Any, explain: Callable[[str], None], walks: int) -> dict[str, Any]:
    """How many of so many random queries fail."""
    began = time.perf_counter()
    language = constrain.sql(source)
    constraint = constrain.compile(language, BYTES, cache=False)
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    constraint.matcher().fill_bitmask(constraint.allocate_bitmask()[0])
    first = time.perf_counter() - began
    failed = []
    lengths = 0
    for number in range(walks):
        query = walk(constraint, Random(number), MAX_TOKENS[number % len(MAX_TOKENS)])
        lengths += len(query)
        try:
            explain(query)
        except Exception as error:  # noqa: BLE001 - whatever a driver raises
            failed.append({"query": query, "error": str(error)})
    return {
        "database": name,
        "dialect": language.dialect,
        "tables": len(language.tables),
        "compile_seconds": round(compiled, 3),
        "first_mask_seconds": round(first, 4),
        "walks": walks,
        "mean_characters": round(lengths / walks),
        "failed": failed,
    }


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="databases whose names contain this (all)")
    parser.add_argument("--walks", type=int, default=2000, help="queries of each database and dialect (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("sql.json"), help="where the numbers go")
    arguments = parser.parse_args()
    rows = []
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(running())
        for name in databases.NAMES:
            if arguments.only not in name:
                continue
            for opened in (sqlite(name), postgresql(name, address)):
                with opened as (source, explain):
                    rows.append(measure(name, source, explain, arguments.walks))
                row = rows[-1]
                print(*(f"{value}" for key, value in row.items() if key != "failed"), len(row["failed"]), flush=True)
                for failure in row["failed"][:3]:
                    print("   ", failure["error"].splitlines()[0], "\n       ", failure["query"], flush=True)
    arguments.output.write_text(json.dumps({**origin(), "walks": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
