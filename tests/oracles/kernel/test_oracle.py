"""The oracle itself, against readings that are simpler still, on all texts up to a few bytes."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from constrain.language import tree
from constrain.language.grammar import EPSILON, TEXT_SET, Action, Grammar
from tests.support.oracles import expressions as rx
from tests.support.oracles.kernel.generator import STYLES, Case, GrammarMaker, make_case
from tests.support.oracles.kernel.recognizer import Recognizer
from tests.support.oracles.search import Oracle


def texts(alphabet: bytes, longest: int) -> list[bytes]:
    return [bytes(text) for length in range(longest + 1) for text in product(sorted(alphabet), repeat=length)]


def ends(expression: tree.Expression, text: bytes, start: int) -> set[int]:  # noqa: C901 - one case a node
    """Where matches of ``expression`` that begin at ``start`` may end: the definition, by plain recursion."""
    match expression:
        case tree.Literal(literal):
            return {start + len(literal)} if text.startswith(literal, start) else set()
        case tree.ByteClass(ranges):
            here = text[start : start + 1]
            return {start + 1} if here and any(low <= here[0] <= high for low, high in ranges) else set()
        case tree.CharClass(ranges):
            points = [chr(point).encode() for low, high in ranges for point in range(low, high + 1)]
            return {start + len(point) for point in points if text.startswith(point, start)}
        case tree.Concatenation(parts):
            found = {start}
            for part in parts:
                found = {end for middle in found for end in ends(part, text, middle)}
            return found
        case tree.Alternation(parts):
            return set().union(*(ends(part, text, start) for part in parts))
        case tree.Intersection(parts):
            return set.intersection(*(ends(part, text, start) for part in parts))
        case tree.Complement(part):
            return set(range(start, len(text) + 1)) - ends(part, text, start)
        case tree.Repetition(part, minimum, maximum):
            found = {start} if minimum == 0 else set()
            reached, times = {start}, 0
            while reached and times < (maximum if maximum is not None else minimum + len(text) + 1):
                reached = {end for middle in reached for end in ends(part, text, middle)}
                times += 1
                if times >= minimum:
                    found |= reached
            return found
        case tree.LiteralSet(literals):
            return {start + len(literal) for literal in literals if text.startswith(literal, start)}
        case tree.Multiple(divisor, scale):
            found = set()
            for end in range(start + 1, len(text) + 1):
                number = text[start:end].decode("latin-1")
                if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", number):
                    quotient = Fraction(number) / Fraction(divisor, 10**scale)
                    found |= {end} if quotient.denominator == 1 else set()
            return found
        case tree.Window(part, unit, minimum, maximum):
            return {end for end in ends(part, text, start) if in_window(unit, text[start:end], minimum, maximum)}
    raise TypeError(expression)


def in_window(unit: tree.Expression, text: bytes, minimum: int, maximum: int | None) -> bool:
    """Takes units off the front while there are any: they are prefix-free."""
    position = units = 0
    while longer := ends(unit, text, position):
        position, units = max(longer), units + 1
    return minimum <= units and (maximum is None or units <= maximum)


@pytest.mark.slow(but=("23", "25", "2"))
@pytest.mark.parametrize("seed", range(60))
def test_derivatives_match_what_plain_recursion_matches(seed: int) -> None:
    rng = Random(seed)
    maker = GrammarMaker(rng, rng.choice(STYLES))
    maker.make_pieces()
    maker.builder.define(maker.builder.rule("start"), [[]])
    terminals = maker.builder.build().terminals
    alphabet = b"".join(maker.theme.letters) + maker.theme.punctuation + b"-." * maker.theme.numbers + b" "
    for terminal in terminals:
        node = rx.from_tree(terminal.expression)
        matched = [text for text in texts(alphabet, 4) if len(text) in ends(terminal.expression, text, 0)]
        assert [text for text in texts(alphabet, 4) if rx.matches(node, text)] == matched, terminal
        least = rx.shortest(node)
        if matched:
            assert least == len(matched[0]), terminal
        else:
            assert least is None or least > 4, terminal


DEEPEST = 7
"""Frames of a stack: enough for texts of four bytes, few enough to follow all stacks."""

Frame = tuple[int, int, tuple]
Stack = tuple[Frame, ...]


class StackSimulation:
    """Follows every stack of rules there is, up to a depth, so left recursion simply fills it up."""

    def __init__(self, grammar: Grammar) -> None:
        self.recognizer = Recognizer(grammar)
        self.grammar = grammar
        self.rules = self.recognizer.rules

    def enter(self, rule: int) -> Frame:
        return (rule, 0, tuple(frozenset() if slot == TEXT_SET else 0 for slot in self.rules[rule].slots))

    def moves(self, frame: Frame, symbol_wanted: int | None, lexeme: bytes) -> list[Frame]:
        rule, state, memory = frame
        found = []
        for edge in self.rules[rule].edges:
            if (edge.source, edge.symbol) != (state, symbol_wanted):
                continue
            if any(memory[c.slot] < c.minimum for c in edge.conditions):
                continue
            if any(c.maximum is not None and memory[c.slot] > c.maximum for c in edge.conditions):
                continue
            if edge.excluding >= 0 and lexeme in memory[edge.excluding]:
                continue
            after = list(memory)
            for action, slot in edge.actions:
                if action is Action.REMEMBER:
                    after[slot] = after[slot] | {lexeme}
                else:
                    after[slot] = min(after[slot] + 1, self.rules[rule].slots[slot])
            found.append((rule, edge.target, tuple(after)))
        return found

    def spread(self, stacks: set[Stack]) -> set[Stack]:
        """Enters and leaves rules and takes empty edges in every way."""
        seen, frontier = set(stacks), list(stacks)
        while frontier:
            *below, top = frontier.pop()
            following = [(*below, after) for after in self.moves(top, EPSILON, b"")]
            if len(below) + 1 < DEEPEST:
                calls = {e.symbol for e in self.rules[top[0]].edges if e.source == top[1] and (e.symbol or 0) < 0}
                following += [
                    (*below, after, self.enter(~call)) for call in calls for after in self.moves(top, call, b"")
                ]
            if below and top[1] in self.rules[top[0]].accepting:
                following.append(tuple(below))
            fresh = set(following) - seen
            seen |= fresh
            frontier += fresh
        return seen

    def languages(self, stacks: set[Stack]) -> set[tuple[int, frozenset[bytes]]]:
        found = {(terminal, frozenset()) for terminal in self.grammar.ignored}
        for *_, (rule, state, memory) in stacks:
            for edge in self.rules[rule].edges:
                reads = edge.source == state and edge.symbol is not EPSILON and edge.symbol >= 0
                if reads and self.moves((rule, state, memory), edge.symbol, b"\0none"):
                    found.add((edge.symbol, memory[edge.excluding] if edge.excluding >= 0 else frozenset()))
        return found

    def accepts(self, text: bytes) -> bool:
        stacks = self.spread({(self.enter(0),)})
        while text:
            lexeme = self.longest_readable(stacks, text)
            after = {
                (*below, moved)
                for *below, top in stacks
                for terminal in range(len(self.grammar.terminals))
                if rx.matches(self.recognizer.expressions[terminal], lexeme)
                for moved in self.moves(top, terminal, lexeme)
            }
            if any(rx.matches(self.recognizer.expressions[terminal], lexeme) for terminal in self.grammar.ignored):
                after |= stacks
            if not lexeme or not after:
                return False
            stacks, text = self.spread(after), text[len(lexeme) :]
        return any(len(stack) == 1 and stack[0][1] in self.rules[0].accepting for stack in stacks)

    def longest_readable(self, stacks: set[Stack], text: bytes) -> bytes:
        """The longest beginning of ``text`` that begins some text of a usable terminal."""
        longest = 0
        for terminal, excluded in self.languages(stacks):
            unwanted = rx.complement(rx.alternation(map(rx.literal, excluded)))
            node = rx.intersection([self.recognizer.expressions[terminal], unwanted])
            for position, byte in enumerate(text, 1):
                node = rx.derivative(node, byte)
                if rx.is_empty(node):
                    break
                longest = max(longest, position)
        return text[:longest]


def small_cases(seeds: range, styles: tuple[str, ...] = STYLES) -> list[Case]:
    return [case for case in map(make_case, seeds) if len(case.alphabet) <= 5 and case.style in styles]


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_recognizer_accepts_what_stack_simulation_accepts(block: int) -> None:
    accepted = 0
    for case in small_cases(range(block * 20, block * 20 + 20)):
        simulation, recognizer = StackSimulation(case.grammar), Recognizer(case.grammar)
        for text in texts(case.alphabet, 4):
            expected = simulation.accepts(text)
            assert recognizer.accepts(text) == expected, (text, case.grammar.dump())
            accepted += expected
    assert accepted > 0


@pytest.mark.slow(but=("5", "2"))
@pytest.mark.parametrize("block", range(6))
def test_what_begins_an_accepted_text_can_go_on_and_completions_are_accepted(block: int) -> None:
    for case in small_cases(range(100 + block * 10, 110 + block * 10), styles=("fenced", "coded")):
        oracle, recognizer = Oracle(Recognizer(case.grammar), case.alphabet), Recognizer(case.grammar)
        beginnings = set()
        for text in texts(case.alphabet, 5):
            if recognizer.accepts(text):
                beginnings |= {text[:end] for end in range(len(text) + 1)}
        for text in texts(case.alphabet, 4):
            completion = oracle.completion(text)
            if completion is None:
                assert text not in beginnings, (text, case.grammar.dump())
            else:
                assert recognizer.accepts(text + completion), (text, completion, case.grammar.dump())
