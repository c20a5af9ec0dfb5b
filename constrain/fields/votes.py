"""``vote``: whether an answer is the one that ``n`` answers agree on; ``unbias``: whether these are weighted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, boolean
from constrain.generation.options import MIN_VOTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions


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


def read_unbias(body: Mapping[str, Any], *, vote: bool) -> ChatOptions:
    """Reads whether votes are weighted, to undo the bias of masks. Raises ``FieldError``.

    ``vote``: whether answers vote.
    """
    asked = boolean(body, "unbias")
    if asked and not vote:
        problem = "it weights the answers that vote, so it needs 'vote': true"
        raise FieldError(f"Invalid 'unbias': {problem}.", param="unbias", code="invalid_value")
    return {} if asked is None else {"unbias": asked}
