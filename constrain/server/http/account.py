"""What is known of a request while it is answered: for its deadline, and for the log.

Whatever is done for a request can tell of it: its account is that of the current context (``contextvars``).
"""

from __future__ import annotations

import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.generation.completion import Completion


@dataclass(slots=True)
class Account:
    """One request.

    Attributes:
        until: when it is to be answered at the latest (``time.monotonic()``).
        partition: requests of one partition share what a model has read of their prompts.
        id: what it is called in its response and in the log.
        begun: when it came (``time.monotonic()``).
        has_answer: whether a model has begun with the answer, which will be ended in time. Else nothing was sent yet.
        status: that of the response; 0 if there is none yet.
        reason: what an error in its place says; ``None`` if there was none.
        model: the name of the model that was asked, as it is served.
        prompt_tokens, completion_tokens: of what was answered.
        limited_masks, limits_met: of the answers (``Completion``).
    """

    until: float
    partition: str = ""
    id: str = field(default_factory=lambda: f"req_{secrets.token_hex(12)}")
    begun: float = field(default_factory=time.monotonic)
    has_answer: bool = False
    status: int = 0
    reason: str | None = None
    model: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    limited_masks: int = 0
    limits_met: tuple[str, ...] = ()

    def add(self, completion: Completion, *, is_first: bool) -> None:
        """Counts an answer; its prompt where it is the first to that."""
        self.prompt_tokens += completion.usage.prompt_tokens if is_first else 0
        self.completion_tokens += completion.usage.completion_tokens
        self.limited_masks += completion.limited_masks
        self.limits_met = tuple(dict.fromkeys((*self.limits_met, *completion.limits_met)))


current: ContextVar[Account] = ContextVar("constrain_account")
"""That of the request which is being answered."""
