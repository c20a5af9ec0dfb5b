"""Agents' settings and output types that several tests use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agents import ModelSettings
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

PROMPT = "Tell me of Emma, aged 21."
SUM = "What is 2+2?"
"""Something that has a short answer: the SDK takes one that is cut for an error."""

LONG = 400
"""More tokens than any answer has."""


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


def settings(**given: Any) -> ModelSettings:
    """One call a turn, and a short one."""
    return ModelSettings(**{"temperature": 0, "max_tokens": 150, **given})


_LOOP = asyncio.new_event_loop()


def wait(work: Coroutine[Any, Any, T]) -> T:
    """What comes of the work, always in the same event loop: clients keep connections that belong to it."""
    return _LOOP.run_until_complete(work)
