"""Values of parametric rules and conditions on them: the functions that there are, and their arguments, checked.

A value has 64 bits, numbered from 0. ``[x:y]`` are the bits from ``x`` up to ``y``, without ``y``; ``_`` are all bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.lark.reading.places import error_at
from constrain.lark.reading.syntax import NUMBER, SELF, Call
from constrain.work import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Mapping

PARAMETER_BITS = 64
"""Bits of the value of a parametric rule, as in llguidance."""

_BIT, _BITS, _VALUE, _COUNT, _CONDITION = "a bit", "bits", "a number", "a count", "a condition"

VALUES: dict[str, tuple[str, ...]] = {
    "set_bit": (_BIT,),
    "clear_bit": (_BIT,),
    "bit_and": (_VALUE,),
    "bit_or": (_VALUE,),
    "incr": (_BITS,),
    "decr": (_BITS,),
}
"""The functions for a new value, each with the kinds of its arguments."""

CONDITIONS: dict[str, tuple[str, ...]] = {
    "true": (),
    "bit_clear": (_BIT,),
    "bit_set": (_BIT,),
    "is_ones": (_BITS,),
    "is_zeros": (_BITS,),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), (_BITS, _VALUE)),
    **{f"bit_count_{name}": (_BITS, _COUNT) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "and": (_CONDITION, _CONDITION),
    "or": (_CONDITION, _CONDITION),
    "not": (_CONDITION,),
}
"""The conditions, each with the kinds of its arguments."""

_WRITTEN = {
    _BIT: f"a bit is a number from 0 to {PARAMETER_BITS - 1}",
    _BITS: "bits are [x:y], or _ for all bits",
    _VALUE: "a number is decimal, or hexadecimal after 0x",
    _COUNT: f"a count of bits is a number from 0 to {PARAMETER_BITS}",
    _CONDITION: "a condition is one of " + ", ".join(CONDITIONS),
}


def read_value(text: str, given: Any) -> Call:
    """Returns the value after ``::``: a token for a number or ``_``, or the tree of a function.

    Raises GrammarError.
    """
    if not isinstance(given, str):
        return _call(text, given, VALUES, 0)
    if given == "_":
        return Call(SELF, (), _place(given))
    return Call(NUMBER, (_number(text, given, 2**PARAMETER_BITS - 1),), _place(given))


def read_condition(text: str, given: Any) -> Call:
    """Returns the condition after ``%if``, given its tree. Raises GrammarError."""
    return _call(text, given, CONDITIONS, 0)


def _call(text: str, tree: Any, known: Mapping[str, tuple[str, ...]], depth: int) -> Call:
    token, *given = tree.children
    name, at = str(token), _place(token)
    given = [argument for argument in given if argument is not None]
    if depth >= MAX_NESTING:
        message = f"conditions are nested more than {MAX_NESTING} deep (MAX_NESTING)"
        raise error_at(text, at, message)
    if name not in known:
        what, other = ("value", CONDITIONS) if known is VALUES else ("condition", VALUES)
        hint = f"{name} belongs {'behind %if' if other is CONDITIONS else 'behind ::'}; " if name in other else ""
        raise error_at(text, at, f"there is no {what} {name}: {hint}there are {', '.join(known)}")
    kinds = known[name]
    if len(given) != len(kinds):
        wanted = f"{name}({', '.join(kinds)})" if kinds else name
        counted = "1 argument" if len(given) == 1 else f"{len(given)} arguments"
        raise error_at(text, at, f"{name} has {counted}; write {wanted}")
    return Call(name, tuple(_argument(text, each, kind, depth) for each, kind in zip(given, kinds, strict=True)), at)


def _argument(text: str, given: Any, kind: str, depth: int) -> int | tuple[int, int] | Call:
    is_number = isinstance(given, str) and given != "_"
    if kind == _BITS and given == "_":
        return 0, PARAMETER_BITS
    if kind == _BITS and not isinstance(given, str) and given.data == "bits":
        first, end = given.children
        low, high = _number(text, first, PARAMETER_BITS - 1), _number(text, end, PARAMETER_BITS)
        if low >= high:
            raise error_at(text, _place(first), f"bits go up: [{low}:{high}] has none, write [{low}:{low + 1}] for one")
        return low, high
    if kind == _CONDITION and not isinstance(given, str) and given.data == "call":
        return _call(text, given, CONDITIONS, depth + 1)
    if kind in (_BIT, _COUNT, _VALUE) and is_number:
        return _number(
            text,
            given,
            {_BIT: PARAMETER_BITS - 1, _COUNT: PARAMETER_BITS, _VALUE: 2**PARAMETER_BITS - 1}[kind],
        )
    token = given if isinstance(given, str) else given.children[0]
    raise error_at(text, _place(token), f"{kind} must stand here: {_WRITTEN[kind]}")


def _number(text: str, token: Any, most: int) -> int:
    """Returns a number of at most so much, decimal or hexadecimal."""
    digits = token[2:].lstrip("0") or "0" if token[:2] in ("0x", "0X") else token.lstrip("0") or "0"
    base = 16 if token[:2] in ("0x", "0X") else 10
    if token[0] in "+-":
        raise error_at(text, _place(token), "numbers here have no sign")
    if len(digits) > 20 or (number := int(digits, base)) > most:
        raise error_at(
            text,
            _place(token),
            f"this number is greater than {most}: a value has {PARAMETER_BITS} bits",
        )
    return number


def _place(token: Any) -> int:
    return int(token.start_pos)
