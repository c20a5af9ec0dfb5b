"""Whether a text is a JSON value that a schema allows, in all readings of numbers: see ``tests/support/judging.py``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.judging import Judge


def flaw(schema: Any, text: bytes) -> str:
    """Why a text is no value of the schema, formats included; empty if it is one."""
    try:
        error = Judge(schema, keys_may_repeat=True).error(text.decode())
    except ValueError as why:
        return f"incomplete: {why}"
    return "" if error is None else f"invalid: {error[:200]}"
