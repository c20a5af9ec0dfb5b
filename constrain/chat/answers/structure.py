"""Structure: the texts and special tokens around the calls of an answer, and the tree of possible continuations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from constrain.language.special import mark, special_token

if TYPE_CHECKING:
    from constrain.language.tree import Literal


class SpecialName(NamedTuple):
    """A special token, identified by the text of its name."""

    name: str

    @property
    def written(self) -> bytes:
        """Returns the name as grammars and answers spell it: between two bytes that occur in no text."""
        return mark(self.name)

    @property
    def literal(self) -> Literal:
        """Returns the expression that reads the token."""
        return special_token(self.name)


class Variable(Enum):
    """A variable of a call template: a name with ``$``."""

    NAME = "$name"
    ARGUMENTS = "$arguments"
    ID = "$id"
    INPUT = "$input"
    JSON_INPUT = "$json_input"


_VARIABLES = re.compile(r"(\$(?:name|arguments|id|input|json_input)\b)")

_JSON_LEXEME = re.compile(rb'"[^"]*"?|[{\[,:]\s*|[^"{\[,:]+')

Atom = int | bytes | SpecialName | Variable
"""One step of structure: a byte of a text, a lexeme that stays whole, a special token, or an id."""

Path = tuple[Atom, ...]

END, CONTENT, PREAMBLE, REASONING = -1, -2, -3, -4
"""Ends of a path: the end of the answer, or the inside of a section. A path that ends at a call's value has the number
of its tool instead.
"""


@dataclass(slots=True)
class Node:
    """A node of the tree: steps to other nodes, none of which begins with another, and the end reached here, if any."""

    onward: list[tuple[bytes | SpecialName | Variable, Node]] = field(default_factory=list)
    reached: int | None = None


def structure_parts(text: str, names: frozenset[str]) -> list[str | SpecialName]:
    """Splits text at special tokens: from the left, the longest name wins."""
    if not text:
        return []
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    if not longest_first:
        return [text]
    pieces = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
    found = [SpecialName(piece) if index % 2 else piece for index, piece in enumerate(pieces)]
    return [piece for piece in found if piece]


def template_parts(template: str) -> list[str | Variable]:
    """Splits a call template into texts and variables."""
    pieces = enumerate(_VARIABLES.split(template))
    return [Variable(piece) if index % 2 else piece for index, piece in pieces if piece]


def path_of(parts: list[str | Variable], tool: str, names: frozenset[str]) -> Path:
    """Returns the path that reads these parts of a call of ``tool``; the tool's name contains no special tokens."""
    atoms: list[Atom] = []
    for part in parts:
        if part is Variable.NAME:
            atoms.extend(tool.encode())
        elif isinstance(part, Variable):
            atoms.append(part)
        else:
            for piece in structure_parts(part, names):
                atoms.extend(piece.encode() if isinstance(piece, str) else (piece,))
    return tuple(atoms)


def in_lexemes(path: Path) -> Path:
    """Returns the path with JSON's lexemes as steps, so that it can be read in parallel with JSON values."""
    found: list[Atom] = []
    while path:
        text = leading_text(path)
        found.extend(_JSON_LEXEME.findall(text) if text else path[:1])
        path = path[len(text) or 1 :]
    return tuple(found)


def tree(paths: list[tuple[Path, int]]) -> Node:
    """Merges paths into a tree. Raises ValueError if one path has two different ends."""
    node = Node()
    groups: dict[Atom, list[tuple[Path, int]]] = {}
    for path, reached in paths:
        if path:
            groups.setdefault(path[0], []).append((path, reached))
        elif node.reached is None or node.reached == reached:
            node.reached = reached
        else:
            raise ValueError("two different calls have the same spelling")
    for atom, group in groups.items():
        step: bytes | SpecialName | Variable
        if not isinstance(atom, int):
            step, length = atom, 1
        else:
            columns = zip(*(path for path, _ in group), strict=False)
            common = group[0][0] if len(group) == 1 else (each[0] for each in takewhile(_is_one, columns))
            step = leading_text(tuple(common))
            length = len(step)
        node.onward.append((step, tree([(path[length:], reached) for path, reached in group])))
    return node


def _is_one(column: tuple[Atom, ...]) -> bool:
    return column.count(column[0]) == len(column)


def leading_text(path: Path) -> bytes:
    """Returns the bytes that a path begins with, up to a special token or an id."""
    try:
        return bytes(path)  # type: ignore[arg-type]
    except TypeError:  # it has more than bytes
        count = sum(1 for _ in takewhile(lambda atom: isinstance(atom, int), path))
        return bytes(path[:count])  # type: ignore[arg-type]
