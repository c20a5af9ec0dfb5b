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

    def votes(self, n: int, **given: object) -> bool:
        """Returns whether ``n`` answers vote. Raises ``FieldError``.

        ``given``: options and facts that may exclude or need a vote (see ``refuse_together``).
        """
        given |= {"vote": self.vote, "unbias": self.unbias, "certificate": self.certificate}
        refuse_together(**given, voters=n >= MIN_VOTERS)
        return bool(self.vote)
