"""Expressions of terminals, each with all terminals inside it."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from constrain import kernel
from constrain.language.tree import (
    ANY_CHAR,
    Alternation,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Repetition,
    inside,
    parts_of,
)
from constrain.lark.common import LAZY, PATTERNS
from constrain.lark.embedded import regex_expression
from constrain.lark.literals import literal_expression, range_expression
from constrain.lark.reading.places import error_at
from constrain.lark.reading.syntax import (
    Alias,
    Both,
    Definition,
    Import,
    Not,
    Quoted,
    Range,
    Special,
    Substring,
    Symbol,
    Syntax,
    beginning,
    place_of,
)
from constrain.regex.anchors import repetition, sequence, union
from constrain.regex.parsing.parser import parse_pattern
from constrain.work import MAX_PATTERN_NESTING, asked

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANY_TEXT = Repetition(ANY_CHAR, 0, None)


def named_expressions(syntax: Syntax) -> dict[str, Expression]:
    """Returns the expression of every named terminal. Raises GrammarError, PatternError."""
    expressions: dict[str, Expression] = {}
    depths: dict[str, int] = {}
    for name in _in_order(syntax):
        definition = syntax.terminals[name]
        depths[name] = 1 if isinstance(definition, Import) else depth(definition.body, depths)
        if depths[name] > MAX_PATTERN_NESTING:
            message = f"terminals are nested more than {MAX_PATTERN_NESTING} deep (MAX_PATTERN_NESTING)"
            raise error_at(syntax.text, definition.at, message)
        if isinstance(definition, Import):
            expressions[name] = _imported(syntax, definition)
        else:
            expressions[name] = terminal_expression(syntax, expressions, definition.body)
    return expressions


def terminal_expression(syntax: Syntax, named: dict[str, Expression], node: Expression) -> Expression:
    """Returns the expression of a node in a terminal or after ``%ignore``; ``named``: all terminals it uses."""
    match node:
        case Symbol(name, at):
            if not node.is_terminal:
                raise error_at(
                    syntax.text, at, f"{name} is a rule; terminals may contain terminals, strings and patterns only"
                )
            return named[name]
        case Quoted():
            return literal_expression(syntax.text, node)
        case Range():
            return range_expression(syntax.text, node)
        case Substring():
            return regex_expression(syntax.text, node)
        case Concatenation(parts):
            return sequence(*(terminal_expression(syntax, named, part) for part in parts))
        case Alternation(parts):
            return union([terminal_expression(syntax, named, part) for part in parts])
        case Both(parts, at):
            found = Intersection(tuple(terminal_expression(syntax, named, part) for part in parts))
            if asked(kernel.is_empty, found):
                raise error_at(syntax.text, at, "no text matches all of the parts around &; remove one of them")
            return found
        case Not(part, at):
            others = Intersection((_ANY_TEXT, Complement(terminal_expression(syntax, named, part))))
            if asked(kernel.is_empty, others):
                raise error_at(syntax.text, at, "this ~ leaves nothing: its part matches every text")
            return others
        case Repetition(part, minimum, maximum):
            return repetition(terminal_expression(syntax, named, part), minimum, maximum)
        case Alias(_, at):
            raise error_at(syntax.text, at, "aliases are allowed in rules only")
        case Special(name, at):
            raise error_at(syntax.text, at, f"{name} stands for a token, not a text, so it is allowed in rules only")
    raise error_at(syntax.text, place_of(node), f"{beginning(node)} is allowed in rules only")


def check_defined(syntax: Syntax, symbol: Symbol) -> None:
    """Raises GrammarError if there is no such rule or terminal."""
    if symbol.name not in (syntax.terminals if symbol.is_terminal else syntax.rules):
        kind = "terminal" if symbol.is_terminal else "rule"
        raise error_at(syntax.text, symbol.at, f"the {kind} {symbol.name} is not defined")


def depth(node: Expression, named: Mapping[str, int]) -> int:
    """Returns the levels of operators of an expression; ``named``: those of the symbols that it uses."""
    if isinstance(node, Symbol):
        return named.get(node.name, 1)
    return 1 + max((depth(part, named) for part in parts_of(node)), default=0)


def _in_order(syntax: Syntax) -> list[str]:
    """Returns the names, each after the terminals inside it."""
    uses: dict[str, dict[str, None]] = {}
    for name, definition in syntax.terminals.items():
        uses[name] = {}
        if isinstance(definition, Definition):
            for symbol in inside(definition.body):
                if isinstance(symbol, Symbol):
                    check_defined(syntax, symbol)
                    if symbol.is_terminal:
                        uses[name][symbol.name] = None
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]
        at, way = syntax.terminals[cycle[0]].at, " -> ".join(cycle)
        raise error_at(syntax.text, at, f"a terminal contains itself ({way}); only rules may be recursive") from error


def _imported(syntax: Syntax, definition: Import) -> Expression:
    name = definition.original
    if name in LAZY:
        raise error_at(
            syntax.text, definition.at, f"{name} needs lazy quantifiers, which are not supported; import ESCAPED_STRING"
        )
    if name not in PATTERNS:
        raise error_at(syntax.text, definition.at, f"the library common has no terminal {name}")
    return parse_pattern(PATTERNS[name], "rust")
