"""Grammars inside a grammar (``%lark``) and beside it (``@name``): all texts up to a length, errors, limits."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

import constrain
from constrain.language.digest import source_digest
from constrain.lark import Lark, lark_grammar
from constrain.lark.reading.scanning import MAX_NESTED_GRAMMARS
from constrain.work import MAX_NESTING
from tests.support import byte_vocabulary, for_each
from tests.support.processor_time import finishes_within


def compiled(text: str, grammars: Mapping[str, object] | None = None) -> constrain.Constraint:
    return constrain.compile(Lark(text, grammars=grammars or {}), byte_vocabulary(), cache=False)


def refusal(text: str, grammars: Mapping[str, object] | None = None) -> constrain.ConstrainError:
    with pytest.raises((constrain.GrammarError, constrain.PatternError, constrain.LimitError)) as caught:
        compiled(text, grammars)
    return caught.value


def texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(text) for length in range(longest + 1) for text in itertools.product(alphabet, repeat=length)]


def require_language(constraint: constrain.Constraint, pattern: str, alphabet: str, longest: int) -> None:
    """All texts up to a length are accepted if the pattern matches, and only then."""
    wrong = [t for t in texts(alphabet, longest) if constraint.accepts(t) != bool(re.fullmatch(pattern, t))]
    assert wrong == []


SAME_BLANKS = 'same: %lark {\n%ignore "_"\nstart: "x"? }\n}'
OUTER_BLANKS = '%ignore "_"\nstart: "a" inner{1,2} "c"?\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "pattern", "alphabet"),
    [
        (OUTER_BLANKS + 'inner: %lark {\n%ignore " "\nstart: "x" "y"\n}', "a(_*x *y){1,2}(_*c)?", "axyc_ "),
        (OUTER_BLANKS + 'inner: %lark { start: "x" "y" }', "a(_*xy){1,2}(_*c)?", "axyc_"),
        ('start: "a" inner "c"\ninner: %lark {\n%ignore " "\nstart: "x" "y"*\n}', "ax( *y)*c", "axyc "),
        (
            OUTER_BLANKS + 'inner: %lark {\n%ignore " "\nstart: "x" inner?\ninner: %lark { start: "y"+ } }',
            "a(_*x( *y+)?){1,2}(_*c)?",
            "axyc_ ",
        ),
        (OUTER_BLANKS + 'inner: %lark {\n%ignore " "\nstart: "x"?\n}', "a(_*x){0,2}(_*c)?", "axc_ "),
        (
            '%ignore "_"\nstart: "a"? inner "c"?\ninner: %lark {\n%ignore " "\nstart: "x" "y"?\n}',
            "(a_*)?x( *y)?(_*c)?",
            "axyc_ ",
        ),
        (
            '%ignore "_"\nstart: inner{2} "c"\ninner: %lark {\n%ignore " "\nstart: same{2}\n' + SAME_BLANKS,
            "(x( *x)?(_*x( *x)?)?_*)?c",
            "xc_ ",
        ),
    ],
)
def test_each_grammar_ignores_its_own_text(text: str, pattern: str, alphabet: str) -> None:
    require_language(compiled(text), pattern, alphabet, 6)


def test_lexemes_at_the_border_are_divided_in_every_way() -> None:
    """The word of the outer grammar could take the letters of the inner one, and the other way round."""
    constraint = compiled('start: /a+/ inner /b+/\ninner: %lark { start: /[ab]+/ "b" }')
    assert len(constraint.split) > 0
    require_language(constraint, "a+[ab]+bb+", "ab", 8)


def test_names_inside_and_outside_are_different_names() -> None:
    constraint = compiled('start: item %lark { start: item\nitem: A\nA: "b" } A item\nitem: A\nA: "a"')
    require_language(constraint, "abaa", "ab", 5)


def test_a_grammar_that_is_used_often_is_made_once() -> None:
    once, often = (
        lark_grammar(Lark(f'start: ({used} ",")~{count}\ninner: %lark {{ start: "a" | "b" start }}'))
        for used, count in (("inner", 1), ("inner", 9))
    )
    assert len(once.rules) == len(often.rules)
    value = 'start: r::0\nr::_: %lark { start: "x"\nother: "y" } r::incr([0:3]) %if lt([0:3], 7) | "" %if ge([0:3], 7)'
    assert len(lark_grammar(Lark(value)).terminals) == 1


def test_grammars_nest_up_to_the_limit() -> None:
    def nested(depth: int) -> str:
        return "start: %lark { " * depth + 'start: "a"' + " }" * depth

    assert compiled(nested(MAX_NESTING)).accepts("a")
    error = refusal(nested(MAX_NESTING + 1))
    assert "MAX_NESTING" in error.message
    assert (error.line, error.column) == (1, 8 + 15 * MAX_NESTING)


@pytest.mark.slow
def test_there_is_a_limit_on_grammars_in_a_grammar() -> None:
    inner = '%lark { start: "a" } '
    error = refusal("start: " + inner * (MAX_NESTED_GRAMMARS + 1))
    assert "MAX_NESTED_GRAMMARS" in error.message
    assert (error.line, error.column) == (1, 8 + len(inner) * MAX_NESTED_GRAMMARS)


@pytest.mark.slow
def test_as_many_grammars_with_ignored_text_as_the_limit_allows_compile_in_time() -> None:
    inner = '%lark {\n%import common (WS, C_COMMENT)\n%ignore WS\n%ignore C_COMMENT\nstart: "a" "b"\n}'
    with finishes_within(4):
        constraint = compiled("start: " + inner * MAX_NESTED_GRAMMARS)
    assert constraint.accepts("a b" * MAX_NESTED_GRAMMARS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "start: " + "%lark { start: " * 20_000,
        "start: " + "%lark {" * 20_000 + "}" * 20_000,
        "start: " + '%lark { start: "a" } ' * 500 + "b",
        "start: " + '%lark { start: "a" } ' * 10_000 + "b",
        "start: a %if " + "and(true," * 10_000,
        'start: r::0\nr::_: "a" %if ' + "not(" * 5_000 + "true" + ")" * 5_000,
        "start: r::" + "9" * 1_000_000,
        'start: r::0\nr::_: "a" %if ' + "and(" * 40 + "true" + ", true)" * 39,
        "%llguidance {" + '"no_forcing": true,' * 50_000 + '"x": 1}',
    ],
    ids=lambda text: text[:30],
)
def test_unbalanced_and_huge_texts_are_refused_in_time(text: str) -> None:
    with finishes_within(2):
        error = refusal(text)
    assert error.line is not None


# Named grammars

COLOUR = 'start: "red" | "blue" '


def test_a_rule_refers_to_grammars_by_name() -> None:
    grammars = {"colour": COLOUR, "size": {"type": "integer", "minimum": 1, "maximum": 12}, "x-1_b": "start: /[0-9]/"}
    constraint = compiled('start: @colour "," @size | @x-1_b @colour', grammars)
    assert constraint.accepts("red,12")
    assert constraint.accepts("7blue")
    assert not constraint.accepts("red,13")
    assert not constraint.accepts("red,")


def test_a_type_is_a_named_grammar() -> None:
    assert compiled("start: @n", {"n": int}).accepts("-12")


def test_named_grammars_have_names_and_ignored_text_of_their_own() -> None:
    constraint = compiled('%ignore "_"\nstart: "a" @b "c"', {"b": '%ignore " "\nstart: "x" a\na: "y"'})
    require_language(constraint, "a_*x *y_*c", "axyc_ ", 6)


def test_named_grammars_may_refer_to_one_another_in_circles() -> None:
    grammars = {"list": 'start: "[" @item* "]"', "item": 'start: "x" | @list'}
    require_language(compiled("start: @list", grammars), r"\[(x|\[(x|\[\])*\])*\]", "[x]", 6)
    error = refusal("start: @a", {"a": 'start: "x" @b', "b": "start: @a"})
    assert "the language is empty" in error.message
    assert (error.line, error.column) == (1, 1)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    error = refusal("start: @colour @sise", {"colour": COLOUR, "size": {}})
    assert "there is no grammar @sise; the named grammars are: @colour, @size" in error.message
    assert (error.line, error.column) == (1, 16)


@for_each(
    "grammar, place, message",
    [
        ('start: "a"\nb: c', (2, 4), "in the grammar @n: the rule c is not defined"),
        ("start: /(/", (1, 9), "in the grammar @n: "),
        ("start: a\na: /x/", None, ""),
        ('begin: "a"', (1, 1), "in the grammar @n: this grammar has no rule start"),
        ("start: @m", (1, 8), "in the grammar @n: there is no grammar @m; the named grammars are: @n"),
        ('start: "a"\n%ignore /(?s:.)+/', (2, 9), "in the grammar @n: this terminal never ends"),
        ({"type": "nix"}, None, "in the grammar @n: this JSON Schema cannot be used: at /type"),
        ({"pattern": "("}, None, "in the grammar @n: this JSON Schema cannot be used: at /pattern"),
    ],
)
def test_errors_in_a_named_grammar_name_it(grammar: object, place: tuple[int, int] | None, message: str) -> None:
    text = 'start: "x"\n     | @n'
    if not message:
        assert compiled(text, {"n": grammar}).accepts("x")
        return
    error = refusal(text, {"n": grammar})
    assert error.message.startswith(message)
    assert (error.line, error.column) == (place or (None, None))


def test_terminals_of_a_named_grammar_say_whose_they_are() -> None:
    matcher = compiled('start: "x" @colour', {"colour": COLOUR}).matcher()
    assert matcher.accept(ord("x"))
    assert "(line 1, column 8 of @colour)" in matcher.explain(ord("x"))


def test_sources_with_equal_grammars_are_equal() -> None:
    one, same, other = (Lark("start: @a", grammars={"a": text}) for text in (COLOUR, COLOUR, 'start: "c"'))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert source_digest(one) == source_digest(same) != source_digest(other)
    with pytest.raises(TypeError, match="must map names to grammars"):
        Lark("start: @a", grammars=["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the name of a grammar must be a str"):
        Lark("start: @a", grammars={1: "a"})  # type: ignore[dict-item]


# llguidance's lists

LISTS: list[tuple[list[dict[str, Any]], list[str], list[str]]] = [
    ([{"lark_grammar": COLOUR}], ["red"], ["green"]),
    ([{"json_schema": {"enum": [1, 12]}}], ["1", "12"], ["2", ""]),
    (
        [{"name": "top", "lark_grammar": 'start: "x" @n "y"'}, {"name": "n", "json_schema": {"const": 1}}],
        ["x1y"],
        ["xy", "x2y"],
    ),
    (
        [
            {"lark_grammar": "start: @list"},
            {"name": "list", "lark_grammar": 'start: "[" @item* "]"'},
            {"name": "item", "lark_grammar": 'start: "x" | @list'},
        ],
        ["[]", "[x[[]]]"],
        ["[", "[x"],
    ),
    (
        [{"lark_grammar": 'start: "a"'}, {"lark_grammar": 'start: "b"'}, {"name": "c d", "json_schema": {}}],
        ["a"],
        ["b"],
    ),
]


@for_each("grammars, accepted, rejected", LISTS)
def test_llguidances_lists_are_read(grammars: list[dict[str, Any]], accepted: list[str], rejected: list[str]) -> None:
    text = json.dumps({"grammars": grammars, "max_tokens": None})
    constraint = compiled(text)
    for matches, expected in ((accepted, True), (rejected, False)):
        for each in matches:
            assert constraint.accepts(each) is expected


def test_a_list_keeps_the_exact_numbers_of_a_schema() -> None:
    text = (
        '{"grammars": [{"lark_grammar": "start: @n"}, {"name": "n", "json_schema": {"const": 1.10000000000000000001}}]}'
    )
    assert compiled(text).accepts("1.10000000000000000001")
    assert not compiled(text).accepts("1.1")


@for_each(
    "text, place, message",
    [
        ('{"grammars": [}', (1, 15), "not JSON"),
        ("{}", (1, 1), "JSON here is a list of grammars"),
        ('{"grammars": {}}', (1, 14), "grammars is a list of objects"),
        ('{"grammars": []}', (1, 14), "there is no grammar in this list"),
        ('{"grammars": ["start: a"]}', (1, 15), "a grammar here is an object"),
        ('{"grammars": [{"name": "a"}]}', (1, 15), "exactly one of lark_grammar and json_schema, not 0"),
        ('{"grammars": [{"lark_grammar": "start:", "json_schema": {}}]}', (1, 15), "exactly one of"),
        ('{"grammars": [\n {"lark_grammar": 1}]}', (2, 19), "lark_grammar is a string"),
        ('{"grammars": [{"lark_grammar": "start:", "rx_nodes": []}]}', (1, 54), 'a grammar has no member "rx_nodes"'),
        ('{"grammars": [{"lark_grammar": "start:"}], "max_tokens": 5}', (1, 58), "max_tokens is not read here"),
        ('{"grammars": [{"lark_grammar": "start:"}], "limits": {}}', (1, 54), 'no member "limits"'),
        (
            '{"grammars": [{"name": "a", "lark_grammar": "start:"},\n{"name": "a", "json_schema": {}}]}',
            (2, 1),
            "two grammars have the name a",
        ),
        ('{"grammars": [{"lark_grammar": "start: a\\nb: c"}]}', (1, 8), "the rule a is not defined"),
    ],
)
def test_malformed_lists_are_refused_with_the_place(text: str, place: tuple[int, int], message: str) -> None:
    error = refusal(text)
    assert message in error.message
    assert (error.line, error.column) == place


def test_where_a_grammar_says_so_nothing_is_forced() -> None:
    option = '%llguidance {"no_forcing": true}\n'
    for source, forced in (
        (Lark('start: "abc"'), b"bc"),
        (Lark(f'{option}start: "abc"'), b""),
        (Lark(f'start: %lark {{\n{option}start: "abc"\n}}'), b""),
        (Lark("start: @n", grammars={"n": f'{option}start: "abc"'}), b""),
        (constrain.parts.sequence(Lark(f'{option}start: "a"'), "bc"), b""),
    ):
        stored = constrain.compile(source, byte_vocabulary())
        stored.precompute(max_masks=0)
        for constraint in (stored, constrain.compile(source, byte_vocabulary())):
            matcher = constraint.matcher()
            assert matcher.accept(ord("a"))
            assert matcher.forced_after(b"")[0] == forced
            assert matcher.shortest_completion() == b"bc"
