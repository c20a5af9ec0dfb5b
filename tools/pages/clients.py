"""The page about the requests of known programs, from the table that the tests read."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.pages.markdown import NOTE, code, table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE = Path(__file__).parents[2] / "tests" / "server" / "data" / "clients.toml"

_HEADER = f"""# What known programs send

Requests in the form in which programs send them, as the tests read them. *Accepted* means that the answer has what the
request asks for; *warning*, that something is left out which no answer needs, and that `constrain.warnings` says so;
*refused*, that a 400 names the field. Fields that say nothing about the answer are accepted whatever their
value: see [Fields of other servers](../guides/server-fields.md).

{NOTE}
"""


def page() -> str:
    """Returns the text of the page."""
    rows = []
    for case in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["request"]:
        told, refused = case.get("told", []), case.get("refused")
        outcome = f"refused: {code(refused)}" if refused else "warning: " + ", ".join(told) if told else "accepted"
        rows.append((case["client"], code(case["path"]), case["sends"], outcome))
    return _HEADER + table(("program", "path", "sends", "result"), rows)
