"""LiteLLM's proxy with the configuration of the page, and OpenAI's client in front of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from openai import BadRequestError, OpenAI
from pydantic import BaseModel

PAGE = (Path(os.environ["CONSTRAIN_DOCS"]) / "recipes" / "litellm.md").read_text(encoding="utf-8")
SECONDS = 180.0
MESSAGES: list[Any] = [{"role": "user", "content": "Ada is 36 years old. Who is she?"}]


class Person(BaseModel):
    name: str
    age: int


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    [text] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    config = tmp_path_factory.mktemp("proxy") / "config.yaml"
    config.write_text(text.replace("http://127.0.0.1:8080/v1", os.environ["OPENAI_BASE_URL"]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).parent / "litellm")
    command = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with subprocess.Popen(command, env=environment, cwd=config.parent) as proxy:
        try:
            wait(f"http://127.0.0.1:{port}/health/liveliness", proxy)
            yield OpenAI(base_url=f"http://127.0.0.1:{port}", api_key="sk-local", max_retries=0, timeout=240)
        finally:
            proxy.terminate()


def wait(url: str, proxy: subprocess.Popen[bytes]) -> None:
    """Until the proxy answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and proxy.poll() is None:
        with contextlib.suppress(URLError, ConnectionError), urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    raise TimeoutError(url)


def test_a_schema_is_enforced_behind_the_proxy(client: OpenAI) -> None:
    completion = client.chat.completions.parse(
        model="small", messages=MESSAGES, response_format=Person, max_tokens=80, temperature=0
    )
    assert isinstance(completion.choices[0].message.parsed, Person)


def test_a_tool_is_forced_behind_the_proxy(client: OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "person", "parameters": Person.model_json_schema()}}
    choice: Any = {"type": "function", "function": {"name": "person"}}
    completion = client.chat.completions.create(
        model="small", messages=MESSAGES, tools=[tool], tool_choice=choice, max_tokens=80, temperature=0
    )
    for call in completion.choices[0].message.tool_calls or ():
        Person.model_validate_json(call.function.arguments)
    assert completion.choices[0].message.tool_calls


def test_an_answer_is_streamed_through_the_proxy(client: OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": Person.model_json_schema()}}
    parts = client.chat.completions.create(
        model="small", messages=MESSAGES, response_format=form, stream=True, max_tokens=80, temperature=0
    )
    assert set(json.loads("".join(part.choices[0].delta.content or "" for part in parts if part.choices))) == {
        "name",
        "age",
    }


def test_a_refusal_comes_through_the_proxy(client: OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "integer", "minimum": "a"}}}
    with pytest.raises(BadRequestError, match="minimum"):
        client.chat.completions.create(model="small", messages=MESSAGES, response_format=form)
