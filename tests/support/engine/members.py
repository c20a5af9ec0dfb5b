"""A grammar that remembers which keys it has read, and the masks along a random text of a grammar."""

from __future__ import annotations

from random import Random

import numpy as np

import constrain
from constrain import kernel
from constrain.language import tree
from constrain.language.grammar import TEXT_SET, Action, Condition, Edge, Grammar, GrammarBuilder
from tests.support.matching import allowed


def walk_masks(grammar: kernel.CompiledGrammar, vocabulary: constrain.Vocabulary, seed: int) -> list[bytes]:
    rng, matcher, masks = Random(seed), kernel.Matcher(grammar), []
    row = np.zeros(grammar.n_words, np.uint32)
    for _ in range(80):
        token = int(rng.choice(allowed(matcher, row)))
        masks.append(row.tobytes())
        if token in vocabulary.eos:
            break
        assert matcher.accept(token)
    return masks


def members(self_delimiting: bool = True) -> Grammar:
    """Keys, no key twice, with a number of values each; nested."""
    builder = GrammarBuilder()
    letters = tree.Repetition(tree.ByteClass(((97, 102),)), 1, 12)
    key = builder.terminal("key", tree.Concatenation((tree.Literal(b'"'), letters, tree.Literal(b'":'))))
    number = builder.terminal(
        "number", tree.Concatenation((tree.Repetition(tree.Literal(b"a"), 1, 5), tree.Literal(b",")))
    )
    opening, closing = builder.terminal("open", tree.Literal(b"{")), builder.terminal("close", tree.Literal(b"}"))
    start = builder.rule("start")
    edges = [
        Edge(0, opening, 1),
        Edge(1, key, 2, (), ((Action.REMEMBER, 0), (Action.INCREMENT, 1)), excluding=0),
        Edge(2, number, 1),
        Edge(2, start, 1),
        Edge(1, closing, 3, (Condition(1, 2, None),)),
    ]
    builder.define_automaton(start, edges, (3,), (TEXT_SET, 2))
    return builder.build(self_delimiting=self_delimiting)
