"""The grammars that come with the package: ready-made Lark texts for common formats.

Each is a file of its own, ``grammars/NAME.lark`` in the sources. Its comment says what it is and where the format is
defined, and ends in an example.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import GrammarError

if TYPE_CHECKING:
    from constrain.lark.source import Lark

__all__ = ["Description", "describe", "load", "names"]


class Description(NamedTuple):
    """What the comment at the top of a grammar says.

    ``about``: what it is, in one line; ``example``: a text of its language, maybe of several lines.
    """

    about: str
    example: str


def names() -> tuple[str, ...]:
    """The names of all grammars, sorted.

    >>> "sql_select" in names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.lark")))


def load(name: str) -> Lark:
    """The grammar of that name, to be used wherever a schema is; prompts show what it is, and an example.

    Raises ``GrammarError`` if there is none.

    >>> load("semver").start
    'start'
    """
    from constrain.lark.source import Lark

    about, example = describe(name)
    return Lark(_read(name), description=f"{about}\nFor example:\n{example}")


def describe(name: str) -> Description:
    """What the grammar of that name is. Raises ``GrammarError`` if there is none.

    >>> describe("e164_phone").example
    '+14155552671'
    """
    lines = _read(name).splitlines()
    comment = [line.removeprefix("//") for line in lines[: lines.index("")]]
    example = textwrap.dedent("\n".join(comment[comment.index(" Example:") + 1 :]))
    return Description(comment[0].strip(), example)


@cache
def _folder() -> Path:
    """Where the files are: within an installed package, beside the package in a checkout."""
    package = Path(__file__).parent
    installed = package / "_grammars"
    return installed if installed.is_dir() else package.parent / "grammars"


def _read(name: str) -> str:
    known = names()
    if name not in known:
        near = _near(name, known)
        raise GrammarError(
            f"there is no grammar {name!r}; {'near it are' if near else 'there are'} {', '.join(near or known)}"
        )
    return (_folder() / f"{name}.lark").read_text(encoding="utf-8")


def _near(name: str, known: tuple[str, ...]) -> list[str]:
    """Names that have a word of this one, or are spelled nearly like it."""
    from difflib import get_close_matches

    words = {word for word in re.split("[^a-z0-9]+", name.lower()) if word}
    alike = [each for each in known if words & set(each.split("_"))]
    return alike or get_close_matches(name.lower(), known)
