"""Lark, GBNF, patterns, compositions and grammars of one's own, exported and read back."""

from __future__ import annotations

import inspect
import json
import re
import sys
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Gbnf, Lark, Regex
from constrain.language.tree import Literal
from constrain.parts import choice, repeat, sequence
from tests.gbnf.grammars import CASES
from tests.support import LONG, for_each
from tests.support.exporting import TARGETS, compiled, read_back, require_same
from tests.support.grammars.tables import tomllib

WALKS = 60 if LONG else 3
READY = Path(__file__).parents[2] / "grammars" / "tests"

RECURSIVE = {
    "left": 'start: start "+" /[0-9]/ | /[0-9]/',
    "mutual left": 'start: a "x" | "z"\na: start? "y"',
    "hidden left": 'start: n start "b" | "c"\nn: "d"?',
    "left with priorities": 'start: e\ne: e "+" t | t\nt: t "*" f | f\nf: "(" e ")" | /[0-9]/',
    "left in three": 'start: a "1" | "s"\na: b "2" | start "3"\nb: start "4" | a "5" | "b"',
    "right": 'start: "a" start | "b"',
    "middle": 'start: "(" start? ")"',
    "empty texts": 'start: a b c\na: "a"*\nb: "b"? a\nc: ("c" start)?',
    "nothing": 'start: "a"?',
}


@for_each("target", ["gbnf", "lark"])
@for_each("name", RECURSIVE)
def test_recursion_is_kept(name: str, target: Any) -> None:
    original = compiled(Lark(RECURSIVE[name]))
    exported = original.export(target)
    if target == "gbnf":
        require_no_left_recursion(exported)
    require_same(original, read_back(exported, target), Random(name), 4 * WALKS, ["", "1+2+3", "xyxy", "zyxyx", "dcb"])


def require_no_left_recursion(gbnf: str) -> None:
    """Fails if a rule of a GBNF text can begin with itself."""
    from constrain.exporting.arcs import rule_automaton
    from constrain.exporting.recursion import _left_recursive_groups, drop_empty_texts

    grammar = Gbnf(gbnf).grammar()
    rules = {("rule", number): rule_automaton(rule, grammar) for number, rule in enumerate(grammar.rules)}
    drop_empty_texts(rules)
    assert _left_recursive_groups(rules) == []


def test_recursion_that_a_loop_can_say_becomes_a_pattern() -> None:
    for grammar in (RECURSIVE["left"], RECURSIVE["right"], RECURSIVE["mutual left"], RECURSIVE["nothing"]):
        original = compiled(Lark(grammar))
        require_same(original, read_back(original.export("regex"), "regex"), Random(grammar), WALKS, [""])
    with pytest.raises(constrain.ExportError, match=r"contains itself, as it does here \(in start\)"):
        constrain.grammars.export(Lark(RECURSIVE["middle"]), "regex")


@for_each("target", TARGETS)
@for_each("name", CASES)
def test_gbnf_read_back_has_the_same_texts(name: str, target: Any) -> None:
    case = CASES[name]
    original = compiled(Gbnf(case.grammar))
    if target == "regex" and name in RECURSIVE_GBNF:
        with pytest.raises(constrain.ExportError, match="contains itself"):
            original.export(target)
        return
    exported = original.export(target)
    require_same(original, read_back(exported, target), Random(name), WALKS, (*case.accepted, *case.rejected))


RECURSIVE_GBNF = {"json", "arithmetic", "empty alternatives", "recursion in the middle", "xml", "an if", "a palindrome"}

PATTERNS = [
    r"[A-Z]{1,3}-\d{4}",
    "(a|bc)*d?",
    "[^x]{2}|é+",
    "a{0,3000}b",
    r"[\x00-\x1f]|\\|/|\"|\^|]|-",
    "(?i:straße)",
    "[😀-😎]+|\u2028",
    r"\bfoo\b.*",
]


@pytest.mark.slow(only=(PATTERNS[-1],))
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS)
def test_a_pattern_read_back_has_the_same_texts(pattern: str, target: Any) -> None:
    original = compiled(Regex(pattern))
    exported = original.export(target)
    require_same(original, read_back(exported, target), Random(pattern), WALKS, ["", "AB-1234", "éé", "ab", "foo x"])


@pytest.mark.slow(only=(PATTERNS[-1],))
@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS)
def test_python_reads_an_exported_pattern_alike(pattern: str) -> None:
    original = compiled(Regex(pattern))
    exported = original.export("regex")
    require_same(original, compiled(Regex(exported, dialect="python")), Random(pattern), WALKS, [])
    theirs = re.compile(exported)
    for text in ("", "AB-1234", "bcd", "éé", "STRASSE", "straße", "xy", "foo bar", "fool", "\x1f", "😀", "a" * 5 + "b"):
        assert (theirs.fullmatch(text) is not None) == original.accepts(text), text


def random_grammar(rng: Random) -> str:
    """Rules of at most three parts, over single letters, empty ones among them; every third ignores something."""

    def part(depth: int = 0) -> str:
        shape = rng.randrange(8 if depth < 2 else 5)
        if shape < 5:
            return rng.choice(['"a"', '"b"'] if shape < 3 else ["start", "p", "q"])
        if shape == 5:
            return f"({part(depth + 1)} | {part(depth + 1)} {part(depth + 1)})"
        return f"({part(depth + 1)}){rng.choice(['?', '*', '+', '~2', '~1..2'])}"

    lines = []
    for name in ("start", "p", "q"):
        alternatives = {" ".join(part() for _ in range(rng.randrange(4))) for _ in range(rng.randint(1, 3))}
        lines.append(f"{name}: " + " | ".join(sorted(alternatives)))
    return "\n".join(lines + rng.choice([[], [], ['%ignore "_"']]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300 if LONG else 8))
def test_random_grammars_have_the_same_texts(seed: int) -> None:
    """Rules that begin, end and contain themselves and each other, with empty texts, against all short texts."""
    grammar = random_grammar(Random(seed))
    try:
        original = compiled(Lark(grammar))
    except constrain.GrammarError as error:
        assert "the language is empty" in error.message  # noqa: PT017 - some random grammars have no text
        return
    texts = ["".join(letters) for length in range(6) for letters in product("ab_", repeat=length)]
    expected = [text for text in texts if original.accepts(text)]
    for target in TARGETS:
        try:
            back = read_back(original.export(target), target)  # type: ignore[arg-type]
        except constrain.ExportError as error:
            assert target == "regex", error  # noqa: PT017 - only patterns may refuse
            continue
        assert [text for text in texts if back.accepts(text)] == expected, (grammar, target)


def cases(name: str) -> tuple[str, ...]:
    found = tomllib.loads((READY / f"{name}.toml").read_text("utf-8"))
    return (*found["accepted"], *found["rejected"])


SAME = [name for name in constrain.grammars.names() if LONG or name in ("csv_row", "semver", "cron", "sql_select")]


LONGEST_MATCH = {"dot", "graphql_query", "lisp", "python_expression", "sql_select", "toml", "yaml_flow"}
"""Ready grammars in which the longest match may leave out a way to divide a text."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_a_ready_grammar_becomes_lark_with_the_same_texts(name: str) -> None:
    original = compiled(constrain.grammars.load(name))
    require_same(original, read_back(original.export("lark"), "lark"), Random(name), WALKS, cases(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_a_ready_grammar_becomes_gbnf_with_the_same_texts_or_is_refused(name: str) -> None:
    original = compiled(constrain.grammars.load(name))
    if name in LONGEST_MATCH:
        with pytest.raises(constrain.ExportError, match="GBNF has no longest match"):
            original.export("gbnf")
        return
    exported = original.export("gbnf")
    require_same(original, read_back(exported, "gbnf"), Random(name), WALKS, cases(name))


def test_the_longest_match_is_kept_or_refused() -> None:
    grammar = Lark('start: WORD WORD?\nWORD: /[a-z]+/ | "\'"')
    original = compiled(grammar)
    assert read_back(original.export("lark"), "lark").accepts("ab'") == original.accepts("ab'")
    lossy = Lark('start: A B\nA: /a+/\nB: "a" | "b"')
    for target in ("gbnf", "regex"):
        with pytest.raises(constrain.ExportError, match=r"no longest match: where B .* follows A .*, it could take"):
            constrain.grammars.export(lossy, target)  # type: ignore[arg-type]
    assert not compiled(lossy).export("lark").startswith("x")


CLOSED = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "additionalProperties": False}


@pytest.mark.slow
def test_compositions() -> None:
    for composed in (
        sequence("x: ", {"enum": [1, 2]}, repeat(Regex("[ab]c?"), 1, 3, separator=", ")),
        choice(sequence("a", Lark('start: "b"+')), {"type": "boolean"}),
        Lark(f'start: "x" pair ";"\npair: %json {json.dumps(CLOSED)}'),
    ):
        original = compiled(composed)
        for target in TARGETS:
            exported = original.export(target)  # type: ignore[arg-type]
            require_same(
                original,
                read_back(exported, target),
                Random(str(composed)),
                WALKS,
                ["x: 1ac, b", "abb", "a", 'x{"a":"b"};'],
            )


def test_ignored_text() -> None:
    builder = constrain.grammars.GrammarBuilder()
    a, space = builder.terminal("A", Literal(b"a")), builder.terminal("space", Literal(b" "))
    start = builder.rule("start")
    builder.define(start, [[a], [a, start]])
    builder.ignore(space)
    original = compiled(builder.build())
    for target in TARGETS:
        exported = original.export(target)  # type: ignore[arg-type]
        require_same(original, read_back(exported, target), Random(0), WALKS, [" a  a ", "", " ", "a a", "b"])


def test_special_tokens() -> None:
    grammar = 'start: "a" <|call|> <[300]>'
    assert constrain.grammars.export(Lark(grammar), "gbnf") == 'root ::= "a" <|call|> <[300]>\n'
    assert constrain.grammars.export(Gbnf('root ::= "a" <|call|> <[300]>'), "lark").splitlines()[0] == grammar
    with pytest.raises(constrain.ExportError, match=r"cannot say the special token <\|call\|>"):
        constrain.grammars.export(Lark(grammar), "regex")


def test_a_token_without_a_spelling_is_refused() -> None:
    from constrain.language.special import special_token

    builder = constrain.grammars.GrammarBuilder()
    builder.define(builder.rule("start"), [[builder.terminal("call", special_token("[CALL]"))]])
    for target in ("gbnf", "lark"):
        with pytest.raises(constrain.ExportError, match="names special tokens only by"):
            constrain.grammars.export(builder.build(), target)  # type: ignore[arg-type]


def test_parts_of_characters_are_refused() -> None:
    builder = constrain.grammars.GrammarBuilder()
    builder.define(builder.rule("start"), [[builder.terminal("half", Literal(b"\xc3"))]])
    for target in TARGETS:
        with pytest.raises(constrain.ExportError, match="may have parts of them"):
            constrain.grammars.export(builder.build(), target)  # type: ignore[arg-type]


@pytest.mark.slow
def test_deep_patterns_are_exported_or_too_deep_for_pythons_stack() -> None:
    original = compiled(Regex("(?:a|b" * 90 + "c" + ")?x" * 90))
    text = "b" * 90 + "c" + "x" * 90
    for target in ("gbnf", "lark"):
        back = read_back(original.export(target), target)  # type: ignore[arg-type]
        assert back.accepts(text)
        assert not back.accepts(text[1:])

    def below(levels: int) -> str:
        return below(levels - 1) if levels else original.export("gbnf")

    with pytest.raises(constrain.LimitError, match="Python's stack"):
        below(sys.getrecursionlimit() - len(inspect.stack(0)) - 200)


@pytest.mark.slow
def test_long_repetitions_keep_to_the_limit_of_llama_cpp() -> None:
    original = compiled(Regex("(ab?){1500,4321}x{2500}[cd]{3000,}"))
    exported = original.export("gbnf")
    assert max(int(count) for count in re.findall(r"\d+(?=[,}])", exported)) < 2_000
    back = read_back(exported, "gbnf")
    for count in (1499, 1500, 2000, 4321, 4322):
        for end in (2999, 3000, 5001):
            text = "a" * count + "x" * 2500 + "c" * end
            assert back.accepts(text) == original.accepts(text), (count, end)
