r"""Ready grammars, and Python's expressions in Lark's own grammar: the language is that of Lark's Earley parser.

Where it is another one, the reason is found by two more judges (see ``earley``), and is one of these:

- *longest match*: Lark's dynamic lexer accepts a text if there is any way to divide it into lexemes. Ours are as long
  as they can be, as the reference of custom tools demands: "lambdax: x" begins with a name.
- *ignored at an end*: Lark ignores text before the first and after the last lexeme, too. Here nothing but the answer
  may be in an answer.
- *preferred match*: of a pattern's alternatives, ``re`` prefers the first that matches, and Lark then reads nothing
  that is longer. Patterns of Rust's ``regex`` that must match a whole lexeme have no order of alternatives.
- *word characters*: \w has combining marks in Rust's ``regex``, and superscript digits in ``re``. With other characters
  in place of these, the text must be explained, too.

In all cases the text must be accepted, or rejected, by Lark's parser with the longest match as its lexer.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from itertools import product
from random import Random
from typing import NamedTuple

import lark
import pytest

import constrain
from constrain import grammars
from constrain.engine import core
from constrain.lark import Lark, lark_grammar
from constrain.regex.parsing.parser import parse_pattern
from tests.support import LONG, allowed
from tests.support.grammars import python_lark
from tests.support.grammars.earley import Earley
from tests.support.grammars.lexemes import Lexemes
from tests.support.grammars.tables import table

TEXTS = 750 if LONG else 30
"""For each grammar; at full length 20,250 in all."""

LONGEST = 140
"""Characters of a text."""

STEPS = 24
"""Tokens of a walk before it takes the shortest way to an end."""

END = 256
PYTHON = "python.lark"
UNEXPLAINED = "unexplained"


class Subject(NamedTuple):
    """A grammar: its constraint over bytes and pieces of texts, its judges, and texts to begin with."""

    constraint: constrain.Constraint
    earley: Earley
    texts: list[str]


@cache
def subject(name: str) -> Subject:
    if name == PYTHON:
        grammar = Lark(python_lark.expressions(), start=python_lark.START)
        earley = Earley(grammar.text, grammar.start, own=python_lark.original())
        texts = python_texts()
    else:
        grammar = grammars.load(name)
        earley = Earley(grammar.text)
        texts = table(name).accepted + table(name).rejected
    texts = [text for text in texts if len(text) <= LONGEST]
    return Subject(constrain.compile(lark_grammar(grammar), pieces(texts, Random(name))), earley, texts)


def pieces(texts: list[str], rng: Random) -> constrain.Vocabulary:
    """Token ``i`` is byte ``i``, token 256 ends, and the others are what up to four characters of the texts are."""
    places = [(text, start) for text in texts for start in range(len(text))]
    found = {text[start : start + rng.randint(1, 4)] for text, start in rng.choices(places, k=400)}
    tokens = [bytes([byte]) for byte in range(256)] + [b""] + [piece.encode() for piece in sorted(found)]
    return constrain.Vocabulary.from_tokens(tokens, eos=[END])


def python_texts() -> list[str]:
    """The expressions of the ready grammar's table, and such with parts in place of other parts."""
    found = list(table("python_expression").accepted)
    parts = [part for text in found for part in ast.walk(ast.parse(text, mode="eval")) if is_part(part)]
    rng = Random(PYTHON)
    while len(found) < TEXTS // 3:
        text = ast.unparse(Replacing(rng, parts).visit(ast.parse(rng.choice(found), mode="eval")))
        if len(text) <= LONGEST:
            found.append(text)
    return found


def is_part(node: ast.AST) -> bool:
    """Is this a value that may stand anywhere?"""
    bound = isinstance(getattr(node, "ctx", None), ast.Store)
    special = (ast.Starred, ast.Slice, ast.FormattedValue)
    holds_slices = isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts)
    return isinstance(node, ast.expr) and not bound and not isinstance(node, special) and not holds_slices


class Replacing(ast.NodeTransformer):
    """Puts other values in place of some."""

    def __init__(self, rng: Random, parts: list[ast.AST]) -> None:
        self.rng = rng
        self.parts = parts

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.JoinedStr):
            return node
        if is_part(node) and self.rng.random() < 0.2:
            return self.rng.choice(self.parts)
        return self.generic_visit(node)


def texts_about(name: str) -> list[str]:
    """Texts to begin with, walks, and mutations of both, a third each at least; none twice."""
    begun, rng = subject(name).texts, Random(name)
    found = dict.fromkeys(rng.sample(begun, min(len(begun), TEXTS // 3)))
    others = [text for text in (walk(name, rng) for _ in range(TEXTS // 3)) if len(text) <= LONGEST]
    found.update(dict.fromkeys(others))
    while len(found) < TEXTS:
        text = mutation(rng, begun + others)
        if len(text) <= LONGEST:
            found[text] = None
    return list(found)


def walk(name: str, rng: Random) -> str:
    """Random tokens, mostly pieces of texts, and then the shortest way to an end."""
    constraint = subject(name).constraint
    matcher, row, text = constraint.matcher(), constraint.allocate_bitmask()[0], b""
    for _ in range(rng.randrange(STEPS)):
        tokens = [token for token in allowed(matcher, row).tolist() if token != END]
        if not tokens:
            break
        longer = [token for token in tokens if token > END]
        token = rng.choice(longer if longer and rng.random() < 0.9 else tokens)
        assert matcher.accept(token)
        text += constraint.vocabulary.token_bytes(token)
    return (text + bytes(matcher.shortest_completion())).decode()


def mutation(rng: Random, texts: list[str]) -> str:
    """A text with a change or two: something deleted, doubled, moved, replaced, inserted; the end of another text."""
    text, other = rng.choice(texts), rng.choice(texts)
    for _ in range(rng.randint(1, 2)):
        first, second, third = sorted(rng.randrange(len(text) + 1) for _ in range(3))
        near = min(first + rng.randint(1, 3), len(text))
        match rng.randrange(7):
            case 0:
                text = text[:first] + text[near:]
            case 1:
                text = text[:near] + text[first:]
            case 2:
                text = text[:first] + text[second:third] + text[first:second] + text[third:]
            case 3:
                text = text[:first] + rng.choice(other or " ") + text[near:]
            case 4:
                text = text[:first] + rng.choice(other or " ") + text[first:]
            case 5:
                text = text[:first] + other[rng.randrange(len(other) + 1) :]
            case 6:
                text = text[:first] + text[first:].replace(" ", "", 1)
    return text


def verdict(name: str, text: str) -> str:
    """Whether both accept the text, or what explains that only one does."""
    constraint, earley, _ = subject(name)
    ours, own = constraint.accepts(text), earley.own(text)
    plain = "".join(map(plain_character, text))
    if plain != text and ours != own and ours == constraint.accepts(plain):
        return UNEXPLAINED if verdict(name, plain) == UNEXPLAINED else "word characters"
    if ours != earley.longest_match(text):
        return UNEXPLAINED
    if ours == own:
        return "accepted" if ours else "rejected"
    if earley.any_division(text):
        return "longest match" if own else "preferred match"
    return "ignored at an end" if own and earley.any_division_inside(text) else UNEXPLAINED


@cache
def plain_character(char: str) -> str:
    """The character, or another one in place of those that only one dialect counts among words."""
    word = core.matches(parse_pattern(r"\w", "rust"), char.encode())
    if word == bool(re.match(r"\w", char)):
        return char
    return "é" if word else "€"


@pytest.mark.slow(but=("e164_phone", "semver", "chess_san"))
@pytest.mark.parametrize("name", [*grammars.names(), PYTHON])
def test_the_language_is_that_of_larks_earley_parser(name: str) -> None:
    """With ``-s``, pytest shows the counts."""
    texts = texts_about(name)
    verdicts = {text: verdict(name, text) for text in texts}
    counts = Counter(verdicts.values())
    print(name, dict(counts))
    assert [text for text, found in verdicts.items() if found == UNEXPLAINED] == []
    assert min(counts["accepted"], counts["rejected"]) > TEXTS // 10


def first_matches(name: str, texts: list[str]) -> list[str]:
    """The texts that Lark's pattern of the terminal in ``python.lark`` reads as a whole."""
    pattern = re.compile(
        lark.Lark(python_lark.original(), start=python_lark.START).get_terminal(name).pattern.to_regexp()
    )
    return [text for text in texts if (found := pattern.match(text)) and found.end() == len(text)]


def whole_matches(name: str, texts: list[str]) -> list[str]:
    """The texts that our pattern of the terminal describes."""
    pattern = lark.Lark(python_lark.expressions(), start=python_lark.START).get_terminal(name).pattern.to_regexp()
    return [text for text in texts if re.fullmatch(pattern, text)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "alphabet", "longest"), [("STRING", '"\\a\n', 6), ("LONG_STRING", '"\\a', 8), ("DEC_NUMBER", "019_", 6)]
)
def test_terminals_written_for_python_have_the_texts_that_lark_reads_as_a_whole(
    name: str, alphabet: str, longest: int
) -> None:
    texts = ["".join(letters) for length in range(longest + 1) for letters in product(alphabet, repeat=length)]
    other_quotes = [text.replace('"', "'") for text in texts] if '"' in alphabet else []
    expected = first_matches(name, texts + other_quotes)
    assert expected
    assert whole_matches(name, texts + other_quotes) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "quotes"), [("STRING", "'"), ("LONG_STRING", '"""')])
def test_strings_written_for_python_have_the_prefixes_of_larks(name: str, quotes: str) -> None:
    prefixes = ["".join(letters) for length in range(4) for letters in product("uUbBfFrRx", repeat=length)]
    texts = [prefix + quotes + "a" + quotes for prefix in prefixes]
    expected = first_matches(name, texts)
    assert len(expected) == 1 + 6 + 2 + 2 * 6 * 2
    assert whole_matches(name, texts) == expected


@pytest.mark.slow(only=("iso8601", "python_expression", "sql_select"))
@pytest.mark.parametrize("name", grammars.names())
def test_lexemes_are_the_matches_of_patterns(name: str) -> None:
    """Those that the judges read, in the texts of the table."""
    texts = [text for text in subject(name).texts if len(text) < 25]
    for terminal in lark.Lark(grammars.load(name).text).terminals:
        pattern = terminal.pattern.to_regexp()
        lexemes, compiled = Lexemes(pattern), re.compile(pattern)
        for text in texts:
            ends, reach = lexemes.read(text, 0)
            assert ends == {end for end in range(len(text) + 1) if compiled.fullmatch(text, 0, end)}
            assert max(ends, default=0) <= reach <= len(text)
