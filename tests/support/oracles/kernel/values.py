"""What texts stand for, in plain Python: the oracle's own idea of distinct values.

A scalar is a number (JSON syntax) by value, or a text. A group is an ordered tuple or a set of labelled members.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from constrain.language.grammar import Role
from tests.support.oracles import expressions as rx

Value = tuple

NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


class Lexeme(NamedTuple):
    role: Role
    text: bytes


def scalar(text: bytes) -> Value:
    return ("number", Decimal(text.decode()).normalize() + 0) if NUMBER.fullmatch(text) else ("text", text)


def is_scalar(value: Value) -> bool:
    return value[0] in ("number", "text")


def group(lexemes: tuple[Lexeme, ...]) -> Value:
    """The one group that the lexemes make."""
    stack: list[tuple[Role, list]] = [(Role.NONE, [])]
    for role, text in lexemes:
        members = stack[-1][1]
        if role is Role.SCALAR:
            members.append(scalar(text))
        elif role is Role.LABEL:
            members.append(text)
        elif role in (Role.OPEN_ORDERED, Role.OPEN_LABELLED):
            stack.append((role, []))
        elif role is Role.CLOSE:
            kind, members = stack.pop()
            labelled = kind is Role.OPEN_LABELLED
            pairs = frozenset(zip(members[::2], members[1::2], strict=True)) if labelled else tuple(members)
            stack[-1][1].append((kind, pairs))
    ((_, (value,)),) = stack
    return value


def spelled(value: Value) -> rx.Node:
    """All spellings of a scalar."""
    kind, what = value
    if kind == "text":
        return rx.literal(what)
    plain = format(what, "f").encode()
    zeros = rx.repetition(rx.literal(b"0"), 0, None)
    if b"." in plain:
        return rx.concatenation(rx.literal(plain), zeros)
    fraction = rx.concatenation(rx.literal(b".0"), zeros)
    signs = [b"0", b"-0"] if what == 0 else [plain]
    whole = rx.alternation([rx.literal(sign) for sign in signs])
    return rx.concatenation(whole, rx.alternation([rx.literal(b""), fraction]))
