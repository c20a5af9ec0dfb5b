"""Stored grammars give the same masks bit by bit once restored, for texts met before they were stored and others."""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import kernel
from constrain.json_schema.compiler import compile_schema
from tests.support import LONG, Tokens, byte_vocabulary, for_each, maskbench, real_vocabulary, small_vocabulary
from tests.support.engine.members import members
from tests.support.engine.schemas import SCHEMAS
from tests.support.matching import allowed
from tests.support.oracles.kernel.generator import make_case, make_vocabulary

ORACLE_GRAMMARS = int(os.environ.get("CONSTRAIN_ORACLE_CASES", "2000" if LONG else "600")) // 10
WALKS = 8
TOKENS = 12


class Pair:
    """A grammar and what was restored of it, asked the same questions."""

    def __init__(
        self, one: kernel.CompiledGrammar, other: kernel.CompiledGrammar, vocabulary: constrain.Vocabulary
    ) -> None:
        self.grammars = one, other
        self.vocabulary = vocabulary
        self.rows = [np.zeros(one.n_words, np.uint32) for _ in self.grammars]

    def walk(self, rng: Random) -> bytes:
        """Random tokens, with everything compared on the way."""
        matchers = [kernel.Matcher(grammar) for grammar in self.grammars]
        text = b""
        for _ in range(TOKENS):
            ids = self.masks(matchers, text)
            assert matchers[0].is_accepting == matchers[1].is_accepting, text
            assert matchers[0].is_finished == matchers[1].is_finished, text
            assert matchers[0].forced_bytes() == matchers[1].forced_bytes(), text
            completions = [matcher.shortest_completion() for matcher in matchers]  # which of several: the seed says
            assert len(completions[0]) == len(completions[1]), (text, completions)
            token = rng.randrange(self.vocabulary.n_vocab)
            (*one, expected), (*other, also_expected) = (matcher.diagnose(token) for matcher in matchers)
            assert (one, sorted(expected)) == (other, sorted(also_expected)), (text, token)
            going_on = [token for token in ids if token not in self.vocabulary.eos]
            if not going_on:
                break
            token = rng.choice(going_on)
            assert [matcher.accept(token) for matcher in matchers] == [True, True], (text, token)
            text += self.vocabulary.token_bytes(token)
        for grammar in self.grammars:
            assert grammar.accepts(text + bytes(matchers[0].shortest_completion()))
        return text

    def masks(self, matchers: list[kernel.Matcher], text: bytes) -> list[int]:
        ids, _ = (allowed(matcher, row) for matcher, row in zip(matchers, self.rows, strict=True))
        assert (self.rows[0] == self.rows[1]).all(), text
        return ids.tolist()


def aligned(stored: bytes) -> memoryview:
    """As in a file: kept alive by the grammar alone."""
    memory = np.zeros(len(stored) + 8, np.uint8)
    memory[: len(stored)] = np.frombuffer(stored, np.uint8)
    return memory.data[: len(stored)]


def walk_alone(grammar: kernel.CompiledGrammar, vocabulary: constrain.Vocabulary, seed: int) -> None:
    Pair(grammar, grammar, vocabulary).walk(Random(seed))


def check(grammar: constrain.Grammar, vocabulary: constrain.Vocabulary, seed: int, **limit: int) -> None:
    """Stored fresh, after walks, and after walks of what was restored."""
    original = kernel.CompiledGrammar(grammar, vocabulary._core)
    restored = kernel.CompiledGrammar.restore(aligned(original.store()), vocabulary._core, **limit)
    for number in range(WALKS):
        if number % 4 == 1:
            walk_alone(original, vocabulary, seed + number)  # what only one of them has met before
        if number % 4 == 2:
            restored = kernel.CompiledGrammar.restore(aligned(original.store()), vocabulary._core, **limit)
        if number % 4 == 3:
            restored = kernel.CompiledGrammar.restore(aligned(restored.store()), vocabulary._core, **limit)
        Pair(original, restored, vocabulary).walk(Random(seed + number))


@pytest.mark.slow
def test_grammars_of_the_oracle_come_back() -> None:
    compared = 0
    for seed in range(ORACLE_GRAMMARS):
        case = make_case(seed)
        made = make_vocabulary(Random(seed), case.alphabet, [])
        vocabulary = constrain.Vocabulary.from_tokens(made.tokens, eos=sorted(made.end), special=sorted(made.special))
        try:
            check(case.grammar, vocabulary, seed)
        except constrain.GrammarError:
            continue
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{case.grammar.dump()}") from error
        compared += 1
    assert compared > ORACLE_GRAMMARS // 4


@for_each("name", SCHEMAS)
def test_schemas_come_back(name: str) -> None:
    schema, policies = SCHEMAS[name]
    check(compile_schema(schema, **policies).grammar, small_vocabulary(), seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10 if LONG else 1))
def test_real_schemas_come_back(seed: int) -> None:
    for entry in Random(seed).sample(maskbench(), 4):
        try:
            grammar = compile_schema(entry["schema"]).grammar
            kernel.CompiledGrammar(grammar, byte_vocabulary()._core)
        except constrain.ConstrainError:
            continue
        check(grammar, small_vocabulary(more=400), seed)


def test_precomputing_stops_at_its_bounds() -> None:
    vocabulary = small_vocabulary()
    grammar = kernel.CompiledGrammar(compile_schema(True).grammar, vocabulary._core)
    assert grammar.precompute(0, 1 << 30) == 0
    assert grammar.precompute(17, 1 << 30) == 17
    before = grammar.stats()["memory_bytes"]
    assert grammar.precompute(10**9, before) == 0
    grammar.precompute(10**9, before + 100_000)
    assert before + 100_000 <= grammar.stats()["memory_bytes"] < before + 10_000_000


@pytest.mark.parametrize("vocabulary", [byte_vocabulary, small_vocabulary])
def test_precomputing_ends_once_all_places_have_been_met(vocabulary: Any) -> None:
    """That is where bytes lead to: `"yes`, `"no`, their ends, and `5`."""
    grammar = kernel.CompiledGrammar(compile_schema({"enum": ["yes", "no", 5]}).grammar, vocabulary()._core)
    met = grammar.precompute(10**9, 1 << 30)
    assert met == 7 + 1
    assert grammar.precompute(10**9, 1 << 30) == met


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def test_texts_as_they_are_written_are_met_ahead_of_time() -> None:
    """Each key and each kind of value, at the places that longest match makes of them, before anything unusual."""
    vocabulary = real_vocabulary("gpt-2")
    split = Tokens(vocabulary).split
    line = record(name={"type": "string"}, price={"type": "number"}, gift={"type": "boolean"})
    order = record(
        status={"enum": ["open", "paid"]}, lines={"type": "array", "items": line}, note={"type": ["string", "null"]}
    )
    grammar = kernel.CompiledGrammar(compile_schema(order).grammar, vocabulary._core)
    assert grammar.precompute(500, 64 << 20) == 500
    restored = kernel.CompiledGrammar.restore(aligned(grammar.store()), vocabulary._core)
    before = restored.stats()["memory_bytes"]
    row = np.zeros(restored.n_words, np.uint32)
    lines = [{"name": "piano", "price": 120, "gift": True}, {"name": "a ribbon", "gift": False}]
    for document in ({"status": "open", "lines": lines, "note": "by Thursday"}, {"lines": lines[1:], "note": None}):
        matcher = kernel.Matcher(restored)
        for token in split(json.dumps(document).encode()):
            matcher.fill_bitmask(row)
            assert matcher.accept(token), document
        matcher.fill_bitmask(row)
        assert matcher.is_accepting
    assert restored.stats()["memory_bytes"] == before


def test_keys_of_the_writers_choice_do_not_fill_the_tables() -> None:
    vocabulary = real_vocabulary("gpt-2")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}}
    grammar = kernel.CompiledGrammar(compile_schema(schema).grammar, vocabulary._core)
    grammar.precompute(300, 64 << 20)
    assert len(grammar.store()) < 1 << 20


@for_each("name", ["point", "unique numbers", "lengths", "tree"])
def test_budgets_are_those_of_the_original(name: str) -> None:
    vocabulary = small_vocabulary()
    original = kernel.CompiledGrammar(compile_schema(SCHEMAS[name][0]).grammar, vocabulary._core)
    original.precompute(100, 64 << 20)
    restored = kernel.CompiledGrammar.restore(aligned(original.store()), vocabulary._core)
    pair, rng = Pair(original, restored, vocabulary), Random(5)
    fewest = kernel.Matcher(original).min_tokens_left
    for budget in range(fewest, fewest + 12, 3):
        matchers = [kernel.Matcher(grammar, budget) for grammar in pair.grammars]
        for _ in range(budget):
            ids = [token for token in pair.masks(matchers, b"") if token not in vocabulary.eos]
            if not ids:
                break
            token = rng.choice(ids)
            assert [matcher.accept(token) for matcher in matchers] == [True, True]
        assert matchers[1].is_accepting


@pytest.mark.parametrize("limit", [1 << 10, 64 << 10])
def test_a_restored_grammar_begins_new_generations(limit: int) -> None:
    check(members(), small_vocabulary(more=300), seed=3, memory_limit=limit)


@for_each("kept", [0, 1, 7, 8, 100, -8, -1])
def test_stored_tables_cut_short_are_an_error(kept: int) -> None:
    vocabulary = small_vocabulary(more=300)
    stored = kernel.CompiledGrammar(members(), vocabulary._core).store()
    with pytest.raises(kernel.StorageError):
        kernel.CompiledGrammar.restore(aligned(stored[:kept]), vocabulary._core)


def test_tables_of_another_vocabulary_are_an_error() -> None:
    stored = kernel.CompiledGrammar(members(), small_vocabulary(more=300)._core).store()
    with pytest.raises(kernel.StorageError):
        kernel.CompiledGrammar.restore(aligned(stored), small_vocabulary(more=301)._core)


def test_mask_parts_come_back_and_are_used() -> None:
    grammar = compile_schema({"type": "string"}).grammar
    before = small_vocabulary()
    walk_alone(kernel.CompiledGrammar(grammar, before._core), before, 1)
    vocabulary = small_vocabulary()
    empty = vocabulary._core.memory_bytes
    vocabulary._core.restore(aligned(before._core.store()))
    restored = vocabulary._core.memory_bytes
    assert restored > empty
    vocabulary._core.restore(aligned(before._core.store()))
    assert vocabulary._core.memory_bytes == restored
    pair = Pair(
        kernel.CompiledGrammar(grammar, before._core), kernel.CompiledGrammar(grammar, vocabulary._core), vocabulary
    )
    pair.walk(Random(1))
    assert vocabulary._core.memory_bytes == restored
    for seed in range(WALKS):
        pair.walk(Random(seed))


@pytest.mark.parametrize("what", ["vocabulary", "grammar"])
def test_a_stored_number_that_is_zero_ends_no_process(what: str) -> None:
    """Pointers among them, which lead nowhere then."""
    vocabulary = small_vocabulary(more=0)
    grammar = kernel.CompiledGrammar(compile_schema({"type": "string", "maxLength": 3}).grammar, vocabulary._core)
    grammar.precompute(20, 64 << 20)
    stored = (vocabulary._core if what == "vocabulary" else grammar).store()
    refused = 0
    for at in range(0, len(stored), 8 if LONG else 56):
        changed = aligned(stored[:at] + bytes(8) + stored[at + 8 :])
        try:
            if what == "vocabulary":
                small_vocabulary(more=0)._core.restore(changed)
            else:
                kernel.CompiledGrammar.restore(changed, vocabulary._core)
        except kernel.StorageError:
            refused += 1
    assert refused > 0


def test_a_checksum_tells_every_flipped_bit_and_every_length() -> None:
    data = bytearray(Random(1).randbytes(203))
    sums = {kernel.checksum(bytes(data))}
    for position in range(len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            sums.add(kernel.checksum(bytes(data)))
            data[position] ^= 1 << bit
    assert len(sums) == 1 + 8 * len(data)
    zeros = {kernel.checksum(bytes(length)) for length in range(100)}
    assert len(zeros) == 100


def test_a_seed_has_sixteen_bytes() -> None:
    assert kernel.offer_seed(kernel.seed())
    assert not kernel.offer_seed(bytes(16))
    with pytest.raises(ValueError, match="16 bytes"):
        kernel.offer_seed(b"short")


@pytest.mark.threads
def test_threads_share_a_restored_grammar() -> None:
    from concurrent.futures import ThreadPoolExecutor

    vocabulary = small_vocabulary(more=300)
    original = kernel.CompiledGrammar(members(), vocabulary._core)
    for seed in range(4):
        walk_alone(original, vocabulary, seed)
    restored = kernel.CompiledGrammar.restore(aligned(original.store()), vocabulary._core)

    def walk(seed: int) -> bytes:
        if seed == 5:
            restored.precompute(100, 64 << 20)
        if seed % 8 == 7:
            restored.store()
        return Pair(original, restored, vocabulary).walk(Random(seed))

    with ThreadPoolExecutor(4) as pool:
        assert all(isinstance(text, bytes) for text in pool.map(walk, range(32)))
