"""SQL over a database: does every query run? Random queries are explained by SQLite and PostgreSQL.

    python benchmarks/sql.py --output benchmarks/results/sql.json
    python benchmarks/sql.py --walks 200 --only music --output /tmp/sql.json        some of them
    python benchmarks/sql.py --answers 200 --output benchmarks/results/sql.json    with answers of the demo model

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
from collections import Counter
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

MAX_TOKENS = (60, 150, 400)
"""Budgets of walks, in turn: about the shortest query, a usual one, and a long one."""


WEIGHTS = np.where(np.isin(np.arange(257), list(b"WISE(H")), 4, 1)
"""How often bytes are chosen: those with which WHERE, IN, SELECT and EXISTS begin more often."""

PARTS = ("DISTINCT", "JOIN", "WHERE", "IN (SELECT", "EXISTS", "(SELECT AVG", "GROUP BY", "HAVING", "ORDER BY", "LIMIT")
"""Words whose share of the queries is counted."""


def walk(constraint: constrain.Constraint, rng: Random, max_tokens: int) -> str:
    """A random query. In texts, most bytes are a quote or ASCII; where a query may end, one in four does."""
    matcher, row, written = constraint.matcher(max_tokens=max_tokens), constraint.allocate_bitmask()[0], bytearray()
    while not matcher.is_finished:
        matcher.fill_bitmask(row)
        tokens = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        if len(tokens) > 100:
            most = 128 if rng.random() < 0.7 else 256
            tokens = [0x27] if rng.random() < 0.2 and 0x27 in tokens else tokens[tokens < most]
        elif len(tokens) > 1 and tokens[-1] == 256 and rng.random() < 0.75:
            tokens = tokens[:-1]
        token = int(rng.choices(tokens, WEIGHTS[tokens])[0])
        assert matcher.accept(token)
        if token < 256:
            written.append(token)
    return written.decode()


@contextlib.contextmanager
def sqlite(name: str) -> Iterator[tuple[Any, Callable[[str], object]]]:
    """A database in memory, and what runs a query there."""
    connection = sqlite3.connect(":memory:")
    connection.executescript("".join(databases.statements(name)))
    yield connection, lambda query: connection.execute(query).fetchall()
    connection.close()


@contextlib.contextmanager
def postgresql(name: str, address: str) -> Iterator[tuple[Any, Callable[[str], object]]]:
    """A database of PostgreSQL, and what runs a query there."""
    import psycopg

    server = address.replace("+psycopg", "")
    with psycopg.connect(server, autocommit=True) as made:
        made.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(server.replace("/postgres", f"/{name}"), autocommit=True) as connection:
        connection.execute("".join(databases.statements(name)).encode())

        yield address.replace("/postgres", f"/{name}"), lambda query: connection.execute(query.encode())


def measure(name: str, source: Any, run: Callable[[str], object], walks: int) -> dict[str, Any]:
    """How many of so many random queries fail; seconds are of the processor."""
    began = time.process_time()
    language = constrain.sql(source)
    constraint = constrain.compile(language, BYTES, cache=False)
    compiled = time.process_time() - began
    began = time.process_time()
    constraint.matcher().fill_bitmask(constraint.allocate_bitmask()[0])
    first = time.process_time() - began
    failed: list[dict[str, str]] = []
    not_run: list[dict[str, str]] = []
    lengths, parts = 0, Counter[str]()
    for number in range(walks):
        query = walk(constraint, Random(number), MAX_TOKENS[number % len(MAX_TOKENS)])
        lengths += len(query)
        parts.update(part for part in PARTS if part in query)
        for begin, found in (("EXPLAIN ", failed), ("", not_run)):
            try:
                run(begin + query)
            except Exception as error:  # noqa: BLE001, PERF203 - whatever a driver raises
                found.append({"query": query, "error": str(error)})
    return {
        "database": name,
        "dialect": language.dialect,
        "tables": len(language.tables),
        "compile_seconds": round(compiled, 3),
        "first_mask_seconds": round(first, 4),
        "walks": walks,
        "mean_characters": round(lengths / walks),
        "share": {part: round(parts[part] / walks, 3) for part in PARTS},
        "failed": failed,
        "failed_on_rows": not_run,
    }


def questions(tables: Any) -> Iterator[str]:
    """Simple questions about each table, in turn."""
    for table in tables:
        yield f"How many {table.name} are there?"
        for column in table.columns[1:]:
            yield f"List the {column.name} of all {table.name}."
            if column.kind in ("exact", "float"):
                yield f"What is the average {column.name} of the {table.name}?"
                yield f"Which {table.name} have the highest {column.name}?"
            elif column.kind == "text":
                yield f"How many {table.name} are there for each {column.name}?"
                yield f"Show the {table.name} whose {column.name} is Smith."


def answer(count: int) -> dict[str, Any]:
    """How many answers of the demo model fail in SQLite, with the tables and with any names. The prompts are equal."""
    model, general = constrain.Model(parallel=8), constrain.grammars.load("sql_select").text
    languages = {name: constrain.sql(databases.statements(name)[0]) for name in ("shop", "music", "rental")}
    asked = [(name, question) for name, language in languages.items() for question in questions(language.tables)]
    failed: dict[str, list[list[str]]] = {"tables": [], "any names": []}
    sample = Random(1).sample(asked, count)
    for name, ours in languages.items():
        prompts = [f"{ours.describe()}\n\n{question}" for each, question in sample if each == name]
        for kind, schema in (("tables", ours), ("any names", constrain.Lark(general, description=ours.render()))):
            limits: Any = {"max_tokens": 60, "max_number_tokens": 6, "show_schema": False}
            texts = constrain.generate_batch(model, prompts, schema=schema, seed=1, **limits)
            with sqlite(name) as (_, run):
                for prompt, text in zip(prompts, texts, strict=True):
                    try:
                        run(f"EXPLAIN {text}")
                    except sqlite3.Error as error:  # noqa: PERF203
                        failed[kind].append([prompt.rpartition("\n")[2], text, str(error)])
            print(f"{name}: {len(prompts)} answers with {kind}; failed so far: {len(failed[kind])}", flush=True)
    counted = {f"failed with {kind}": len(found) for kind, found in failed.items()}
    return {"answers": count, **counted, "examples": {kind: found[:5] for kind, found in failed.items()}}


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="databases whose names contain this (all)")
    parser.add_argument("--walks", type=int, default=2000, help="queries of each database and dialect (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("sql.json"), help="where the numbers go")
    parser.add_argument("--answers", type=int, default=0, help="answers of the demo model (none)")
    arguments = parser.parse_args()
    rows = []
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(running())
        for name in databases.NAMES:
            if arguments.only not in name:
                continue
            for opened in (sqlite(name), postgresql(name, address)):
                with opened as (source, run):
                    rows.append(measure(name, source, run, arguments.walks))
                row = rows[-1]
                print(*(f"{value}" for key, value in row.items() if "failed" not in key), flush=True)
                print(f"    EXPLAIN fails for {len(row['failed'])}, running for {len(row['failed_on_rows'])}")
                for failure in [*row["failed"][:3], *row["failed_on_rows"][:3]]:
                    print("   ", failure["error"].splitlines()[0], "\n       ", failure["query"], flush=True)
    report = {**origin(), "walks": rows}
    if arguments.answers:
        report["model"] = answer(arguments.answers)
        print({key: value for key, value in report["model"].items() if key != "examples"})
    arguments.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
