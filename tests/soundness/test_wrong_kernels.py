"""Bugs planted on purpose in the kernel, one at a time: a certificate finds each of them.

Every bug has an effect: without a certificate, the wrong answer is produced, complete and unnoticed. ``BUGS`` says what
finds which bug, and the place that is reported.

- *creation*: an independent derivation of the answer is needed, and there is none.
- *verification*: ``constrain.verify`` refuses the certificate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import constrain
from constrain import Lark, verify
from constrain.certificates import derivation
from constrain.certificates.certificate import certify
from constrain.engine import constraint as engine
from constrain.language.grammar import Edge, Grammar, Rule, Terminal
from constrain.language.tree import Literal
from constrain.regex.parsing.parser import parse_pattern
from tests.soundness.planting import TWO, compile_one, decode, refuses
from tests.support import for_each
from tests.support.certificates import mutations as m

UNIQUE = {"type": "array", "items": {"type": ["string", "number", "array"]}, "uniqueItems": True}
OBJECT = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
DIGITS = parse_pattern("[0-9]+", "rust")


def raw(*terminals: Terminal, limit: int | None = None, ignored: Sequence[int] = ()) -> Grammar:
    """A grammar that reads the terminals that are not ignored, one after the other, in a rule of its own."""
    read = [index for index in range(len(terminals)) if index not in ignored]
    edges = tuple(Edge(place, index, place + 1) for place, index in enumerate(read))
    inner = Rule("inner", edges, (len(read),), max_tokens=limit)
    return Grammar(terminals, (Rule("start", (Edge(0, ~1, 1),), (1,)), inner), tuple(ignored))


@dataclass(frozen=True)
class Bug:
    """A wrong kernel.

    Attributes:
        mutate: makes the grammar that the kernel follows.
        source: schema or grammar of the answer.
        wrong: wrong text that masks then allow, or its tokens.
        place: place that is reported.
        by: what finds it.
        policies: policies of ``compile``.
    """

    mutate: Callable[[Grammar], Grammar]
    source: Any
    wrong: str | list[int]
    place: str
    by: str = "creation"
    policies: tuple[tuple[str, str], ...] = ()

    @property
    def tokens(self) -> list[int]:
        return list(self.wrong.encode()) if isinstance(self.wrong, str) else self.wrong


ARRAY = {"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 3}
MOST = {"type": "array", "items": {"enum": [1]}, "maxItems": 3}
KEYS = {"type": "object", "additionalProperties": {"enum": [1]}}
SHORT = {"type": "string", "minLength": 2, "maxLength": 3}
SPECIAL = Lark('start: "a" <|one|> "b"\n')
ANY_ESCAPES = (("escapes", "any"),)

BUGS = {
    "a counter allows one more": Bug(m.of_edges(m.allow_one_more), ARRAY, "[1,1,1,1]", "byte 6"),
    "a counter forgets its minimum": Bug(m.of_edges(m.forget_minimum), ARRAY, "[1]", "byte 2"),
    "a counter does not count": Bug(m.of_edges(m.forget_actions), MOST, "[1,1,1,1]", "byte 6"),
    "a counter stops early": Bug(m.of_rules(m.lower_caps), ARRAY, "[1,1,1,1]", "byte 6"),
    "keys may stand twice": Bug(m.of_edges(m.forget_excluding), KEYS, '{"k":1,"k":1}', "byte 7"),
    "keys are not remembered": Bug(m.of_edges(m.forget_actions), KEYS, '{"k":1,"k":1}', "byte 7"),
    "equal scalars": Bug(m.of_edges(m.forget_distinct_scalars), UNIQUE, '["a","a"]', "byte 5"),
    "equal groups": Bug(m.of_edges(m.forget_distinct_groups), UNIQUE, "[[1],[1]]", "byte 8"),
    "equal strings in two spellings": Bug(
        m.compare_spellings, UNIQUE, r'["a","\u0061"]', "byte 5", policies=ANY_ESCAPES
    ),
    "equal numbers in two spellings": Bug(m.compare_decimals, UNIQUE, "[0.1,0.10000000000000000001]", "byte 5"),
    "a rule ends early": Bug(m.of_rules(m.end_before_the_last_lexeme), OBJECT, '{"a":1', "byte 6"),
    "a lexeme is skipped": Bug(m.skip_constants, OBJECT, '{"a":}', "byte 5"),
    "a byte too many in a class": Bug(
        m.of_nodes(m.widen_classes), {"type": "integer"}, "1:", "step 0 .* byte 0", "verification"
    ),
    "a character too many": Bug(m.of_nodes(m.repeat_once_more), SHORT, '"abcd"', "step 0 .* byte 0", "verification"),
    "a character too few": Bug(m.of_nodes(m.repeat_less), SHORT, '"a"', "step 0 .* byte 0", "verification"),
    "only the first of two patterns": Bug(
        m.of_nodes(m.first_of_intersections),
        {"allOf": [{"pattern": "b"}, {"pattern": "a"}], "type": "string"},
        '"b"',
        "step 0 .* byte 0",
        "verification",
    ),
    "a denial is forgotten": Bug(
        m.of_nodes(m.forget_complements),
        {"type": "string", "not": {"pattern": "b"}},
        '"b"',
        "step 0 .* byte 0",
        "verification",
    ),
    "a divisor is forgotten": Bug(
        m.of_nodes(m.forget_divisor), {"type": "integer", "multipleOf": 7}, "8", "step 0 .* byte 0", "verification"
    ),
    "a pattern's text is too long": Bug(
        m.of_nodes(m.widen_windows),
        {"type": "string", "pattern": "a", "maxLength": 2},
        '"abc"',
        "step 0 .* byte 0",
        "verification",
    ),
    "a terminal has too many tokens": Bug(
        m.of_terminals(m.widen_terminal_limit), raw(Terminal("digits", DIGITS, max_tokens=2)), "123", "byte 0"
    ),
    "a rule has too many tokens": Bug(
        m.of_rules(m.widen_rule_limit), raw(Terminal("digits", DIGITS), limit=2), "123", "byte 3"
    ),
    "a lazy lexeme goes on": Bug(
        m.of_terminals(m.forget_lazy),
        raw(Terminal("digits", DIGITS, lazy=True)),
        "12",
        "step 1 .*byte 0",
        "verification",
    ),
    "other text is ignored": Bug(
        m.ignore_all, raw(Terminal("a", Literal(b"a")), Terminal("b", Literal(b"b")), ignored=[1]), "aa", "byte 1"
    ),
    "another special token": Bug(
        m.of_terminals(m.rename_special), SPECIAL, [ord("a"), TWO, ord("b")], "step", "verification"
    ),
}


def find(constraint: constrain.Constraint, tokens: list[int], **budget: Any) -> tuple[str, str]:
    """Returns what finds an answer wrong, and the place that it reports."""
    try:
        certificate = certify(constraint, tokens, **budget)
    except ValueError as error:
        return "creation", str(error)
    try:
        verify.verify(json.loads(json.dumps(certificate)))
    except ValueError as error:
        return "verification", str(error)
    return "nothing", ""


@for_each("name", BUGS)
def test_a_wrong_kernel_is_found_and_the_right_one_not_accused(name: str) -> None:
    bug = BUGS[name]
    constraint = compile_one(bug.source, bug.policies)
    assert refuses(constraint, bug.tokens)
    matcher, tokens = constraint.matcher(), list[int]()
    while not matcher.is_finished and not (tokens and matcher.is_accepting):
        tokens.append(matcher.completion_tokens()[0])
        assert matcher.accept(tokens[-1])
    assert find(constraint, tokens)[0] == "nothing"
    m.plant(constraint, bug.mutate)
    decode(constraint, bug.tokens)
    by, place = find(constraint, bug.tokens)
    assert by == bug.by, place
    assert re.search(bug.place, place), place


def test_a_token_beside_the_mask_is_found() -> None:
    constraint = compile_one(OBJECT)
    wrong = list(b'{"a":3}')
    assert refuses(constraint, wrong)
    by, place = find(constraint, wrong)  # a loop that samples past the mask writes it, and goes on
    assert by == "creation"
    assert "byte 5" in place, place


def test_a_budget_that_is_not_kept_is_found() -> None:
    constraint, limit = compile_one({"type": "string"}), 4
    wrong = list(b'"abcdef"')
    decode(constraint, wrong, max_tokens=2 * limit)  # the matcher was given another limit than the caller's
    by, place = find(constraint, wrong, max_tokens=limit)
    assert by == "verification"
    assert "budget of 4 tokens" in place


def test_wrong_forced_tokens_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = {**OBJECT, "additionalProperties": False}
    constraint = compile_one(closed, (("whitespace", "compact"),))

    def write_capitals(text: bytes, *_: object) -> list[int]:
        return list(text.upper())

    monkeypatch.setattr(engine, "certain_tokens", write_capitals)
    matcher = constraint.matcher()
    forced = matcher.forced_tokens()
    assert bytes(forced) == b'{"A":'
    assert matcher.accept_many(matcher.forced_bytes()) == len(forced)  # the loop takes its tokens without asking
    wrong = [*forced, *matcher.shortest_completion()]
    by, place = find(constraint, wrong)
    assert by == "creation"
    assert "token 2 is refused, at byte 2" in place, place


# Bugs of what makes certificates.


def test_steps_that_are_left_out_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = derivation._Reading._written

    def written(self: Any, last: Any) -> list[Any]:
        return [step for step in original(self, last) if step != derivation.END]

    monkeypatch.setattr(derivation._Reading, "_written", written)
    by, place = find(compile_one(UNIQUE), list(b"[[1],[2]]"))
    assert by == "verification"
    assert re.search("step [0-9]+ of the derivation, at byte [0-9]+", place), place


def test_spans_that_are_moved_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = derivation._Reading._written

    def written(self: Any, last: Any) -> list[Any]:
        return [[step[0], step[1] + 1] if isinstance(step, list) else step for step in original(self, last)]

    monkeypatch.setattr(derivation._Reading, "_written", written)
    by, place = find(compile_one(ARRAY), list(b"[1,1]"))
    assert by == "verification"
    assert "at byte 0" in place, place
