"""Random grammars of tuples: how GBNF and EBNF write them, and a recogniser that knows neither Lark nor lexemes.

The nodes: ``("text", string)``, ``("class", characters, is_negated)``, ``("name", rule)``, ``("seq", parts)``,
``("alt", parts)``, ``("rep", part, least, most)`` and ``("except", part, other)``. Rules are bodies by name; the first
is the start.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

Rules = dict[str, Any]


class Recogniser:
    """Earley's algorithm (1970), on the characters of a text."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.start = next(iter(rules.values()))

    def accepts(self, text: str) -> bool:
        self.text = text
        self.ends = cache(self._ends)
        self.sets: list[dict[tuple[Any, ...], None]] = [{} for _ in range(len(text) + 1)]
        goal = (("whole",), (self.start,), 0, 0)
        self.sets[0][goal] = None
        for at, items in enumerate(self.sets):
            done: set[tuple[Any, int]] = set()
            waiting = list(items)
            while waiting:
                for new in list(self._step(waiting.pop(), at, done)):
                    if new not in items:
                        items[new] = None
                        waiting.append(new)
        return (("whole",), (self.start,), 1, 0) in self.sets[-1]

    def _step(self, item: Any, at: int, done: set[tuple[Any, int]]) -> Iterator[Any]:
        """The items of the same set that follow from one; those of later sets are put there."""
        head, body, dot, origin = item
        if dot == len(body):
            done.add((head, origin))
            for before in list(self.sets[origin]):
                if before[2] < len(before[1]) and before[1][before[2]] == head:
                    yield (before[0], before[1], before[2] + 1, before[3])
            return
        node = body[dot]
        if node[0] in ("text", "class", "except"):
            for end in self.ends(node, at):
                if end == at:
                    yield (head, body, dot + 1, origin)
                else:
                    self.sets[end][head, body, dot + 1, origin] = None
            return
        for production in self._productions(node):
            yield (node, production, 0, at)
        if (node, at) in done:
            yield (head, body, dot + 1, origin)

    def _productions(self, node: Any) -> list[tuple[Any, ...]]:
        match node:
            case ("name", name):
                return [(self.rules[name],)]
            case ("seq", parts):
                return [parts]
            case ("alt", parts):
                return [(part,) for part in parts]
            case ("rep", part, 0, None):
                return [(), (part, node)]
            case ("rep", _, 0, 0):
                return [()]
        _, part, least, most = node
        again = ("rep", part, max(least - 1, 0), None if most is None else most - 1)
        return [(part, again), *([()] if least == 0 else [])]

    def _ends(self, node: Any, at: int) -> frozenset[int]:
        """Where a node without recursion may end."""
        match node:
            case ("text", string):
                return frozenset([at + len(string)] if self.text.startswith(string, at) else [])
            case ("class", characters, negated):
                inside = at < len(self.text) and (self.text[at] in characters) != negated
                return frozenset([at + 1] if inside else [])
            case ("except", part, other):
                return self.ends(part, at) - (frozenset([at]) if other is None else self.ends(other, at))
        found: set[int] = set()
        for production in self._productions(node):
            ends = frozenset([at])
            for part in production:
                ends = frozenset(end for begin in ends if begin > at or part != node for end in self.ends(part, begin))
            found |= ends
        return frozenset(found)


def as_gbnf(rules: Rules) -> str:
    names = dict(zip(rules, ["root", *list(rules)[1:]], strict=True))

    def written(node: Any) -> str:
        match node:
            case ("text", string):
                return '"' + "".join(f"\\{char}" if char in '"\\' else char for char in string) + '"'
            case ("class", characters, negated):
                return f"[{'^' if negated else ''}{characters}]"
            case ("name", name):
                return names[name]
            case ("seq", parts):
                return " ".join(map(written, parts)) if parts else '""'
            case ("alt", parts):
                return f"({' | '.join(map(written, parts))})"
        _, part, least, most = node
        operator = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get(
            (least, most), f"{{{least},{'' if most is None else most}}}"
        )
        return f"({written(part)}){operator}"

    return "\n".join(f"{names[name]} ::= {written(body)}" for name, body in rules.items())


def as_ebnf(rules: Rules) -> str:
    def written(node: Any) -> str:
        match node:
            case ("text", string):
                return f'"{string}"' if '"' not in string else f"'{string}'"
            case ("class", characters, False):
                return "(" + " | ".join(f"'{char}'" for char in characters) + ")"
            case ("name", name):
                return str(name)
            case ("seq", parts):
                return f"({', '.join(map(written, parts))})"
            case ("alt", parts):
                return f"({' | '.join(map(written, parts))})"
            case ("except", part, other):
                return f"({written(part)} - {'' if other is None else written(other)})"
            case ("rep", part, 0, 1):
                return f"[{written(part)}]"
            case ("rep", part, 0, None):
                return f"{{{written(part)}}}"
        _, part, least, most = node
        assert least == most
        return f"{least} * ({written(part)})"

    return "\n".join(f"{name} = {written(body)};" for name, body in rules.items())


def random_rules(rng: Random, *, ebnf: bool) -> Rules:
    """One to five rules over a few letters; only an exception has a name of no rule that leads back to it."""
    letters = rng.choice(["ab", "abc", "aé", "a-"])
    names = ["s", "p", "q", "t", "u"][: rng.randint(1, 5)]

    def part(depth: int, usable: list[str]) -> Any:
        kind = rng.choice(["text", "text", "class", "name", "name"]) if depth > 2 else rng.choice(KINDS)
        match kind:
            case "name" if usable:
                return ("name", rng.choice(usable))
            case "class":
                chosen = "".join(sorted(set(rng.choices(letters.replace("-", "b"), k=2))))
                return ("class", chosen, not ebnf and rng.random() < 0.2)
            case "seq":
                return ("seq", tuple(part(depth + 1, usable) for _ in range(rng.randint(ebnf, 3))))
            case "alt":
                return ("alt", tuple(part(depth + 1, usable) for _ in range(rng.randint(2, 3))))
            case "rep":
                counts = [(0, 1), (0, None), (2, 2)] if ebnf else [(0, 1), (0, None), (1, None), (2, 3), (2, None)]
                return ("rep", part(depth + 1, usable), *rng.choice(counts))
            case "except" if ebnf:
                other = None if rng.random() < 0.2 else part(depth + 2, [])
                return ("except", part(depth + 2, []), other)
        return ("text", "".join(rng.choices(letters, k=rng.randint(1, 3))))

    def usable(index: int) -> list[str]:
        return names if rng.random() < 0.4 else names[index + 1 :]

    return {name: part(0, usable(index)) for index, name in enumerate(names)}


KINDS = ("seq", "seq", "alt", "rep", "rep", "except", "name", "text")
