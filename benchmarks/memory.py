"""The memory of ``constrain serve`` with the demo model and its defaults: idle, and after ten requests.

    python benchmarks/memory.py --output benchmarks/results/memory.json

The ten requests are chat completions, one after the other: five of free text and five with a JSON Schema, of up to 64
tokens. ``resident`` is the resident memory of the server's process, as ``ps`` shows it. ``all`` includes its processes
for compiling; memory that several of them share counts once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from about import origin

QUESTIONS = 10
SETTLING = 5
"""Seconds of rest before each measurement."""

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 60}, "year": {"type": "integer"}},
    "required": ["title", "year"],
    "additionalProperties": False,
}


def main() -> None:
    """Measures and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("memory.json"), help="where the numbers go (%(default)s)")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "constrain", "serve", "--port", "0", "--alias", "small"]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            url = address(server)
            idle = measure(server.pid)
            for number in range(QUESTIONS):
                ask(url, number)
            after = measure(server.pid)
        finally:
            server.terminate()
    report = {**origin(), "requests": QUESTIONS, "idle": idle, "after": after}
    arguments.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({"idle": idle, "after": after}))


def address(server: subprocess.Popen[str]) -> str:
    """Waits for the server's address."""
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+/v1", line):
            return found[0]
    raise SystemExit("the server has ended before it listened")


def ask(url: str, number: int) -> None:
    """Sends one request and reads its answer."""
    body: dict[str, Any] = {
        "model": "small",
        "messages": [{"role": "user", "content": f"Tell me about book number {number + 1} of your shelf."}],
        "max_tokens": 64,
    }
    if number % 2:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "book", "schema": SCHEMA}}
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", data, headers)) as response:
        json.load(response)


def measure(process: int) -> dict[str, int]:
    """Bytes of the server's process, and of it with its children."""
    time.sleep(SETTLING)
    server = psutil.Process(process)
    family = [server, *server.children(recursive=True)]
    return {"resident": server.memory_info().rss, "all": sum(each.memory_full_info().pss for each in family)}


if __name__ == "__main__":
    main()
