"""The guide of the endpoint and the recipes, taken apart: pages, examples, of which client each is, what they ask."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.support.pages import DOCS, blocks

CLIENTS, RUNNING, API, SECURITY, OLLAMA = (
    (DOCS / path).read_text(encoding="utf-8")
    for path in (
        *("guides/server-clients.md", "guides/server.md", "guides/server-openai.md", "explanation/security.md"),
        "guides/server-ollama.md",
    )
)
"""Its pages: the clients, how the server is run, what it does with requests, who may ask, and Ollama's
clients.
"""

SERVER = "http://127.0.0.1:8080/v1"
ROOT = "http://127.0.0.1:8080"
MODEL = "small"
"""Where ``constrain serve --alias small`` is, with and without the path of OpenAI's API, and what it serves there: what
the examples ask.
"""


@dataclass(frozen=True)
class Example:
    """``client``: the heading it stands under; ``language``: that of its ``code``."""

    client: str
    language: str
    code: str

    def at(self, server: str) -> str:
        """Its code for a server at another place."""
        assert ROOT in self.code
        return self.code.replace(SERVER, server).replace(ROOT, server.removesuffix("/v1"))


def examples() -> list[Example]:
    """All that are about OpenAI's clients, in their order; the first page has one for the ``openai`` package."""
    return [*_blocks("openai, in Python", RUNNING.partition("\n## ")[0]), *_of_sections(CLIENTS)]


def ollama_examples() -> list[Example]:
    """All that are about Ollama's clients, in their order."""
    return [example for example in _of_sections(OLLAMA) if example.client.startswith("ollama")]


def recipes() -> list[Example]:
    """All programs of recipes. ``client`` is the folder with the tests of their library: the name of the page."""
    return [
        Example(folder_of(block.page), block.language, block.code)
        for block in blocks()
        if block.page.startswith("recipes/") and block.language in ("python", "javascript")
    ]


def folder_of(page: str) -> str:
    """The folder of tests/clients with the tests of the library that a recipe is about."""
    return page.removeprefix("recipes/").removesuffix(".md").replace("-", "_")


def _of_sections(page: str) -> list[Example]:
    sections = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    return [example for client, section in sections for example in _blocks(client, section)]


def _blocks(client: str, section: str) -> list[Example]:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return [Example(client, language, code) for language, code in blocks]
