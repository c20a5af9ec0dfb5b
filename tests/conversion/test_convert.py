"""Conversion to Lark: the text of the result, and the places and remedies of errors."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

import constrain
from constrain import grammars
from constrain.conversion import tables
from constrain.conversion.automata import MAX_EXCEPTION_STATES
from constrain.conversion.ebnf import GRAMMAR, MAX_EBNF_COUNT, MAX_EBNF_NESTING
from constrain.conversion.gbnf import _part
from constrain.conversion.regularity import MAX_CONVERTED_DEPTH
from constrain.lark.reading.syntax import Special
from tests.support import byte_vocabulary
from tests.support.processor_time import finishes_within

ARITHMETIC = r"""# sums, one on each line

root  ::= (expr "=" ws term "\n")+  # a line
expr  ::= term ([-+*/] ws term)*

# a number, a name
# or a sum
term  ::= ident    # a name
        | num
        # in parentheses
        | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
# the end
"""

ARITHMETIC_IN_LARK = r"""// Converted from GBNF by constrain: 6 rules; root is the start.
// No terminals, as a longest match would lose texts: ident, num, ws.
start: root

// sums, one on each line

root: (expr "=" ws term "\n")+  // a line
expr: term (/[-+*\/]/ ws term)*

// a number, a name
// or a sum
term: ident  // a name
    | num
      // in parentheses
    | "(" ws expr ")" ws
ident: /[a-z]/ /[a-z0-9_]/* ws
num: /[0-9]/+ ws
ws: /[ \t\n]/*
// the end
"""

PROGRAM = """(* after the example of
   the standard *)
program = 'PROGRAM', white space, identifier, { white space, assignment, ";" };  (* all of it *)
assignment = identifier , ":=" , ( number | identifier | string ) ;
identifier = alphabetic character, { alphabetic character | digit } ;
number = [ "-" ], { digit }- ;
string = '"' , { all characters - '"' }, '"' ;
alphabetic character = "A" | "B"   (* and so on *)
                     | "Z" ;
digit = "0" | "1" ;

white space = { ' ' }-;
all characters = 'a' | 'b' | '"';
"""

PROGRAM_IN_LARK = r"""// Converted from EBNF of ISO 14977 by constrain: 9 rules; program is the start.
// Names in capitals are terminals, each read as long as possible; this loses no text.
start: program

// after the example of
// the standard
program: "PROGRAM" WHITE_SPACE IDENTIFIER (WHITE_SPACE ASSIGNMENT ";")*  // all of it
ASSIGNMENT: IDENTIFIER ":=" (NUMBER | IDENTIFIER | STRING)
IDENTIFIER: ALPHABETIC_CHARACTER (ALPHABETIC_CHARACTER | DIGIT)*
NUMBER: "-"? DIGIT+
STRING: "\"" (ALL_CHARACTERS & ~"\"")* "\""
ALPHABETIC_CHARACTER: "A"
                    | "B"  // and so on
                    | "Z"
DIGIT: "0" | "1"

WHITE_SPACE: " "+
ALL_CHARACTERS: "a" | "b" | "\""
"""


@pytest.mark.parametrize(
    ("syntax", "text", "expected"),
    [("gbnf", ARITHMETIC, ARITHMETIC_IN_LARK), ("ebnf", PROGRAM, PROGRAM_IN_LARK)],
)
def test_names_comments_and_lines_are_kept(syntax: Any, text: str, expected: str) -> None:
    assert grammars.convert(text, syntax).text == expected


def body(text: str, syntax: Any) -> list[str]:
    """The converted rules, without the header."""
    lines = grammars.convert(text, syntax).text.splitlines()
    return lines[next(number for number, line in enumerate(lines) if not line.startswith("//")) :]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('root ::= "a"', ["start: root", "", 'root: "a"']),
        ('root ::= [a-z]+ | [^"/]', ["start: root", "", 'root: /[a-z]+/ | /[^"\\/]/']),
        ('root ::= .* "\\""', ["start: ROOT", "", 'ROOT: /.*/s "\\""']),
        ('root ::= fooBar 2nd start\nfooBar ::= "(" root? ")"\n2nd ::= <|x|>\nstart ::= fooBar', None),
        ('root ::= ("ab" root)? | ""', ["start: root", "", 'root: ("ab" root)? | ""']),
        ('root ::= "ab" "x"? root? | "a" "b" "y"', None),
        ('root ::= a{2,3} a{2} a{2,} a?\na ::= "(" root? ")"', None),
        ("root ::= [a-b]{3000} root?", ["start: root", "", "root: /[ab]/{3000} root?"]),
        ('root ::= "\\x00\\u00e9\\u2028\\t\\U0001F600"', ["start: root", "", 'root: "\\x00é\\u2028\\t😀"']),
    ],
)
def test_gbnf_in_larks_words(text: str, expected: list[str] | None) -> None:
    found = body(text, "gbnf")
    if expected is not None:
        assert found == expected
    constrain.compile(grammars.convert(text, "gbnf"), byte_vocabulary() if "<" not in text else special(), cache=False)


def special() -> constrain.Vocabulary:
    tokens = [*(bytes([byte]) for byte in range(256)), b"", b""]
    return constrain.Vocabulary.from_tokens(tokens, eos=[256], special={257: "<|x|>"})


def test_names_in_larks_form_are_listed_and_differ() -> None:
    text = 'root ::= fooBar FooBar "x"\nfooBar ::= "(" root? ")"\nfoo-bar ::= start\n'
    text += 'FooBar ::= "[" root? "]"\nstart ::= root 2nd\n2nd ::= "2" root?'
    found = grammars.convert(text, "gbnf").text
    assert "// Names in Lark's form: fooBar is foo_bar, FooBar is foo_bar_2, start is start_2, 2nd is r_2nd." in found
    assert 'root: foo_bar foo_bar_2 "x"' in found
    assert "foo-bar: start_2" in found
    assert "\nstart: root\n" in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start = 'x', rest; rest = '(', rest, ')' | ;", ["", 'start: "x" rest', 'rest: "(" rest ")" | ""']),
        ("größe = 'é', {zweiWorte}; zweiWorte = größe, 'ß';", None),
        ("a = (/ 'x' /) , (: 'y' / 'z' ! b :) . b = 3 * 'q', a .", None),
        ("a b = 'x' , a  b | 'y';", ["start: a_b", "", 'a_b: "x" a_b | "y"']),
        ('a = "\\n", \'"\', a | "";', ["start: a", "", 'a: "\\\\n" "\\"" a | ""']),
        ("a = {b} - ; b = 'x', [a];", ["start: a", "", "a: b+", 'b: "x" a?']),
        ("s = { n | '(', s, ')' }; n = { l } - 'ab'; l = 'a' | 'b';", None),
        ("s = l - 'b', s | 'x'; l = 'a' | 'b' | 'c';", ["start: s", "", 's: /[ac]/ s | "x"', 'L: "a" | "b" | "c"']),
    ],
)
def test_ebnf_in_larks_words(text: str, expected: list[str] | None) -> None:
    if expected is not None:
        assert body(text, "ebnf") == expected
    constrain.compile(grammars.convert(text, "ebnf"), byte_vocabulary(), cache=False)


def test_an_exception_that_lexing_would_change_becomes_rules() -> None:
    text = "s = name, { name | '(', s, ')' }; name = (l, {l}) - ('if' | 'é'); l = 'i' | 'f' | 'é' | 'ü';"
    converted = grammars.convert(text, "ebnf")
    assert "name: name_part_1\n" in converted.text
    constraint = constrain.compile(converted, byte_vocabulary(), cache=False)
    assert [each for each in ("f", "éi", "fi(ü)", "iff", "iif", "éé") if not constraint.accepts(each)] == []
    assert [each for each in ("é", "(f)", "i(é)", "") if constraint.accepts(each)] == []


DEEP = "".join(f"r{number} = ['x', r{number + 1}];" for number in range(MAX_CONVERTED_DEPTH)) + "r60 = 'y' - 'z';"
STATES = f"s = s, t | 'a'; t = {{ 'a' }} - ({MAX_EXCEPTION_STATES + 9} * 'a');"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "unexpected the end of the text; expected a name", (1, 1)),
        ("a = b c; b = 'x'; c = 'y';", "the rule b c is not defined; if these are several parts, put commas", (1, 5)),
        ("a = 'x'\nb = 'y';", "unexpected 'b'; expected a comma, |, a semicolon", (2, 1)),
        ("a = 'x';\nb = a = 'y';", "unexpected '='; expected a comma, |, a semicolon; each rule ends with a", (2, 7)),
        ("a ::= 'x'", "unexpected ':'; a rule of ISO 14977 is written name = parts ;", (1, 3)),
        ("<a> = 'x';", "a name of ISO 14977 stands without < and >", (1, 1)),
        ("a = 'x'+;", "for one part or more write part, { part }", (1, 8)),
        ("a = 'x'*;", "for any number of parts write { part }", (1, 8)),
        ("a = 'x'?;", "for an optional part write [ part ]", (1, 8)),
        ("a = ? any\ncharacter ?;", "the special sequence ? any character ? is for people to read", (1, 5)),
        ("a = 'x", "no closing ' on its line", (1, 5)),
        ("a = 'x'; (* (* *)", "the comment that begins here has no closing *)", (1, 10)),
        ("a = [ 'x' ;", "unexpected ';'; expected ]", (1, 11)),
        ("a = 'x' } ;", "unexpected '}'; expected", (1, 9)),
        ("# a\na = 'x';", "a comment of ISO 14977 is written (* comment *)", (1, 1)),
        (f"a = {MAX_EBNF_COUNT + 1} * 'x';", "MAX_EBNF_COUNT", (1, 5)),
        ("a = 'x'; a = 'y';", "the rule a is defined more than once; write one rule", (1, 10)),
        ("a = b;", "the rule b is not defined", (1, 5)),
        ("a = " + "(" * 300 + "'x'" + ")" * 300 + ";", "MAX_EBNF_NESTING", None),
        ("a = a;", "the language is empty: every way through a leads back to itself", (1, 1)),
        ("a = 'a', a - 'b';", "an exception stands between regular parts, but the rule a contains itself", (1, 10)),
        ("a = 'b' - b; b = ['(', b, ')'];", "but the rule b contains itself", (1, 11)),
        ("a = {b} -; b = ['x' | '(', a, ')'];", "but the rule b contains itself", (1, 6)),
        ("a = 'b' | 'a' - ('a' | 'b');", "this exception leaves nothing", (1, 15)),
        (DEEP.replace("'y' - 'z'", "'y'") + "s = r0 - 'z';", "MAX_CONVERTED_DEPTH", None),
        (STATES, "MAX_EXCEPTION_STATES", None),
        ("a = '\udcaa';", "half of a surrogate pair", (1, 6)),
    ],
)
def test_refusals_of_ebnf_name_the_place_and_a_remedy(text: str, message: str, place: tuple[int, int] | None) -> None:
    with finishes_within(2):
        with pytest.raises(constrain.GrammarError) as caught:
            grammars.convert(text, "ebnf")
        assert message in caught.value.message
        assert caught.value.line is not None
        assert place is None or (caught.value.line, caught.value.column) == place


def test_nesting_up_to_the_limit_is_read() -> None:
    text = "a = " + "(" * MAX_EBNF_NESTING + "'x'" + ")" * MAX_EBNF_NESTING + ";"
    assert constrain.compile(grammars.convert(text, "ebnf"), byte_vocabulary()).accepts("x")


def test_refusals_of_gbnf_are_those_of_its_reader() -> None:
    for text, message in (
        ("root ::= item", "the rule item is not defined"),
        ("root ::= root", "the language is empty"),
    ):
        with pytest.raises(constrain.GrammarError, match=message) as caught:
            grammars.convert(text, "gbnf")
        assert caught.value.line == 1


def test_all_tokens_but_one_are_written_by_id() -> None:
    text = "root ::= !<[5]>"
    assert _part(text, Special("!<[5]>", 9)) == Special("<[^5]>", 9)
    with pytest.raises(constrain.GrammarError, match="Lark cannot say !<x>") as caught:
        _part(text, Special("!<x>", 9))
    assert caught.value.column == 10


def test_another_syntax_and_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match="syntax must be one of 'gbnf', 'ebnf', not 'bnf'"):
        grammars.convert("a", "bnf")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be str"):
        grammars.convert(b"a", "gbnf")  # type: ignore[arg-type]


def test_the_tables_are_those_of_the_grammar() -> None:
    """Otherwise: python -m tools.generate_lark_tables."""
    assert hashlib.sha256(GRAMMAR.read_bytes()).hexdigest() == tables.DIGEST


def test_a_grammar_with_many_conflicts_is_read_by_characters_soon() -> None:
    rules = [
        f'r{n} ::= n{n} k{n} r{n + 1}? | "(" r{n} ")"\nn{n} ::= [a-z]+ "{n}"*\nk{n} ::= "k{n}" [a-z]*'
        for n in range(40)
    ]
    text = "root ::= r0\n" + "\n".join(rules) + '\nr40 ::= "end"'
    with finishes_within(4):
        converted = grammars.convert(text, "gbnf")
        assert '\nr40: "e" "n" "d"\n' in converted.text
    constraint = constrain.compile(converted, byte_vocabulary(), cache=False)
    assert constraint.accepts("(a0k0)")
    assert not constraint.accepts("(0k0)")
