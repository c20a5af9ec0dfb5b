"""Random walks through grammars of random schemas: never stuck, and what they write is valid.

A walk chooses one open edge after another, so that it would also find a dead end that other choices avoid.
"""

from __future__ import annotations

import json
import random
from collections import deque
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from constrain.errors import ConstrainError
from constrain.json_schema.compiler import compile_schema
from constrain.language.grammar import TEXT_SET, Action, Edge, Grammar
from tests.json_schema.test_random_schemas import random_document
from tests.support import LONG
from tests.support.json_schema.grammar_interpreter import Interpreter
from tests.support.regex.derivative_matcher import _NOTHING, _Store

if TYPE_CHECKING:
    from constrain.language.tree import Expression

SCHEMAS = 3_000 if LONG else 250
WALKS = 4
PATIENCE = 60  # edges after which a walk makes for the end

BYTES = sorted({*b'"{}[]:,. \n-0123456789abctrueflsn\\xz', 0xC3, 0xA9})


class Lexemes:
    """Random texts of expressions."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._store = _Store()

    def sample(self, expression: Expression, excluded: frozenset[bytes]) -> bytes | None:
        """A text that is not excluded; ``None`` if none was found."""
        root = self._store.translate(expression)
        for steps in (0, 1, 2, 3, 4, 6, 8, 12) * 8:
            node, text = root, b""
            for _ in range(self._rng.randrange(steps + 1)):
                choices = [byte for byte in BYTES if self._store.derivative(node, byte) != _NOTHING]
                if not choices:
                    break
                byte = self._rng.choice(choices)
                node, text = self._store.derivative(node, byte), text + bytes([byte])
            rest = self._shortest(node, text, excluded)
            if rest is not None:
                return text + rest
        return None

    def _shortest(self, node: int, before: bytes, excluded: frozenset[bytes]) -> bytes | None:
        queue, seen = deque([(node, b"")]), {node}
        while queue:
            current, text = queue.popleft()
            if self._store.nullable[current] and before + text not in excluded:
                return text
            for byte in BYTES:
                target = self._store.derivative(current, byte)
                if target != _NOTHING and target not in seen:
                    seen.add(target)
                    queue.append((target, text + bytes([byte])))
        return None


def heights(grammar: Grammar) -> list[dict[int, int]]:
    """For each rule and state an upper bound of the edges to its end, conditions aside."""
    unknown = 10**9
    found: list[dict[int, int]] = [dict.fromkeys(rule.accepting, 0) for rule in grammar.rules]
    changed = True
    while changed:
        changed = False
        for rule, known in zip(grammar.rules, found, strict=True):
            for edge in rule.edges:
                inner = 1 if edge.symbol is None or edge.symbol >= 0 else found[~edge.symbol].get(0, unknown) + 1
                height = known.get(edge.target, unknown) + inner
                if height < known.get(edge.source, unknown):
                    known[edge.source] = height
                    changed = True
    return found


def leads_on(interpreter: Interpreter, rule: int, edge: Edge, memory: tuple[Any, ...]) -> bool:
    """Whether more can be read, or the rule can end, once this edge was taken; conditions may be tested one by one."""
    if edge.symbol is not None:
        return True
    state, memory = edge.target, interpreter._after(rule, memory, edge, b"")
    return state in interpreter.grammar.rules[rule].accepting or any(
        interpreter._open(memory, onward) and leads_on(interpreter, rule, onward, memory)
        for onward in interpreter._edges[rule].get(state, ())
    )


def walk(grammar: Grammar, rng: random.Random, lexemes: Lexemes, height: list[dict[int, int]]) -> bytes:
    """One random text; AssertionError where no edge is open before the end."""
    interpreter = Interpreter(grammar)
    text = b""
    stack: list[tuple[int, int, tuple[Any, ...]]] = [(0, 0, interpreter._fresh(0))]
    for step in range(100_000):
        rule, state, memory = stack[-1]
        ends = state in grammar.rules[rule].accepting
        edges = [
            edge
            for edge in interpreter._edges[rule].get(state, ())
            if interpreter._open(memory, edge) and leads_on(interpreter, rule, edge, memory)
        ]
        if ends and (not edges or rng.random() < 0.5 or step > PATIENCE):
            stack.pop()
            if not stack:
                return text
            continue
        assert edges, f"stuck in state {state} of rule {rule} after {text!r}"
        if step > PATIENCE and rng.random() < 0.8:  # it may not be the nearest end that conditions allow
            edges.sort(key=lambda edge: cost(edge, height, rule))
        else:
            rng.shuffle(edges)
        for edge in edges:
            lexeme: bytes | None = b""
            if edge.symbol is not None and edge.symbol >= 0:
                used = memory[edge.excluding] if edge.excluding >= 0 else frozenset()
                lexeme = lexemes.sample(grammar.terminals[edge.symbol].expression, used)
                if lexeme is None:
                    continue  # all keys of this class are used: another edge must be open
            text += lexeme or b""
            stack[-1] = (rule, edge.target, interpreter._after(rule, memory, edge, lexeme or b""))
            if edge.symbol is not None and edge.symbol < 0:
                stack.append((~edge.symbol, 0, interpreter._fresh(~edge.symbol)))
            break
        else:
            pytest.fail(f"stuck in state {state} of rule {rule}: all keys are used after {text!r}")
    pytest.fail("a walk did not end")


def cost(edge: Edge, height: list[dict[int, int]], rule: int) -> int:
    inner = 1 if edge.symbol is None or edge.symbol >= 0 else height[~edge.symbol][0]
    return inner + height[rule][edge.target]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"property_order": "any"}, {"close_objects": True, "whitespace": "any"}])
def test_walks_end_in_valid_texts(options: dict[str, Any]) -> None:
    texts = 0
    for seed in range(SCHEMAS):
        rng = random.Random(f"walk {seed}")
        schema = random_document(rng)
        try:
            grammar = compile_schema(schema, **options).grammar
        except ConstrainError:
            continue
        validator = jsonschema.Draft202012Validator(schema)
        lexemes = Lexemes(rng)
        height = heights(grammar)
        for _ in range(WALKS):
            text = walk(grammar, rng, lexemes, height)
            value = json.loads(text, object_pairs_hook=without_duplicates)
            assert validator.is_valid(value), f"seed {seed}: {text!r} against {json.dumps(schema)}"
            texts += 1
    assert texts > SCHEMAS


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key comes twice in {pairs}"
    return found


@pytest.mark.slow
def test_every_rule_is_reachable_and_every_state_leads_to_the_end() -> None:
    for seed in range(SCHEMAS):
        schema = random_document(random.Random(f"trim {seed}"))
        try:
            grammar = compile_schema(schema).grammar
        except ConstrainError:
            continue
        called = {
            ~edge.symbol for rule in grammar.rules for edge in rule.edges if edge.symbol is not None and edge.symbol < 0
        }
        assert called | {0} == set(range(len(grammar.rules))), f"seed {seed}"
        used = {
            edge.symbol for rule in grammar.rules for edge in rule.edges if edge.symbol is not None and edge.symbol >= 0
        }
        assert used == set(range(len(grammar.terminals))), f"seed {seed}"
        for rule, height in zip(grammar.rules, heights(grammar), strict=True):
            states = {edge.source for edge in rule.edges} | {edge.target for edge in rule.edges}
            assert all(height.get(state, 10**9) < 10**9 for state in states), f"seed {seed}: {rule.name}"
        assert all(slot == TEXT_SET or slot > 0 for rule in grammar.rules for slot in rule.slots)
        assert {action for rule in grammar.rules for edge in rule.edges for action, _ in edge.actions} <= set(Action)
