"""Parametric rules, as one rule for each value with which they are read.

A parametric rule (``rule::_``) has a 64-bit number as its value; ``%if`` leaves out alternatives for some values, and
``rule::set_bit(0)`` reads a rule with a new value. Each pair of a rule and a value that can be reached from the start
becomes a rule of its own, without conditions. Values that no condition can tell apart are one value:

- A bit of a rule's value counts only if a condition of the rule reads it, or if it becomes a bit that counts in a rule
  that is read with a new value. All other bits are 0. The bits that count are the least sets that satisfy this.
- Bits ``[x:y]`` are a counter if all functions and conditions that touch them are ``incr([x:y])`` and comparisons of
  ``[x:y]`` with numbers. From the greatest of these numbers on, the counter cannot come back below it, and all its
  values have the same comparisons; so it stays there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.language.tree import NOTHING, Alternation, Expression, inside, with_parts
from constrain.lark.reading.calls import PARAMETER_BITS
from constrain.lark.reading.places import error_at, placed
from constrain.lark.reading.syntax import (
    NUMBER,
    SELF,
    Call,
    Guarded,
    Parametric,
    Symbol,
    Syntax,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from constrain.lark.reading.syntax import Definition

MAX_PARAMETER_VALUES = 5_000
"""Pairs of a parametric rule and a value in a Lark grammar, each of which becomes a rule of 40 parts and conditions on
average; permutations of 12 elements take 4,096. Beyond: LimitError."""

_ALL = (1 << PARAMETER_BITS) - 1
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
}


def new_value(call: Call, value: int) -> int:
    """Returns the value of a function, given the value of the rule around it."""
    match call.name, call.arguments:
        case (("bit_or" | "number" | "bit_and"), (int(given),)):
            return given if call.name == NUMBER else value | given if call.name == "bit_or" else value & given
        case "set_bit", (int(bit),):
            return value | 1 << bit
        case "clear_bit", (int(bit),):
            return value & ~(1 << bit)
        case "incr", ((low, high),):
            mask = _mask(low, high)
            return value if value & mask == mask else value + (1 << low)
        case "decr", ((low, high),):
            return value if value & _mask(low, high) == 0 else value - (1 << low)
    assert call.name == SELF, call
    return value


def holds(call: Call, value: int) -> bool:
    """Returns whether a value meets a condition."""
    match call.name, call.arguments:
        case (("and" | "or"), (Call() as left, Call() as right)):
            both = call.name == "and"
            return holds(right, value) if holds(left, value) == both else not both
        case "not", (Call() as part,):
            return not holds(part, value)
        case (("bit_clear" | "bit_set"), (int(bit),)):
            return bool(value >> bit & 1) == (call.name == "bit_set")
        case "is_zeros", ((low, high),):
            return value & _mask(low, high) == 0
        case "is_ones", ((low, high),):
            return value & _mask(low, high) == _mask(low, high)
        case name, ((low, high), int(given)):
            found = (value & _mask(low, high)) >> low
            if name.startswith("bit_count_"):
                found = found.bit_count()
            return _COMPARED[name.removeprefix("bit_count_")](found, given)
    assert call.name == "true", call
    return True


def _mask(low: int, high: int) -> int:
    return (1 << high) - (1 << low)


class Specializing:
    """The parametric rules of a grammar text, as rules with names such as ``rule::0x5``."""

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax
        self._values: dict[str, tuple[str, int]] = {}
        self._parts = 0
        nodes = {name: list(inside(rule.body)) for name, rule in syntax.rules.items() if rule.parametric}
        everything = [node for found in nodes.values() for node in found]
        self._sizes = {node.at: _size(node.condition) for node in everything if isinstance(node, Guarded)}
        self._needed = _bits_that_count(nodes)
        self._counters = _counters(everything)

    def definition(self, name: str) -> Definition:
        """Returns the definition of a rule as it is written."""
        rule, _ = self._values.get(name, (name, 0))
        return self._syntax.rules[rule]

    def body(self, name: str) -> Expression:
        """Returns the body of a rule; of a parametric one, without conditions and with names for its values."""
        rule, value = self._values.get(name, (name, 0))
        definition, parts = self._syntax.rules[rule], self._parts
        body = self._specialized(definition.body, value)
        if not definition.parametric:
            self._parts = parts
        elif self._parts > 40 * MAX_PARAMETER_VALUES:
            message = (
                f"parametric rules have more than {40 * MAX_PARAMETER_VALUES} parts, counted once for each value (40 "
                "times MAX_PARAMETER_VALUES); use fewer bits, such as incr([0:3]), or leave out alternatives with %if"
            )
            raise placed(LimitError, self._syntax.text, definition.at, message)
        return body

    def _specialized(self, node: Expression, value: int) -> Expression:
        self._parts += 1
        match node:
            case Parametric(name, call, at):
                return Symbol(self._name(name, new_value(call, value), at), at)
            case Guarded(part, condition, at):
                self._parts += self._sizes.get(at, 0)
                return self._specialized(part, value) if holds(condition, value) else NOTHING
            case Alternation(parts):
                made = (self._specialized(part, value) for part in parts)
                return Alternation(tuple(part for part in made if part is not NOTHING))
        return with_parts(node, partial(self._specialized, value=value))

    def _name(self, rule: str, value: int, at: int) -> str:
        """Returns the name of a rule with a value; values that nothing tells apart have the same name."""
        value &= self._needed[rule]
        for low, high, most in self._counters:
            if (value & _mask(low, high)) >> low > most:
                value = value & ~_mask(low, high) | most << low
        name = f"{rule}::{value:#x}"
        if name not in self._values:
            if len(self._values) >= MAX_PARAMETER_VALUES:
                message = (
                    f"more than {MAX_PARAMETER_VALUES} values of parametric rules (MAX_PARAMETER_VALUES), this "
                    "is one too many; use fewer bits, such as incr([0:3]), or leave out alternatives with %if"
                )
                raise placed(LimitError, self._syntax.text, at, message)
            self._values[name] = rule, value
        return name


def check_parameters(syntax: Syntax) -> None:
    """Raises GrammarError where a value is missing, or stands where there is none."""
    for rule in syntax.rules.values():
        for node in inside(rule.body):
            _check_node(syntax, node, inside=rule.parametric)


def _check_node(syntax: Syntax, node: Expression, *, inside: bool) -> None:
    """Checks a node of a rule; ``inside``: whether the rule is parametric."""
    match node:
        case Guarded(_, condition, at) if not inside and condition.name != "true":
            message = (
                "%if is for parametric rules; write ::_ behind the name of the rule, and give it a value where used"
            )
            raise error_at(syntax.text, at, message)
        case Parametric(name, _, at) if Symbol(name, at).is_terminal or not syntax.rules[name].parametric:
            kind = "a terminal" if Symbol(name, at).is_terminal else "a rule that is not parametric"
            hint = "" if Symbol(name, at).is_terminal else f", or define it as {name}::_"
            raise error_at(syntax.text, at, f"{name} is {kind}: leave out the :: and what follows{hint}")
        case Parametric(_, call, _) if not inside and call.name != NUMBER:
            message = f"there is no value for {call.name} here: the rule around it is not parametric; write a number"
            raise error_at(syntax.text, call.at, message)
        case Symbol(name, at) if not node.is_terminal and syntax.rules[name].parametric:
            raise error_at(syntax.text, at, f"the rule {name} is parametric; give it a value, such as {name}::0")


def _bits_that_count(nodes: dict[str, list[Expression]]) -> dict[str, int]:
    """Returns the bits of the value of each rule that its texts may depend on, as masks."""
    needed = dict.fromkeys(nodes, 0)
    users: dict[str, set[str]] = {name: set() for name in nodes}
    for name, found in nodes.items():
        for node in found:
            if isinstance(node, Guarded):
                for call in _conditions(node.condition):
                    needed[name] |= _touched(call)
            elif isinstance(node, Parametric):
                users[node.name].add(name)
    waiting = list(nodes)
    while waiting:
        changed = waiting.pop()
        for name in users[changed]:
            more = needed[name]
            for node in nodes[name]:
                if isinstance(node, Parametric) and node.name == changed:
                    more |= _source_bits(node.value, needed[changed])
            if more != needed[name]:
                needed[name] = more
                waiting.append(name)
    return needed


def _source_bits(call: Call, needed: int) -> int:
    """Returns the bits of a value that decide about some bits of a function's result."""
    match call.name, call.arguments:
        case (("incr" | "decr"), ((int(low), int(high)),)):
            mask = _mask(low, high)
            return needed | mask if needed & mask else needed
        case "number", _:
            return 0
        case (("set_bit" | "clear_bit"), (int(bit),)):
            return needed & ~(1 << bit)
        case "bit_or", (int(given),):
            return needed & ~given
        case "bit_and", (int(given),):
            return needed & given
    return needed


def _conditions(call: Call) -> Iterator[Call]:
    """Yields the conditions in a condition that are not made of others."""
    parts = [part for part in call.arguments if isinstance(part, Call)]
    if not parts:
        yield call
    for part in parts:
        yield from _conditions(part)


def _size(condition: Call) -> int:
    return sum(1 for _ in _conditions(condition))


def _touched(call: Call) -> int:
    """Returns the bits that a function changes or a condition reads."""
    match call.name, call.arguments:
        case _, ((int(low), int(high)), *_):
            return _mask(low, high)
        case (("set_bit" | "clear_bit" | "bit_set" | "bit_clear"), (int(bit),)):
            return 1 << bit
        case "bit_or", (int(given),):
            return given
        case "bit_and", (int(given),):
            return _ALL & ~given
    return 0


def _counters(nodes: list[Expression]) -> list[tuple[int, int, int]]:
    """Returns the bits ``[x:y]`` that are counters, each with the value at which it stays."""
    calls: list[Call] = []
    for node in nodes:
        if isinstance(node, Guarded):
            calls.extend(_conditions(node.condition))
        elif isinstance(node, Parametric):
            calls.append(node.value)
    found = []
    for bits in {call.arguments[0] for call in calls if call.name == "incr"}:
        assert isinstance(bits, tuple)
        low, high = bits
        touching = [call for call in calls if _touched(call) & _mask(low, high)]
        if all(call.arguments[0] == bits and call.name in (*_COMPARED, "incr", "is_zeros") for call in touching):
            numbers = [call.arguments[1] for call in touching if call.name in _COMPARED]
            most = 1 + max((number for number in numbers if isinstance(number, int)), default=0)
            found.append((low, high, min(most, _mask(0, high - low))))
    return found
