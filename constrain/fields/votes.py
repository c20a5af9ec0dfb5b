"""``vote``: whether an answer is the one that ``n`` answers agree on; ``unbias``: whether these are weighted."""

from __future__ import annotations

from constrain.fields.declared import Flag  # noqa: TC001 - for Pydantic
from constrain.fields.logprobs import ProofFields
from constrain.fields.values import refuse_together
from constrain.generation.exclusions import MIN_VOTERS


class VoteFields(ProofFields):
    """Fields of requests whose answers can vote."""

    vote: Flag = None
    unbias: Flag = None

    def votes(self, n: int, *, stream: bool = False, logprobs: bool = False) -> bool:
        """Returns whether ``n`` answers vote. Raises ``FieldError``.

        ``stream`` and ``logprobs``: whether the answer is streamed or has log-probabilities, which no vote has.
        """
        vote = bool(self.vote)
        refuse_together(
            vote=vote,
            voters=n >= MIN_VOTERS,
            stream=stream,
            logprobs=logprobs,
            unbias=self.unbias,
            certificate=self.certificate,
        )
        return vote
