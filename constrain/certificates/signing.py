"""Signatures of certificates: Ed25519, by the ``cryptography`` package (extra ``sign``).

A signature stands in the member ``signature``, outside of the hash that it signs. It says who vouches for the
certificate; what the certificate proves, it proves without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.certificates.certificate import UNSEALED, Certificate, digest
from constrain.verify import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"


def sign(certificate: Mapping[str, Any], private_key_pem: bytes | str) -> dict[str, Any]:
    """Returns a certificate with a signature, in place of an older one.

    ``private_key_pem``: an Ed25519 key without password, as ``openssl genpkey -algorithm ed25519`` writes it. Raises
    ValueError for another key, and for a certificate whose hash does not agree.
    """
    key = read_private_key(private_key_pem)
    body = {name: value for name, value in certificate.items() if name != "signature"}
    made = {"algorithm": ALGORITHM, "public_key": _raw(key.public_key()), "value": key.sign(_signed(body)).hex()}
    return Certificate(body, signature=made)


def verify_signature(certificate: Mapping[str, Any], public_key_pem: bytes | str) -> None:
    """Checks that the owner of a key has signed a certificate. Raises ValueError.

    ``public_key_pem``: the Ed25519 key that ``openssl pkey -pubout`` writes. What the certificate claims is checked by
    ``constrain.certificates.verify_certificate``.
    """
    _load_cryptography()
    from cryptography.exceptions import InvalidSignature

    key = read_public_key(public_key_pem)
    signature = certificate.get("signature")
    if signature is None:
        raise ValueError("the certificate has no signature")
    if not isinstance(signature, dict) or signature.get("algorithm") != ALGORITHM:
        raise ValueError(f"the signature is none of {ALGORITHM}")
    try:
        key.verify(bytes.fromhex(signature["value"]), _signed(certificate))
    except InvalidSignature as error:
        by = " (it names another key)" if signature.get("public_key") != _raw(key) else ""
        raise ValueError(f"the signature is not one by this key{by}") from error
    except (KeyError, TypeError) as error:
        raise ValueError("the signature has no value in hexadecimal") from error


def read_private_key(pem: bytes | str) -> Ed25519PrivateKey:
    """Returns a private key. Raises ValueError for a text that is none, and for a key with a password."""
    _load_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_data(pem), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # a TypeError: it has a password
        raise ValueError(
            "this is no private key in PEM without a password; 'openssl genpkey -algorithm ed25519' writes one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(  # noqa: TRY004 - what is wrong is the text
            f"the key is none of {ALGORITHM}; 'openssl genpkey -algorithm ed25519' writes one"
        )
    return key


def read_public_key(pem: bytes | str) -> Ed25519PublicKey:
    """Returns a public key. Raises ValueError for a text that is none."""
    _load_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_data(pem))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(
            "this is no public key in PEM; 'openssl pkey -in KEY.pem -pubout' writes that of a private key"
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(  # noqa: TRY004 - what is wrong is the text
            f"the key is none of {ALGORITHM}"
        )
    return key


def _load_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "signatures need the cryptography package; pip install 'constrain-llm[sign]'", name="cryptography"
        ) from error


def _data(pem: bytes | str) -> bytes:
    return pem.encode() if isinstance(pem, str) else pem


def _raw(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _signed(certificate: Mapping[str, Any]) -> bytes:
    """Returns the bytes that are signed: the format and the hash of the certificate. Raises ValueError."""
    body = {name: value for name, value in certificate.items() if name not in UNSEALED}
    if certificate.get("sha256") != digest(body):
        raise ValueError("the hash of the certificate does not agree; it was changed")
    return f"{FORMAT} {certificate['sha256']}".encode()
