"""Captures and certificates of finished answers, made in the sandbox.

For both, the text is read again, which may take as long as compiling. An answer is sent without them beyond the limits
of its session, and where the server is too busy: its ``limits_met`` says so, and the log has the reason.
"""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from constrain.errors import LimitError
from constrain.generation.capturing import with_captures
from constrain.generation.proofs.certifying import with_certificate
from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.engine.captures import Captures
    from constrain.generation.capturing import Capturing
    from constrain.generation.completion import Completion
    from constrain.generation.proofs.certifying import Certifying
    from constrain.server.sandbox.session import Session
    from constrain.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

_log = logging.getLogger("constrain.server")


async def find_captures(
    completion: Completion, parts: Sequence[Capturing], vocabulary: Vocabulary, session: Session
) -> Completion:
    """Returns an answer with the captures of its parts."""
    if not parts:
        return completion
    found = await _attempt("captures", partial(_find_all, parts), vocabulary, session)
    return with_captures(completion, zip(parts, found or [None] * len(parts), strict=True))


async def make_certificate(
    completion: Completion, proof: Certifying | None, vocabulary: Vocabulary, session: Session
) -> Completion:
    """Returns an answer with its certificate; ``None`` for an answer without one."""
    if proof is None:
        return completion
    return with_certificate(completion, await _attempt("certificate", proof.make, vocabulary, session))


async def _attempt(what: str, make: Callable[[Vocabulary], T], vocabulary: Vocabulary, session: Session) -> T | None:
    """Calls a function in a process with the limits of a session; returns ``None`` if it fails, and logs why."""
    with contextlib.closing(session.another(1.0)) as one:
        try:
            return await one.run(vocabulary, make_here, make, vocabulary.fingerprint)
        except (ApiError, LimitError) as error:
            reason = error.message if isinstance(error, ApiError) else error
            _log.warning("an answer has no %s: %s", what, reason, extra={"event": f"no_{what}"})
            return None


def make_here(make: Callable[[Vocabulary], T], fingerprint: bytes) -> T:
    """Calls a function in the sandbox. Raises ``LimitError``."""
    from constrain.server.sandbox.worker import vocabulary_of

    try:
        return make(vocabulary_of(fingerprint))
    except RecursionError as error:
        raise LimitError("the grammar is nested too deeply") from error


def _find_all(parts: Sequence[Capturing], vocabulary: Vocabulary) -> list[Captures | None]:
    return [part.find(vocabulary) for part in parts]
