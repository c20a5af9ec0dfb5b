"""Bugs planted on purpose in the kernel, one at a time: a certificate finds each of them.

A wrong kernel is the kernel, given another grammar than the one that the certificate is about: one that forgets a
condition of the grammar works as a correct kernel works on the grammar without the condition. Its masks, completions
and lexemes are wrong throughout, and consistent with one another. Without a certificate, the wrong answer is produced,
complete and unnoticed. ``BUGS`` says what finds which bug, and the place that is reported.

- *creation*: an independent derivation of the answer is needed, and there is none.
- *verification*: ``constrain.verify`` refuses the certificate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import pytest

import constrain
from constrain import Lark, verify
from constrain.certificates import derivation
from constrain.certificates.certificate import certify
from constrain.certificates.export import grammar_to_json
from constrain.engine import constraint as engine
from constrain.engine.limited_rules import limited_rules, with_borders
from constrain.engine.special import resolve_special
from constrain.language import tree
from constrain.language.grammar import EPSILON, Edge, Grammar, Rule, Terminal
from constrain.regex.parsing.parser import parse_pattern
from tests.support import for_each
from tests.support.matching import allowed_tokens

END, ONE, TWO = 256, 257, 258
VOCABULARY = constrain.Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [b""] * 3, eos=[END], special={ONE: "<|one|>", TWO: "<|two|>"}, encode=list
)


def decode(constraint: constrain.Constraint, tokens: Sequence[int], max_tokens: int | None = None) -> bool:
    """Whether a loop may decode these tokens: each is in the mask, and the text may end behind them."""
    matcher = constraint.matcher(max_tokens)
    return all(token in allowed_tokens(matcher) and matcher.accept(token) for token in tokens) and matcher.is_accepting


def compile_one(source: Any, **policies: str) -> constrain.Constraint:
    """A constraint of its own: that of ``compile`` is remembered, and other tests would meet the bug."""
    made = constrain.compile(source, VOCABULARY, cache=False, **policies)
    return engine.Constraint(made.grammar, VOCABULARY, made.policies, made.warnings)


def plant(constraint: constrain.Constraint, mutate: Callable[[Grammar], Grammar]) -> None:
    """Puts a wrong kernel into a constraint."""
    wrong = mutate(constraint.grammar)
    written = [grammar_to_json(each, constraint.vocabulary) for each in (wrong, constraint.grammar)]
    assert written[0] != written[1], "the mutation changes nothing"
    resolved, _ = resolve_special(wrong, constraint.vocabulary)
    constraint._core = constraint._compiled(resolved)
    if constraint.has_limited_rules:
        limited = with_borders(resolved, limited_rules(resolved), constraint._compiled)
        constraint._with_borders = constraint._compiled(limited.grammar, limits=limited.limits)


def of_rules(change: Callable[[Rule], Rule]) -> Callable[[Grammar], Grammar]:
    return lambda grammar: replace(grammar, rules=tuple(map(change, grammar.rules)))


def of_edges(change: Callable[[Edge], Edge]) -> Callable[[Grammar], Grammar]:
    return of_rules(lambda rule: replace(rule, edges=tuple(map(change, rule.edges))))


def of_conditions(**changes: Callable[[Any], Any]) -> Callable[[Grammar], Grammar]:
    def change(edge: Edge) -> Edge:
        changed = [each._replace(**{name: of(getattr(each, name)) for name, of in changes.items()})
                   for each in edge.conditions]  # fmt: skip
        return edge._replace(conditions=tuple(changed))

    return of_edges(change)


def of_terminals(change: Callable[[Terminal], Terminal]) -> Callable[[Grammar], Grammar]:
    return lambda grammar: replace(grammar, terminals=tuple(map(change, grammar.terminals)))


def of_nodes(kind: type[Any], change: Callable[[Any], Any]) -> Callable[[Grammar], Grammar]:
    """Changes every node of a kind in every expression."""

    def changed(node: Any) -> Any:
        made = {field.name: getattr(node, field.name) for field in fields(node)}
        if made.get("parts") == ():
            return node  # ``EMPTY_TEXT`` and ``NOTHING``, which are known by identity
        for name, value in made.items():
            if hasattr(value, "__dataclass_fields__"):
                made[name] = changed(value)
            elif isinstance(value, tuple) and value and hasattr(value[0], "__dataclass_fields__"):
                made[name] = tuple(map(changed, value))
        again = type(node)(**made)
        return change(again) if isinstance(again, kind) else again

    return of_terminals(lambda each: replace(each, expression=changed(each.expression)))


def wider(limit: int | None) -> int | None:
    return None if limit is None else limit + 2


def skip_constants(grammar: Grammar) -> Grammar:
    """Reads nothing where a constant must stand."""
    constants = [index for index, each in enumerate(grammar.terminals) if each.name == "constant"]
    return of_edges(lambda edge: edge._replace(symbol=EPSILON) if edge.symbol in constants else edge)(grammar)


def end_before_the_last_lexeme(rule: Rule) -> Rule:
    early = [edge.source for edge in rule.edges if edge.target in rule.accepting]
    return replace(rule, accepting=tuple(sorted({*rule.accepting, *early})))


UNIQUE = {"type": "array", "items": {"type": ["string", "number", "array"]}, "uniqueItems": True}
OBJECT = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
DIGITS = parse_pattern("[0-9]+", "rust")


def raw(*terminals: Terminal, limit: int | None = None, ignored: Sequence[int] = ()) -> Grammar:
    """A grammar that reads the terminals that are not ignored, one after the other, in a rule of its own."""
    read = [index for index in range(len(terminals)) if index not in ignored]
    edges = tuple(Edge(place, index, place + 1) for place, index in enumerate(read))
    inner = Rule("inner", edges, (len(read),), max_tokens=limit)
    return Grammar(terminals, (Rule("start", (Edge(0, ~1, 1),), (1,)), inner), tuple(ignored))


class Bug(NamedTuple):
    """A wrong kernel.

    Attributes:
        mutate: makes the grammar that the kernel follows.
        source: schema or grammar of the answer.
        wrong: wrong text that masks then allow, or its tokens.
        place: place that is reported.
        by: what finds it.
    """

    mutate: Callable[[Grammar], Grammar]
    source: Any
    wrong: str | list[int]
    place: str
    by: str = "creation"

    @property
    def tokens(self) -> list[int]:
        return list(self.wrong.encode()) if isinstance(self.wrong, str) else self.wrong


ARRAY = {"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 3}
MOST = {"type": "array", "items": {"enum": [1]}, "maxItems": 3}
KEYS = {"type": "object", "additionalProperties": {"enum": [1]}}
SHORT = {"type": "string", "minLength": 2, "maxLength": 3}
BOTH = {"allOf": [{"pattern": "b"}, {"pattern": "a"}], "type": "string"}
SPECIAL = Lark('start: "a" <|one|> "b"\n')
AFTER_A = raw(Terminal("a", tree.Literal(b"a")), Terminal("b", tree.Literal(b"b")), ignored=[1])
FORGETFUL = of_edges(lambda edge: edge._replace(actions=()))
CAPS = of_rules(lambda rule: replace(rule, slots=tuple(slot - 1 if slot > 0 else slot for slot in rule.slots)))
FIRST, PROOF = "step 0 .* byte 0", "verification"


def same_again(*, groups: bool) -> Callable[[Grammar], Grammar]:
    def change(edge: Edge) -> Edge:
        is_group = edge.symbol is not EPSILON and edge.symbol < 0
        return edge._replace(distinct=-1) if edge.symbol is not EPSILON and is_group == groups else edge

    return of_edges(change)


BUGS = {
    "a counter allows one more": Bug(
        of_conditions(maximum=lambda most: None if most is None else most + 1), ARRAY, "[1,1,1,1]", "byte 6"
    ),
    "a counter forgets its minimum": Bug(of_conditions(minimum=lambda _: 0), ARRAY, "[1]", "byte 2"),
    "a counter does not count": Bug(FORGETFUL, MOST, "[1,1,1,1]", "byte 6"),
    "a counter stops early, and never gets beyond the maximum": Bug(CAPS, ARRAY, "[1,1,1,1]", "byte 6"),
    "keys may stand twice": Bug(of_edges(lambda edge: edge._replace(excluding=-1)), KEYS, '{"k":1,"k":1}', "byte 7"),
    "keys are not remembered": Bug(FORGETFUL, KEYS, '{"k":1,"k":1}', "byte 7"),
    "equal scalars": Bug(same_again(groups=False), UNIQUE, '["a","a"]', "byte 5"),
    "equal groups": Bug(same_again(groups=True), UNIQUE, "[[1],[1]]", "byte 8"),
    "equal strings in two spellings": Bug(
        lambda grammar: replace(grammar, strings_by_value=False), UNIQUE, r'["a","\u0061"]', "byte 5"
    ),
    "equal numbers in two spellings": Bug(
        lambda grammar: replace(grammar, numbers_by_double=False), UNIQUE, "[0.1,0.10000000000000000001]", "byte 5"
    ),
    "a rule ends early": Bug(of_rules(end_before_the_last_lexeme), OBJECT, '{"a":1', "byte 6"),
    "a lexeme is skipped": Bug(skip_constants, OBJECT, '{"a":}', "byte 5"),
    "a byte too many in a class": Bug(
        of_nodes(tree.ByteClass, lambda node: tree.ByteClass(tuple((a, min(z + 1, 253)) for a, z in node.ranges))),
        *({"type": "integer"}, "1:", FIRST, PROOF),
    ),
    "a character too many": Bug(
        of_nodes(
            tree.Repetition, lambda each: each if each.maximum is None else replace(each, maximum=each.maximum + 1)
        ),
        *(SHORT, '"abcd"', FIRST, PROOF),
    ),
    "a character too few": Bug(
        of_nodes(tree.Repetition, lambda node: replace(node, minimum=0)), SHORT, '"a"', FIRST, PROOF
    ),
    "only the first of two patterns": Bug(
        of_nodes(tree.Intersection, lambda node: node.parts[0]), BOTH, '"b"', FIRST, PROOF
    ),
    "a denial is forgotten": Bug(
        of_nodes(tree.Complement, lambda _: tree.ANY_BYTES),
        *({"type": "string", "not": {"pattern": "b"}}, '"b"', FIRST, PROOF),
    ),
    "a divisor is forgotten": Bug(
        of_nodes(tree.Multiple, lambda node: replace(node, divisor=1)),
        *({"type": "integer", "multipleOf": 7}, "8", FIRST, PROOF),
    ),
    "a pattern's text is too long": Bug(
        of_nodes(tree.Window, lambda node: replace(node, maximum=node.maximum + 1)),
        *({"type": "string", "pattern": "a", "maxLength": 2}, '"abc"', FIRST, PROOF),
    ),
    "a terminal has too many tokens": Bug(
        of_terminals(lambda each: replace(each, max_tokens=wider(each.max_tokens))),
        *(raw(Terminal("digits", DIGITS, max_tokens=2)), "123", "byte 0"),
    ),
    "a rule has too many tokens": Bug(
        of_rules(lambda rule: replace(rule, max_tokens=wider(rule.max_tokens))),
        *(raw(Terminal("digits", DIGITS), limit=2), "123", "byte 3"),
    ),
    "a lazy lexeme goes on": Bug(
        of_terminals(lambda each: replace(each, lazy=False)),
        *(raw(Terminal("digits", DIGITS, lazy=True)), "12", "step 1 .*byte 0", PROOF),
    ),
    "other text is ignored": Bug(
        lambda grammar: replace(grammar, ignored=tuple(range(len(grammar.terminals)))), AFTER_A, "aa", "byte 1"
    ),
    "another special token": Bug(
        of_nodes(tree.Literal, lambda node: tree.Literal(node.text.replace(b"<|one|>", b"<|two|>"))),
        *(SPECIAL, [ord("a"), TWO, ord("b")], "step", PROOF),
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
    constraint = compile_one(bug.source, **({"escapes": "any"} if "\\u" in str(bug.wrong) else {}))
    assert not decode(constraint, bug.tokens)
    matcher, tokens = constraint.matcher(), list[int]()
    while not matcher.is_finished and not (tokens and matcher.is_accepting):
        tokens.append(matcher.completion_tokens()[0])
        assert matcher.accept(tokens[-1])
    assert find(constraint, tokens)[0] == "nothing"
    plant(constraint, bug.mutate)
    assert decode(constraint, bug.tokens)
    by, place = find(constraint, bug.tokens)
    assert by == bug.by, place
    assert re.search(bug.place, place), place


def test_a_token_beside_the_mask_is_found() -> None:
    constraint = compile_one(OBJECT)
    wrong = list(b'{"a":3}')
    assert not decode(constraint, wrong)
    by, place = find(constraint, wrong)  # a loop that samples past the mask writes it, and goes on
    assert by == "creation"
    assert "byte 5" in place, place


def test_a_budget_that_is_not_kept_is_found() -> None:
    constraint, limit = compile_one({"type": "string"}), 4
    wrong = list(b'"abcdef"')
    assert decode(constraint, wrong, max_tokens=2 * limit)  # the matcher was given another limit than the caller's
    by, place = find(constraint, wrong, max_tokens=limit)
    assert by == "verification"
    assert "budget of 4 tokens" in place


def test_wrong_forced_tokens_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = {**OBJECT, "additionalProperties": False}
    constraint = compile_one(closed, whitespace="compact")

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


@for_each(
    "source, text, spoil, place",
    (
        *(UNIQUE, "[[1],[2]]", lambda steps: [step for step in steps if step != derivation.END]),
        "step [0-9]+ of the derivation, at byte [0-9]+",
    ),
    (*(ARRAY, "[1,1]", lambda steps: [[s[0], s[1] + 1] if isinstance(s, list) else s for s in steps]), "at byte 0"),
)
def test_steps_that_are_left_out_and_spans_that_are_moved_are_found(
    source: Any, text: str, spoil: Callable[[list[Any]], list[Any]], place: str
) -> None:
    original = derivation._Reading._written
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derivation._Reading, "_written", lambda self, last: spoil(original(self, last)))
        by, found = find(compile_one(source), list(text.encode()))
    assert by == "verification"
    assert re.search(place, found), found
