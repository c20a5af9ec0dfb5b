"""The guide of the endpoint, taken apart: its pages, its examples, of which client each is, and what they ask."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
CLIENTS, RUNNING, API, SECURITY = (
    (DOCS / path).read_text(encoding="utf-8")
    for path in ("guides/server-clients.md", "guides/server.md", "guides/server-openai.md", "explanation/security.md")
)
"""Its pages: the clients, how the server is run, what it does with requests, and who may ask."""

SERVER = "http://127.0.0.1:8080/v1"
MODEL = "small"
"""Where ``constrain serve --alias small`` is, and what it serves there: what the examples ask."""


@dataclass(frozen=True)
class Example:
    """``client``: the heading it stands under; ``language``: that of its ``code``."""

    client: str
    language: str
    code: str

    def at(self, server: str) -> str:
        """Its code for a server at another place."""
        assert SERVER in self.code
        return self.code.replace(SERVER, server)


def examples() -> list[Example]:
    """All that are about clients, in their order; the first page has one for the ``openai`` package."""
    sections = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", CLIENTS, re.DOTALL | re.MULTILINE)
    return [
        Example(client, language, code)
        for client, section in [("openai, in Python", RUNNING.partition("\n## ")[0]), *sections]
        for language, code in re.findall(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    ]
