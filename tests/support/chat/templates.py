"""Chat templates of model families, written after the formats that the families document: ``tests/data/chat``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import tomllib

FAMILIES: dict[str, dict[str, Any]] = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[2] / "data" / "chat").glob("*.toml"))
}
"""What is expected of each template, by its name; ``tests/data/README.md`` says what the members are."""


def template(name: str) -> str:
    """A template's text."""
    return FAMILIES[name]["template"]


def rendered(name: str) -> str:
    """What the conversation of ``conversations.py`` looks like in a family, up to the next answer."""
    return FAMILIES[name]["rendered"]
