"""A finding about a schema: rule, place and message."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """``rule`` is a stable name, ``pointer`` a JSON Pointer into the schema, ``message`` a sentence."""

    rule: str
    pointer: str
    message: str
