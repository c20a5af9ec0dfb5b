"""Certificates of finished answers, made in the sandbox: the grammar is compiled again, and the text read again."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from constrain.errors import LimitError
from constrain.generation.proofs.certifying import with_certificate
from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from constrain.generation.completion import Completion
    from constrain.generation.proofs.certifying import Certifying
    from constrain.server.sandbox.session import Session
    from constrain.vocabulary.vocabulary import Vocabulary

_log = logging.getLogger("constrain.server")


async def make_certificate(
    completion: Completion, proof: Certifying | None, vocabulary: Vocabulary, session: Session
) -> Completion:
    """Returns an answer with its certificate, made in a process with the limits of the session.

    Beyond its limits, and where the server is too busy, the answer has no certificate: ``limits_met`` has
    MAX_CERTIFICATE_WORK, and the log the reason.
    """
    if proof is None:
        return completion
    made: dict[str, Any] | None = None
    with contextlib.closing(session.another(1.0)) as one:
        try:
            made = await one.run(vocabulary, certify_here, proof, vocabulary.fingerprint)
        except LimitError as error:
            _log.warning("an answer has no certificate: %s", error, extra={"event": "no_certificate"})
        except ApiError as error:
            _log.warning("an answer has no certificate: %s", error.message, extra={"event": "no_certificate"})
    return with_certificate(completion, made)


def certify_here(proof: Certifying, fingerprint: bytes) -> dict[str, Any] | None:
    """Makes a certificate in the sandbox. Raises ``LimitError``."""
    from constrain.server.sandbox.worker import vocabulary_of

    try:
        return proof.make(vocabulary_of(fingerprint))
    except RecursionError as error:
        raise LimitError("the grammar is nested too deeply") from error
