"""Writes docs/reference/llguidance.md: the constructs of llguidance's page of its syntax, and which are read here.

The source are the cases in tests/lark/data, whose texts the tests put to both.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.pages.markdown import NOTE, code, table

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LONGEST = 40
"""Characters of a text that a row shows."""

DATA = Path(__file__).parents[2] / "tests" / "lark" / "data"

_HEADER = f"""# Syntax of llguidance: what is read here

The constructs of [llguidance's page of its syntax][page], in its order. `Lark` reads them unchanged, or refuses them by
name. The texts of each row are written as in Python; `<|call|>` and `<|x|>` in them are special tokens. The tests put
the grammars of all rows, and all their texts, to both `constrain` and llguidance 1.9.

[page]: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md

{NOTE}"""

_DIFFERENCES = """
## Where llguidance 1.9 answers otherwise

The tests hold that about all other grammars of the page, and of the tests of `Lark`, both answer alike.

"""


def cases(name: str) -> list[dict[str, Any]]:
    """Returns the cases of a file."""
    found: list[dict[str, Any]] = tomllib.loads((DATA / name).read_text(encoding="utf-8"))["case"]
    return found


def page() -> str:
    """Returns the text of the page."""
    return "".join([_HEADER, *_sections(), _DIFFERENCES, _differences()])


def _sections() -> Iterator[str]:
    constructs = cases("constructs.toml")
    for section in dict.fromkeys(case["section"] for case in constructs):
        rows = [_row(case) for case in constructs if case["section"] == section]
        yield f"\n## {section}\n\n" + table(("Construct", "Written", "Read here", "Matches", "Does not match"), rows)


def _row(case: dict[str, Any]) -> tuple[str, ...]:
    written = ", ".join(map(code, [case["code"]] if isinstance(case["code"], str) else case["code"]))
    if "refused" in case:
        there = "refused, there, too" if case.get("there_too") else "refused"
        return case["construct"], written, there, "", ""
    return case["construct"], written, "yes", _shown(case["accepted"]), _shown(case["rejected"])


def _shown(texts: list[str]) -> str:
    """Returns the first text that is not empty, cut if it is long."""
    first = next(filter(None, texts))
    return code(repr(first if len(first) <= _LONGEST else f"{first[:_LONGEST]}..."))


def _differences() -> str:
    found = [*cases("constructs.toml"), *cases("accepted.toml")]
    rows = [(case.get("construct") or case["name"], case["difference"]) for case in found if "difference" in case]
    return table(("Grammar", "Reason"), rows)
