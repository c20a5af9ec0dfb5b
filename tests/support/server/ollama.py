"""Ways to ask Ollama's paths of an application, and templates of models that reason."""

from __future__ import annotations

import json
from typing import Any

import httpx

from constrain.server.app import Application
from tests.support.server.asking import ask

_TURNS = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
_BEGIN = "{% if add_generation_prompt %}<|im_start|>assistant\n"
_SWITCH = (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"
)

THINKING = f"{_TURNS}{_BEGIN}{_SWITCH}{{% endif %}}"
"""A template with a variable that turns reasoning on and off."""

ALWAYS_THINKING = f"{_TURNS}{_BEGIN}<think>\n{{% endif %}}{{# until </think> #}}"
"""A template that begins every answer with reasoning."""

USER = [{"role": "user", "content": "Say hello."}]

LINES = "application/x-ndjson"


def post(application: Application, path: str, **fields: Any) -> httpx.Response:
    return ask(application, "POST", f"/api/{path}", json={"model": "small", **fields})


def chat(application: Application, **fields: Any) -> httpx.Response:
    """Asks for an answer that is not a stream, with the likeliest tokens."""
    options = {"temperature": 0, "num_predict": 8, **fields.pop("options", {})}
    return post(application, "chat", **{"messages": USER, "stream": False, "options": options, **fields})


def answer_of(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()
    return found


def lines_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The objects of a stream: one per line, in ASCII, the last one done."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == LINES
    assert response.text.isascii()
    assert response.text.endswith("\n")
    found = [json.loads(line) for line in response.text.split("\n")[:-1]]
    assert [line["done"] for line in found] == [False] * (len(found) - 1) + [True]
    return found


def error_of(response: httpx.Response) -> str:
    """What an error says, in Ollama's form."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert isinstance(body["error"], str)
    assert body["error"]
    found: str = body["error"]
    return found
