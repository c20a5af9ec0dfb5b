"""Asks a server for a value and for a stream, with OpenAI's client.

Start the server first, then run this; the address may be another:

    constrain serve --alias small
    python examples/server_client.py [http://127.0.0.1:8080/v1]
"""

from __future__ import annotations

import sys

from openai import OpenAI
from pydantic import BaseModel, Field


class Person(BaseModel):
    """The person a text is about."""

    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=120)


QUESTION = {"role": "user", "content": "Ada is 36 years old. Who is she?"}


def main() -> None:
    """Prints the person twice: at once, and piece by piece."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/v1"
    client = OpenAI(base_url=url, api_key="any")
    name = client.models.list().data[0].id
    completion = client.chat.completions.parse(
        model=name, messages=[QUESTION], response_format=Person, temperature=0, max_tokens=60
    )
    print(repr(completion.choices[0].message.parsed))
    with client.chat.completions.stream(
        model=name, messages=[QUESTION], response_format=Person, temperature=0, max_tokens=60
    ) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
