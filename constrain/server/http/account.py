"""The record of a request while it is answered: for its deadline, and for the log.

All code that works for a request can add to the record, which is in the current context (``contextvars``).
"""

from __future__ import annotations

import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Protocol

    from constrain.generation.completion import Completion

    class ErrorObject(Protocol):
        """A function that makes the JSON object of an ``ApiError``."""

        def __call__(self, error: Any, /) -> dict[str, Any]:
            """Returns the object."""
            ...


@dataclass(slots=True)
class Account:
    """The record of one request.

    Attributes:
        until: latest time for the answer (``time.monotonic()``).
        partition: name of the prompt cache; requests with the same name share evaluated prompts.
        owner: name of the key that sent the request, or for which it is answered (see ``auth.owner_of``).
        id: name of the request in its response and in the log.
        response_id: id of the response that the request creates; ``""`` if none is chosen yet.
        begun: time of arrival (``time.monotonic()``).
        has_answer: whether a model has begun the answer, which will be ended in time. If not, no byte was sent yet.
        status: status of the response; 0 if there is none yet.
        reason: message of the error that was returned; ``None`` if there was none.
        model: served name of the model.
        asked_tokens: tokens of the prompts, known as soon as a model begins the answers.
        prompt_tokens, completion_tokens: tokens of prompts and answers, known at the end.
        limited_masks, limits_met: sums over the answers (see ``Completion``).
        warnings: sentences about the request for its answers' member ``constrain``; see ``warn``.
        error_object: function that makes the JSON object of an ``ApiError``; ``None`` for OpenAI's form.
    """

    until: float
    partition: str = ""
    owner: str = ""
    id: str = field(default_factory=lambda: f"req_{secrets.token_hex(12)}")
    response_id: str = ""
    begun: float = field(default_factory=time.monotonic)
    has_answer: bool = False
    status: int = 0
    reason: str | None = None
    model: str | None = None
    asked_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    limited_masks: int = 0
    limits_met: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error_object: ErrorObject | None = None

    def add(self, completion: Completion, *, is_first: bool) -> None:
        """Adds the numbers of an answer to the record of the request.

        ``is_first``: whether it is the first answer to its prompt; the prompt's tokens are counted only then.
        """
        usage = completion.usage
        self.prompt_tokens += usage.prompt_tokens if is_first else usage.introduced_tokens
        self.completion_tokens += usage.completion_tokens
        self.limited_masks += completion.limited_masks
        self.limits_met = tuple(dict.fromkeys((*self.limits_met, *completion.limits_met)))


REQUEST_ID = "constrain.request_id"
"""Member of an ASGI scope with the name of a request, if a process in front of this one has named it."""

RESPONSE_ID = "constrain.response_id"
"""Member of an ASGI scope with the id of the response that a request creates, if a process in front of this one has
chosen it: a request that is sent again then creates one response."""

MAX_KEPT_WARNINGS = 100
"""Different warnings of one request that are kept; beyond it, the others are left out."""

current: ContextVar[Account] = ContextVar("constrain_account")
"""The record of the request that is being answered."""


def warn(warning: str) -> None:
    """Adds a sentence to the warnings of the request that is being answered.

    For what a request asks for and its answer can do without. Nothing happens where no request is answered.
    """
    account = current.get(None)
    if account is not None and len(account.warnings) < MAX_KEPT_WARNINGS and warning not in account.warnings:
        account.warnings += (warning,)
