"""Grammars within JSON strings: their texts are those of the grammar, spelled, also where escapes could be mistaken."""

from __future__ import annotations

import itertools
import json
from random import Random

import pytest

import constrain
from constrain.chat.answers.escapes import spell_in_json
from tests.support import Tokens, Walker, byte_vocabulary, for_each

PATCH = """\
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: add | delete | update
add: "*** Add File: " filename LF add_line+
delete: "*** Delete File: " filename LF
update: "*** Update File: " filename LF change+
filename: /(.+)/
add_line: "+" /(.*)/ LF
change: ("+" | "-" | " ") /(.*)/ LF
%import common.LF
"""

CHARACTERS = 'ab "\\\n'
LENGTH = 5

APART = {
    "a line": r'start: /.+/ "\n"',
    "a line that may be empty": r'start: /.*/ "\n"',
    "lines": 'start: (/[^\\n]+/ LF)+ "b"\n%import common.LF',
    "a line behind a mark": r'start: ("a" | "b") /.*/ "\n"',
    "a line in a rule of its own": 'start: name "\\n" name? "\\n"\nname: /.+/',
    "characters of several kinds": r'start: /a[^\n]{0,2}|b"(a|\\\\)*/ "\n"',
    "words in a line": 'start: A "\\n"\nA: "ab" | "a\\"" | /b*\\\\+/',
    "up to a quote": r"""start: /[^"]+/ "\"" """,
    "up to a backslash": r"start: /[^\\]+/ /\\+/",
    "a line beside a word that ends": 'start: (/[^\\n]+/ "\\n")* ("ab" | "a b")',
    "a line or nothing": r'start: "a" (/.+/ "\n" | "\n")',
}
"""Their terminals are read character by character."""

KEPT = {
    "no escapes": r'start: /[ab]+/ "\n"',
    "nothing behind": "start: /.+/",
    "the end shows at once": r'start: /["a]+/ "b"',
    "ends inside": r'start: /[^\n]*\n/ "a"',
}


@for_each("name", [*APART, *KEPT])
def test_the_texts_within_a_string_are_those_of_the_grammar(name: str) -> None:
    grammar = constrain.Lark({**APART, **KEPT}[name]).grammar()
    plain = constrain.compile(grammar, byte_vocabulary(), cache=False)
    spelled = constrain.compile(spell_in_json(grammar), byte_vocabulary(), cache=False)
    found = 0
    for length in range(LENGTH + 1):
        for letters in itertools.product(CHARACTERS, repeat=length):
            text = "".join(letters)
            accepted = plain.accepts(text)
            assert spelled.accepts(json.dumps(text)[1:-1]) == accepted, text
            found += accepted
    assert found


@for_each("name", [*APART, *KEPT])
def test_terminals_are_read_by_characters_only_where_that_is_needed(name: str) -> None:
    grammar = constrain.Lark({**APART, **KEPT}[name]).grammar()
    assert (len(spell_in_json(grammar).rules) > len(grammar.rules)) == (name in APART)


REFUSED = {
    "what follows begins with a character of it": 'start: A B\nA: /a[^b]*/\nB: /"b/',
    "what follows something beside it goes on with it": 'start: A "\\n" | "ab" B\nA: /[^\\n]+/\nB: "\\""',
    "what stands beside it begins with a character of it": 'start: A "\\n" | B "b"\nA: /[^\\n]+/\nB: /a"/',
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_the_longest_match_matters_terminals_stay_whole(name: str) -> None:
    grammar = constrain.Lark(REFUSED[name]).grammar()
    assert len(spell_in_json(grammar).rules) == len(grammar.rules)


def test_special_tokens_are_no_characters() -> None:
    grammar = constrain.Lark('start: /.+/ "\\n" <|end|>').grammar()
    assert len(spell_in_json(grammar).rules) == len(grammar.rules) + 1


@pytest.mark.slow
def test_a_grammar_with_very_many_places_is_left_alone() -> None:
    words = " | ".join(f'"{word}" /.+/' for word in range(1500))
    grammar = constrain.Lark(f'start: ({words}) "\\n"').grammar()
    assert len(spell_in_json(grammar).rules) == len(grammar.rules)


def test_every_walk_through_a_patch_in_a_string_is_a_patch() -> None:
    grammar = constrain.Lark(PATCH).grammar()
    plain = constrain.compile(grammar, byte_vocabulary(), cache=False)
    walker = Walker(constrain.compile(spell_in_json(grammar), byte_vocabulary(), cache=False), byte_vocabulary())
    rng, tokens = Random(5), Tokens(byte_vocabulary())
    for _ in range(60):
        text = walker.text(rng, tokens, rng.randrange(100, 200))
        assert plain.accepts(json.loads(b'"' + text + b'"')), text


@pytest.mark.parametrize(("grammar", "line"), [("start: <[7]>", 1), ('start: "a"\n  | <[5-9]>', 2)])
def test_tokens_by_id_are_refused_within_a_string(grammar: str, line: int) -> None:
    with pytest.raises(constrain.GrammarError, match="tokens by id may need an escape") as caught:
        spell_in_json(constrain.Lark(grammar).grammar())
    assert caught.value.line == line
