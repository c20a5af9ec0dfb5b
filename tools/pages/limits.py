"""Writes docs/reference/limits.md: the limits that an error, a warning or ``limits_met`` may name.

The sources are the list of the kernel (constrain/kernel/base/limits.h) and constants of the Python modules, most of
them ``MAX_...``. What stands right by a constant (the comment above it in C++, the docstring below it in Python) says
what is counted, with the unit, and behind "Beyond:" what happens where more would be needed.
"""

from __future__ import annotations

import ast
import operator
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tools.pages.markdown import NOTE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "constrain"
KERNEL = PACKAGE / "kernel" / "base" / "limits.h"

_CONSTANT = re.compile(r"^// ([^\n]*)\ninline constexpr NamedLimit (\w+)\{\"\w+\", ([\d']+), ", re.MULTILINE)
_NAME = re.compile(r"_?MAX_[A-Z0-9_]+")
_ANY_NAME = re.compile(r"_?[A-Z][A-Z0-9_]+")
_OPERATIONS = {ast.Mult: operator.mul, ast.Sub: operator.sub, ast.Pow: operator.pow, ast.LShift: operator.lshift}

_HEADER = f"""# Limits

The named limits on schemas, grammars, patterns, answers and requests. The message of an error or warning has the name
of the limit that was met, or its value, unless its line below names another error; `Matcher.limits_met` and
`Completion.limits_met` list names, too. Limits are constants and cannot be raised: make the input smaller where the
message says so. Each has a name of its own. The server's `/openapi.json` has the ranges of the fields of requests.

{NOTE}"""

_SECTIONS = (
    ("Schemas", ("json_schema/", "quotes/", "tables/")),
    ("Patterns", "regex/"),
    ("Lark grammars", "lark/"),
    ("Queries of a database", "queries/"),
    ("Compositions", "composition/"),
    ("Exported grammars", "exporting/"),
    ("Structural tags", "structural/"),
    ("Every compilation", ("work.py", "language/")),
    ("The kernel", ("kernel/", "engine/")),
    (
        "Models and answers",
        (
            "llama/",
            "vocabulary/",
            "certificates/",
            "generation/",
            "types/",
            "chat/",
            "partial/",
            "voting/",
            "confidence/",
        ),
    ),
    ("Requests to the server, and lines of a batch", ("server/", "fields/", "batch/")),
)


class Limit(NamedTuple):
    """A row of the page. ``counted``: quantity and unit; ``beyond``: what happens; ``path``: below ``constrain/``."""

    name: str
    value: float
    counted: str
    beyond: str
    path: str


def kernel_limits() -> Iterator[Limit]:
    """The list of the kernel."""
    text = KERNEL.read_text(encoding="utf-8")
    path = KERNEL.relative_to(PACKAGE).as_posix()
    for comment, name, value in _CONSTANT.findall(text):
        counted, beyond = _described(comment)
        yield Limit(name, int(value.replace("'", "")), counted, beyond, path)


def package_limits() -> Iterator[Limit]:
    """The constants of Python modules whose docstrings say what happens beyond them."""
    for path, tree in modules():
        for statement, following in zip(tree.body, tree.body[1:], strict=False):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            name, docstring = statement.targets[0].id, _text(following)
            if _ANY_NAME.fullmatch(name) and "Beyond:" in docstring:
                counted, beyond = _described(docstring)
                yield Limit(name, _value(statement.value), counted, beyond, path)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """All modules of the package, with their paths below it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def named_in_texts(tree: ast.Module) -> Iterator[str]:
    """The names of limits that messages have, by name or by value."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from _NAME.findall(node.value)
        elif isinstance(node, ast.FormattedValue):
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and _NAME.fullmatch(each.id))


def page() -> str:
    """Returns the text of the page."""
    limits = [*package_limits(), *kernel_limits()]
    parts = [_HEADER]
    placed = 0
    for title, folders in _SECTIONS:
        rows = sorted(limit for limit in limits if limit.path.startswith(folders))
        placed += len(rows)
        parts.append(f"\n## {title}\n\n| Limit | Value | Of what | Beyond it | Set in |\n|:--|--:|:--|:--|:--|\n")
        for name, value, counted, beyond, path in rows:
            parts.append(f"| `{name}` | {value:,} | {counted} | {beyond} | `constrain/{path}` |\n")
    assert placed == len(limits), "a limit is in no section"
    return "".join(parts)


def _described(text: str) -> tuple[str, str]:
    """Quantity and consequence, from the first paragraph of a text."""
    counted, found, beyond = " ".join(text.partition("\n\n")[0].split()).partition(" Beyond: ")
    assert found, text
    return _cell(counted), _cell(beyond)


def _cell(text: str) -> str:
    text = text.strip().removesuffix(".").replace("``", "`").replace("|", "\\|")
    return re.sub(r"(?<!`)\b([A-Z]\w+Error|MAX_\w+)\b(?!`)", r"`\1`", text[:1].upper() + text[1:])


def _text(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp):
        value: float = _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
        return value
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int | float)
    return node.value
