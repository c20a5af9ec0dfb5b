"""Reads people out of sentences, with a way out where the text does not say.

Run it with a model of your own, or without an argument on the small model of the ``demo`` extra:

    python examples/extraction.py [model.gguf]
"""

from __future__ import annotations

import sys
from typing import Literal

from pydantic import BaseModel, Field

import constrain

TEXTS = [
    "Ada is 36 years old and likes chess and long walks.",
    "Our new neighbour Bo, a baker, told us about his garden.",
]


class Person(BaseModel):
    """The person a text is about; null where the text does not say."""

    name: str = Field(min_length=1, max_length=40, description="first name")
    age: int | None = Field(ge=0, le=120, description="in years, null if unknown")
    job: Literal["baker", "teacher", "other", "unknown"]
    hobbies: list[str] = Field(max_length=3)


def main() -> None:
    """Prints one line of JSON for each text."""
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None) as model:
        for text in TEXTS:
            found = constrain.complete(
                model, f"Who is this about? {text}", schema=Person, temperature=0, max_tokens=120, max_string_tokens=20
            )
            print(found.value.model_dump_json())
            if found.finish_reason == "length":
                print("  complete, but the limit on tokens had a say", file=sys.stderr)


if __name__ == "__main__":
    main()
