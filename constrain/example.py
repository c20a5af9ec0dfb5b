"""The first example of the README: a person out of a sentence, with the small model of the ``demo`` extra.

Run it with ``constrain example``.
"""

from __future__ import annotations

from pydantic import BaseModel

import constrain

TEXT = "Ada is 36 years old. Who is she?"


class Person(BaseModel):
    """Who is it?"""

    name: str
    age: int


def main() -> None:
    """Prints the person that the model finds in the text."""
    print(repr(constrain.generate(constrain.Model(), TEXT, schema=Person, temperature=0)))
