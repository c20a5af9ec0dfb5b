"""``vote=True``: one answer from several samples for a prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.errors import OutputValidationError
from constrain.generation.completion import Usage
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

    JSON values are merged field by field. Where the result is no text of the schema, where the type refuses it, and for
    all other answers, the winner is the sample that has most in common with it.
    """
    ballots = [_ballot(job, sample) for sample in samples]
    election = elect(ballots)
    found = _merged(job, election.value, samples) if _is_structured(job) else None
    number = nearest(ballots, election.value)
    winner = samples[number] if found is None else found
    ballot = ballots[number] if found is None else election.value
    usages = [sample.usage for sample in samples]
    usage = Usage(
        usages[0].prompt_tokens,
        usages[0].cached_tokens,
        sum(each.completion_tokens for each in usages),
    )
    return replace(winner, usage=usage, agreement=agreement_with(ballot, ballots), votes=tuple(samples))


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
        if not isinstance(sample.value, Refusal) and read_ballot(sample.text) == value:
            return sample
    assert job.constraint is not None
    for compact in (False, True):
        text = write_ballot(value, compact=compact)
        if job.constraint.accepts(text):
            try:
                parsed = job.plan.result.parse(text)
            except OutputValidationError:
                return None
            like = next(sample for sample in samples if not isinstance(sample.value, Refusal))
            return replace(like, value=parsed, text=text, tokens=(), logprobs=None, text_logprobs=None, captures=None)
    return None
