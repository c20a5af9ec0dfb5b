"""Every recipe is short, and its library has tests of its own, which run what the page shows."""

from __future__ import annotations

import re

from tests.clients.environments import CLIENTS, HERE, NODE, PYTHON
from tests.support import for_each
from tests.support.guide import folder_of, recipes
from tests.support.pages import DOCS, blocks

PAGES = sorted(path.name for path in (DOCS / "recipes").glob("*.md") if path.name != "index.md")


@for_each("page", PAGES)
def test_the_library_of_a_recipe_has_tests(page: str) -> None:
    folder = folder_of(page)
    assert folder in CLIENTS
    assert [path for path in (HERE / folder).iterdir() if path.match("test_*.py") or path.match("*.test.mjs")]


@for_each("page", PAGES)
def test_what_a_recipe_installs_is_what_is_tested(page: str) -> None:
    """Without the versions, which are those of the folder."""
    text = (DOCS / "recipes" / page).read_text(encoding="utf-8")
    folder = HERE / folder_of(page)
    pinned = "".join(path.read_text(encoding="utf-8") for path in (folder / PYTHON, folder / NODE) if path.exists())
    for line in re.findall(r"^    (?:pip|npm) install (.*)$", text, re.MULTILINE):
        assert [name for name in re.findall(r"[@\w][\w@/.-]*(?:\[\w+\])?", line) if name not in pinned] == []


def test_every_recipe_has_a_program_or_a_configuration() -> None:
    shown = {
        folder_of(block.page) for block in blocks() if block.page.startswith("recipes/") and block.language == "yaml"
    }
    assert {folder_of(page) for page in PAGES} == {recipe.client for recipe in recipes()} | shown


def test_the_index_has_every_recipe() -> None:
    index = (DOCS / "recipes" / "index.md").read_text(encoding="utf-8")
    assert set(PAGES) <= set(re.findall(r"\]\(([\w-]+\.md)\)", index))
