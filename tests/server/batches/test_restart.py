"""A server that is killed in the middle of a batch, and one that is stopped: the next one goes on where it ended."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from tests.server.batches.conftest import NUMBER, begin, chat_line, client_of, read, wait
from tests.support.server.process import program
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

REQUESTS = 24


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_server_goes_on_where_the_last_one_ended(signum: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "batches"
    options = ("--parallel", "4", "--ctx", "1024", "--batch-folder", str(folder))
    with program(*options) as first, client_of(first.url) as client:
        batch = begin(client, [chat_line(f"{number}") for number in range(REQUESTS)])
        journal = folder / "batches" / batch.id / "answers.jsonl"
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 5)
        first.process.send_signal(signum)
        first.process.wait(60)
    answered = [json.loads(line)["custom_id"] for line in journal.read_bytes().split(b"\n")[:-1]]
    assert 5 <= len(answered) < REQUESTS
    with program(*options) as second, client_of(second.url) as client:
        batch = wait(client, client.batches.retrieve(batch.id))
        log = "".join(second.log)
        lines = read(client, batch.output_file_id)
    assert batch.status == "completed"
    assert [line["custom_id"] for line in lines] == [f"{number}" for number in range(REQUESTS)]
    for line in lines:
        content = line["response"]["body"]["choices"][0]["message"]["content"]
        Draft202012Validator(NUMBER).validate(json.loads(content))
    assert log.count("POST /v1/chat/completions 200") == REQUESTS - len(answered)
