"""The README of the kernel and the comments above its sources: what they name is there, and no source is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CORE = ROOT / "constrain" / "engine" / "core"
SOURCES = CORE / "src"
PATH = re.compile(r"(?<![\w./])(?:[\w]+/)*\w+\.(?:py|pyi|cpp|h|md)\b")

if not SOURCES.exists():
    pytest.skip("the sources are not there", allow_module_level=True)


@pytest.fixture(scope="module")
def readme() -> str:
    return (CORE / "README.md").read_text(encoding="utf-8")


def first_column(readme: str, head: str) -> set[str]:
    """What the first cells of a table name."""
    table = readme[readme.index(head) :].partition("\n\n")[0]
    return {name for line in table.splitlines()[2:] for name in re.findall(r"`(.+?)`", line.split("|")[1])}


def test_the_table_of_files_has_every_source(readme: str) -> None:
    named = {name.partition(".")[0] for name in first_column(readme, "| file in `src/`")}
    assert named == {path.stem for path in SOURCES.iterdir()}


def test_every_class_of_the_table_has_a_header_with_its_invariant(readme: str) -> None:
    headers = [path.read_text(encoding="utf-8") for path in SOURCES.glob("*.h")]
    for name in first_column(readme, "| class, in the header"):
        (header,) = (text for text in headers if re.search(rf"^class {name}\b[^;]*$", text, re.MULTILINE))
        assert "Invariant" in header, name


@pytest.mark.parametrize("path", [CORE / "README.md", *sorted(SOURCES.iterdir())], ids=lambda path: str(path.name))
def test_files_that_a_text_names_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    comments = text if path.suffix == ".md" else "\n".join(re.findall(r"//.*", text))
    named = set(PATH.findall(comments)) - {"llama.cpp"}
    missing = [name for name in named if not any((base / name).exists() for base in (SOURCES, CORE, ROOT))]
    assert missing == [], "name files by their path from the root, or sources of the kernel by their name"


def test_identifiers_of_the_readme_are_in_the_sources(readme: str) -> None:
    code = "\n".join(re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in SOURCES.iterdir())
    words = set(re.findall(r"\w+", code))
    words |= {word for path in (ROOT / "constrain").rglob("*.py*") for word in re.findall(r"\w+", path.stem)}
    prose = re.sub(r"```.*?```", "", readme, flags=re.DOTALL)
    named = set(re.findall(r"`(\w+_\w+|[A-Z]\w*[a-z]\w*(?:::\w+)+)`", prose))
    missing = [name for name in named if not set(name.split("::")) <= words]
    assert not [name for name in missing if not (SOURCES / f"{name}.cpp").exists()]
