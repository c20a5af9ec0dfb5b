"""Shows an answer while it is written, and how sure the model was of each piece.

python examples/streaming.py [model.gguf]
"""

from __future__ import annotations

import math
import sys

from pydantic import BaseModel, Field

import constrain


class Review(BaseModel):
    """A short review of a film."""

    summary: str = Field(max_length=120)
    stars: int = Field(ge=1, le=5)


def main() -> None:
    """Prints the text as it comes, and the finished review last."""
    least = 0.0
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None) as model:
        prompt = "Write a review of a film about a dog."
        for event in constrain.stream(model, prompt, schema=Review, seed=1, max_tokens=80, logprobs=True):
            match event:
                case constrain.TextDelta(text, logprobs):
                    print(text, end="", flush=True)
                    least = min(least, *(token.logprob for token in logprobs), 0.0)
                case constrain.Finished(completion):
                    print(f"\n{completion.value!r}")
                    print(f"{completion.usage.completion_tokens} tokens; the least likely had {math.exp(least):.2g}")


if __name__ == "__main__":
    main()
