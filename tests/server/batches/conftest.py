"""A server that keeps files and batches, its client, and the requests of a batch."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import openai
import pytest

from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import SECONDS, served_as, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import constrain

CHAT = "/v1/chat/completions"

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 99}},
    "required": ["n"],
    "additionalProperties": False,
}

ENDED = ("completed", "failed", "expired", "cancelled")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(batch_folder=tmp_path / "batches")


@pytest.fixture
def client(model: constrain.Model, settings: Settings) -> Iterator[openai.OpenAI]:
    with serving(Application(served_as(model, "small"), settings)) as url, client_of(url) as found:
        yield found


def client_of(url: str, key: str = "any") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=SECONDS)


def chat_line(custom_id: str, **fields: Any) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "number", "schema": NUMBER}}
    body = {
        "model": "small",
        "messages": [{"role": "user", "content": f"A number for {custom_id}."}],
        "response_format": form,
        "max_tokens": 30,
        **fields,
    }
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body}


def upload(client: openai.OpenAI, lines: list[dict[str, Any]] | bytes, **options: Any) -> openai.types.FileObject:
    content = lines if isinstance(lines, bytes) else "\n".join(map(json.dumps, lines)).encode()
    return client.files.create(file=("requests.jsonl", content), purpose="batch", **options)


def begin(client: openai.OpenAI, lines: list[dict[str, Any]] | bytes, **options: Any) -> openai.types.Batch:
    given: dict[str, Any] = {"endpoint": CHAT, "completion_window": "24h", **options}
    return client.batches.create(input_file_id=upload(client, lines).id, **given)


def wait(client: openai.OpenAI, batch: openai.types.Batch) -> openai.types.Batch:
    until = time.monotonic() + SECONDS
    while batch.status not in ENDED:
        assert time.monotonic() < until, batch
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    return batch


def read(client: openai.OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    """The lines of a file; none for no file."""
    return [] if file_id is None else [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
