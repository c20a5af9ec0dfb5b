"""Equal requests get equal answers where one is written at a time, whatever else is asked for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from constrain.server.app import Application
from constrain.server.config import read_config
from constrain.server.serving.model_files import find_models
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, SECONDS

PROMPTS = ["Say hello.", "Say hello to me, then name a colour.", "Say hello to me, then name a city.", "Count."]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}, "required": ["a"]}


def body(number: int) -> dict[str, Any]:
    """One of 12 requests: many begin alike, and all draw random numbers; every fourth names no seed."""
    asked: dict[str, Any] = {
        "model": "small",
        "messages": [{"role": "user", "content": PROMPTS[number % len(PROMPTS)]}],
        "max_tokens": 4,
        "temperature": 1.5,
        "n": 2 if number == 7 else 1,
    }
    if number % 4:
        asked["seed"] = number
    if number % 2:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
        asked["max_tokens"] = 10
    return asked


@pytest.fixture
def application(model_file: Path) -> Iterator[Application]:
    flags = {"deterministic": True, "ctx": 256, "threads": 1}
    models = find_models(read_config(None, flags), model_file, ["small"])
    yield Application(models, Settings())
    models.close()


async def answers(application: Application, numbers: Sequence[int], *, together: bool) -> dict[int, list[str]]:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=SECONDS) as client:
        asking = [client.post(CHAT, json=body(number)) for number in numbers]
        responses = await asyncio.gather(*asking) if together else [await each for each in asking]
    contents = [[choice["message"]["content"] for choice in response.json()["choices"]] for response in responses]
    return dict(zip(numbers, contents, strict=True))


@pytest.mark.slow
def test_requests_together_get_the_answers_that_they_get_one_by_one(application: Application) -> None:
    numbers = list(range(12))
    alone = asyncio.run(answers(application, numbers, together=False))
    random.Random(1).shuffle(numbers)
    assert asyncio.run(answers(application, numbers, together=True)) == alone
    assert len({text for texts in alone.values() for text in texts}) > 6
