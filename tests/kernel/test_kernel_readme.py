"""The kernel's README and the comments of its sources name only what exists; the README names every source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import for_each

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "constrain" / "kernel"
SOURCES = sorted(path for path in KERNEL.rglob("*") if path.suffix in {".h", ".cpp"})
PATH = re.compile(r"(?<![\w./])(?:[\w]+/)*\w+\.(?:py|pyi|cpp|h|md)\b")

if not SOURCES:
    pytest.skip("the sources are not there", allow_module_level=True)


@pytest.fixture(scope="module")
def readme() -> str:
    return (KERNEL / "README.md").read_text(encoding="utf-8")


def rows(readme: str, head: str) -> list[list[list[str]]]:
    """What the cells of a table name, by row."""
    table = readme[readme.index(head) :].partition("\n\n")[0]
    return [[re.findall(r"`(.+?)`", cell) for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def includes(path: Path) -> list[str]:
    """The folders of the headers that a source includes."""
    found: list[str] = re.findall(r'^#include "(\w+)/\w+\.h"$', path.read_text(encoding="utf-8"), re.MULTILINE)
    return found


def test_the_table_of_folders_has_every_source(readme: str) -> None:
    folder, named = "", set()
    for folders, _, files in rows(readme, "| folder, from the ground up"):
        folder = folders[0] if folders else folder
        named |= {f"{folder}/{name.partition('.')[0]}" for name in files}
    assert named == {path.relative_to(KERNEL).with_suffix("").as_posix() for path in SOURCES}


def test_includes_go_down(readme: str) -> None:
    order = [name for folders, *_ in rows(readme, "| folder, from the ground up") for name in folders]
    up = [
        f"{path.relative_to(KERNEL)} includes {folder}"
        for path in SOURCES
        for folder in includes(path)
        if order.index(folder) > order.index(path.parent.name)
    ]
    assert up == []
    assert sum(map(len, map(includes, SOURCES))) == sum(path.read_text().count('#include "') for path in SOURCES)


def test_every_class_of_the_table_has_a_header_with_its_invariant(readme: str) -> None:
    headers = [path.read_text(encoding="utf-8") for path in SOURCES if path.suffix == ".h"]
    for name in [name for names, _ in rows(readme, "| class, in the header") for name in names]:
        (header,) = (text for text in headers if re.search(rf"^class {name}\b[^;]*$", text, re.MULTILINE))
        assert "Invariant" in header, name


@for_each("path", [KERNEL / "README.md", *SOURCES])
def test_files_that_a_text_names_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    comments = text if path.suffix == ".md" else "\n".join(re.findall(r"//.*", text))
    named = set(PATH.findall(comments)) - {"llama.cpp"}
    names = {path.name for path in SOURCES}
    missing = [name for name in named - names if not any((base / name).exists() for base in (KERNEL, ROOT))]
    assert missing == [], "name files by their path from the root, or sources of the kernel by their name"


def test_identifiers_of_the_readme_are_in_the_sources(readme: str) -> None:
    code = "\n".join(re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in SOURCES)
    words = set(re.findall(r"\w+", code))
    words |= {word for path in (ROOT / "constrain").rglob("*.py*") for word in re.findall(r"\w+", path.stem)}
    prose = re.sub(r"```.*?```", "", readme, flags=re.DOTALL)
    named = set(re.findall(r"`(\w+_\w+|[A-Z]\w*[a-z]\w*(?:::\w+)+)`", prose))
    missing = [name for name in named if not set(name.split("::")) <= words]
    assert not [name for name in missing if name not in {path.stem for path in SOURCES}]
