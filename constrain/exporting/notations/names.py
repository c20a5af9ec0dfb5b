"""Names of exported rules: after properties, definitions, and the names of the source; each once."""

from __future__ import annotations

import re

_PUNCTUATION = {
    "{": "open-object", "}": "close-object", "[": "open-array", "]": "close-array", ",": "comma", ":": "colon",
}  # fmt: skip

_HOLDERS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""Keywords whose members have names."""

_LONGEST = 40


def hint_of_rule(name: str) -> str:
    """Returns a readable name for a rule: the last name in a JSON Pointer and what follows it, or the rule's own.

    >>> hint_of_rule("/properties/tags/items")
    'tags items'
    """
    if not name.startswith("/"):
        return _without_place(name).removeprefix("rule ")
    steps = [step.replace("~1", "/").replace("~0", "~") for step in name.split("/")[1:]]
    last = max((at for at, step in enumerate(steps[:-1]) if step in _HOLDERS), default=-1)
    return " ".join(steps[last + 1 :])


def hint_of_terminal(name: str) -> str:
    """Returns a readable name for a terminal.

    >>> hint_of_terminal("key firstName")
    'firstName key'
    """
    if name.startswith("key "):
        return f"{name.removeprefix('key ')} key"
    return _PUNCTUATION.get(name, _without_place(name))


def _without_place(name: str) -> str:
    return re.sub(r"\(line \d+, column \d+\)$", "", name)


class Names:
    """Gives out names: words of letters and digits, with a separator between them.

    ``taken``: names that are not given out; ``letter_first``: whether a name must begin with a letter.
    """

    def __init__(self, separator: str, taken: tuple[str, ...] = (), *, letter_first: bool = False) -> None:
        self._separator = separator
        self._taken = set(taken)
        self._next: dict[str, int] = {}
        self._letter_first = letter_first

    def give(self, hint: str, otherwise: str) -> str:
        """Returns a new name like the hint; ``otherwise``: the hint in place of one without letters and digits."""
        spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", hint)
        words = re.findall("[a-z0-9]+", spaced.lower()) or [otherwise]
        if self._letter_first and not words[0][0].isalpha():
            words = [otherwise, *words]
        name = self._separator.join(words)[:_LONGEST].rstrip(self._separator)
        if name in self._taken:
            number = self._next.get(name, 2)
            while f"{name}{self._separator}{number}" in self._taken:
                number += 1
            self._next[name] = number + 1
            name = f"{name}{self._separator}{number}"
        self._taken.add(name)
        return name
