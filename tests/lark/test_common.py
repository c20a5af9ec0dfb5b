"""The library ``common``: the same terminals as Lark's, with the same texts."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product

import lark
import pytest

from constrain import kernel
from constrain.lark.common import LAZY, PATTERNS
from constrain.regex.parsing.parser import parse_pattern

ALPHABETS = {
    "": "0a.eE+-_Z",
    "ESCAPED_STRING": '"\\a\n',
    "WS": " \t\f\r\n",
    "WS_INLINE": " \t\f\n",
    "CR": "\r\n",
    "LF": "\r\n",
    "NEWLINE": "\r\na",
    "SH_COMMENT": "#a\n",
    "CPP_COMMENT": "/a\n",
    "C_COMMENT": "/*a",
    "SQL_COMMENT": "-a\n",
}


def test_every_terminal_of_larks_common_library_is_known() -> None:
    text = files("lark").joinpath("grammars", "common.lark").read_text(encoding="utf-8")
    names = set(re.findall(r"^(_?[A-Z][_A-Z0-9]*)\s*:", text, re.MULTILINE))
    assert names == {*PATTERNS, *LAZY}


@pytest.mark.slow(but=("CR", "LF", "NEWLINE"))
@pytest.mark.parametrize("name", PATTERNS)
def test_terminals_have_the_texts_that_larks_lexer_reads_as_a_whole(name: str) -> None:
    text = f"%import common.{name}\nstart: {name}"
    pattern = lark.Lark(text, parser="lalr", lexer="basic", keep_all_tokens=True).get_terminal(name).pattern.to_regexp()
    expression = parse_pattern(PATTERNS[name], "rust")
    alphabet = ALPHABETS.get(name, ALPHABETS[""])
    texts = ["".join(letters) for length in range(1, 6) for letters in product(alphabet, repeat=length)]
    if len(alphabet) > 5:
        texts = [text for text in texts if len(text) < 5]

    def reads_all(text: str) -> bool:
        found = re.match(pattern, text)
        if name in ("ESCAPED_STRING", "C_COMMENT"):  # lazy quantifiers: what a search finds first
            return found is not None and found.end() == len(text)
        return re.fullmatch(pattern, text) is not None

    expected = [text for text in texts if reads_all(text)]
    assert expected
    assert [text for text in texts if kernel.matches(expression, text.encode())] == expected
