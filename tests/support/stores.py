"""A store like S3 in this process, and batches whose files are in it or are tables."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from constrain.batch.answering import Answerer
from constrain.batch.files import BatchFiles, check_locations
from constrain.batch.finishing import Target, errors_beside, finish, target_of
from constrain.batch.inputs import open_input
from constrain.batch.locations import locate
from constrain.batch.prompts import NamedColumns
from constrain.batch.run import Progress, run
from tests.support.batch_files import echo, prompts

BUCKET = "bucket"


class Store:
    """A bucket in a server of its own."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        _, self.port = self._server.get_host_and_port()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Boto3 will no longer support Python")
            self._client = boto3.client(
                "s3",
                endpoint_url=f"http://127.0.0.1:{self.port}",
                region_name="us-east-1",
                aws_access_key_id="key",
                aws_secret_access_key="secret",
            )
        self._client.create_bucket(Bucket=BUCKET)

    def url(self, name: str) -> str:
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://key:secret@{BUCKET}/{name}?{options}"

    def put(self, name: str, content: bytes) -> None:
        self._client.put_object(Bucket=BUCKET, Key=name, Body=content)

    def get(self, name: str) -> bytes:
        return self._client.get_object(Bucket=BUCKET, Key=name)["Body"].read()

    def names(self, folder: str = "") -> list[str]:
        found = self._client.list_objects_v2(Bucket=BUCKET, Prefix=folder).get("Contents", [])
        return [each["Key"] for each in found if not each["Key"].endswith("/")]

    def times(self) -> dict[str, Any]:
        """When each file was written."""
        found = self._client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {each["Key"]: each["LastModified"] for each in found if not each["Key"].endswith("/")}

    def delete(self, name: str) -> None:
        self._client.delete_object(Bucket=BUCKET, Key=name)

    def stop(self) -> None:
        self._server.stop()


@contextlib.contextmanager
def open_store() -> Iterator[Store]:
    store = Store()
    try:
        yield store
    finally:
        store.stop()


class Job:
    """``constrain batch`` without a model, from one file to another, on this machine or in a store."""

    def __init__(
        self,
        prompts: str | Path,
        output: str | Path,
        *,
        errors: str | Path | None = None,
        schema: str | None = None,
        prompt: str | None = None,
        id_column: str | None = None,
    ) -> None:
        self.schema = schema
        source = locate(os.fspath(prompts))
        self.given = open_input(source, NamedColumns(prompt, id_column))
        self.output: Target = target_of(locate(os.fspath(output)))
        failures = errors_beside(self.output.location) if errors is None else locate(os.fspath(errors))
        self.errors = target_of(failures)
        check_locations(source, [*self.output.written(), *self.errors.written()], read=[])

    def run(self, answer: Answerer = echo, *, threads: int = 3, restart: bool = False) -> list[Progress]:
        self.output.require_known(restart=restart)
        self.errors.require_errors()
        scan = self.given.scan(find_languages=True)
        settings: dict[str, object] = {"input": scan.settled}
        lines = self.output.lines, self.errors.lines
        with BatchFiles(*lines, settings, restart=restart, prompts=self.given) as files:
            found = list(run(self.given, files, answer, self.schema, {}, threads=threads, rows=scan.rows))
            finish(files, self.output, self.errors, self.schema, scan)
        return found


def lines(content: bytes) -> list[dict[str, Any]]:
    assert content.endswith(b"\n") or not content
    return [json.loads(line) for line in content.splitlines()]


def values(content: bytes) -> dict[int, object]:
    found = lines(content)
    assert len({each["line"] for each in found}) == len(found)
    return {each["line"]: each["value"] for each in found}


def expected(count: int) -> dict[int, object]:
    return {number: f"p{number}" for number in range(1, count + 1)}


def write_input(folder: Path, count: int) -> tuple[str, str]:
    (folder / "in.jsonl").write_bytes(prompts(count))
    return f"file://{folder}/in.jsonl", f"file://{folder}/out.jsonl"


def part_names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "out.jsonl.parts").glob("0*"))
