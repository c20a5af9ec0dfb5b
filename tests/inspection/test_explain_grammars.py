"""Explanations of texts under Lark and GBNF grammars: parts have the names of the grammar's text, with their places."""

from __future__ import annotations

from typing import NamedTuple

import constrain
from constrain import Gbnf, Lark
from tests.support import byte_vocabulary, for_each


class Case(NamedTuple):
    grammar: Lark | Gbnf
    text: str
    offset: int
    expected: tuple[str, ...]
    completion: str


PLACES = Lark('start: NAME ("," NAME)*\nNAME: /[a-z]+/ & ~("if" | "else")')
LINES = Lark('start: LINES "."\nLINES: /[a-z \\n]*/ & ~/(?s:.)*\\n\\n(?s:.)*/')
PAIRS = Lark('start: item{2,3} "."\nitem: "<" /[a-z]/ ">"')
MANY = Lark('start: ("a" "b"){70,80} "."')
DIGITS = Lark('start: N "."\nN: /[0-9]/{3,4}')
SPLIT = Lark('start: NAME "in" NAME\nNAME: /[a-z]+/')
LINE = Lark('start: "x" ","? /.+/ "\\n"')
BOTH_SPLIT = Lark('start: A B ";"\nA: /[ab]+/ & ~"ab"\nB: "b" | "bb"')
NESTED = Gbnf('root ::= value\nvalue ::= "[" (value ("," value)*)? "]" | num\nnum ::= [0-9]+')
SUMS = Gbnf('root ::= sum\nsum ::= sum "+" num | num\nnum ::= [0-9]+')
COUNTED = Gbnf('root ::= pair{2,3}\npair ::= "(" pair? ")"')
BLANKS = Gbnf('root ::= (expr "=" ws "\\n")+\nexpr ::= [a-z]+ ws | "(" ws expr ")" ws\nws ::= [ \\t\\n]*')
TOKENS = Gbnf('root ::= "a" <|end|> <[5]>')

CASES = {
    "after a word that is excluded": Case(PLACES, "a,else,", 6, ("NAME (line 2, column 1)",), "a"),
    "a word that is excluded, at the end": Case(PLACES, "if", 2, ("NAME (line 2, column 1)",), "a"),
    "a character that no word has": Case(PLACES, "a1", 1, ("NAME (line 2, column 1)", '"," (line 1, column 14)'), ""),
    "a line that an intersection excludes": Case(
        LINES, "a\n\nb.", 2, ("LINES (line 2, column 1)", '"." (line 1, column 14)'), "."
    ),
    "too few": Case(PAIRS, "<a>.", 3, ('"<" (line 2, column 7)',), "<a>."),
    "too many": Case(PAIRS, "<a><b><c><d>.", 9, ('"." (line 1, column 18)',), "."),
    "too few of a long count": Case(MANY, "ab" * 69 + ".", 138, ('"a" (line 1, column 9)',), "ab."),
    "too many of a long count": Case(MANY, "ab" * 81, 160, ('"." (line 1, column 25)',), "."),
    "too few in a terminal": Case(DIGITS, "12.", 2, ("N (line 2, column 1)",), "0."),
    "too many in a terminal": Case(DIGITS, "12345.", 4, ('"." (line 1, column 10)',), "."),
    "a terminal read by bytes": Case(SPLIT, "a1", 1, ("NAME (line 2, column 1)", '"in" (line 1, column 13)'), "ina"),
    "an optional part read by bytes": Case(
        LINE, "x\n", 1, ('"," (line 1, column 12)', "/.+/ (line 1, column 17)"), "a\n"
    ),
    "an intersection read by bytes": Case(BOTH_SPLIT, "ac", 1, ("A (line 2, column 1)", "B (line 3, column 1)"), "b;"),
    "parts of a rule of GBNF": Case(
        NESTED, "[1 2", 2, ("num (line 3, column 1)", '"," (line 2, column 23)', '"]" (line 2, column 37)'), "]"
    ),
    "a rule of GBNF": Case(NESTED, "[1,]", 3, ("num (line 3, column 1)", '"[" (line 2, column 11)'), "0]"),
    "left recursion": Case(SUMS, "1+x", 2, ('"+" num (line 2, column 13)',), "0"),
    "a count of GBNF": Case(COUNTED, "(x", 1, ('"(" (line 2, column 10)', '")" (line 2, column 20)'), ")()"),
    "a count of GBNF that is full": Case(COUNTED, "()()()()", 6, (), ""),
    "a sequence of GBNF, read by bytes": Case(BLANKS, "a=b", 2, ('"=" ws "\\n" (line 1, column 16)',), "\n"),
    "a special token of GBNF": Case(TOKENS, "ab", 1, ("<|end|> (line 1, column 14)",), "<|end|><[5]>"),
    "a token of GBNF by its id": Case(TOKENS, "a<|end|>", 8, ("<[5]> (line 1, column 22)",), "<[5]>"),
}


@for_each("case", CASES.values())
def test_a_place_has_the_names_of_the_text(case: Case) -> None:
    found = constrain.explain(case.grammar, case.text)
    assert (found.offset, found.completion.decode()) == (case.offset, case.completion)
    assert tuple(sorted(terminal.name for terminal in found.expected)) == tuple(sorted(case.expected))


def test_a_refused_token_is_explained_by_the_names_of_the_text() -> None:
    for grammar, text, expected in (
        (PLACES, b"a,i", "NAME (line 2, column 1)"),
        (SPLIT, b"a", "NAME (line 2, column 1)"),
        (NESTED, b"[1", '"]" (line 2, column 37)'),
    ):
        matcher = constrain.compile(grammar, byte_vocabulary(), cache=False).matcher()
        assert matcher.accept_many(list(text)) == len(text)
        assert expected in matcher.explain(ord("!"))


def test_a_long_part_of_gbnf_is_cut_in_names() -> None:
    words = " | ".join(f'"word{number}"' for number in range(50))
    found = constrain.explain(Gbnf(f'root ::= "(" root ")" | ({words})'), "x")
    assert [terminal.name for terminal in found.expected] == [
        '"word0" | "word1" | "word2" | "word3" | "word4" | "word5" | ... (line 1, column 26)',
        '"(" (line 1, column 10)',
    ]
