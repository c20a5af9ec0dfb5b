"""Certificates of answers in which values depend on others: they hold, and those of other values do not."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import constrain
from constrain import SchemaError
from constrain.certificates import certify, verify_certificate
from constrain.certificates.certificate import digest
from constrain.engine.compiling import describe_source
from constrain.generation.observers.certificate.replay import recompile
from tests.json_schema.stages.judging import is_valid, read
from tests.json_schema.stages.test_walks import VOCABULARY, Maker, walk
from tests.support import LONG


def sealed(certificate: dict[str, Any]) -> dict[str, Any]:
    """A certificate with the hash of its content, as a forger would write it."""
    body = {name: member for name, member in certificate.items() if name != "sha256"}
    return {**body, "sha256": digest(body)}


def is_refused(certificate: dict[str, Any]) -> bool:
    try:
        verify_certificate(certificate)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_certificates_hold_and_those_of_other_texts_do_not(seed: int) -> None:
    n_forged = 0
    for number in range(6 if seed == 1 else 400 if LONG else 60):
        rng = Random(1000 * seed + number)
        schema = Maker(rng).schema()
        try:
            constraint = constrain.compile(schema, VOCABULARY, whitespace="compact", cache=False)
        except SchemaError:
            continue
        source = describe_source(schema, VOCABULARY, close_objects=False, whitespace="compact")
        for _ in range(3):
            text = walk(constraint, rng, None)
            assert isinstance(source, dict)
            facts = {"source": source, "versions": {"constrain": ""}}
            proof = certify(constraint, list(text.encode()), facts=facts)
            verify_certificate(proof)
            recompile(proof)
            digits = [place for place, character in enumerate(text) if character in "0123456789"]
            for place in rng.sample(digits, min(8, len(digits))):
                other = text[:place] + str((int(text[place]) + rng.randint(1, 9)) % 10) + text[place + 1 :]
                tokens = [[byte, chr(byte)] for byte in other.encode()]
                forged = sealed({**proof, "text": other, "tokens": tokens})
                try:
                    is_right = is_valid(schema, read(other)) and constraint.accepts(other)
                except ValueError:  # no JSON
                    is_right = False
                assert is_right or is_refused(forged), (schema, other)
                n_forged += not is_right
    assert n_forged > 10
