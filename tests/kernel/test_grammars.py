"""Grammars that the kernel must refuse, and why; and how it bounds what it keeps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import constrain
from constrain import kernel
from constrain.language import tree
from constrain.language.grammar import (
    EPSILON,
    TEXT_SET,
    VALUE_SET,
    Action,
    Condition,
    Edge,
    Grammar,
    GrammarBuilder,
    Role,
    Rule,
    Terminal,
)
from tests.support import byte_vocabulary, for_each, small_vocabulary
from tests.support.engine.members import members, walk_masks

A = tree.Literal(b"a")


def one_rule(edges: list[Edge], accepting: tuple[int, ...], slots: tuple[int, ...] = ()) -> Grammar:
    terminals = (Terminal("letter", A), Terminal("word", tree.Repetition(tree.ByteClass(((97, 122),)), 1, None)))
    return Grammar(
        (*terminals, Terminal("comma", tree.Literal(b","))), (Rule("start", tuple(edges), accepting, slots),)
    )


def compile_grammar(grammar: Grammar) -> constrain.Constraint:
    return constrain.compile(grammar, byte_vocabulary())


MALFORMED = {
    "an unknown terminal": one_rule([Edge(0, 7, 1)], (1,)),
    "an unknown rule": one_rule([Edge(0, ~3, 1)], (1,)),
    "an unknown slot": one_rule([Edge(0, 0, 1, (Condition(0, 1, 2),))], (1,)),
    "a counter action on texts": one_rule([Edge(0, 0, 1, (), ((Action.INCREMENT, 0),))], (1,), (TEXT_SET,)),
    "texts kept in a counter": one_rule([Edge(0, 0, 1, (), ((Action.REMEMBER, 0),))], (1,), (3,)),
    "texts of nothing": one_rule([Edge(0, EPSILON, 1, (), ((Action.REMEMBER, 0),))], (1,), (TEXT_SET,)),
    "texts of a rule": one_rule([Edge(0, 0, 1), Edge(0, ~0, 1, (), ((Action.REMEMBER, 0),))], (1,), (TEXT_SET,)),
    "a condition on texts": one_rule([Edge(0, 0, 1, (Condition(0, 0, 2),))], (1,), (TEXT_SET,)),
    "an exclusion by a counter": one_rule([Edge(0, 0, 1, excluding=0)], (1,), (3,)),
    "a distinct value in texts": one_rule([Edge(0, 0, 1, distinct=0)], (1,), (TEXT_SET,)),
    "a distinct value of nothing": one_rule([Edge(0, EPSILON, 1, distinct=0)], (1,), (VALUE_SET,)),
    "a distinct value that is also excluded": one_rule(
        [Edge(0, 0, 1, (), (), excluding=0, distinct=1)], (1,), (TEXT_SET, VALUE_SET)
    ),
    "a distinct value of a rule that is no group": one_rule(
        [Edge(0, 0, 1), Edge(0, ~0, 1, distinct=0)], (1,), (VALUE_SET,)
    ),
    "values kept as texts": one_rule([Edge(0, 0, 1, (), ((Action.REMEMBER, 0),))], (1,), (VALUE_SET,)),
    "an unknown ignored terminal": Grammar((Terminal("a", A),), (Rule("start", (Edge(0, 0, 1),), (1,)),), (4,)),
    "no accepting state": one_rule([Edge(0, 0, 1)], ()),
    "an accepting state out of reach": one_rule([Edge(0, 0, 1)], (2,)),
    "only itself": one_rule([Edge(0, 0, 1), Edge(1, ~0, 2)], (2,)),
    "a terminal that matches nothing": Grammar(
        (Terminal("a", tree.NOTHING),), (Rule("start", (Edge(0, 0, 1),), (1,)),)
    ),
    "no rule": Grammar((Terminal("a", A),), ()),
}


@for_each("name", MALFORMED)
def test_malformed_grammars_and_those_that_generate_nothing_are_refused(name: str) -> None:
    with pytest.raises(constrain.GrammarError):
        compile_grammar(MALFORMED[name])


def test_a_terminal_that_matches_the_empty_text_is_refused_by_name() -> None:
    grammar = Grammar((Terminal("maybe", tree.Repetition(A, 0, 1)),), (Rule("start", (Edge(0, 0, 1),), (1,)),))
    with pytest.raises(constrain.GrammarError, match="maybe"):
        compile_grammar(grammar)


def test_all_of_many_alternatives_can_be_read() -> None:
    count = 40  # beyond 32 items, the parser looks them up in a table
    terminals = tuple(Terminal(f"t{i}", tree.Literal(bytes([i]))) for i in range(count))
    rules = tuple(Rule(f"r{i}", (Edge(0, i, 1),), (1,)) for i in range(count))
    start = Rule("start", tuple(Edge(0, ~i, 1) for i in range(1, count + 1)), (1,))
    constraint = compile_grammar(Grammar(terminals, (start, *rules)))
    assert all(constraint.accepts(bytes([i])) for i in range(count))


def test_two_words_in_a_row_are_refused_and_with_blanks_between_them_accepted() -> None:
    builder = GrammarBuilder()
    word = builder.terminal("word", tree.Repetition(A, 1, None))
    builder.define(builder.rule("start"), [[word, word]])
    with pytest.raises(constrain.GrammarError, match="word"):
        compile_grammar(builder.build())
    builder.ignore(builder.terminal("blank", tree.Literal(b" ")))
    constraint = compile_grammar(builder.build())
    assert constraint.accepts(b"aa a")
    assert not constraint.accepts(b"aaa")
    matcher = constraint.matcher()
    matcher.accept(ord("a"))
    assert constraint.accepts(b"a" + matcher.shortest_completion())


def marks(builder: GrammarBuilder) -> tuple[int, int, int]:
    return (
        builder.terminal("open", tree.Literal(b"["), role=Role.OPEN_ORDERED),
        builder.terminal("close", tree.Literal(b"]"), role=Role.CLOSE),
        builder.terminal("comma", tree.Literal(b","), role=Role.NONE),
    )


def lists() -> Grammar:
    """Lists of letters and lists, all items of which are distinct; inner ones have few values."""
    builder = GrammarBuilder()
    opening, closing, comma = marks(builder)
    word = builder.terminal("word", tree.Repetition(tree.ByteClass(((97, 102),)), 1, None))
    few = builder.terminal("few", tree.LiteralSet((b"a", b"ab", b"b")))
    start, pair = builder.rule("start"), builder.rule("pair")
    items = [Edge(1, item, 2, distinct=0) for item in (word, pair)]
    builder.define_automaton(
        start, [Edge(0, opening, 1), *items, Edge(2, comma, 1), Edge(2, closing, 3)], (3,), (VALUE_SET,)
    )
    pairs = [Edge(0, opening, 1), Edge(1, few, 2), Edge(2, comma, 4), Edge(4, few, 5), Edge(5, closing, 3)]
    builder.define_automaton(pair, pairs, (3,))
    return builder.build(self_delimiting=True)


def test_a_left_recursive_rule_may_go_on_after_an_earlier_value() -> None:
    builder = GrammarBuilder()
    opening, closing, comma = marks(builder)
    letter = builder.terminal("letter", A)
    start, group, letters = builder.rule("start"), builder.rule("group"), builder.rule("letters")
    edges = [Edge(0, opening, 1), Edge(1, group, 2, distinct=0), Edge(2, comma, 1), Edge(2, closing, 3)]
    builder.define_automaton(start, edges, (3,), (VALUE_SET,))
    builder.define(group, [[opening, letters, closing]])
    builder.define(letters, [[letter], [letters, letter], [letters, comma]])
    constraint = compile_grammar(builder.build(self_delimiting=True))
    for counts in itertools.product((1, 2, 3), repeat=3):
        text = ",".join(f"[{'a,,' * count}]" for count in counts)
        assert constraint.accepts(f"[{text}]") == (len({*counts}) == 3), counts


@pytest.mark.parametrize("grammar", [members(False), members(True), lists()], ids=["proved", "told", "distinct"])
def test_tables_rebuilt_under_a_small_limit_give_the_same_masks(grammar: Grammar) -> None:
    vocabulary = small_vocabulary()
    roomy = kernel.CompiledGrammar(grammar, vocabulary._core)
    tight = kernel.CompiledGrammar(grammar, vocabulary._core, memory_limit=64 << 10)
    for seed in range(30):
        assert walk_masks(tight, vocabulary, seed) == walk_masks(roomy, vocabulary, seed), seed
    assert roomy.stats()["memory_bytes"] > 64 << 10, "the limit was never met"


def test_matchers_survive_that_tables_are_rebuilt() -> None:
    vocabulary = small_vocabulary()
    tight = kernel.CompiledGrammar(members(), vocabulary._core, memory_limit=64 << 10)
    row = np.zeros(tight.n_words, np.uint32)
    waiting = []
    for seed in range(30):
        walk_masks(tight, vocabulary, seed)
        matcher = kernel.Matcher(tight)
        matcher.accept_many(list(b'{"a":'))
        matcher.fill_bitmask(row)
        waiting.append((matcher, row.tobytes()))
    for matcher, mask in waiting:
        matcher.fill_bitmask(row)
        assert row.tobytes() == mask
        matcher.rollback(2)  # the key is longer now, and must not come again
        assert matcher.accept_many(list(b'b":aa,"ab":')) == len(b'b":aa,"ab')
