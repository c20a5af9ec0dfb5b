"""Reads people out of sentences: a name that appears in the text, an age with bounds, and one of three jobs.

Run it with a model of your own, or without an argument on the small model of the ``demo`` extra:

    python examples/extraction.py [model.gguf]
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import constrain

TEXTS = [
    "Ada is a teacher. She is 36 years old.",
    "Our new neighbour Bo, a baker, is 41 years old.",
    "Cy, 61, is a nurse in Oslo.",
]


class Person(BaseModel):
    """The person a text is about."""

    name: Annotated[str, constrain.Quote(whole_words=True)] = Field(max_length=20, description="first name")
    age: int = Field(ge=0, le=120, description="in years")
    job: Literal["baker", "nurse", "teacher"]


def main() -> None:
    """Prints one line of JSON for each text."""
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None) as model:
        for text in TEXTS:
            found = constrain.complete(model, text, schema=Person, temperature=0, max_tokens=60)
            print(found.value.model_dump_json())
            if found.finish_reason == "length":
                print("  complete, but the limit on tokens had a say", file=sys.stderr)


if __name__ == "__main__":
    main()
