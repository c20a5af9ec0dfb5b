"""Lark grammars: tables of accepted and rejected texts, and of grammars that are refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.lark import Lark, lark_grammar
from constrain.lark.reading.reader import MAX_NESTING
from tests.support import byte_vocabulary, check_each, data_folder, for_each

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

DATA = Path(__file__).parent / "data"


def cases(name: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = tomllib.loads((DATA / name).read_text(encoding="utf-8"))["case"]
    return table


@cache
def compiled(grammar: str, start: str = "start") -> constrain.Constraint:
    return constrain.compile(lark_grammar(Lark(grammar, start=start)), byte_vocabulary())


def test_texts_are_accepted_and_rejected() -> None:
    check_each(cases("accepted.toml"), require_texts)


def require_texts(case: dict[str, Any]) -> None:
    """Texts are accepted and rejected; every beginning of an accepted one can be completed."""
    constraint = compiled(case["grammar"])
    assert [text for text in case["accepted"] if not constraint.accepts(text)] == []
    assert [text for text in case["rejected"] if constraint.accepts(text)] == []
    for text in map(str.encode, case["accepted"]):
        matcher = constraint.matcher()
        for end, byte in enumerate(text, start=1):
            assert matcher.accept(byte)
            assert constraint.accepts(text[:end] + matcher.shortest_completion())


def test_refusals_name_the_place_and_the_cause() -> None:
    check_each(cases("refused.toml"), require_refusal)


def require_refusal(case: dict[str, Any]) -> None:
    expected = getattr(constrain, case.get("error", "GrammarError"))
    with pytest.raises(expected, match=re.escape(case["message"])) as caught:
        compiled(case["grammar"])
    line, column = case["place"]
    assert ((caught.value.line or 0), (caught.value.column or 0)) == (line, column)
    if line:
        shown, mark = str(caught.value).splitlines()[-2:]
        assert shown.strip() == case["grammar"].split("\n")[line - 1].strip()
        assert mark.index("^") == len("    ") + column - 1


def test_the_excerpt_of_a_long_line_is_cut_around_the_place() -> None:
    grammar = "start: " + '"a" ' * 100 + "b " + '"a" ' * 100
    with pytest.raises(constrain.GrammarError) as caught:
        compiled(grammar)
    shown, mark = str(caught.value).splitlines()[-2:]
    assert len(shown) < 100
    assert shown[mark.index("^")] == "b"


@pytest.mark.parametrize("pattern", ["a^b", "a$b", "(a|b$)c"])
def test_anchors_in_the_middle_of_a_terminal_are_refused(pattern: str) -> None:
    with pytest.raises((constrain.PatternError, constrain.GrammarError)) as caught:
        compiled(f"start: A\nA: /{pattern}/")
    assert caught.value.line is not None


def test_another_rule_can_be_the_start() -> None:
    constraint = compiled('start: "a"\nother: "b"', "other")
    assert constraint.accepts("b")
    assert not constraint.accepts("a")


def test_errors_inside_schemas_behind_lines_of_json_have_the_right_line() -> None:
    with pytest.raises(constrain.GrammarError) as caught:
        compiled('start: %json {\n"type":\n"null"\n} b')
    assert (caught.value.line, caught.value.column) == (4, 3)


IGNORED = {
    "counts": ("_{1,2}", "_"),
    "counts of several bytes": ("(?:_a){1,2}", "_a"),
    "an optional end": ("_(?:ab)?", "_ab"),
    "a run and an end": ("_*a?", "_a"),
    "one that begins another": ("_|_a|_ab|b", "_ab"),
    "a comment of bounded length": ("#[^;]{0,2}", "#;a"),
    "a match of any byte, with an end": ("(?s:.){1,2}", "_a"),
    "characters of several bytes": ("é{1,3}|_", "é_"),
}


@for_each("name", IGNORED)
def test_ignored_lexemes_are_as_long_as_possible(name: str) -> None:
    """Compared with a lexer that reads on as long as some match begins with what it has read."""
    pattern, alphabet = IGNORED[name]
    texts = ["".join(each) for length in range(6) for each in product(alphabet + "q", repeat=length)]
    matching = {text for text in texts if text and re.fullmatch(pattern, text)}
    readable = {text[:end] for text in matching for end in range(len(text) + 1)}

    def is_gap(text: str) -> bool:
        lexeme = ""
        for char in text:
            if lexeme + char in readable:
                lexeme += char
            elif lexeme in matching and char in readable:
                lexeme = char
            else:
                return False
        return lexeme in matching and lexeme + "q" not in readable

    constraint = compiled(f'start: "p" "q"\n%ignore /{pattern}/')
    for text in texts:
        if len(text) < 5:  # longer ones may belong to lexemes that are not listed
            assert constraint.accepts(f"p{text}q") == (not text or is_gap(text)), text


@for_each("minimum, maximum", [(0, 100), (65, 65), (3, 90)])
@for_each("ignored", ["", '%ignore " "'])
def test_long_counts_are_exact(minimum: int, maximum: int, ignored: str) -> None:
    constraint = compiled(f'start: ("a" "b"?)~{minimum}..{maximum} "."\n{ignored}')
    for count in (0, 1, 2, 3, 64, 65, 66, 89, 90, 91, 99, 100, 101):
        assert constraint.accepts("ab" * count + ".") == (minimum <= count <= maximum)
        assert constraint.accepts("a" * count + ".") == (minimum <= count <= maximum)


def test_long_counts_of_what_may_be_empty_have_no_least_number() -> None:
    constraint = compiled('start: a~70..80\na: "x" |')
    assert [count for count in range(85) if constraint.accepts("x" * count)] == list(range(81))


def test_grammars_with_ignored_text_are_at_most_twice_as_large_where_nothing_is_empty() -> None:
    rules = "\n".join(f'r{i}: "a{i}" r{i + 1} | "b{i}" r{i + 1} r{i + 1}' for i in range(50))
    text = f'start: r0\n{rules}\nr50: "z"\n'
    bare, separated = (lark_grammar(Lark(text + ignored)) for ignored in ("", '%ignore " "'))
    assert len(separated.terminals) <= 2 * len(bare.terminals)
    edges = [sum(len(rule.edges) for rule in grammar.rules) for grammar in (bare, separated)]
    assert edges[1] <= 3 * edges[0] + 1


def test_deep_nesting_is_refused_by_name() -> None:
    assert compiled("start: " + "(" * MAX_NESTING + '"a"' + ")" * MAX_NESTING).accepts("a")
    with pytest.raises(constrain.GrammarError, match="MAX_NESTING"):
        compiled("start: " + "(" * 1000 + '"a"' + ")" * 1000)


@pytest.mark.slow
def test_long_chains_of_terminals_and_rules_are_read() -> None:
    chain = "\n".join(f"A{i}: A{i + 1}\na{i}: a{i + 1}" for i in range(2000))
    assert compiled(f'start: A0 a0\n{chain}\nA2000: "x"\na2000: "y"').accepts("xy")


def test_loops_without_a_greatest_count_need_no_memory() -> None:
    grammar = lark_grammar(Lark("start: (" + " | ".join(f'"a{i}" "b"' for i in range(99)) + ")+"))
    assert all(not rule.slots for rule in grammar.rules)
    assert sum(len(rule.edges) for rule in grammar.rules) < 250


@pytest.mark.slow
def test_terminals_nested_too_deeply_are_refused_by_name() -> None:
    chain = "\n".join(f'A{i}: ("x" A{i + 1})?' for i in range(5000))
    with pytest.raises(constrain.GrammarError, match="MAX_PATTERN_NESTING"):
        compiled(f'start: A0\n{chain}\nA5000: "x"')


def test_expected_terminals_have_the_names_of_the_text() -> None:
    matcher = compiled('start: "a" NAME\nNAME: /[b-c]/').matcher()
    assert matcher.accept(ord("a"))
    assert matcher.explain(ord("x")).endswith("NAME (line 2, column 1)")


def openai_tools() -> list[dict[str, Any]]:
    examples = json.loads((data_folder() / "openai-examples.json").read_text(encoding="utf-8"))
    tools = examples["custom_tools"].values()
    return [tool for tool in tools if tool.get("format", {}).get("syntax") == "lark"]


def test_grammars_of_openais_guides_are_exact() -> None:
    tools = openai_tools()
    assert tools
    for tool in tools:
        constraint = compiled(tool["format"]["definition"])
        assert [text for text in tool["accept"] if not constraint.accepts(text)] == []
        assert [text for text in tool["reject"] if constraint.accepts(text)] == []


def test_lark_is_imported_when_a_text_is_read() -> None:
    program = "import sys, constrain.lark; constrain.lark.Lark('start: \"a\"'); assert 'lark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_schemas_with_many_keys_some_undeclared_can_be_embedded() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = {"type": "object", "properties": {f"p{i}": inner for i in range(150)}}
    constraint = compiled(f'start: %json {json.dumps(schema)} "!"')
    assert constraint.accepts('{"p1": {"a": 1, "b": 2}, "c": {}}!')
    assert not constraint.accepts('{"p1": {"a": "1"}}!')


@for_each("grammar", ['start: "a"\n// {}', "start: <|{}|>", 'start: "{}"', "start: /{}/", "{}: 1"])
def test_half_of_a_surrogate_pair_is_refused_where_it_stands(grammar: str) -> None:
    with pytest.raises(constrain.GrammarError, match=r"half of a surrogate pair \(U\+DCAA\)") as caught:
        constrain.compile(constrain.Lark(grammar.format("\udcaa")), byte_vocabulary())
    line, column = 1 + grammar.count("\n"), len(grammar.partition("{}")[0].split("\n")[-1]) + 1
    assert (caught.value.line, caught.value.column) == (line, column)
    str(caught.value).encode()  # it can be printed


MARK = "\ufeff"


@for_each(
    "language",
    [
        Lark(f'{MARK}start: "1"'),
        Lark(f"{MARK}start: @one", grammars={"one": f'{MARK}start: "1"'}),
        constrain.Gbnf(f'{MARK}root ::= "1"'),
        f'{MARK}{{"const": 1}}',
    ],
)
def test_a_byte_order_mark_before_a_text_does_not_count(language: Any) -> None:
    assert constrain.compile(language, byte_vocabulary()).accepts("1")


def test_a_byte_order_mark_elsewhere_does() -> None:
    for text in (f'start: {MARK}"1"', f'{MARK}{MARK}start: "1"'):
        with pytest.raises(constrain.GrammarError, match="unexpected"):
            compiled(text)
    assert constrain.compile(constrain.Regex(f"{MARK}1"), byte_vocabulary()).accepts(f"{MARK}1")
