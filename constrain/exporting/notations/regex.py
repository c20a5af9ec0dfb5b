"""Regular expressions that Rust's ``regex`` crate and Python's ``re`` read alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.exporting.nodes import Name, Token, rebuilt, repeat
from constrain.exporting.notations.spelling import pattern
from constrain.exporting.recursion import find_recursion
from constrain.exporting.reduction import Graph, as_expression, require_short

if TYPE_CHECKING:
    from constrain.exporting.draft import Draft
    from constrain.exporting.nodes import Key
    from constrain.exporting.plan import Planning
    from constrain.language.tree import Expression


def regex_text(draft: Draft, planning: Planning) -> str:
    """Returns the pattern of a draft. Raises ExportError for recursion and special tokens, and LimitError."""
    key = find_recursion(draft.rules, planning.plan.start)
    if key is not None:
        name = draft.rules[key].name
        draft.refuse(name, "a regular expression cannot say that something contains itself, as it does here")
    for automaton in draft.rules.values():
        for arc in automaton.arcs:
            if isinstance(arc.label, Token):
                draft.refuse(automaton.name, f"a regular expression cannot say the special token {arc.label.name}")
    node = _Writing(draft, planning).of(planning.plan.start)
    return pattern(repeat(node, 0, 1) if planning.plan.nullable else node)


class _Writing:
    def __init__(self, draft: Draft, planning: Planning) -> None:
        self._draft = draft
        self._planning = planning
        self._done: dict[Key, Expression] = {}

    def of(self, key: Key) -> Expression:
        """Returns a definition without names."""
        if key not in self._done:
            self._done[key] = self._made(key)
        return self._done[key]

    def _made(self, key: Key) -> Expression:
        kind, index = key
        if kind == "terminal":
            return self._written(self._planning.terminal(index))
        if kind == "character":
            return self._planning.terminals.characters[index]
        if kind == "part":
            return as_expression(Graph(*self._planning.terminals.parts[index]))
        automaton = self._draft.rules[key]
        arcs = [arc if arc.label is None else arc._replace(label=self._written(arc.label)) for arc in automaton.arcs]
        made: list[Expression] = []
        self._draft.limits(automaton.name, lambda: made.append(as_expression(Graph(arcs, automaton.accepting))))
        return made[0]

    def _written(self, node: Expression) -> Expression:
        made = self.of(node.key) if isinstance(node, Name) else rebuilt(node, self._written)
        require_short(made)
        return made
