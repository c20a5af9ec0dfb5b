"""Tokens of answers whose fields are written again when a validator rejects them, and of answers that are asked again.

    python benchmarks/retries.py --output benchmarks/results/retries.json

Each field has a validator that rejects a share of all values, by their hash. ``again``: the whole answer is asked for
anew, with another seed, until nothing is rejected. Both begin with the same seeds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from about import origin

import constrain
from constrain.llama.model import default_model_path

FIELDS = ("name", "city", "job", "hobby", "pet")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string", "maxLength": 20} for name in FIELDS} | {"age": {"type": "integer"}},
    "required": [*FIELDS, "age"],
    "additionalProperties": False,
}
PROMPT = "Invent a person, and describe this person as JSON."
MOST = 400
"""Answers after which asking again gives up."""


def main() -> None:
    """Writes the answers both ways, prints the numbers and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=12, help="answers (%(default)s)")
    parser.add_argument("--rejected", type=float, default=0.3, help="share of values that are rejected (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("retries.json"), help="where the numbers go")
    options = parser.parse_args()

    def accepts(value: object) -> bool:
        digest = hashlib.sha256(json.dumps(value).encode()).digest()
        return int.from_bytes(digest[:4], "big") / 2**32 >= options.rejected

    model = constrain.Model(default_model_path())
    fields, again = [], []
    for seed in range(options.answers):
        settings: Any = {"schema": SCHEMA, "temperature": 1.0, "max_tokens": 200}
        checks = {f"/{name}": accepts for name in SCHEMA["properties"]}
        found = constrain.complete(model, PROMPT, seed=seed, checks=checks, retries=10, **settings)
        if not all(map(accepts, found.value.values())):
            raise AssertionError(f"a rejected value was accepted: {found.value}")
        taken_back = sum(each.tokens for each in found.retried)
        fields.append({"tokens": found.usage.completion_tokens + taken_back, "retried": len(found.retried)})
        tokens = 0
        for number in range(MOST):
            one = constrain.complete(model, PROMPT, seed=seed + number * options.answers, **settings)
            tokens += one.usage.completion_tokens
            if all(map(accepts, one.value.values())):
                break
        again.append({"tokens": tokens, "answers": number + 1})
    mean = lambda rows, name: round(sum(row[name] for row in rows) / len(rows), 1)  # noqa: E731
    report = {
        **origin(),
        "rejected": options.rejected,
        "fields": {"tokens": mean(fields, "tokens"), "retried": mean(fields, "retried")},
        "again": {"tokens": mean(again, "tokens"), "answers": mean(again, "answers")},
        "answers": [{"fields": one, "again": other} for one, other in zip(fields, again, strict=True)],
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(report["fields"], report["again"])


if __name__ == "__main__":
    main()
