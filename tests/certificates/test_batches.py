"""Certificates of the answers of batches: each names the one before it, also after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import constrain
import constrain.verify as verifier
from constrain.batch.answering import answerer
from constrain.batch.files import BatchFiles
from constrain.batch.inputs import JsonLines
from constrain.batch.run import run
from tests.support.batch_files import records
from tests.support.command_line import call

pytestmark = pytest.mark.usefixtures("tiny_model")

SCHEMA = '{"type": "object", "properties": {"old": {"type": "boolean"}}, "required": ["old"]}'
OPTIONS: dict[str, Any] = {"max_tokens": 30, "certificate": True}


def answer(model: constrain.Model, folder: Path, lines: int) -> list[dict[str, Any]]:
    """Answers a file of prompts, whose first lines may have answers already; returns the records."""
    (folder / "in.jsonl").write_text("".join(f'"Is person {number} old?"\n' for number in range(lines)))
    with BatchFiles(folder / "out.jsonl", folder / "errors.jsonl", {}, restart=False) as files:
        list(
            run(
                JsonLines(folder / "in.jsonl"),
                files,
                answerer(model, SCHEMA, OPTIONS),  # type: ignore[arg-type]
                SCHEMA,
                OPTIONS,  # type: ignore[arg-type]
                threads=2,
            )
        )
    return records(folder / "out.jsonl")


def require_chain(certificates: list[dict[str, Any]]) -> None:
    before = None
    for certificate in certificates:
        assert certificate["previous"] == before
        before = constrain.certificates.verify_certificate(certificate, before)


def test_each_certificate_names_the_one_before_it(model: constrain.Model, tmp_path: Path) -> None:
    assert len(answer(model, tmp_path, 3)) == 3
    found = answer(model, tmp_path, 6)  # goes on after the first three
    assert sorted(record["line"] for record in found) == list(range(1, 7))
    require_chain([record["certificate"] for record in found])
    assert all(record["certificate"]["text"] == record["text"] for record in found)


@pytest.mark.slow
def test_the_command_adds_them_and_verify_sees_removed_rows(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('"a"\n"b"\n"c"\n{"prompt": "d", "schema": null}\n')
    command = ["batch", str(tmp_path / "in.jsonl"), "--schema", SCHEMA, "--max-tokens", "20", "--ctx", "512"]
    done = call(*command, "--certificates", "-o", str(tmp_path / "out.jsonl"))
    assert done.returncode == 3, done.stderr
    (error,) = records(tmp_path / "out.errors.jsonl")
    assert "certificate needs" in error["message"]
    assert call("verify", str(tmp_path / "out.jsonl")).returncode == 0
    assert verifier.main([str(tmp_path / "out.jsonl")]) == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for kept in (lines[1:], [lines[0], lines[2]], [lines[1], lines[0], lines[2]]):
        (tmp_path / "kept.jsonl").write_text("\n".join(kept) + "\n")
        refused = call("verify", str(tmp_path / "kept.jsonl"))
        assert refused.returncode == 1
        assert verifier.main([str(tmp_path / "kept.jsonl")]) == 1
        assert "before" in refused.stderr + refused.stdout


def test_a_table_has_them_in_a_column(model: constrain.Model, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    from constrain.batch.scanning import Scan
    from constrain.batch.tables.writing import write_answers

    found = answer(model, tmp_path, 2)
    for kind in ("parquet", "csv"):
        with (tmp_path / "out.jsonl").open("rb") as lines:
            scan = Scan("", 2, own_languages=False)
            write_answers(lines, tmp_path / f"out.{kind}", kind, SCHEMA, own=False, scan=scan)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    by_line = {record["line"]: record["certificate"] for record in found}
    assert {row["line"]: json.loads(row["certificate"]) for row in rows} == by_line
    assert [row["details"] for row in rows] == [None, None]
    assert "certificate" in (tmp_path / "out.csv").read_text().splitlines()[0]


def test_rows_of_a_table_have_them() -> None:
    pa = pytest.importorskip("pyarrow")
    from constrain.ray import Answers, answer_schema

    table = pa.table({"prompt": ["a", None, "c"]})
    options: dict[str, Any] = {**OPTIONS, "schema": json.loads(SCHEMA)}
    found = Answers(model_options={"n_ctx": 512}, **options)(table)
    assert found.schema.names[1:] == answer_schema(**options).names
    rows = found.to_pylist()
    assert rows[1]["certificate"] is None
    require_chain([json.loads(row["certificate"]) for row in (rows[0], rows[2])])
    with pytest.raises(ValueError, match="vote"):
        Answers(n=3, vote=True, **options)
