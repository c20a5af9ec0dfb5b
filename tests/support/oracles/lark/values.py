"""Values of parametric rules, as llguidance's page defines them: each function as it is written, and in Python.

Nothing here is merged or bounded: ``expanded`` makes a rule of each pair of a rule and a value that is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from tests.support.oracles.lark.syntax import Alias, Alt, If, LarkGrammar, Name, Node, Rep, Seq, Valued

VALUES = ("number", "_", "set_bit", "clear_bit", "bit_and", "bit_or", "incr", "decr")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
CONDITIONS = (
    *("true", "bit_clear", "bit_set", "is_ones", "is_zeros", "and", "or", "not"),
    *COMPARISONS,
    *(f"bit_count_{name}" for name in COMPARISONS),
)

MOST_BITS = 3
"""Bits of a value that random functions touch: 8 values."""


def random_value(rng: Random, kind: str = "") -> tuple[str, Callable[[int], int]]:
    """A new value, as it is written and as a function of the value around it."""
    kind = kind or rng.choice(VALUES)
    bit, number = rng.randrange(MOST_BITS), rng.randrange(1 << MOST_BITS)
    written, low, high = _bits(rng)
    match kind:
        case "number":
            return rng.choice((str(number), hex(number))), lambda _: number
        case "_":
            return "_", lambda p: p
        case "set_bit":
            return f"set_bit({bit})", lambda p: p | (1 << bit)
        case "clear_bit":
            return f"clear_bit({bit})", lambda p: p & ~(1 << bit)
        case "bit_and":
            return f"bit_and({number})", lambda p: p & number
        case "bit_or":
            return f"bit_or({number:#x})", lambda p: p | number
        case "incr":
            return f"incr({written})", lambda p: p if _ones(p, low, high) else p + (1 << low)
    return f"decr({written})", lambda p: p if _part(p, low, high) == 0 else p - (1 << low)


def random_condition(rng: Random, kind: str = "", depth: int = 2) -> tuple[str, Callable[[int], bool]]:
    """A condition, as it is written and as a function of the value."""
    kind = kind or rng.choice(CONDITIONS)
    if kind in ("and", "or", "not"):
        if depth == 0:
            return random_condition(rng, rng.choice(CONDITIONS[:5]))
        (left, first), (right, second) = (random_condition(rng, depth=depth - 1) for _ in range(2))
        if kind == "not":
            return f"not({left})", lambda p: not first(p)
        if kind == "and":
            return f"and({left}, {right})", lambda p: first(p) and second(p)
        return f"or({left},{right})", lambda p: first(p) or second(p)
    bit, number = rng.randrange(MOST_BITS), rng.randrange(1 << MOST_BITS)
    written, low, high = _bits(rng)
    match kind:
        case "true":
            return "true", lambda _: True
        case "bit_clear":
            return f"bit_clear({bit})", lambda p: (p >> bit) % 2 == 0
        case "bit_set":
            return f"bit_set({bit})", lambda p: (p >> bit) % 2 == 1
        case "is_ones":
            return f"is_ones({written})", lambda p: _ones(p, low, high)
        case "is_zeros":
            return f"is_zeros({written})", lambda p: _part(p, low, high) == 0
    if kind.startswith("bit_count_"):
        number = rng.randrange(MOST_BITS + 1)
        compare = _COMPARE[kind.removeprefix("bit_count_")]
        return f"{kind}({written}, {number})", lambda p: compare(f"{_part(p, low, high):b}".count("1"), number)
    compare = _COMPARE[kind]
    return f"{kind}({written}, {number})", lambda p: compare(_part(p, low, high), number)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _bits(rng: Random) -> tuple[str, int, int]:
    low = rng.randrange(MOST_BITS)
    high = rng.randint(low + 1, MOST_BITS)
    return f"[{low}:{high}]", low, high


def _part(p: int, low: int, high: int) -> int:
    return int(f"{p:064b}"[64 - high : 64 - low], 2)


def _ones(p: int, low: int, high: int) -> bool:
    return "0" not in f"{p:064b}"[64 - high : 64 - low]


@dataclass
class _Expansion:
    grammar: LarkGrammar
    made: dict[str, Node] = field(default_factory=dict)
    waiting: list[tuple[str, int]] = field(default_factory=list)

    def node(self, node: Node, value: int) -> Node:
        match node:
            case Valued(name, _, change):
                self.waiting.append((name, change(value)))
                return Name(f"{name}::{change(value)}")
            case If(part, _, test):
                return self.node(part, value) if test(value) else Alt(())
            case Seq(parts):
                return Seq(tuple(self.node(part, value) for part in parts))
            case Alt(parts):
                return Alt(tuple(self.node(part, value) for part in parts))
            case Rep() | Alias():
                return replace(node, part=self.node(node.part, value))
        return node


def expanded(grammar: LarkGrammar) -> LarkGrammar:
    """The grammar without values: a rule for each rule with each value."""
    expansion = _Expansion(grammar)
    for name, body in grammar.rules.items():
        if name not in grammar.parametric:
            expansion.made[name] = expansion.node(body, 0)
    while expansion.waiting:
        name, value = expansion.waiting.pop()
        if f"{name}::{value}" not in expansion.made:
            expansion.made[f"{name}::{value}"] = expansion.node(grammar.rules[name], value)
    return replace(grammar, rules=expansion.made, parametric=frozenset())
