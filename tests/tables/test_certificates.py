"""Certificates of answers with values of tables: small ones are in them, large ones are named by digest."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain import verify
from constrain.certificates import certify, verify_certificate
from constrain.certificates.export import MAX_EMBEDDED_VALUES
from tests.support import byte_vocabulary, for_each

if TYPE_CHECKING:
    from pathlib import Path

COUNT = MAX_EMBEDDED_VALUES + 2500
NAMES = [f'Name "{number}"' for number in range(COUNT)]


@cache
def tables() -> dict[str, Any]:
    weights = [number / 2 for number in range(2 * COUNT)]
    people = constrain.Table({"name": NAMES, "age": range(COUNT), "weight": weights})
    return {"people": people, "others": constrain.Table(NAMES[3:])}


def column(name: str, **others: Any) -> dict[str, Any]:
    return {"x-one-of": {"table": "people", "column": name}, **others}


def certificate(schema: object, value: object) -> dict[str, Any]:
    constraint = constrain.compile(schema, byte_vocabulary(), tables=tables())
    return certify(constraint, [*json.dumps(value).encode()])


@pytest.mark.slow
@for_each(
    "schema, value",
    (
        (column("name"), NAMES[7]),
        (column("name", pattern='[0-8]"$'), NAMES[7]),
        (column("name", pattern='[0-8]"$', minLength=2), NAMES[7]),
        ({"allOf": [column("name", pattern="[0-9]"), {"x-one-of": {"table": "others"}}]}, NAMES[7]),
        (column("age"), 77),
        (column("weight", type="integer"), 7),
        (column("name", pattern="^[^0-9]*[0-9]+.$", maxLength=8), NAMES[7]),  # few are left
    ),
)
def test_answers_of_large_tables_are_proved_with_the_tables(schema: dict[str, Any], value: object) -> None:
    made = certificate(schema, value)
    assert len(json.dumps(made)) < 20_000
    few = "maxLength" in schema
    if not few:
        with pytest.raises(ValueError, match=r"the table with the digest [0-9a-f]{64} and \d+ values is not given"):
            verify_certificate(made)
    assert verify_certificate(made, tables=tables()) == made["sha256"]


def test_another_value_and_another_number_of_values_are_refused() -> None:
    constraint = constrain.compile(column("age"), byte_vocabulary(), tables=tables())
    made = certify(constraint, [*b"77"])
    with pytest.raises(ValueError, match="is not given"):
        verify_certificate(made, tables={"people": {"age": range(1, COUNT + 1)}})
    (digest, values) = verify.read_table("\n".join(map(str, range(COUNT))).encode())
    assert verify.verify(made, None, {digest: values}) == made["sha256"]
    with pytest.raises(ValueError, match="the derivation, at byte"):
        verify.verify(made, None, {digest: [*values[:10], b"x", *values[11:]][::-1]})
    with pytest.raises(ValueError, match="is not given"):
        verify.verify(made, None, {digest: values[1:]})


def test_tables_of_up_to_so_many_values_are_in_the_certificate() -> None:
    schema = column("name", enum=NAMES[5:8])
    assert verify_certificate(certificate(schema, NAMES[7]))
    with pytest.raises(ValueError, match="is refused"):
        certificate(schema, NAMES[8])


@pytest.mark.slow
def test_the_programs_take_tables(tmp_path: Path) -> None:
    made = tmp_path / "answer.json"
    made.write_text(json.dumps(certificate(column("name"), NAMES[7])))
    lines = tmp_path / "names.txt"
    lines.write_text("".join(json.dumps(name)[1:-1] + "\n" for name in NAMES))
    with sqlite3.connect(tmp_path / "crm.db") as database:
        database.execute("CREATE TABLE people (name TEXT)")
        database.executemany("INSERT INTO people VALUES (?)", [(name,) for name in NAMES])
    database.close()
    alone = [sys.executable, verify.__file__]
    whole = [sys.executable, "-m", "constrain", "verify"]
    for program, table in ((alone, f"--table={lines}"), (whole, f"--table=people={tmp_path}/crm.db:people")):
        done = subprocess.run([*program, table, made], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        done = subprocess.run([*program, made], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "is not given" in done.stdout + done.stderr
