"""``vote``: whether an answer is the one that ``n`` answers agree on; ``unbias``: whether these are weighted."""

from __future__ import annotations

from constrain.fields.declared import Flag  # noqa: TC001 - for Pydantic
from constrain.fields.logprobs import ProofFields
from constrain.fields.values import FieldError
from constrain.generation.options import MIN_VOTERS


class VoteFields(ProofFields):
    """Fields of requests whose answers can vote."""

    vote: Flag = None
    unbias: Flag = None

    def votes(self, n: int, *, stream: bool = False, logprobs: bool = False) -> bool:
        """Returns whether ``n`` answers vote. Raises ``FieldError``.

        ``stream`` and ``logprobs``: whether the answer is streamed or has log-probabilities, which no vote has.
        """
        place, problem = "vote", ""
        if self.vote and n < MIN_VOTERS:
            problem = f"it needs 'n', the number of answers that vote, of {MIN_VOTERS} or more; 5, for example"
        elif self.vote and stream:
            problem = "the answers vote when all are written, so the result cannot be streamed; leave 'stream' out"
        elif self.vote and logprobs:
            problem = "the result may be none of the answers, so it has no log-probabilities; leave them out"
        elif self.unbias and not self.vote:
            place, problem = "unbias", "it weights the answers that vote, so it needs 'vote': true"
        elif self.certificate and self.vote:
            place = "certificate"
            problem = (
                "it is about an answer that the model wrote as a whole, and a vote merges several; leave 'vote' out"
            )
        if problem:
            raise FieldError(f"Invalid '{place}': {problem}.", param=place, code="invalid_value")
        return bool(self.vote)
