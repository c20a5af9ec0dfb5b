"""Schemas that meet a limit while a text is generated."""

from __future__ import annotations

import random
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _patterns(seed: int, count: int) -> list[str]:
    """Unanchored patterns of a few letters, gaps among them."""
    source = random.Random(seed)
    return [
        "".join(source.choice(["a", "b", "c", "[ab]", "[^c]", ".*", "\\d", "1?2"]) for _ in range(5)) + "z"
        for _ in range(count)
    ]


HOSTILE: dict[str, dict[str, Any]] = {
    "negated patterns": {
        "type": "string",
        "allOf": [{"not": {"pattern": pattern}} for pattern in _patterns(1, 10)],
        "pattern": "[aA][12].*[zZ]",
        "minLength": 10,
        "maxLength": 20,
    },
    "patterns at once": {"type": "string", "allOf": [{"pattern": letter} for letter in LETTERS[:6]], "maxLength": 30},
    "exactly one of many patterns": {"oneOf": [{"type": "string", "pattern": letter} for letter in LETTERS[:16]]},
    "negated patterns of keys": {
        "type": "object",
        "propertyNames": {"allOf": [{"not": {"pattern": pattern}} for pattern in _patterns(2, 4)], "minLength": 12},
        "minProperties": 2,
        "additionalProperties": {"type": "integer"},
    },
}
