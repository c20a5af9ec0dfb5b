"""The automaton of an array: a chain for the prefix, then a loop that counts as far as bounds need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.shapes.arrays import longest_length
from constrain.language.grammar import VALUE_SET, Action, Condition, Edge
from constrain.language.rule_automaton import END, START, RuleAutomaton
from constrain.work import MAX_LEAST_COUNT

if TYPE_CHECKING:
    from constrain.json_schema.emission.emitting import Emitting
    from constrain.json_schema.shapes.data import ArrayShape


def add_array(emitter: Emitting, automaton: RuleAutomaton, shape: ArrayShape) -> None:
    """Adds edges from START to END that read the arrays of a shape, which must admit at least one."""
    if shape.minimum > MAX_LEAST_COUNT:
        raise LimitError(f"an array must have more items than MAX_LEAST_COUNT = {MAX_LEAST_COUNT}; lower minItems")
    edges = automaton.edges
    punctuation = emitter.punctuation
    longest = longest_length(shape)
    prefix = shape.prefix if longest is None else shape.prefix[:longest]
    distinct = automaton.slot(VALUE_SET) if shape.unique else -1
    before = automaton.state()
    edges.append(Edge(START, emitter.add(punctuation.open_array), before))
    if shape.minimum == 0:
        edges.append(Edge(before, emitter.add(punctuation.close_empty_array), END))
    if longest == 0:
        return
    close = emitter.add(punctuation.close_array)
    after = before
    for index, goal in enumerate(prefix):
        after = automaton.state()
        edges += [Edge(before, symbol, after, distinct=distinct) for symbol in emitter.item(goal)]
        if index + 1 < len(prefix):
            if index + 1 >= shape.minimum:
                edges.append(Edge(after, close, END))
            before = automaton.state()
            edges.append(Edge(after, emitter.add(punctuation.comma), before))
    length = len(prefix)
    if longest == length:
        edges.append(Edge(after, close, END))
        return
    rest = [(symbol, distinct) for symbol in emitter.item(shape.rest)]
    if length == 0:
        after, length = automaton.state(), 1
        edges += [Edge(before, symbol, after, distinct=distinct) for symbol, distinct in rest]
    if longest == length:
        edges.append(Edge(after, close, END))
        return
    symbols = (emitter.add(punctuation.comma), close)
    _add_loop(automaton, rest, after, symbols, (max(shape.minimum - length, 0), longest and longest - length))


def _add_loop(
    automaton: RuleAutomaton,
    rest: list[tuple[int, int]],
    after: int,
    symbols: tuple[int | None, int | None],
    bounds: tuple[int, int | None],
) -> None:
    """Adds, after an item, ``bounds[0]`` to ``bounds[1]`` more items, then the closing bracket."""
    comma, close = symbols
    minimum, maximum = bounds
    edges = automaton.edges
    before = automaton.state()
    if minimum == 0 and maximum is None:
        edges.append(Edge(after, close, END))
        edges.append(Edge(after, comma, before))
    else:
        slot = automaton.slot(minimum if maximum is None else maximum)
        enough = (Condition(slot, minimum, None),) if minimum else ()
        more = () if maximum is None else (Condition(slot, 0, maximum - 1),)
        edges.append(Edge(after, close, END, enough))
        edges.append(Edge(after, comma, before, more, ((Action.INCREMENT, slot),)))
    edges += [Edge(before, symbol, after, distinct=distinct) for symbol, distinct in rest]
