"""Writes the generated pages and plots of the documentation.

    python -m tools.pages            writes all of them
    python -m tools.pages --check    names those that are not current; exit status 1 if there are any

Both need matplotlib for plots whose reports have changed, and for no others.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tools.pages import clients, command_line, errors, files, http, keywords, limits, llguidance, options, policies
from tools.plots import PLOTS, draw, is_current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOCS = Path(__file__).parents[2] / "docs"

PAGES: dict[str, Callable[[], str]] = {
    "reference/clients.md": clients.page,
    "reference/command-line.md": command_line.page,
    "reference/errors.md": errors.page,
    "reference/files.md": files.page,
    "reference/http.md": http.page,
    "reference/keywords.md": keywords.page,
    "reference/limits.md": limits.page,
    "reference/llguidance.md": llguidance.page,
    "reference/options.md": options.page,
    "reference/policies.md": policies.page,
}
"""The generated pages, each with the function that returns its text."""


def outdated() -> Iterator[str]:
    """Yields the files below docs/ that are not what their programs write."""
    for name, page in PAGES.items():
        if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != page():
            yield name
    yield from (f"plots/{name}.svg" for name in PLOTS if not is_current(name, DOCS / "plots"))


def write(name: str) -> None:
    """Writes one file below docs/."""
    if name in PAGES:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
    else:
        draw(Path(name).stem, DOCS / "plots")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only name the files that are not current")
    arguments = parser.parse_args()
    old = list(outdated())
    if arguments.check:
        raise SystemExit(f"not current, run python -m tools.pages: {', '.join(old)}" if old else 0)
    for name in old:
        write(name)
    print(f"written: {', '.join(old) or 'nothing, all files are current'}")


if __name__ == "__main__":
    main()
