"""Walks over masks: whatever is allowed leads to a valid text, with real schemas and real vocabularies.

At full length (``CONSTRAIN_LONG``): 200 schemas, five vocabularies by 50 schemas by 20 prefixes, a million tokens.
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
import psutil
import pytest

import constrain
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


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary_name", ["llama-bpe", "gpt-2"])
def test_every_walk_over_a_real_schema_ends_in_a_valid_text(vocabulary_name: str) -> None:
    vocabulary = real_vocabulary(vocabulary_name)
    tokens = Tokens(vocabulary)
    schemas = (200 if LONG else 40) // (2 if vocabulary_name == "gpt-2" else 1)
    wrong = []
    for entry, constraint in maskbench_that_compiles(vocabulary, seed=1, count=schemas):
        walker = Walker(constraint, vocabulary)
        for walk in range(5):
            text = walker.text(Random(f"{entry['id']} {walk}"), tokens, most=300)
            assert constraint.accepts(text), (entry["id"], walk, text)
            error = validation_error(entry["schema"], text)
            if error is not None:
                wrong.append((entry["id"], walk, error, text))
    assert not wrong


HARD_SPLITS = ("Synthesized", "Handwritten", "Github_hard", "Github_ultra", "JsonSchemaStore")

TOLERATED: dict[tuple[str, str], str] = {
    (
        "jsonschema-rs",
        "Handwritten---allOfPProp2",
    ): "its dot matches a carriage return, which that of ECMA-262 does not",
}
"""Schemas, by validator ("jsonschema" or "jsonschema-rs") and id, whose texts one rejects without being right; why."""


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_every_walk_over_a_hard_schema_validates_with_two_validators(block: int) -> None:
    """Short and long walks: long ones fill strings, short ones leave the rest of the structure to be completed."""
    vocabulary = real_vocabulary("llama-bpe")
    tokens = Tokens(vocabulary)
    wrong, unread = [], []
    for entry, constraint in maskbench_that_compiles(vocabulary, 300 + block, 50 if LONG else 4, splits=HARD_SPLITS):
        walker = Walker(constraint, vocabulary)
        judges = [("jsonschema", validation_error, json.loads(json.dumps(entry["schema"]), parse_float=Decimal))]
        try:
            jsonschema_rs.validator_for(entry["schema"])
            judges.append(("jsonschema-rs", second_validation_error, entry["schema"]))
        except jsonschema_rs.ValidationError:  # the schema is not what its metaschema asks for
            unread.append(entry["id"])
        for most in (300, 300, 60, 20, 5) if LONG else (300, 20, 5):
            text = walker.text(Random(f"{entry['id']} {most}"), tokens, most)
            for validator, error_of, schema in judges:
                error = None if (validator, entry["id"]) in TOLERATED else error_of(schema, text)
                if error is not None:
                    wrong.append((entry["id"], most, validator, error, text))
    assert not wrong
    assert len(unread) <= (3 if LONG else 1), unread


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


def common_prefix(one: bytes, other: bytes) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary_name", REAL_VOCABULARIES)
def test_masks_of_real_vocabularies_equal_simulation_byte_by_byte(vocabulary_name: str) -> None:
    vocabulary = real_vocabulary(vocabulary_name)
    simulation = Simulation(vocabulary)
    schemas, prefixes = (50, 20) if LONG else (3, 4)
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
    expected = [trace(alone, vocabulary, seed, 60) for seed in range(1_000)]
    fresh = small_vocabulary()  # its caches are empty, so that threads fill them together
    shared = constrain.compile(TREE, fresh)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda seed: trace(shared, fresh, seed, 60), range(1_000)))
    assert got == expected


@pytest.mark.threads
def test_threads_may_compile_and_walk_several_constraints_over_one_vocabulary() -> None:
    schemas = [
        TREE,
        {"type": "array", "items": TREE},
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]
    vocabulary = small_vocabulary()

    def walks(number: int, vocabulary: constrain.Vocabulary) -> bytes:
        constraint = constrain.compile(schemas[number % len(schemas)], vocabulary)
        return b"".join(trace(constraint, vocabulary, seed, 40) for seed in range(number, number + 10))

    expected = [walks(number, vocabulary) for number in range(16)]
    fresh = small_vocabulary()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda number: walks(number, fresh), range(16))) == expected


@pytest.mark.slow
def test_a_million_tokens_leave_memory_flat_and_masks_as_they_were() -> None:
    vocabulary = small_vocabulary()
    constraint = constrain.compile(TREE, vocabulary)
    process = psutil.Process()
    tokens, seed, early, late = 0, 0, 0, 0
    while tokens < 1_000_000:
        rng, matcher, row = Random(seed), constraint.matcher(), constraint.allocate_bitmask()[0]
        for _ in range(2_000):
            token = int(rng.choice(allowed(matcher, row)))
            if token in vocabulary.eos:
                break
            assert matcher.accept(token)
            tokens += 1
        seed += 1
        if tokens < 400_000:  # some generations of tables: the memory rises and falls with each
            early = max(early, process.memory_info().rss)
        else:
            late = max(late, process.memory_info().rss)
    assert late - early < 30 << 20, f"{late - early >> 20} MiB more at most than in the first 400,000 tokens"
    other = small_vocabulary()
    fresh = constrain.compile(TREE, other)
    for number in range(50):
        assert trace(constraint, vocabulary, number, 100) == trace(fresh, other, number, 100)
