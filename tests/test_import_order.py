"""Imports go down: a module imports what stands before it in ``ORDER``, and no modules import each other in a circle.

All imports count: those at the top, those for types only, and those within functions. What counts is the module that
an import names; that Python also runs the ``__init__`` of its packages does not matter, as these only introduce them.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support import for_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parent.parent

_ORDER = """
    verify errors kernel suggestions arguments notebooks thread_pools remembering work system private_folders cache
    types
    language
    partial
    voting
    regex.classes regex.anchors regex.lookaround regex.unicode regex.parsing regex
    quotes.keyword quotes.texts quotes
    bounds
    tables
    given
    json_schema.documents json_schema.spelling json_schema.numbers json_schema.formats json_schema.shapes
    json_schema.formulas json_schema.values json_schema.keywords json_schema.emission
    json_schema.stages json_schema.compiler
    json_schema.strict json_schema.lint json_schema
    lark
    gbnf
    queries
    composition
    structural
    exporting
    vocabulary
    engine
    grammars
    inspection
    certificates
    llama.prebuilt llama.binding llama.threads llama.decoding
    llama.contexts.stored_states llama.prompt_cache llama.contexts llama.processor llama.costs llama.speculation
    llama.scheduling llama.ggml llama.layouts llama.loading llama.memory
    llama
    chat.prompt.template chat.families chat.tools chat.answers chat.prompt chat.reading chat
    generation
    canary
    mcp
    integrations
    fields
    batch
    server.http server.config server.settings server.requests server.sandbox server.serving server.chat
    server.completions server.embeddings server.responses server.messages server.ollama
    server.llama_server server.playground server.openapi
    server
    ray
    events results tools parts strict options prompts
    __init__ example
    health
    cli
    __main__
"""
ORDER = _ORDER.split()
"""Packages and modules, below ``constrain``, each before all that may import it.

The longest name that fits is a module's place: ``regex.parsing`` comes before the rest of ``regex``. The kernel is at
the bottom. Languages come first, then the engine that compiles them, the model, conversations, and the server.
"""


class Import(NamedTuple):
    """``importer`` and ``imported`` are dotted names below ``constrain``."""

    importer: str
    imported: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.importer} imports {self.imported}"


@cache
def sources() -> dict[str, Path]:
    """The modules of the package by name; a package is its ``__init__``."""
    found = {}
    for path in sorted((ROOT / "constrain").rglob("*.py")):
        parts = path.relative_to(ROOT / "constrain").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


@cache
def imports() -> list[Import]:
    """All imports of the package's own modules."""
    modules = sources()
    return [each for name, path in modules.items() for each in imports_of(name, path, path.read_text("utf-8"), modules)]


def imports_of(importer: str, path: Path, text: str, modules: Iterable[str]) -> Iterator[Import]:
    """The imports in a module's text, each once, where it stands first."""
    seen = {importer}
    for node in statements(ast.parse(text)):
        for named in named_by(node):
            imported = named if named in modules else named.rpartition(".")[0] or "__init__"
            if imported not in seen:
                seen.add(imported)
                yield Import(importer, imported, str(path.relative_to(ROOT)), node.lineno)  # type: ignore[attr-defined]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a module or statement, however deep."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, field, ()):
            yield each
            yield from statements(each)


def named_by(node: ast.AST) -> list[str]:
    """What a statement imports of the package: modules, or names in modules."""
    if isinstance(node, ast.Import):
        names = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports name modules from the top"
        names = [f"{node.module}.{each.name}" for each in node.names]
    else:
        return []
    return [name.removeprefix("constrain.") for name in names if name == "constrain" or name.startswith("constrain.")]


def place(module: str) -> int:
    """Where a module stands in the order."""
    fitting = [name for name in ORDER if module == name or module.startswith(f"{name}.")]
    assert fitting, f"{module} has no place in ORDER"
    return ORDER.index(max(fitting, key=len))


def goes_up(each: Import) -> bool:
    return place(each.imported) > place(each.importer)


def circle_in(found: Iterable[Import]) -> list[str]:
    """Modules each of which imports the next, and the last the first; none if there is no such circle."""
    graph: dict[str, set[str]] = defaultdict(set)
    for each in found:
        graph[each.importer].add(each.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        modules: list[str] = error.args[1]
        return modules[::-1]
    return []


@pytest.mark.slow
def test_no_import_goes_up() -> None:
    found = [str(each) for each in imports() if goes_up(each)]
    assert not found, "these imports go up; see ORDER:\n" + "\n".join(found)


@pytest.mark.slow
def test_no_modules_import_each_other() -> None:
    assert circle_in(imports()) == []


def test_every_package_has_a_place_and_introduces_itself() -> None:
    for name, path in sources().items():
        place(name)
        if path.name == "__init__.py":
            introduction = ast.get_docstring(ast.parse(path.read_text("utf-8")))
            assert introduction, f"{path.relative_to(ROOT)} says nothing of its package"


def test_every_introduction_names_every_file_and_package_of_its_folder() -> None:
    missing = []
    for name, path in sources().items():
        if path.name != "__init__.py" or path.parent == ROOT / "constrain":
            continue
        introduction = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        inside = [each.rpartition(".")[2] for each in sources() if each.rpartition(".")[0] == name]
        named = re.findall(r"``([\w.]+)``", introduction)
        words = {part for each in named for part in (each, each.partition(".")[0])}
        missing += [f"{name}: {each}" for each in inside if each not in words]
    assert not missing, "introductions that do not name a file: " + ", ".join(missing)


@for_each(
    "statement",
    "import constrain.engine.constraint",
    "from constrain.engine.constraint import Constraint",
    "from constrain.engine import constraint as compiling",
    "if TYPE_CHECKING:\n    from constrain.engine.constraint import Constraint",
    "def f():\n    from constrain.engine.constraint import compile",
)
def test_an_import_that_goes_up_is_found(statement: str) -> None:
    modules = ["engine.constraint", "language.grammar"]
    (found,) = imports_of("language.grammar", ROOT / "constrain/language/grammar.py", statement, modules)
    line = len(statement.split("\n"))
    assert str(found) == f"constrain/language/grammar.py:{line}: language.grammar imports engine.constraint"
    assert goes_up(found)


def test_a_circle_is_found() -> None:
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    assert circle_in(Import(importer, imported, "", 0) for importer, imported in pairs) == []
    found = circle_in(Import(importer, imported, "", 0) for importer, imported in [*pairs, ("d", "b")])
    assert set(pairwise(found)) == {("b", "c"), ("c", "d"), ("d", "b")}
