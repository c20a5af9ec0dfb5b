"""GBNF grammars of many kinds, each with texts that it has and texts that it lacks."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    grammar: str
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]


JSON = r"""
# a JSON document: an object or a list
root   ::= object | array
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws     ::= [ \t\n]*
"""

ARITHMETIC = r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] ws term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
"""

LIST = 'root ::= item+\nitem ::= "- " [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ "\\n"'

CHESS = r"""
root    ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")*
move    ::= (pawn | piece | castle) [+#]?
piece   ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn    ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle  ::= "O-O" "-O"?
"""

CASES = {
    "json": Case(
        JSON,
        ('{"a": [1, -2.5e3, true]}', "[]", '{"k\\u00e9": {"x": null} }\n', '["\\""]'),
        ('{"a" 1}', "[1,]", '"a"', "{", '["\\x"]', "01"),
    ),
    "arithmetic": Case(ARITHMETIC, ("1 + x = 2\n", "(a1*3)= y\nz=0\n"), ("1 + = 2\n", "1=2", "A=1\n")),
    "a list": Case(LIST, ("- one\n", "- one\n- zwei, drei\n"), ("- \n", "one\n", "- one")),
    "chess": Case(CHESS, ("1. e4 e5\n", "1. e4 c5\n2. Nf3 O-O-O+\n"), ("1. e9 e5\n", "2. e4 e5\n", "1. e4\n")),
    "kana": Case("root ::= [ぁ-ゟ]+ | [ァ-ヿ]{2,3}", ("ひらがな", "カナ", "カタカ"), ("カ", "ひカ", "a", "")),
    "no quotes": Case('root ::= [^"]* "\\""', ('"', 'é"', 'ab\n"'), ('""', "a")),
    "ambiguous pieces": Case('root ::= ("ab" | "a") ("bc" | "c")', ("abc", "ac", "abbc"), ("ab", "abcc")),
    "words that end alike": Case("root ::= [a-z]+ [a-z0-9] [z]", ("abz", "a1z", "zzz"), ("az", "z", "1az")),
    "counts": Case(
        'root ::= "a"{2} "b"{1,} "c"{0,2} ("de"){3}', ("aabdedede", "aabbccdedede"), ("abdedede", "aabdede")
    ),
    "zero times": Case('root ::= "x"{0} "y"{0,1} "z"', ("z", "yz"), ("xz", "yyz")),
    "empty alternatives": Case('root ::= | "a" root "b"', ("", "ab", "aabb"), ("a", "ba", "aab")),
    "recursion on the right": Case('root ::= "a" root | "b"', ("b", "aab"), ("a", "ba")),
    "recursion in the middle": Case(
        'root ::= pair\npair ::= "(" pair ")" pair | ""', ("", "()", "(())()"), ("(", ")(", "())")
    ),
    "escapes": Case(
        r'root ::= "\x41\u00e9\U0001F600\t\\\"\n" [\]\[\\-]+', ('Aé😀\t\\"\n]-[', 'Aé😀\t\\"\n\\'), ('Aé😀\t\\"\n', "A")
    ),
    "ranges": Case("root ::= [a-cx-z0]+ [^a-y]", ("abz", "0xA", "cé"), ("d", "aa", "z")),
    "a hyphen at the end": Case("root ::= [a-]+ [-a]?", ("a-", "-", "--a"), ("b", "")),
    "any character": Case('root ::= . "x" .*', ("éx", "xx", "\nxabc\n"), ("x", "", "ab")),
    "comments and lines": Case('# first\nroot ::= # here\n  "a" | # there\n  "b"\n# last', ("a", "b"), ("c", "ab", "")),
    "nested groups": Case('root ::= (("a" | ("b" "c")?) "d")+', ("ad", "d", "bcdd"), ("a", "bd", "")),
    "optional of repeated": Case('root ::= ("ab"+)? "c"?', ("", "ab", "ababc", "c"), ("a", "abca")),
    "names": Case('root ::= A-1 b2\nA-1 ::= "x"\nb2 ::= A-1?', ("x", "xx"), ("", "xxx")),
    "a date": Case(
        'root ::= d{4} "-" d{2} "-" d{2}\nd ::= [0-9]', ("2026-11-25", "0000-00-00"), ("26-11-25", "2026-1-1")
    ),
    "an address": Case(
        'root ::= part ("." part){3}\npart ::= "25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9]? [0-9]',
        ("127.0.0.1", "255.249.10.9"),
        ("256.1.1.1", "1.2.3", "01.1.1.1"),
    ),
    "a line that ends": Case('root ::= [^\\n]+ "\\n" root?', ("a\n", "a\nb c\n"), ("\n", "a")),
    "quoted or bare": Case(
        'root ::= field ("," field)*\nfield ::= "\\"" ([^"] | "\\"\\"")* "\\"" | [^",\\n]*',
        ("a,b", '"x,""y""",z', ",", ""),
        ('"a', 'a"b', "a\n"),
    ),
    "xml": Case(
        'root ::= "<a>" (text | root)* "</a>"\ntext ::= [^<>&] | "&amp;"',
        ("<a></a>", "<a>x<a>&amp;</a></a>"),
        ("<a>", "<a>&</a>"),
    ),
    "an if": Case(
        'root ::= "if " [a-z]+ " then " root (" else " root)? | [a-z]+ "()"',
        ("f()", "if a then f()", "if a then if b then f() else g()"),
        ("if then f()", "if a then", "f"),
    ),
    "emoji": Case('root ::= [😀-😎]{1,3} "!"', ("😀!", "😎😀😁!"), ("!", "😀", "a!")),
    "a palindrome": Case('root ::= "a" root "a" | "b" root "b" | [ab]?', ("", "aba", "abba", "bab"), ("ab", "abab")),
    "long literals": Case(
        'root ::= ("SELECT" | "SELECTED") " " ("FROM" | "FROMAGE")',
        ("SELECT FROM", "SELECTED FROMAGE"),
        ("SELECT", "SELECTE FROM"),
    ),
}
"""Thirty grammars; those with left recursion, which llama.cpp refuses, are in the tests."""
