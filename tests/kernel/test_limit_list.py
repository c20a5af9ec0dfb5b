"""The list of limits: each constant is named as users see it, and says what it counts and what happens beyond it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "constrain" / "kernel"
CONSTANT = re.compile(
    r"^((?://[^\n]*\n)*)inline constexpr NamedLimit (\w+)\{\"(\w+)\", [\d']+, \"([^\"]+)\"", re.MULTILINE
)


@pytest.fixture(scope="module")
def limits() -> list[tuple[str, str, str, str]]:
    """(comment, constant, name, unit) of each limit."""
    text = (SOURCES / "base" / "limits.h").read_text()
    found = CONSTANT.findall(text)
    assert len(found) == text.count("constexpr NamedLimit ")
    return found


def test_the_name_of_a_constant_is_the_name_users_see(limits: list[tuple[str, str, str, str]]) -> None:
    assert [(constant, name) for _, constant, name, _ in limits if constant != name] == []


def test_every_limit_says_what_it_counts_and_what_happens_beyond_it(limits: list[tuple[str, str, str, str]]) -> None:
    assert [name for comment, _, name, _ in limits if not re.fullmatch(r"// [^\n]+ Beyond: [^\n]+\.\n", comment)] == []


def test_no_other_file_spells_the_name_of_a_limit_in_a_text() -> None:
    text = re.compile(r'"(?:\\.|[^"\\\n])*"')
    others = [
        path for path in sorted(SOURCES.rglob("*.*")) if path.suffix in {".h", ".cpp"} and path.name != "limits.h"
    ]
    assert [
        path.name
        for path in others
        if any(re.search("MAX_[A-Z]+_[A-Z]", each) for each in text.findall(re.sub("//.*", "", path.read_text())))
    ] == []
