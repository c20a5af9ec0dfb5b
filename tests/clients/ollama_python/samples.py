"""Messages, types and tools that several tests use."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

PROMPT = "Tell me of Emma, aged 21."
MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}]


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


def get_weather(city: str) -> str:
    """Tells the weather of a city.

    Args:
        city: Name of the city.
    """
    return f"{city}: sun"


def mix(a: int | str, b: float | None = None, c: bool = False) -> str:
    """Mixes things.

    Args:
        a: The first.
        b: The second.
        c: Whether to shake.
    """
    return f"{a} {b} {c}"


def weather_talk() -> list[Any]:
    """A conversation in which the model has called a tool for three cities, so that it does so for the next one."""
    said: list[Any] = []
    for city in ("Paris", "Madrid", "Bern"):
        call = {"function": {"name": "get_weather", "arguments": {"city": city}}}
        said += [
            {"role": "user", "content": f"What is the weather in {city}?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "get_weather", "content": f"{city}: sun"},
            {"role": "assistant", "content": f"There is sun in {city}."},
        ]
    return [*said, {"role": "user", "content": "What is the weather in Rome?"}]
