"""Threads that share a compiled grammar, its vocabulary, and the limit at which its tables are rebuilt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from constrain import kernel
from tests.support import small_vocabulary
from tests.support.engine.members import members, walk_masks

pytestmark = pytest.mark.threads


@pytest.mark.parametrize("memory_limit", [64 << 10, 64 << 20])
def test_threads_see_the_masks_of_a_single_thread(memory_limit: int) -> None:
    alone = small_vocabulary(more=300)
    grammar = kernel.CompiledGrammar(members(), alone._core)
    expected = [walk_masks(grammar, alone, seed) for seed in range(40)]
    vocabulary = small_vocabulary(more=300)
    shared = kernel.CompiledGrammar(members(), vocabulary._core, memory_limit=memory_limit)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda seed: walk_masks(shared, vocabulary, seed), range(40))) == expected


def test_threads_may_fill_one_vocabularys_masks_from_several_grammars() -> None:
    alone = small_vocabulary(more=300)
    expected = [walk_masks(kernel.CompiledGrammar(members(), alone._core), alone, seed) for seed in range(16)]
    vocabulary = small_vocabulary(more=300)

    def compile_and_walk(seed: int) -> list[bytes]:
        return walk_masks(kernel.CompiledGrammar(members(), vocabulary._core), vocabulary, seed)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(compile_and_walk, range(16))) == expected


def test_threads_may_fork_one_matcher() -> None:
    vocabulary = small_vocabulary(more=300)
    grammar = kernel.CompiledGrammar(members(), vocabulary._core)
    matcher = kernel.Matcher(grammar)
    text = list(b'{"a":aa,"b":{"a":a,"c":a,')
    assert matcher.accept_many(text) == len(text)

    def finish(_number: int) -> bytes:
        fork = kernel.Matcher(matcher)
        completion = fork.shortest_completion()
        assert fork.accept_many(list(completion)) == len(completion)
        assert fork.is_accepting
        return completion

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(finish, range(80)))) == 1
