"""``export_grammar``: the text of a grammar in the notation of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from constrain.arguments import wrong_type
from constrain.exporting.draft import draft
from constrain.exporting.notations.gbnf import gbnf_text
from constrain.exporting.notations.lark import lark_text
from constrain.exporting.notations.regex import regex_text
from constrain.exporting.plan import Planning, inline
from constrain.exporting.recursion import drop_empty_texts, drop_left_recursion, loop_at_ends
from constrain.exporting.reduction import Graph, as_expression

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar

Target = Literal["gbnf", "lark", "regex"]
"""The notations to export to."""


def export_grammar(grammar: Grammar, to: Target, *, repeated_keys: bool = False) -> str:
    """Returns the text of a grammar with the same language. Raises ExportError, LimitError and ValueError.

    ``repeated_keys``: whether undeclared keys of an object may repeat, which is all that differs then.

    >>> from constrain.lark.source import Lark
    >>> print(export_grammar(Lark('start: "a" start? "b"').grammar(), "gbnf"), end="")
    root ::= "a" root? "b"
    """
    if not isinstance(to, str):
        raise wrong_type("to", "a str", to)
    if to not in get_args(Target):
        raise ValueError(f"to must be one of {', '.join(map(repr, get_args(Target)))}, not {to!r}")
    found = draft(grammar, to, repeated_keys=repeated_keys)
    nullable = ("rule", 0) in drop_empty_texts(found.rules)
    if to != "lark":
        found.limits(grammar.rules[0].name, lambda: drop_left_recursion(found.rules))
    planning = Planning(found, booleans=to == "lark", nullable=nullable)
    if to == "regex":
        loop_at_ends(found.rules)
        return regex_text(found, planning)
    planning.add_rules()
    planning.add_terminals()
    if to == "gbnf":
        planning.add_parts()
        inline(planning.plan, ("character",))
        return gbnf_text(planning.plan, found)
    for number, (arcs, accepting) in enumerate(planning.terminals.parts):
        planning.plan.nodes["part", number] = as_expression(Graph(arcs, accepting))
        planning.plan.hints["part", number] = "part"
    inline(planning.plan, ("character", "terminal"))
    return lark_text(planning.plan, found)
