"""Instances of MaskBench through the masks: every valid one is allowed to its end, every invalid one is stopped.

Some valid instances have their keys in another order than the schema; these must be allowed with any order.
"""

from __future__ import annotations

import json

import pytest

import constrain
from tests.support import LONG, Tokens, allowed, maskbench_that_compiles, real_vocabulary

SCHEMAS = 1_000 if LONG else 100


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return Tokens(real_vocabulary("llama-bpe"))


@pytest.mark.parametrize("block", range(10))
def test_valid_instances_are_allowed_and_invalid_ones_stopped(block: int, tokens: Tokens) -> None:
    vocabulary = real_vocabulary("llama-bpe")
    wrong = []
    for entry, constraint in maskbench_that_compiles(vocabulary, 100 + block, SCHEMAS // 10, whitespace="any"):
        row = constraint.allocate_bitmask()[0]
        for number, test in enumerate(entry["tests"]):
            text = json.dumps(test["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")
            matcher = constraint.matcher()
            position, fits = 0, True
            for token in tokens.split(text):
                in_mask = token in allowed(matcher, row)
                assert matcher.accept(token) == in_mask, (entry["id"], number, text[:position])
                if not in_mask:
                    fits = False
                    break
                position += len(vocabulary.token_bytes(token))
            fits = fits and matcher.is_accepting
            assert constraint.accepts(text) == fits, (entry["id"], number)
            if test["valid"] and not fits:
                unordered = constrain.compile(entry["schema"], vocabulary, whitespace="any", property_order="any")
                fits = unordered.accepts(text)
            if fits != test["valid"]:
                wrong.append((entry["id"], number, test["valid"], text[:position], text[position:][:40]))
    assert not wrong
