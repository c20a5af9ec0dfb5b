"""Lets a model call Python functions, and answer with what they return.

python examples/tools.py [model.gguf]
"""

from __future__ import annotations

import sys
from typing import Literal

import constrain

WEATHER = {"Oslo": 4, "Rome": 21}


def temperature(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> float:
    """Tells how warm it is in a city.

    Args:
        city: where.
        unit: of the result.
    """
    celsius = WEATHER[city]
    return celsius if unit == "celsius" else celsius * 9 / 5 + 32


def main() -> None:
    """Prints each step of the conversation, and the answer."""
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None) as model:
        run = constrain.tools.run_tools(
            model,
            "How warm is it in Rome?",
            tools=[temperature],
            tool_choice="required",
            parallel_tool_calls=False,
            max_steps=2,
            max_tokens=80,
            temperature=0,
        )
    for message in run.messages:
        for call in message.get("tool_calls", ()):
            print("call:", call["function"]["name"], call["function"]["arguments"])
        if message["content"]:
            print(f"{message['role']}:", message["content"])


if __name__ == "__main__":
    main()
