"""Captures of finished answers, found in the sandbox: reading a text again may take as long as compiling."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.generation.capturing import with_captures
from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.engine.captures import Captures
    from constrain.generation.capturing import Capturing
    from constrain.generation.completion import Completion
    from constrain.server.sandbox.session import Session
    from constrain.vocabulary.vocabulary import Vocabulary

_log = logging.getLogger("constrain.server")


async def find_captures(
    completion: Completion, parts: Sequence[Capturing], vocabulary: Vocabulary, session: Session
) -> Completion:
    """Returns an answer with the captures of its parts, found in a process with the limits of the session.

    Beyond its limits, and where the server is too busy, the answer has no captures: ``limits_met`` has
    MAX_CAPTURE_WORK, and the log the reason.
    """
    if not parts:
        return completion
    found: Sequence[Captures | None] = [None] * len(parts)
    with contextlib.closing(session.another(1.0)) as one:
        try:
            found = await one.run(vocabulary, capture_here, parts, vocabulary.fingerprint)
        except LimitError as error:
            _log.warning("an answer has no captures: %s", error, extra={"event": "no_captures"})
        except ApiError as error:
            _log.warning("an answer has no captures: %s", error.message, extra={"event": "no_captures"})
    return with_captures(completion, zip(parts, found, strict=True))


def capture_here(parts: Sequence[Capturing], fingerprint: bytes) -> list[Captures | None]:
    """Finds the captures of parts in the sandbox. Raises ``LimitError``."""
    from constrain.server.sandbox.worker import vocabulary_of

    try:
        return [part.find(vocabulary_of(fingerprint)) for part in parts]
    except RecursionError as error:
        raise LimitError("the grammar is nested too deeply") from error
