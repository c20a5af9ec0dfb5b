r"""Unicode property tables, from data.json, which tools/generate_unicode_data.py writes.

A table is a string of base-36 numbers, two a range: the gap since the end of the range before, and how many code
points follow the first. Names are upper case without separators (UAX #44, rule LM3).

Attributes:
    CATEGORIES: tables of the leaves of General_Category.
    CATEGORY_ALIASES: longer names of general categories.
    SCRIPTS: tables of Script.
    SCRIPT_EXTENSIONS: tables of Script_Extensions, where it differs from Script.
    SCRIPT_ALIASES: four-letter codes of scripts.
    BINARY: tables of binary properties.
    BINARY_ALIASES: other names of binary properties.
    PYTHON_WORD, PYTHON_SPACE: what ``re`` means by ``\w`` and ``\s``.
    CASE_ORBITS: code points that are equal under simple case folding.
    PYTHON_CASE_ORBITS: code points that are equal under ``re.IGNORECASE``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_DATA: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("ascii"))

CATEGORIES: dict[str, str] = _DATA["CATEGORIES"]
CATEGORY_ALIASES: str = _DATA["CATEGORY_ALIASES"]
SCRIPTS: dict[str, str] = _DATA["SCRIPTS"]
SCRIPT_EXTENSIONS: dict[str, str] = _DATA["SCRIPT_EXTENSIONS"]
SCRIPT_ALIASES: str = _DATA["SCRIPT_ALIASES"]
BINARY: dict[str, str] = _DATA["BINARY"]
BINARY_ALIASES: str = _DATA["BINARY_ALIASES"]
PYTHON_WORD: str = _DATA["PYTHON_WORD"]
PYTHON_SPACE: str = _DATA["PYTHON_SPACE"]
CASE_ORBITS: str = _DATA["CASE_ORBITS"]
PYTHON_CASE_ORBITS: str = _DATA["PYTHON_CASE_ORBITS"]
