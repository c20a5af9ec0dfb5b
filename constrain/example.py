"""The first example of the README: a person out of a sentence, with the small model of the ``demo`` extra.

Run it with ``constrain example``.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

import constrain

TEXT = "Ada is 36 years old and likes chess and long walks. Who is she?"


class Person(BaseModel):
    """Who is it?"""

    name: str = Field(min_length=1)
    age: int = Field(ge=0, le=120)
    hobbies: list[str] = Field(min_length=1, max_length=3)


def main() -> None:
    """Prints the person that the model finds in the text."""
    print(repr(constrain.generate(constrain.Model(), TEXT, schema=Person, temperature=0)))
