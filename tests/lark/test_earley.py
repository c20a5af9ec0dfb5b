"""Small grammars, every text over a small alphabet: the same language as that of Lark's own Earley parser.

Lark's dynamic lexer tries all ways to divide a text into lexemes; these grammars are such that the longest match
finds one whenever there is one. Lark also ignores text at both ends: here such texts must be rejected.
"""

from __future__ import annotations

from itertools import product

import lark
import pytest

import constrain
from constrain.lark import Lark, lark_grammar
from tests.support import byte_vocabulary

GRAMMARS = {
    "left recursion": ('start: start "a" | "b"', "ab", 8),
    "hidden left recursion": ('start: [x] start "a" | "b"\nx: "c"', "abc", 6),
    "mutual recursion": ('start: y "a" | "b"\ny: start "b" | "a" y | "a"', "ab", 8),
    "ambiguous sums": ('start: start "+" start | start "*" start | "1"', "1+*", 7),
    "dangling else": ('start: "i" start ["e" start] | "x"', "iex", 7),
    "empty rules": ('start: p q p\np: "a" | \nq: p p "b" | ', "ab", 7),
    "a cycle of rules": ('start: u | "a" u\nu: start | "b" |', "ab", 6),
    "palindromes": ('start: "a" start "a" | "b" start "b" | "a" | "b" |', "ab", 8),
    "as many of two": ('start: "a" start "b" start |', "ab", 10),
    "loops in loops": ('start: (("a" "b"?)+ "c")* "a"~2..3', "abc", 8),
    "loops of what may be empty": ('start: (p*)+ "b"\np: "a"? q\nq: "c" |', "abc", 6),
    "ignored between": ('start: "a" ("b" "a")*\n%ignore "_"', "ab_", 8),
    "ignored in empty rules": ('start: p p "b" p\np: "a" |\n%ignore "_"', "ab_", 7),
    "ignored in left recursion": ('start: start "a" | "b" | start start\n%ignore /_/', "ab_", 7),
    "ignored text of several kinds": ('start: "a"+\n%ignore /_+/\n%ignore "(" /[^)]*/ ")"', "a_()", 7),
    "ignored comments to the end of a line": ('start: "a" "b"*\n%ignore "_"\n%ignore /#[^;]*;/', "ab_#;", 6),
    "words apart": ('start: WORD ("," WORD)*\nWORD: /[ab]+/\n%ignore "_"', "ab,_", 7),
    "counts": ('start: ("a" | "b" "b")~2..4 "c"', "abc", 8),
    "long counts": ('start: "a"~3..70 "b"', "ab", 8),
}


def differences(grammar: str, alphabet: str, longest: int) -> tuple[list[str], list[str]]:
    """The texts that Lark accepts, and those about which it differs from us."""
    reference = lark.Lark(grammar, parser="earley", lexer="dynamic")
    ignored = tuple(char for char in "_(#" if char in alphabet) if "%ignore" in grammar else ()

    def expected(text: str) -> bool:
        if ignored and (text.startswith(ignored) or text.endswith(("_", ")", ";"))):
            return False
        try:
            reference.parse(text)
        except lark.exceptions.LarkError:
            return False
        return True

    texts = ["".join(letters) for length in range(longest + 1) for letters in product(alphabet, repeat=length)]
    accepted = [text for text in texts if expected(text)]
    return accepted, sorted(language(grammar, texts).symmetric_difference(accepted))


def language(grammar: str, texts: list[str]) -> set[str]:
    """The texts that we accept; none, if the grammar is refused because it has none."""
    try:
        constraint = constrain.compile(lark_grammar(Lark(grammar)), byte_vocabulary())
    except constrain.GrammarError as error:
        if "the language is empty" in error.message:
            return set()
        raise
    return {text for text in texts if constraint.accepts(text)}


@pytest.mark.slow(but=("ignored comments to the end of a line", "left recursion", "ignored text of several kinds"))
@pytest.mark.parametrize("name", GRAMMARS)
def test_the_language_is_that_of_larks_earley_parser(name: str) -> None:
    grammar, alphabet, longest = GRAMMARS[name]
    while len(alphabet) ** longest > 500:
        longest -= 1
    accepted, different = differences(grammar, alphabet, longest)
    assert accepted
    assert different == []
