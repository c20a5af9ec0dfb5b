"""Certificates: the proof that an answer is one of its grammar, which anyone can check.

``export`` writes a compiled grammar as JSON, ``derivation`` finds the steps by which the grammar reads the answer,
``certificate`` puts both together, ``signing`` signs. ``constrain/verify.py`` checks certificates and shares no code
with the engine. ``generation.observers.certificate`` makes the certificates of finished answers.
"""

from __future__ import annotations

from constrain.certificates.certificate import certify, verify_certificate
from constrain.certificates.signing import sign, verify_signature

__all__ = ["certify", "sign", "verify_certificate", "verify_signature"]
