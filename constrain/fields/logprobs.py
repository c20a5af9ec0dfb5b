"""``logprobs`` and ``top_logprobs``, and the proof of an answer, ``certificate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from constrain.fields.declared import Fields, Flag, Reads, within
from constrain.fields.sampling import OptionFields
from constrain.fields.values import invalid, refuse_together
from constrain.generation.options import TOP_LOGPROBS, WITH_PROMPT

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions


class LogprobFields(Fields):
    """Fields for the log-probabilities of a chat completion."""

    logprobs: Flag = None
    top_logprobs: Annotated[int | None, within(TOP_LOGPROBS)] = None

    def logprobs_options(self) -> ChatOptions:
        """Returns the options for log-probabilities. Raises ``FieldError``."""
        refuse_together(top_logprobs=self.top_logprobs, logprobs=self.logprobs)
        return logprobs_options(self.top_logprobs or 0) if self.logprobs else {}


def logprobs_options(top: int) -> ChatOptions:
    """Returns the options for log-probabilities."""
    return {"logprobs": True, "top_logprobs": top}


def _certificate(given: object, name: str) -> object:
    if not (isinstance(given, bool) or given == WITH_PROMPT):
        raise invalid(name, f"it is {given!r:.80}; it must be true, false or {WITH_PROMPT!r}.")
    return given


class ProofFields(OptionFields):
    """The field that asks for the proof of an answer."""

    certificate: Annotated[bool | Literal["prompt"] | None, Reads(_certificate, bool | Literal["prompt"])] = None
