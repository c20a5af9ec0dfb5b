"""Reports on finished answers that take as long as compiling (captures, certificates), made in the sandbox."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from constrain.errors import LimitError
from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.generation.completion import Completion
    from constrain.generation.observers.observer import Later
    from constrain.server.sandbox.session import Session
    from constrain.vocabulary.vocabulary import Vocabulary

_log = logging.getLogger("constrain.server")


async def make_reports(
    completion: Completion, reports: Iterable[Later], vocabulary: Vocabulary, session: Session
) -> Completion:
    """Returns an answer with its reports, each made in a process with the limits of the session.

    Beyond its limits, and where the server is too busy, the answer has no such report: ``limits_met`` has the limit,
    and the log the reason.
    """
    for report in reports:
        made: Any = None
        with contextlib.closing(session.another(1.0)) as one:
            try:
                made = await one.run(vocabulary, make_here, report, vocabulary.fingerprint)
            except LimitError as error:
                _warn(report.name, error)
            except ApiError as error:
                _warn(report.name, error.message)
        completion = report.add(completion, made)
    return completion


def _warn(name: str, why: object) -> None:
    _log.warning("an answer has no %s: %s", name, why, extra={"event": f"no_{name}"})


def make_here(report: Later, fingerprint: bytes) -> Any:
    """Makes a report in the sandbox. Raises ``LimitError``."""
    from constrain.server.sandbox.worker import vocabulary_of

    try:
        return report.make(vocabulary_of(fingerprint))
    except RecursionError as error:
        raise LimitError("the grammar is nested too deeply") from error
