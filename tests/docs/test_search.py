"""The search of the built documentation finds every public name, every option and every flag, on the page it is on.

The search itself is JavaScript; ``Search`` does the same with the index that it reads. Every word of the question,
reduced to its stem, must be among the words or in a title of a page, or all of them in a documented name.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.cli.program import app
from tests.support.pages import DOCS
from tools.pages import command_line

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


class Search:
    """The index of the built pages, and the way in which its JavaScript reads a question."""

    def __init__(self, index: dict[str, Any]) -> None:
        from sphinx.search.en import SearchEnglish

        self.language = SearchEnglish({})
        self.pages: list[str] = index["docnames"]
        self.words: list[dict[str, int | list[int]]] = [index["terms"], index["titleterms"]]
        self.objects: dict[str, set[int]] = {}
        for prefix, members in index["objects"].items():
            for page, _, _, _, name in members:
                self.objects.setdefault(f"{prefix}.{name}".lower(), set()).add(page)

    def pages_of(self, question: str) -> set[str]:
        """The pages that the search shows for a question."""
        words = [word for word in re.split(r"\W+", question.lower()) if word]
        stems = [self.language.stem(word) for word in words if word not in self.language.stopwords]
        found = set.intersection(*map(self._with_word, stems)) if stems else set()
        for name, pages in self.objects.items():
            if all(word in name for word in words):
                found = found | pages
        return {self.pages[page] for page in found}

    def _with_word(self, stem: str) -> set[int]:
        listed = [words[stem] for words in self.words if stem in words]
        return {page for pages in listed for page in (pages if isinstance(pages, list) else [pages])}


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Search:
    for extension in ("sphinx", "myst_parser", "furo", "sphinx_copybutton"):
        pytest.importorskip(extension, reason="the extra docs builds the documentation")
    built: Path = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=DOCS.parent)
    assert done.returncode == 0, done.stderr
    text = (built / "searchindex.js").read_text(encoding="utf-8")
    return Search(json.loads(text[text.index("{") : text.rindex("}") + 1]))


def test_every_public_name_is_found_on_the_page_of_python(search: Search) -> None:
    names = [f"constrain.{name}" for name in constrain.__all__ if not name.startswith("__")]
    assert [name for name in names if "reference/python" not in search.pages_of(name)] == []


def test_every_error_is_found_on_its_page(search: Search) -> None:
    errors = [name for name in constrain.__all__ if name.endswith("Error")]
    assert [name for name in errors if "reference/errors" not in search.pages_of(name)] == []


def test_every_option_is_found_on_the_page_of_options(search: Search) -> None:
    names = {*constrain.ChatOptions.__annotations__, *constrain.CompileOptions.__annotations__}
    assert {"max_string_tokens", "property_order", "tool_choice"} <= names
    assert [name for name in sorted(names) if "reference/options" not in search.pages_of(name)] == []


def test_every_flag_is_found_on_the_page_of_the_command_line(search: Search) -> None:
    listed = {flags for name, _ in command_line._commands() for flags in command_line.flags_of(name).values()}
    flags = {flag for each in listed for flag in re.split("/|, ", each)}
    assert {"--gpu-layers", "--max-string-tokens", "--registry"} <= flags
    words = {flag for flag in flags if flag.strip("-") not in search.language.stopwords}
    assert flags - words == {"--from", "--to"}, "words that no search of documentation looks for"
    assert [flag for flag in sorted(words) if "reference/command-line" not in search.pages_of(flag)] == []


def test_every_command_is_found_on_the_page_of_the_command_line(search: Search) -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [name for name in names if "reference/command-line" not in search.pages_of(f"constrain {name}")] == []


def test_a_word_that_no_page_has_is_not_found(search: Search) -> None:
    assert search.pages_of("max_strings_of_tokens_that_are_not") == set()
