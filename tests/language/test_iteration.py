"""Rules that join their own texts become iterations of the same language, by brute force over small grammars."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

import constrain
from constrain import Gbnf, Lark
from constrain.language.grammar import EPSILON, Capture, Edge, Grammar, Rule, Terminal
from constrain.language.iteration import with_iterations
from constrain.language.tree import Literal
from tests.support import LONG, byte_vocabulary, for_each
from tests.support.processor_time import finishes_within

LONGEST = 6
LETTERS = "a+"
TERMINALS = tuple(Terminal(letter, Literal(letter.encode())) for letter in LETTERS)


def _texts(rules: Sequence[Rule]) -> set[str]:
    """The texts of the first rule up to the longest: the least solution, by repetition."""
    texts: list[set[str]] = [set() for _ in rules]
    while True:
        new = [_texts_of(rule, texts) for rule in rules]
        if new == texts:
            return texts[0]
        texts = new


def _texts_of(rule: Rule, texts: list[set[str]]) -> set[str]:
    by_length = [sorted(each, key=len) for each in texts]
    found = {(0, "")}
    waiting = list(found)
    while waiting:
        state, text = waiting.pop()
        for edge in rule.edges:
            if edge.source != state:
                continue
            if edge.symbol is EPSILON:
                read = [""]
            else:
                read = [LETTERS[edge.symbol]] if edge.symbol >= 0 else by_length[~edge.symbol]
            for part in read:
                if len(text) + len(part) > LONGEST:
                    break
                if (item := (edge.target, text + part)) not in found:
                    found.add(item)
                    waiting.append(item)
    return {text for state, text in found if state in rule.accepting}


def _rule(source: random.Random, name: str, symbols: list[int | None]) -> Rule:
    """Alternatives of a few symbols, some of which are linked to others or repeated."""
    edges, states = [], 2
    for _ in range(source.randint(2, 4)):
        at = 0
        for step in range(length := source.randint(1, 4)):
            target = 1 if step == length - 1 else states
            states += target == states
            edges.append(Edge(at, source.choice(symbols), target))
            at = target
    if source.random() < 0.3:
        edges.append(Edge(source.randrange(states), source.choice(symbols), source.randrange(states)))
    return Rule(name, tuple(edges), (1,))


@pytest.mark.slow
def test_an_iteration_has_the_texts_of_the_rule() -> None:
    source = random.Random(0)
    rewritten = 0
    for number in range(1_000 if LONG else 50):
        own = source.choice([[~0, ~0, ~0], [~0, ~0, ~1]])
        first = _rule(source, "e", [*own, 0, 1, EPSILON])
        rules = (first, _rule(source, "f", [0, 1, ~0, ~1, EPSILON]))
        made = with_iterations(Grammar(TERMINALS, rules))
        rewritten += len(made.rules) > len(rules)
        assert _texts(made.rules) == _texts(rules), (number, Grammar(TERMINALS, rules).dump())
    assert rewritten > 5


JOINING = {
    "operators": 'start: e\ne: e "+" e | e "*" e | /[0-9]+/',
    "signs": 'start: e\ne: "-" e | e "!" | e "-" e | /[0-9]/',
    "a choice of three": 'start: e\ne: e "?" e ":" e | e "+" e | /[0-9]/',
    "side by side": "start: e\ne: e e | /[0-9]/",
    "twos and threes": "start: e\ne: e e e | e e | /1+/ | ",
    "threes": "start: e\ne: e e e | /1+/",
    "in rules of their own": 'start: e\ne: add | mul | /[0-9]+/\nadd: e "+" e\nmul: e "*" e',
    "by turns": 'start: s\ns: t s | "1"\nt: s s | "1"',
    "with ignored text": 'start: e\ne: e "+" e | /[0-9]+/\n%ignore " "',
}


@for_each("name", JOINING)
def test_the_work_for_a_byte_does_not_grow_with_the_text(name: str) -> None:
    """Without iterations, 4,000 bytes take minutes."""
    constraint = constrain.compile(Lark(JOINING[name]), byte_vocabulary(), cache=False)
    texts = {"signs": b"-1!-", "with ignored text": b"1 + ", "a choice of three": b"1?1:", "operators": b"1+2*"}
    text = (texts | {"in rules of their own": texts["operators"]}).get(name, b"1") * 1_001
    with finishes_within(5):
        assert constraint.accepts(text[:-4] + b"1")


def test_gbnf_is_iterated() -> None:
    constraint = constrain.compile(
        Gbnf('root ::= e\ne ::= e "+" e | "(" e ")" | [0-9]'), byte_vocabulary(), cache=False
    )
    with finishes_within(5):
        assert constraint.accepts(b"1+(2+3)+" * 500 + b"1")


@for_each("kept", [{"capture": Capture("e")}, {"max_tokens": 3}, {"slots": (1,)}, {"bare": Literal(b"a")}])
def test_a_rule_with_options_stays(kept: dict[str, object]) -> None:
    rule = Rule("e", (Edge(0, ~0, 2), Edge(2, ~0, 1), Edge(0, 0, 1)), (1,), **kept)  # type: ignore[arg-type]
    grammar = Grammar(TERMINALS, (rule,))
    assert with_iterations(grammar) is grammar


def test_left_and_right_recursion_stay() -> None:
    for edges in [(Edge(0, ~0, 2), Edge(2, 0, 1), Edge(0, 1, 1)), (Edge(0, 0, 2), Edge(2, ~0, 1), Edge(0, 1, 1))]:
        grammar = Grammar(TERMINALS, (Rule("e", edges, (1,)),))
        assert with_iterations(grammar) is grammar
