"""Sorts many messages at once, and keeps going where one of them has no answer.

python examples/batch.py [model.gguf]
"""

from __future__ import annotations

import sys
import time
from enum import Enum

import constrain


class Topic(Enum):
    """What a message is about."""

    BILLING = "billing"
    DELIVERY = "delivery"
    OTHER = "other"


MESSAGES = [
    "I was charged twice this month.",
    "My parcel has not arrived.",
    "Do you have a job for me?",
    "The invoice has the wrong address.",
    "x " * 3000,  # longer than the context
]


def main() -> None:
    """Prints the topic of each message, or why it has none."""
    prompts = [f"What is this message about? {message}" for message in MESSAGES]
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None, n_ctx=1024, parallel=4) as model:
        started = time.perf_counter()
        topics = constrain.generate_batch(model, prompts, schema=Topic, temperature=0, return_errors=True)
        seconds = time.perf_counter() - started
    for message, topic in zip(MESSAGES, topics, strict=True):
        said = f"no answer: {topic}" if isinstance(topic, Exception) else topic.value
        print(f"{message[:40]:40} {said}")
    print(f"{len(topics)} messages in {seconds:.1f} seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
