"""Certificates: the proof that an answer is one of its grammar, which anyone can check.

``export`` writes a compiled grammar as JSON, ``derivation`` finds the steps by which the grammar reads the answer,
``certificate`` puts both together, ``signing`` signs. ``constrain/verify.py`` checks certificates and shares no code
with the engine. ``generation.proofs`` makes the certificates of finished answers.

``compiler_check`` compares the grammar in a certificate with its source, on small values, by the word of others:
``acceptor`` asks the grammar and no engine, ``values`` draws values of a schema (``patterns`` has samples of patterns,
``spelling`` the texts), ``validators`` judges them; ``strings`` does all that for patterns and Lark grammars.
"""

from __future__ import annotations

from constrain.certificates.certificate import certify
from constrain.certificates.signing import sign, verify_signature

__all__ = ["certify", "sign", "verify_signature"]
