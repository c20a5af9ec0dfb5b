"""``vote``: whether an answer is the one that ``n`` answers agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, boolean
from constrain.generation.options import MIN_VOTERS

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_vote(body: Mapping[str, Any], n: int, *, stream: bool = False, logprobs: bool = False) -> bool:
    """Reads whether ``n`` answers vote. Raises ``FieldError``.

    ``stream`` and ``logprobs``: whether the answer is streamed or has log-probabilities, which no vote has.
    """
    if not boolean(body, "vote"):
        return False
    if n < MIN_VOTERS:
        problem = f"it needs 'n', the number of answers that vote, of {MIN_VOTERS} or more; 5, for example"
    elif stream:
        problem = "the answers vote when all are written, so the result cannot be streamed; leave 'stream' out"
    elif logprobs:
        problem = "the result may be none of the answers, so it has no log-probabilities; leave them out"
    else:
        return True
    raise FieldError(f"Invalid 'vote': {problem}.", param="vote", code="invalid_value")
