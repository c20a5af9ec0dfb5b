"""Walks over masks: whatever is allowed leads to a valid text, with real schemas and real vocabularies.

At full length (``CONSTRAIN_LONG``): 800 schemas, five vocabularies by 50 schemas by 20 prefixes, a million tokens.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import jsonschema_rs
import numpy as np
import pytest

import constrain
from constrain import kernel
from tests.support import (
    LONG,
    REAL_VOCABULARIES,
    Tokens,
    Walker,
    allowed,
    byte_vocabulary,
    maskbench_that_compiles,
    real_vocabulary,
    small_vocabulary,
)
from tests.support.engine.members import walk_masks
from tests.support.judges import second_validation_error
from tests.support.judging import validation_error

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "size": {"type": "integer", "minimum": 0, "maximum": 10**6},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
    },
    "required": ["name"],
    "additionalProperties": {"type": ["boolean", "null"]},
}
"""A recursive schema with open objects."""


HARD = ("Synthesized", "Handwritten", "Github_hard", "Github_ultra", "JsonSchemaStore")

TOLERATED: dict[tuple[str, str], str] = {
    ("jsonschema-rs", "Handwritten---allOfPProp2"): "its dot matches a carriage return, which that of ECMA-262 does not"
}
"""Schemas, by validator ("jsonschema" or "jsonschema-rs") and id, whose texts one rejects without being right; why."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vocabulary_name", "splits", "count"), [("llama-bpe", (), 200), ("llama-bpe", HARD, 500), ("gpt-2", (), 100)]
)
def test_every_walk_over_a_real_schema_validates_with_two_validators(
    vocabulary_name: str, splits: tuple[str, ...], count: int
) -> None:
    """Short and long walks: long ones fill strings, short ones leave the rest of the structure to be completed."""
    vocabulary = real_vocabulary(vocabulary_name)
    tokens = Tokens(vocabulary)
    wrong, unread = [], []
    schemas = maskbench_that_compiles(vocabulary, 1 + len(splits), count if LONG else 10, splits=splits)
    for entry, constraint in schemas:
        walker = Walker(constraint, vocabulary)
        judges = [("jsonschema", validation_error, json.loads(json.dumps(entry["schema"]), parse_float=Decimal))]
        try:
            jsonschema_rs.validator_for(entry["schema"])
            judges.append(("jsonschema-rs", second_validation_error, entry["schema"]))
        except jsonschema_rs.ValidationError:  # the schema is not what its metaschema asks for
            unread.append(entry["id"])
        for most in (300, 300, 60, 20, 5) if LONG else (200, 20, 5):
            text = walker.text(Random(f"{entry['id']} {most}"), tokens, most)
            assert constraint.accepts(text), (entry["id"], most, text)
            for validator, error_of, schema in judges:
                error = None if (validator, entry["id"]) in TOLERATED else error_of(schema, text)
                if error is not None:
                    wrong.append((entry["id"], most, validator, error, text))
    assert not wrong
    assert len(unread) <= (10 if LONG else 1), unread


def common_prefix(one: bytes, other: bytes) -> int:
    differences = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differences, min(len(one), len(other)))


class Simulation:
    """Finds the allowed tokens one byte at a time, through a constraint over the 256 bytes."""

    def __init__(self, vocabulary: constrain.Vocabulary) -> None:
        special = set(vocabulary.special) | set(vocabulary.eos)
        texts = sorted(
            (text, index)
            for index in range(vocabulary.n_vocab)
            if index not in special and (text := vocabulary.token_bytes(index))
        )
        self.end = list(vocabulary.eos)
        self.n_vocab = vocabulary.n_vocab
        self.entries = [(index, text, list(text)) for text, index in texts]
        # of each token in this order: how many of its first bytes it shares with the one before
        self.shared = [0] + [common_prefix(one[1], other[1]) for one, other in pairwise(self.entries)]

    def mask(self, constraint: constrain.Constraint, prefix: bytes) -> np.ndarray:
        matcher = constraint.matcher()
        assert matcher.accept_many(list(prefix)) == len(prefix), prefix
        mask = np.zeros(self.n_vocab, bool)
        mask[self.end] = matcher.is_accepting
        depth = 0  # bytes of the current token that the matcher has accepted
        for (index, _, text), shared in zip(self.entries, self.shared, strict=True):
            if shared > depth:  # what they share was refused already
                continue
            if depth > shared:
                matcher.rollback(depth - shared)
            depth = shared + matcher.accept_many(text[shared:])
            mask[index] = depth == len(text)
        return mask


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary_name", REAL_VOCABULARIES if LONG else ("gpt-2", "phi-3"))
def test_masks_of_real_vocabularies_equal_simulation_byte_by_byte(vocabulary_name: str) -> None:
    vocabulary = real_vocabulary(vocabulary_name)
    simulation = Simulation(vocabulary)
    schemas, prefixes = (50, 20) if LONG else (3, 3)
    for entry, constraint in maskbench_that_compiles(vocabulary, seed=2, count=schemas):
        by_byte = constrain.compile(entry["schema"], byte_vocabulary())
        walker = Walker(constraint, vocabulary)
        for number in range(prefixes):
            rng = Random(f"{entry['id']} {number}")
            matcher, prefix = walker.prefix(rng, rng.choice((0, 1, 2, 5, 10, 20, 40, 80)))
            got = np.zeros(vocabulary.n_vocab, bool)
            got[allowed(matcher, walker.row)] = True
            expected = simulation.mask(by_byte, prefix)
            wrong = [(i, vocabulary.token_bytes(i), bool(got[i])) for i in np.flatnonzero(got != expected).tolist()]
            assert not wrong, (entry["id"], number, prefix, wrong[:5])


def trace(constraint: constrain.Constraint, vocabulary: constrain.Vocabulary, seed: int, length: int) -> bytes:
    """A digest of all masks of one seeded walk."""
    rng, matcher, row = Random(seed), constraint.matcher(), constraint.allocate_bitmask()[0]
    digest = hashlib.blake2b()
    for _ in range(length):
        ids = allowed(matcher, row)
        digest.update(row.tobytes())
        token = int(rng.choice(ids))
        if token in vocabulary.eos:
            break
        assert matcher.accept(token)
        if rng.random() < 0.05:
            matcher.rollback(1)
    return digest.digest()


@pytest.mark.slow
@pytest.mark.threads
def test_threads_on_one_constraint_see_the_masks_of_a_single_thread() -> None:
    vocabulary = small_vocabulary()
    alone = constrain.compile(TREE, vocabulary)
    seeds = range(1_000 if LONG else 150)
    expected = [trace(alone, vocabulary, seed, 60) for seed in seeds]
    fresh = small_vocabulary()  # its caches are empty, so that threads fill them together
    shared = constrain.compile(TREE, fresh)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda seed: trace(shared, fresh, seed, 60), seeds))
    assert got == expected


@pytest.mark.slow
def test_many_tokens_leave_tables_within_their_limit_and_masks_as_they_were() -> None:
    vocabulary, limit = small_vocabulary(more=200), 1 << 18
    grammar = constrain.compile(TREE, vocabulary).grammar
    tight = kernel.CompiledGrammar(grammar, vocabulary._core, memory_limit=limit)
    row, tokens, seed, most = np.zeros(tight.n_words, np.uint32), 0, 0, 0
    while tokens < (1_000_000 if LONG else 5_000):
        rng, matcher = Random(seed), kernel.Matcher(tight)
        for _ in range(300):
            token = int(rng.choice(allowed(matcher, row)))
            if token in vocabulary.eos:
                break
            assert matcher.accept(token)
            tokens += 1
        seed += 1
        most = max(most, tight.stats()["memory_bytes"])
    assert tight.stats()["generation"] > 1
    assert most < 1.5 * limit
    fresh = kernel.CompiledGrammar(grammar, vocabulary._core)
    assert [walk_masks(tight, vocabulary, seed) for seed in range(20)] == [
        walk_masks(fresh, vocabulary, seed) for seed in range(20)
    ]
