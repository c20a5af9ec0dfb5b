"""Reads a person out of a sentence, with the small model of the ``demo`` extra."""

from __future__ import annotations

from pydantic import BaseModel, Field

import constrain


class Person(BaseModel):
    """Who is it?"""

    name: str = Field(min_length=1)
    age: int = Field(ge=0, le=120)
    hobbies: list[str] = Field(min_length=1, max_length=3)


model = constrain.Model()
text = "Ada is 36 years old and likes chess and long walks. Who is she?"
print(repr(constrain.generate(model, text, schema=Person, temperature=0)))
