"""Writes terminals for names that are none of some reserved words, as they stand in ``grammars/``.

Patterns have no lookahead and no complement, so such a terminal spells out, letter by letter, where a name goes another
way than every reserved word. Run as a program, this prints the terminals.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from itertools import groupby
from string import ascii_letters, digits
from typing import NamedTuple


class Names(NamedTuple):
    """Which names a terminal of a grammar reads: letters, digits and ``_``, no digit first, but for ``reserved``.

    ``folds``: the reserved words are lower case, and any other spelling of them is reserved, too.
    """

    grammar: str
    terminal: str
    reserved: tuple[str, ...]
    folds: bool = False


_SQL = """
    all alter and as asc between by case cast check constraint create cross default delete desc distinct drop else
    end except exists false foreign from full group having in index inner insert intersect into is join left like
    limit natural not null nulls offset on or order outer over partition primary references right select set table
    then to transaction true union unique update using values when where with
"""

TABLE = (
    Names("sql_select", "NAME", tuple(_SQL.split()), folds=True),
    Names("python_expression", "NAME", tuple(keyword.kwlist)),
    Names("dot", "NAME", ("digraph", "edge", "graph", "node", "strict", "subgraph"), folds=True),
    Names("graphql_query", "FRAGMENT_NAME", ("on",)),
)

_FIRST = {*ascii_letters, "_"}
_LATER = {*ascii_letters, *digits, "_"}


def definition(names: Names) -> str:
    """The terminal's definition: one alternative for each letter that a reserved word begins with."""
    branches = _branches(names.reserved)
    alternatives = [_class(_FIRST - _spelled(branches, names)) + _class(_LATER) + "*"]
    alternatives += [_letter(letter, names) + _rest(words, names) for letter, words in branches.items()]
    return f"{names.terminal}: " + "\n    | ".join(f"/{alternative}/" for alternative in alternatives) + "\n"


def _rest(words: list[str], names: Names) -> str:
    """What may follow, so that the whole is none of the words."""
    branches = _branches(words)
    if not branches:
        return _class(_LATER) + "+"
    ways = [_class(_LATER - _spelled(branches, names)) + _class(_LATER) + "*"]
    ways += [_letter(letter, names) + _rest(rest, names) for letter, rest in branches.items()]
    return f"({'|'.join(ways)})" + ("" if "" in words else "?")


def _branches(words: Iterable[str]) -> dict[str, list[str]]:
    """By first letter, what is left of the words."""
    longer = sorted(word for word in words if word)
    return {letter: [word[1:] for word in group] for letter, group in groupby(longer, key=lambda word: word[0])}


def _spelled(letters: Iterable[str], names: Names) -> set[str]:
    return {spelling for letter in letters for spelling in ((letter, letter.upper()) if names.folds else letter)}


def _letter(letter: str, names: Names) -> str:
    return f"[{letter.upper()}{letter}]" if names.folds else letter


def _class(characters: set[str]) -> str:
    """A character class, with ranges."""
    ranges: list[list[str]] = []
    for character in sorted(characters, key=lambda each: (each.isdigit() or each == "_", each)):
        if ranges and ord(character) == ord(ranges[-1][-1]) + 1:
            ranges[-1] = [ranges[-1][0], character]
        else:
            ranges.append([character])
    return f"[{''.join('-'.join(ends) if ord(ends[-1]) > ord(ends[0]) + 1 else ''.join(ends) for ends in ranges)}]"


if __name__ == "__main__":
    for each in TABLE:
        print(f"// {each.grammar}.lark\n{definition(each)}")
