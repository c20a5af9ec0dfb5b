"""The reference matcher itself, checked on expressions whose languages are obvious."""

from __future__ import annotations

import pytest

from constrain.language import tree
from tests.support.regex.derivative_matcher import matches

_A = tree.Literal(b"a")
_AB = tree.ByteClass(((97, 98),))
_WORD = tree.Repetition(tree.CharClass(((97, 122),)), 0, None)
_ANY = tree.Repetition(tree.ANY_JSON_CHAR, 0, None)

CASES = [
    (tree.EMPTY_TEXT, [b""], [b"a"]),
    (tree.NOTHING, [], [b"", b"a"]),
    (tree.Literal(b"abc"), [b"abc"], [b"", b"ab", b"abcd"]),
    (tree.CharClass(((0xE9, 0x1F600),)), ["é".encode(), "\U0001f600".encode()], [b"e", b"\xc3", b"\xed\xa0\x80"]),
    (tree.ANY_CHAR, [b"a", b"\x00", "\U0010ffff".encode()], [b"", b"aa", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff"]),
    (tree.ANY_JSON_CHAR, [b"a", b'\\"', b"\\\\", b"\\n", b"\\u001f", "é".encode()], [b'"', b"\n", b"\\u000a", b"\\/"]),
    (tree.CharClass(((0, 0x1F),), json=True), [b"\\u0000", b"\\t"], [b"\x00", b"\t", b"\\u0009", b"a"]),
    (tree.Concatenation((_A, tree.Repetition(_AB, 0, None))), [b"a", b"abba"], [b"", b"ba"]),
    (tree.Alternation((_A, tree.Literal(b"bc"))), [b"a", b"bc"], [b"", b"b", b"abc"]),
    (tree.Intersection((_WORD, tree.Complement(tree.Literal(b"no")))), [b"", b"n", b"noo"], [b"no", b"1"]),
    (tree.Repetition(_A, 2, 1_000_000), [b"aa", b"a" * 50], [b"", b"a", b"ab"]),
    (tree.Repetition(tree.Repetition(_A, 0, 1), 3, 4), [b"", b"aaaa"], [b"aaaaa"]),
    (tree.LiteralSet((b"in", b"int", b"i")), [b"in", b"int", b"i"], [b"", b"n", b"inte"]),
    (tree.LiteralSet(()), [], [b""]),
    (tree.Multiple(7), [b"0", b"14", b"-7", b"007", b"7.000"], [b"", b"-", b"8", b"7.", b"7.1", b"--7"]),
    (tree.Multiple(25, 2), [b"0.25", b"1", b"3.7500", b"-0.5"], [b"0.2", b"0.251", b"0.255"]),
    (tree.Window(_WORD, tree.ANY_CHAR, 2, 3), [b"ab", b"abc"], [b"", b"a", b"abcd", b"A1"]),
    (
        tree.Window(tree.Concatenation((_WORD, tree.Literal(b'"'))), tree.ANY_JSON_CHAR, 1, 2),
        [b'a"', b'ab"'],
        [b'"', b"a", b'abc"'],
    ),
    (tree.Window(_ANY, tree.ANY_JSON_CHAR, 2, 2), [b"\\n\\n"], [b"\\n", b"ab\\"]),
]


@pytest.mark.parametrize(("expression", "accepted", "rejected"), CASES)
def test_matches_exactly_the_language(
    expression: tree.Expression, accepted: list[bytes], rejected: list[bytes]
) -> None:
    assert [text for text in accepted if not matches(expression, text)] == []
    assert [text for text in rejected if matches(expression, text)] == []
