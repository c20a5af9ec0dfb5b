"""Clients of instructor for the server that ``OPENAI_BASE_URL`` names."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import instructor
import openai
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TOKENS = 120
"""Enough for every model of these tests; the server ends each answer within it."""


@pytest.fixture
def connect() -> Callable[[instructor.Mode], instructor.Instructor]:
    """Makes a client for a mode. It does not ask twice: the first answer must be right."""
    return partial(_connect, openai.OpenAI(max_retries=0, timeout=120))


@pytest.fixture
def aconnect() -> Callable[[instructor.Mode], instructor.AsyncInstructor]:
    """The same for asynchronous code."""
    return partial(_connect, openai.AsyncOpenAI(max_retries=0, timeout=120))


def _connect(client: openai.OpenAI, mode: instructor.Mode = instructor.Mode.TOOLS) -> instructor.Instructor:
    name = "max_output_tokens" if mode.value.startswith("responses") else "max_tokens"
    return instructor.from_openai(client, mode=mode, model=os.environ["CONSTRAIN_MODEL"], **{name: MAX_TOKENS})


@pytest.fixture
def client(connect: Callable[[instructor.Mode], instructor.Instructor]) -> instructor.Instructor:
    """A client that forces a tool call, as instructor does unless it is told otherwise."""
    return connect(instructor.Mode.TOOLS)
