"""Structure: the texts and special tokens around the calls of an answer, and the tree of what may stand next."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from constrain.language.special import mark, special_token

if TYPE_CHECKING:
    from constrain.language.tree import Literal


class SpecialName(NamedTuple):
    """A special token, by the text of its name."""

    name: str

    @property
    def written(self) -> bytes:
        """As grammars name it, and as answers hold it: between two bytes that no text has."""
        return mark(self.name)

    @property
    def literal(self) -> Literal:
        """What reads it."""
        return special_token(self.name)


class Variable(Enum):
    """What stands in a call at the place of a name with ``$``."""

    NAME = "$name"
    ARGUMENTS = "$arguments"
    ID = "$id"
    INPUT = "$input"
    JSON_INPUT = "$json_input"


_VARIABLES = re.compile(r"(\$(?:name|arguments|id|input|json_input)\b)")

_JSON_LEXEME = re.compile(rb'"[^"]*"?|[{\[,:]\s*|[^"{\[,:]+')

Atom = int | bytes | SpecialName | Variable
"""One byte of a text, a lexeme that stays whole, one special token, or an id."""

Path = tuple[Atom, ...]

END, CONTENT, PREAMBLE, REASONING = -1, -2, -3, -4
"""What is reached: the end of the answer, or the inside of a section; the numbers of tools are reached where the value
of a call follows."""


@dataclass(slots=True)
class Node:
    """A place in the tree: the steps that lead on, none of which begins with another, and what is reached here."""

    onward: list[tuple[bytes | SpecialName | Variable, Node]] = field(default_factory=list)
    reached: int | None = None


def structure_parts(text: str, names: frozenset[str]) -> list[str | SpecialName]:
    """Text and special tokens: from the left, the longest name wins."""
    if not text:
        return []
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    if not longest_first:
        return [text]
    pieces = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
    found = [SpecialName(piece) if index % 2 else piece for index, piece in enumerate(pieces)]
    return [piece for piece in found if piece]


def template_parts(template: str) -> list[str | Variable]:
    """The texts of a call, and its variables."""
    pieces = enumerate(_VARIABLES.split(template))
    return [Variable(piece) if index % 2 else piece for index, piece in pieces if piece]


def path_of(parts: list[str | Variable], tool: str, names: frozenset[str]) -> Path:
    """What is read for these parts of a call of ``tool``, whose name holds no special tokens."""
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
    """The same in the lexemes of JSON, so that it can be read side by side with JSON values."""
    found: list[Atom] = []
    while path:
        text = leading_text(path)
        found.extend(_JSON_LEXEME.findall(text) if text else path[:1])
        path = path[len(text) or 1 :]
    return tuple(found)


def tree(paths: list[tuple[Path, int]]) -> Node:
    """The tree of some paths and what they reach. Raises ValueError if two reach different places by one path."""
    node = Node()
    groups: dict[Atom, list[tuple[Path, int]]] = {}
    for path, reached in paths:
        if path:
            groups.setdefault(path[0], []).append((path, reached))
        elif node.reached is None or node.reached == reached:
            node.reached = reached
        else:
            raise ValueError("two different calls are written alike")
    for atom, group in groups.items():
        length = 1
        if isinstance(atom, int):
            first = group[0][0]
            shortest = min(len(path) for path, _ in group)
            while length < shortest and all(path[length] == first[length] for path, _ in group):
                if not isinstance(first[length], int):
                    break
                length += 1
        step = leading_text(group[0][0][:length]) if isinstance(atom, int) else atom
        node.onward.append((step, tree([(path[length:], reached) for path, reached in group])))
    return node


def leading_text(path: Path) -> bytes:
    """The bytes that a path begins with, up to a special token or an id."""
    found = bytearray()
    for atom in path:
        if not isinstance(atom, int):
            break
        found.append(atom)
    return bytes(found)
