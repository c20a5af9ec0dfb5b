"""Which functions call themselves, alone or by way of others; and the calls of the Python package.

Calls are found by name, without types, so a few functions may be listed that only share a name with what they call.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_BUILTIN = {name for kind in (dict, list, str, bytes, set, int, object) for name in dir(kind)}


def recursive_groups(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Functions that come back to themselves, with those on the way (strongly connected components)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        path = [(start, iter(graph[start]))] if start not in seen else []
        seen.add(start)
        while path:
            name, onward = path[-1]
            after = next((each for each in onward if each in graph and each not in seen), None)
            if after is None:
                order.append(name)
                path.pop()
            else:
                seen.add(after)
                path.append((after, iter(graph[after])))
    callers: dict[str, set[str]] = defaultdict(set)
    for name, called in graph.items():
        for each in called:
            callers[each].add(name)
    groups: set[frozenset[str]] = set()
    placed: set[str] = set()
    for start in reversed(order):
        if start in placed:
            continue
        group, work = set(), [start]
        while work:
            name = work.pop()
            if name not in placed:
                placed.add(name)
                group.add(name)
                work += callers[name] & graph.keys()
        if len(group) > 1 or start in graph[start]:
            groups.add(frozenset(group))
    return groups


class _Module:
    """The functions of one module, and what its names mean."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.functions: dict[str, tuple[ast.AST, str, tuple[str, ...]]] = {}  # with class and enclosing functions
        self.imports: dict[str, str] = {}
        self.bases: dict[str, list[str]] = {}  # of classes
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("constrain"):
                self.imports |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        self._collect(tree, name, "", ())

    def _collect(self, node: ast.AST, prefix: str, owner: str, around: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{prefix}.{child.name}"
                while name in self.functions:  # setters and overloads
                    name += "'"
                self.functions[name] = child, owner, around
                self._collect(child, name, owner, (*around, name))
            elif isinstance(child, ast.ClassDef):
                named = [base.id for base in child.bases if isinstance(base, ast.Name)]
                self.bases[f"{prefix}.{child.name}"] = [self.imports.get(base, f"{self.name}.{base}") for base in named]
                self._collect(child, f"{prefix}.{child.name}", f"{prefix}.{child.name}", around)
            else:
                self._collect(child, prefix, owner, around)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    work = list(ast.iter_child_nodes(function))
    while work:
        node = work.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            work += ast.iter_child_nodes(node)


def package_calls(root: Path) -> dict[str, set[str]]:
    """Functions of the package with those that they name: freely, on ``self``, or on an object of a known module."""
    modules: dict[str, _Module] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = _Module(name, ast.parse(path.read_text()))
    everything = {name: module for module in modules.values() for name in module.functions}
    overrides = _overrides(modules.values(), everything)
    graph: dict[str, set[str]] = {}
    for module in modules.values():
        near = {module.name, *(target.rpartition(".")[0] for target in module.imports.values())}
        methods: dict[str, set[str]] = defaultdict(set)
        for name, (_, owner, around) in (
            (n, f) for m in near & modules.keys() for n, f in modules[m].functions.items()
        ):
            if owner and not around:
                methods[name.rpartition(".")[2]].add(name)
        for name, (node, owner, around) in module.functions.items():
            called: set[str] = set()
            for each in _own_nodes(node):
                if isinstance(each, ast.Name):
                    called |= _named(each.id, module, (*around, name), everything)
                elif isinstance(each, ast.Attribute):
                    called |= _attribute(each, owner, methods)
            graph[name] = called.union(*(overrides[each] for each in called if each in overrides))
    return graph


def _overrides(modules: Iterable[_Module], everything: Mapping[str, _Module]) -> dict[str, set[str]]:
    """Methods with those of the same name in classes that are derived from theirs, protocols among them."""
    bases = {derived: above for module in modules for derived, above in module.bases.items()}
    found: dict[str, set[str]] = defaultdict(set)
    for name in everything:
        owner, _, method = name.rpartition(".")
        work = list(bases.get(owner, ()))
        while work:
            base = work.pop()
            work += bases.get(base, ())
            if f"{base}.{method}" in everything:
                found[f"{base}.{method}"].add(name)
    return found


def _named(name: str, module: _Module, around: Iterable[str], everything: Mapping[str, _Module]) -> set[str]:
    found = [f"{prefix}.{name}" for prefix in (*reversed(tuple(around)), module.name)]
    found.append(module.imports.get(name, ""))
    return {each for each in found if each in everything}


def _attribute(node: ast.Attribute, owner: str, methods: Mapping[str, set[str]]) -> set[str]:
    candidates = methods.get(node.attr, set())
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        own = {name for name in candidates if name.rpartition(".")[0] == owner}
        return own or candidates
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "super":
        return set()
    return set() if node.attr in _BUILTIN else candidates
