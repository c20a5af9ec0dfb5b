"""Which functions of the kernel call which: on themselves, freely, and on other objects.

There is no compiler here: definitions are found by their braces, calls by their names. A call on an object is one of
all methods of that name in classes that the object may have, as far as declarations tell: those of locals, parameters
and fields, and what functions return. Where they do not tell, it is one of all methods of that name whose class the
file includes. So a few calls are listed that there are not, and overloads are one function. Calls through operators,
function pointers and the types of templates are not seen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_IGNORED = re.compile(
    r"^[ \t]*#(?!include)[^\n]*|//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.MULTILINE | re.DOTALL,
)
_INCLUDE = re.compile(r'#include "(\w+\.h)"')
_TEMPLATE = re.compile(r"\btemplate\s*<[^{};]*?>\s*(?=\n|\w)")
_ACCESS = re.compile(r"\b(?:public|private|protected):")
_CLASS = re.compile(r"\b(?:class|struct)\s+((?:\w+::)*\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.DOTALL)
_FUNCTION = re.compile(r"((?:\w+(?:<[\w, :*&]*>)?::)*(?:~?\w+|operator\s*(?:\(\)|\[\]|[^\s\w(]+)))\s*\(")
_BEFORE_BODY = re.compile(r"(?:\)|\bconst|\bnoexcept|\boverride|\bmutable|->\s*[\w:<>,&* ]+|\})\s*$")
_TYPE = r"((?:std::)?\w+(?:::\w+)*(?:<[^;(){}]*>)?)\s*(?:const)?\s*"
_BEGIN = r"(?:^|[;{}(,:])\s*(?:(?:mutable|const|constexpr|static|inline|explicit|thread_local)\s+)*"
_VARIABLE = re.compile(rf"{_BEGIN}{_TYPE}[&*]*\s*(\w+)\s*(?=[;={{,)\[:]|$)", re.MULTILINE)
_RETURNING = re.compile(rf"{_BEGIN}{_TYPE}[&*]*\s+[&*]*(?:\w+::)*(\w+)\s*\(", re.MULTILINE)
_CALL = re.compile(r"(?:((?:\w+::)+)|(\.|->)\s*)?(~?\w+)\s*(?:<[\w:, ]*>)?\s*\(")
_NO_TYPE = {"return", "else", "case", "delete", "throw", "goto", "using", "typename", "auto", "new"}

Types = dict[str, set[str]]


class _Definition(NamedTuple):
    file: str
    body: str  # with what a constructor initializes


class _Sources:
    """What is declared where."""

    def __init__(self, folder: Path) -> None:
        raw = {path.name: path.read_text() for path in sorted([*folder.glob("*.cpp"), *folder.glob("*.h")])}
        self._included = {name: set(_INCLUDE.findall(text)) for name, text in raw.items()}
        self.functions: dict[str, list[_Definition]] = defaultdict(list)
        self.methods: dict[str, set[str]] = defaultdict(set)  # and free functions, by their last name
        self._home: dict[str, str] = {}  # of each class
        self._fields: dict[str, Types] = defaultdict(dict)  # by class and name
        self._returns: Types = defaultdict(set)
        for name, text in raw.items():
            cleaned = _IGNORED.sub(" ", re.sub(r"^#include[^\n]*", "", text, flags=re.MULTILINE))
            self._declare(name, cleaned, "")
            for kind, function in _RETURNING.findall(cleaned):
                if kind not in _NO_TYPE:
                    self._returns[function].add(kind)
        for function in self.functions:
            self.methods[function.rpartition("::")[2]].add(function)

    def _declare(self, file: str, text: str, owner: str) -> None:
        """Finds the functions and classes of a namespace or class."""
        at = start = 0
        while at < len(text):
            if text[at] in ";}":
                start = at + 1
            elif text[at] == "{":
                end = _closing(text, at)
                head = _ACCESS.sub(" ", _TEMPLATE.sub(" ", text[start:at])).strip()
                if self._declare_block(file, head, text[at + 1 : end], owner):
                    start = end + 1
                at = end
            at += 1

    def _declare_block(self, file: str, head: str, body: str, owner: str) -> bool:
        """Whether what stands in braces behind ``head`` ends there; an initializer goes on."""
        if re.search(r"\bnamespace\b", head) and "(" not in head:
            self._declare(file, body, owner)
            return True
        kind = _CLASS.search(head) if not re.search(r"[(=]|\benum\b", head) else None
        if kind:
            name = f"{owner}::{kind[1]}" if owner else kind[1]
            self._home.setdefault(name.rpartition("::")[2], file)
            for field, kinds in _variables(body).items():
                self._fields[name.rpartition("::")[2]].setdefault(field, set()).update(kinds)
            self._declare(file, body, name)
            return True
        function = _FUNCTION.search(head)
        if not function or "=" in head[: function.start()] or not _BEFORE_BODY.search(head):
            return False
        name = re.sub(r"<[^>]*>|\s", "", function[1])
        parameters_and_body = head[function.end() :] + "{" + body
        self.functions[f"{owner}::{name}" if owner else name].append(_Definition(file, parameters_and_body))
        return True

    def seen_from(self, file: str) -> set[str]:
        """The file with all that it includes."""
        seen: set[str] = set()
        work = [file]
        while work:
            name = work.pop()
            if name not in seen:
                seen.add(name)
                work += self._included.get(name, ())
        return seen

    def called(self, caller: str, definition: _Definition) -> Iterator[str]:
        """What a function calls."""
        owner, body = caller.rpartition("::")[0], definition.body
        seen = self.seen_from(definition.file)
        local = _variables(body)
        for call in _CALL.finditer(body):
            scope, dot, name = call.groups()
            among = self.methods.get(name, set())
            if not among:
                continue
            if scope:
                yield from (each for each in among if f"{each.rpartition('::')[0]}::".endswith(scope))
            elif dot and not body[: call.start(2)].endswith("this"):
                there = {each for each in among if self._home.get(_class_of(each)) in seen}
                kinds = self._kinds_before(body, call.start(2), local, owner)
                names = {name for kind in kinds for name in re.findall(r"\w+", kind)}
                of_kinds = {each for each in there if _class_of(each) in names}
                is_foreign = bool(kinds) and "T" not in kinds and not names & self._home.keys()
                yield from of_kinds if of_kinds or is_foreign else there
            else:
                own = {each for each in among if f"{owner}::".startswith(f"{each.rpartition('::')[0]}::")}
                yield from own or {each for each in among if "::" not in each}
        for name in set(re.findall(r"\w+", body)) & self._home.keys():  # who names a class may construct it
            yield from (each for each in self.methods.get(name, ()) if _class_of(each) == name)

    def _kinds_before(self, body: str, at: int, local: Mapping[str, set[str]], owner: str) -> set[str]:
        """The types that the expression before a dot may have; empty if nothing is known."""
        before = body[:at].rstrip()
        found: set[str] = set()
        if before.endswith((")", "]")):
            inner = re.search(r"(\w+)\s*$", before[: _opening(before)])
            if not inner:
                return set()
            if before.endswith(")"):
                return self._returns.get(inner[1]) or ({inner[1]} & self._home.keys())
            name = inner[1]
        else:
            last = re.search(r"(\w+)$", before)
            if not last:
                return set()
            name = last[1]
        if name in local:
            return local[name]
        for kind in reversed(owner.split("::")):
            if name in self._fields.get(kind, {}):
                return self._fields[kind][name]
        for fields in self._fields.values():
            found |= fields.get(name, set())
        return found


def _variables(text: str) -> Types:
    found: Types = defaultdict(set)
    for kind, name in _VARIABLE.findall(text):
        if kind not in _NO_TYPE:
            found[name].add(kind)
    return found


def _class_of(function: str) -> str:
    return function.rpartition("::")[0].rpartition("::")[2]


def _closing(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    raise AssertionError("a brace is not closed")


def _opening(text: str) -> int:
    """Where the bracket opens that the text ends with."""
    close = text[-1]
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == close) - (text[place] == "(["[close == "]"])
        if depth == 0:
            return place
    return 0


def kernel_calls(folder: Path) -> dict[str, set[str]]:
    """The functions of the kernel, each with what it calls; overloads are one function."""
    sources = _Sources(folder)
    return {
        name: {called for definition in definitions for called in sources.called(name, definition)}
        for name, definitions in sources.functions.items()
    }
