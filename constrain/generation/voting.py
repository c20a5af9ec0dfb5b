"""``vote=True``: one answer from several samples for a prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.errors import OutputValidationError
from constrain.voting.ballots import read_ballot, write_ballot
from constrain.voting.election import agreement_with, elect, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion
    from constrain.generation.job import Job
    from constrain.voting.ballots import Ballot


def decide(job: Job, samples: Sequence[Completion]) -> Completion:
    """Returns the answer that some samples (at least one) of a job agree on.

    If most samples are refusals, one of these wins. Otherwise JSON values are merged field by field. Where the result
    is no text of the schema, where the type refuses it, and for all other answers, the winner is the sample that has
    most in common with it.
    """
    refusals = [sample for sample in samples if isinstance(sample.value, Refusal)]
    answers = [sample for sample in samples if not isinstance(sample.value, Refusal)]
    voters = refusals if len(refusals) > len(answers) else answers
    ballots = [_ballot(job, sample) for sample in samples]
    elected = elect([_ballot(job, sample) for sample in voters])
    winner = _merged(job, elected, voters) if voters is answers and _is_structured(job) else None
    if winner is None:
        winner = voters[nearest([_ballot(job, sample) for sample in voters], elected)]
        elected = _ballot(job, winner)
    tokens = sum(sample.usage.completion_tokens for sample in samples)
    usage = replace(samples[0].usage, completion_tokens=tokens)
    return replace(winner, usage=usage, agreement=agreement_with(elected, ballots), votes=tuple(samples))


def _is_structured(job: Job) -> bool:
    """Returns whether answers are JSON texts, and nothing else."""
    return job.plan.result.document is not None and not job.plan.tools


def _ballot(job: Job, sample: Completion) -> Ballot:
    """Returns what counts of a sample: its JSON value, its calls and content, or its text."""
    value: Any = sample.value
    if isinstance(value, Refusal):
        return {"refusal": value.text}
    if isinstance(value, Reply):
        content = read_ballot(value.text) if value.text and job.plan.result.document is not None else value.text
        return {"calls": [_call(call) for call in value.calls], "content": content}
    return read_ballot(sample.text) if _is_structured(job) else sample.text


def _call(call: ToolCall) -> Ballot:
    given = read_ballot(call.text) if isinstance(call, FunctionCall) else call.text
    return {"name": call.name, "input": given}


def _merged(job: Job, value: Ballot, samples: Sequence[Completion]) -> Completion | None:
    """Returns the answer with a merged value, a sample if possible; None if the schema has no such value."""
    for sample in samples:
        if read_ballot(sample.text) == value:
            return sample
    assert job.constraint is not None
    for compact in (False, True):
        text = write_ballot(value, compact=compact)
        if job.constraint.accepts(text):
            try:
                parsed = job.plan.result.parse(text)
            except OutputValidationError:
                return None
            unknown: dict[str, Any] = {
                "tokens": (),
                "logprobs": None,
                "text_logprobs": None,
                "captures": None,
                "fields": None,
            }
            return replace(samples[0], value=parsed, text=text, **unknown)
    return None
