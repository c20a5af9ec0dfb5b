"""Wrong kernels: each is the kernel, given another grammar than the one that the certificate is about.

A kernel that forgets a condition of the grammar works as a correct kernel works on the grammar without the condition.
So its masks, completions and lexemes are wrong throughout, and consistent with one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import constrain
from constrain import kernel
from constrain.certificates.export import grammar_to_json
from constrain.engine.scopes import Scopes
from constrain.engine.special import resolve_special
from constrain.language.grammar import EPSILON, Edge, Grammar, Rule, Terminal
from constrain.language.tree import (
    ANY_BYTES,
    ByteClass,
    Complement,
    Intersection,
    Literal,
    Multiple,
    Repetition,
    Window,
)


def plant(constraint: constrain.Constraint, mutate: Callable[[Grammar], Grammar]) -> None:
    """Puts a wrong kernel into a constraint."""
    wrong = mutate(constraint.grammar)
    written = [grammar_to_json(each, constraint.vocabulary) for each in (wrong, constraint.grammar)]
    assert written[0] != written[1], "the mutation changes nothing"
    resolved, _ = resolve_special(wrong, constraint.vocabulary)
    constraint._core = kernel.CompiledGrammar(resolved, constraint._tokens())
    if constraint.has_scopes:
        assert constraint._classes is not None
        constraint._scopes = Scopes(resolved, constraint._classes)


def of_edges(change: Callable[[Edge], Edge]) -> Callable[[Grammar], Grammar]:
    """Changes every edge."""

    def mutate(grammar: Grammar) -> Grammar:
        rules = [replace(rule, edges=tuple(map(change, rule.edges))) for rule in grammar.rules]
        return replace(grammar, rules=tuple(rules))

    return mutate


def of_rules(change: Callable[[Rule], Rule]) -> Callable[[Grammar], Grammar]:
    """Changes every rule."""
    return lambda grammar: replace(grammar, rules=tuple(map(change, grammar.rules)))


def of_terminals(change: Callable[[Terminal], Terminal]) -> Callable[[Grammar], Grammar]:
    """Changes every terminal."""
    return lambda grammar: replace(grammar, terminals=tuple(map(change, grammar.terminals)))


def of_nodes(change: Callable[[Any], Any]) -> Callable[[Grammar], Grammar]:
    """Changes every node of every expression."""
    return of_terminals(lambda each: replace(each, expression=_changed(each.expression, change)))


def _changed(node: Any, change: Callable[[Any], Any]) -> Any:
    made = {field.name: getattr(node, field.name) for field in fields(node)}
    if made.get("parts") == ():
        return node  # ``EMPTY_TEXT`` and ``NOTHING``, which are known by identity
    for name, value in made.items():
        if hasattr(value, "__dataclass_fields__"):
            made[name] = _changed(value, change)
        elif isinstance(value, tuple) and value and hasattr(value[0], "__dataclass_fields__"):
            made[name] = tuple(_changed(each, change) for each in value)
    return change(type(node)(**made))


def allow_one_more(edge: Edge) -> Edge:
    most = [each._replace(maximum=None if each.maximum is None else each.maximum + 1) for each in edge.conditions]
    return edge._replace(conditions=tuple(most))


def forget_minimum(edge: Edge) -> Edge:
    return edge._replace(conditions=tuple(each._replace(minimum=0) for each in edge.conditions))


def forget_actions(edge: Edge) -> Edge:
    return edge._replace(actions=())


def forget_excluding(edge: Edge) -> Edge:
    return edge._replace(excluding=-1)


def forget_distinct_scalars(edge: Edge) -> Edge:
    return edge if edge.symbol is EPSILON or edge.symbol < 0 else edge._replace(distinct=-1)


def forget_distinct_groups(edge: Edge) -> Edge:
    return edge._replace(distinct=-1) if edge.symbol is not EPSILON and edge.symbol < 0 else edge


def lower_caps(rule: Rule) -> Rule:
    """A counter that stays at its cap one too early never gets beyond the maximum."""
    return replace(rule, slots=tuple(slot - 1 if slot > 0 else slot for slot in rule.slots))


def compare_spellings(grammar: Grammar) -> Grammar:
    return replace(grammar, strings_by_value=False)


def compare_decimals(grammar: Grammar) -> Grammar:
    return replace(grammar, numbers_by_double=False)


def ignore_all(grammar: Grammar) -> Grammar:
    return replace(grammar, ignored=tuple(range(len(grammar.terminals))))


def skip_constants(grammar: Grammar) -> Grammar:
    """Reads nothing where a constant must stand."""
    constants = [index for index, each in enumerate(grammar.terminals) if each.name == "constant"]
    return of_edges(lambda edge: edge._replace(symbol=EPSILON) if edge.symbol in constants else edge)(grammar)


def end_before_the_last_lexeme(rule: Rule) -> Rule:
    early = [edge.source for edge in rule.edges if edge.target in rule.accepting]
    return replace(rule, accepting=tuple(sorted({*rule.accepting, *early})))


def widen_rule_limit(rule: Rule) -> Rule:
    return rule if rule.max_tokens is None else replace(rule, max_tokens=rule.max_tokens + 2)


def widen_terminal_limit(terminal: Terminal) -> Terminal:
    return terminal if terminal.max_tokens is None else replace(terminal, max_tokens=terminal.max_tokens + 2)


def forget_lazy(terminal: Terminal) -> Terminal:
    return replace(terminal, lazy=False)


def rename_special(terminal: Terminal) -> Terminal:
    changed = _changed(terminal.expression, _other_special)
    return replace(terminal, expression=changed)


def _other_special(node: Any) -> Any:
    return Literal(node.text.replace(b"<|one|>", b"<|two|>")) if isinstance(node, Literal) else node


def widen_classes(node: Any) -> Any:
    if isinstance(node, ByteClass):
        return ByteClass(tuple((low, min(high + 1, 253)) for low, high in node.ranges))
    return node


def repeat_once_more(node: Any) -> Any:
    if isinstance(node, Repetition) and node.maximum is not None:
        return replace(node, maximum=node.maximum + 1)
    return node


def repeat_less(node: Any) -> Any:
    return replace(node, minimum=0) if isinstance(node, Repetition) else node


def first_of_intersections(node: Any) -> Any:
    return node.parts[0] if isinstance(node, Intersection) else node


def forget_complements(node: Any) -> Any:
    return ANY_BYTES if isinstance(node, Complement) else node


def forget_divisor(node: Any) -> Any:
    return replace(node, divisor=1) if isinstance(node, Multiple) else node


def widen_windows(node: Any) -> Any:
    return replace(node, maximum=node.maximum + 1) if isinstance(node, Window) else node
