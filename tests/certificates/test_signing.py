"""Signatures of certificates."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import constrain
from constrain.certificates import sign, verify_signature
from tests.certificates.test_verifier import made
from tests.support import for_each


def private_pem(key: Any, password: str = "") -> bytes:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    found: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return found


def public_pem(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return found


KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
CERTIFICATE = made('{"n": 1, "s": "x"}')


def test_a_signature_is_outside_of_the_hash() -> None:
    signed = sign(CERTIFICATE, private_pem(KEY))
    assert signed["sha256"] == CERTIFICATE["sha256"]
    assert constrain.certificates.verify_certificate(signed) == CERTIFICATE["sha256"]
    verify_signature(signed, public_pem(KEY))
    verify_signature(sign(signed, private_pem(OTHER).decode()), public_pem(OTHER).decode())


def test_other_keys_and_changes_are_refused() -> None:
    signed = sign(CERTIFICATE, private_pem(KEY))
    with pytest.raises(ValueError, match=r"not one by this key \(it names another key\)"):
        verify_signature(signed, public_pem(OTHER))
    with pytest.raises(ValueError, match="has no signature"):
        verify_signature(CERTIFICATE, public_pem(KEY))
    with pytest.raises(ValueError, match="it was changed"):
        verify_signature({**signed, "text": "other"}, public_pem(KEY))
    with pytest.raises(ValueError, match="it was changed"):
        sign({**CERTIFICATE, "text": "other"}, private_pem(KEY))
    for value, why in (({"value": "00" * 64}, "not one by this key"), ({"algorithm": "RSA"}, "none of Ed25519")):
        with pytest.raises(ValueError, match=why):
            verify_signature({**signed, "signature": {**signed["signature"], **value}}, public_pem(KEY))
    with pytest.raises(ValueError, match="no value in hexadecimal"):
        verify_signature({**signed, "signature": {"algorithm": "Ed25519"}}, public_pem(KEY))


@for_each(
    "pem, why",
    (b"no key", "no private key in PEM"),
    (private_pem(KEY, "secret"), "without a password"),
    (private_pem(generate_private_key(SECP256R1())), "none of Ed25519"),
    (public_pem(KEY), "no private key in PEM"),
)
def test_wrong_private_keys_are_refused(pem: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        sign(CERTIFICATE, pem)


def test_wrong_public_keys_are_refused() -> None:
    for pem, why in ((private_pem(KEY), "no public key"), (public_pem(generate_private_key(SECP256R1())), "none of")):
        with pytest.raises(ValueError, match=why):
            verify_signature(sign(CERTIFICATE, private_pem(KEY)), pem)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'constrain-llm\[sign\]'"):
        sign(CERTIFICATE, private_pem(KEY))
