"""The chat templates of the families, in ``tests/data/chat``, written after the formats that the families document."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "data" / "chat"

FAMILIES = {
    "chatml": "generic",
    "command-r": "command-r",
    "command-r7b": "command-r7b",
    "deepseek-r1": "deepseek-v3",
    "deepseek-v3": "deepseek-v3",
    "deepseek-v3.1": "deepseek-v3.1",
    "functionary-v3.1": "functionary-v3.1",
    "functionary-v3.2": "functionary-v3.2",
    "functools": "functools",
    "gemma3": "gemma3",
    "glm4": "glm-4.5",
    "harmony": "harmony",
    "hermes": "hermes",
    "kimi-k2": "kimi-k2",
    "llama-pythonic": "llama-pythonic",
    "llama3-json": "llama3-json",
    "minimax-m2": "minimax-m2",
    "mistral-v11": "mistral-v11",
    "mistral-v13": "mistral-v13",
    "mistral-v3": "mistral-v3",
    "mistral-v3-tekken": "mistral-v3-tekken",
    "phi4-mini": "phi4-mini",
    "qwen2.5": "hermes",
    "qwen3": "hermes",
    "qwen3-coder": "qwen3-coder",
}
"""Names of templates, with the name of the form that each one's calls have."""


def template(name: str) -> str:
    """A template's text."""
    return (_FOLDER / f"{name}.jinja").read_text(encoding="utf-8")


def rendered(name: str) -> str:
    """What the conversation of ``conversations.py`` looks like in a family, up to the next answer."""
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
