"""Examples in refusals of grammars with maximal-munch conflicts: each is as the message says."""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

import constrain
from constrain import Lark, kernel
from constrain.language import tree
from constrain.language.grammar import Grammar
from constrain.lark.grammar import grammar_of_lexemes
from tests.support import byte_vocabulary, for_each
from tests.support.oracles import expressions as rx
from tests.support.oracles.kernel.recognizer import Reading, Recognizer, State

REFUSAL = re.compile(
    r"terminal (?P<follower>.+) may follow terminal (?P<terminal>.+), but every first byte .*? "
    r"\(maximal-munch conflict\)\. For example, "
    r'(?:after "(?P<before>.*)" the "(?P<next>.+)" of .+ is read as more of (?P<reader>.+)'
    r'(?:, and no text that begins with "(?P<stranded>.+)" can be completed|; .* is not proved)'
    r'|"(?P<text>.+)" is a text of .+, and together with the "(?P<onward>.+)" of .+ after it, '
    r"it may begin a text of (?P<other>.+?); "
    r".* is not proved)\. Separate them"
)
BEYOND = 5
"""Bytes that are tried behind a text that nothing is said to complete."""


class Refusal(NamedTuple):
    """What a message says, its texts as bytes. ``before`` is a text of the language, or else of the terminal alone."""

    terminal: str
    follower: str
    before: bytes
    next: bytes
    reader: str
    stranded: bytes | None
    is_of_language: bool


def unquoted(text: str) -> bytes:
    return re.sub(
        rb'\\(?:x(..)|([nrt"\\]))',
        lambda found: bytes.fromhex(found[1].decode()) if found[1] else b'\n\r\t"\\'[b'nrt"\\'.index(found[2]) :][:1],
        text.encode(),
    )


def refusal(grammar: Grammar) -> Refusal | None:
    """What is said of a grammar; None if it is accepted."""
    try:
        kernel.CompiledGrammar(grammar, byte_vocabulary()._core)
    except constrain.GrammarError as error:
        message = str(error)
    else:
        return None
    found = REFUSAL.search(message)
    assert found, message
    is_of_language = found["before"] is not None
    before, following, reader = ("before", "next", "reader") if is_of_language else ("text", "onward", "other")
    return Refusal(
        found["terminal"],
        found["follower"],
        unquoted(found[before]),
        unquoted(found[following]),
        found[reader],
        None if found["stranded"] is None else unquoted(found["stranded"]),
        is_of_language,
    )


def read(recognizer: Recognizer, text: bytes) -> State | None:
    state: State | None = recognizer.start()
    for byte in text:
        state = state and recognizer.step(state, byte)
    return state


def check(grammar: Grammar, said: Refusal, alphabet: bytes) -> None:
    """Reads the example as expressions and the lexing rule are defined, by the oracle."""
    recognizer = Recognizer(grammar)
    expressions = {each.name: node for each, node in zip(grammar.terminals, recognizer.expressions, strict=True)}
    assert not rx.is_empty(rx.derivative(expressions[said.follower], said.next[0]))
    if not said.is_of_language:
        assert rx.nullable(derivative(expressions[said.terminal], said.before))
        assert not rx.is_empty(derivative(expressions[said.reader], said.before + said.next[:1]))
        return
    state = read(recognizer, said.before)
    assert state is not None
    assert said.terminal in {name_of(grammar, reading) for reading, node in state.readings if rx.nullable(node)}
    after = recognizer._lengthen(state, said.next[0])
    assert after is not None
    assert said.reader in {name_of(grammar, reading) for reading, _ in after.readings}
    if said.stranded is not None:
        assert said.stranded == said.before + said.next
        for length in range(BEYOND):
            for rest in product(alphabet, repeat=length):
                assert not recognizer.accepts(said.stranded + bytes(rest)), rest


def derivative(node: rx.Node, text: bytes) -> rx.Node:
    for byte in text:
        node = rx.derivative(node, byte)
    return node


def name_of(grammar: Grammar, reading: Reading) -> str:
    return grammar.terminals[reading.terminal].name


TABLE = [
    ('start: A "a"\nA: /a*/', b"a", b"a", True),
    ('start: A "a" | "b"\nA: /a+/', b"a", b"a", True),
    ('start: NAME "in" NAME\nNAME: /[a-z]+/', b"a", b"i", True),
    ('start: T "b"\nT: /a+b?/', b"a", b"b", False),
    ("start: A B?\nA: /a+/\nB: /a/", b"a", b"a", False),
    ('start: "a" x "c" | "ab" "c"\nx: "b"', b"a", b"b", False),
    ('start: "x" s\ns: "(" s ")" | A B\nA: /[0-9]+/\nB: /[0-9]{2}/', b"x0", b"0", True),
    ('start: (A | "z") "é"\nA: /é+/', "é".encode(), "é".encode(), True),
    ('start: A "\\n" "."\nA: /[a\\n]+/', b"a", b"\n", True),
    ('start: A "\\"" "\\\\"\nA: /[\\\\"]+/', b'"', b'"', True),
    ('start: A "!" | A A "?"\nA: /[ab]{2,}/', b"aa", b"a", False),
    ('start: "x" %json {"type": "integer"} "0"', b"x1", b"0", False),
]


@for_each("text, before, following, stranded", TABLE)
def test_the_example_is_a_text_in_which_the_longest_match_reads_too_far(
    text: str, before: bytes, following: bytes, stranded: bool
) -> None:
    grammar, _ = grammar_of_lexemes(Lark(text))
    said = refusal(grammar)
    assert said is not None
    assert (said.before, said.next) == (before, following)
    assert said.stranded == (before + following if stranded else None)
    check(grammar, said, b"".join({said.before, said.next}))


def test_the_text_before_an_example_is_one_of_the_terminal_that_the_follower_goes_on_with() -> None:
    said = refusal(grammar_of_lexemes(Lark('start: "let " NAME "in"\nNAME: /[a-z]+/'))[0])
    assert said is not None
    text = said.before.removeprefix(b"let ")
    name = tree.Repetition(tree.ByteClass(((97, 122),)), 1, None)
    assert kernel.matches(name, text)
    assert kernel.matches(name, text + said.next)


def test_an_example_far_from_the_beginning_is_one_of_expressions_alone() -> None:
    said = refusal(grammar_of_lexemes(Lark('start: "x"~5000 NAME "in"\nNAME: /[a-z]+/'))[0])
    assert said is not None
    assert not said.is_of_language
    name = tree.Repetition(tree.ByteClass(((97, 122),)), 1, None)
    assert kernel.matches(name, said.before)
    assert kernel.matches(name, said.before + said.next)
    assert (said.reader, said.next, said.stranded) == ("NAME (line 2, column 1)", b"i", None)
