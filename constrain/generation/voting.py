"""``vote=True``: one answer from several samples for a prompt."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.errors import LimitError, OutputValidationError
from constrain.generation.completion import REPORTS
from constrain.generation.observers.quotes import find_quotes
from constrain.voting.ballots import read_ballot, write_ballot
from constrain.voting.election import agreement_with, elect, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.progress import Outcome
    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion
    from constrain.generation.plan import Plan
    from constrain.voting.ballots import Ballot


def decide(plan: Plan, samples: Sequence[Completion]) -> Completion:
    """Returns the answer that some samples (at least one) of a plan agree on.

    If most samples are refusals, one of these wins. Otherwise JSON values are merged field by field. Where the result
    is no text of the schema, where the type refuses it, and for all other answers, the winner is the sample that has
    most in common with it.
    """
    refusals = [sample for sample in samples if _refuses(sample)]
    answers = [sample for sample in samples if not _refuses(sample)]
    voters = refusals if len(refusals) > len(answers) else answers
    ballots = [_ballot(plan, sample) for sample in voters]
    weights = _weights(voters) if plan.settings.unbias else None
    elected = elect(ballots, weights)
    winner = voters[nearest(ballots, elected)]
    is_merged = voters is answers and _is_structured(plan)
    for value in (elected, elect(ballots, weights, keeps_length=True)) if is_merged else ():
        if (found := _merged(plan, value, voters[nearest(ballots, value)])) is not None:
            winner = found
            break
    tokens = sum(sample.usage.completion_tokens for sample in samples)
    drafts = sum(sample.usage.draft_tokens for sample in samples)
    agreement = agreement_with(_ballot(plan, winner), [_ballot(plan, sample) for sample in samples], weights)
    introduced, first = sum(sample.usage.introduced_tokens for sample in samples), samples[0].usage
    read = first.prompt_tokens - first.introduced_tokens + introduced
    usage = replace(
        first, prompt_tokens=read, completion_tokens=tokens, draft_tokens=drafts, introduced_tokens=introduced
    )
    return replace(winner, usage=usage, agreement=agreement, votes=tuple(samples))


def _weights(samples: Sequence[Completion]) -> list[float]:
    """Returns the importance weight of each sample; the greatest is 1.

    A sample comes about with the probability of its choices among the allowed tokens. The weight is its probability in
    the model's own distribution, divided by this one: the product of the probabilities of all allowed tokens.
    """
    masses = [sample.log_mass for sample in samples if sample.log_mass is not None]
    assert len(masses) == len(samples)
    greatest = max(masses)
    return [math.exp(each - greatest) for each in masses]


def _is_structured(plan: Plan) -> bool:
    """Returns whether answers are JSON texts, and nothing else."""
    return plan.result.document is not None and not plan.tools


def _refuses(sample: Completion) -> bool:
    value = sample.value
    return isinstance(value, Refusal) or (isinstance(value, Reply) and value.refusal is not None)


def _ballot(plan: Plan, sample: Completion) -> Ballot:
    """Returns the part of a sample that votes: its JSON value, its calls and content, its refusal, or its text."""
    value: Any = sample.value
    if isinstance(value, Refusal):
        return {"refusal": value.text}
    if isinstance(value, Reply):
        content: Ballot = value.text or None
        if value.text and plan.result.document is not None:
            content = read_ballot(value.text)
        refusal: dict[str, Ballot] = {} if value.refusal is None else {"refusal": value.refusal}
        return {"content": content, "calls": [_call(call) for call in value.calls], **refusal}
    return read_ballot(sample.text) if _is_structured(plan) else sample.text


def _call(call: ToolCall) -> Ballot:
    if isinstance(call, FunctionCall):
        return {"name": call.name, "arguments": read_ballot(call.text)}
    return {"name": call.name, "input": call.text}


def _merged(plan: Plan, value: Ballot, sample: Completion) -> Completion | None:
    """Returns the answer with a merged value: the nearest sample, with another text if its value differs.

    None if the schema has no such value, if the type refuses it, or if finding this out meets a limit.
    """
    if _ballot(plan, sample) == value:
        return sample
    assert plan.constraint is not None
    data = b"".join(map(plan.constraint.vocabulary.marked_bytes, sample.tokens))
    begin = data.rfind(sample.text.encode())
    before, after = data[:begin], data[begin + len(sample.text.encode()) :]
    prefix = b"".join(map(plan.constraint.vocabulary.marked_bytes, plan.prefix))
    for compact in (False, True):
        text = write_ballot(value, compact=compact)
        whole = before + text.encode() + after
        try:
            if not whole.startswith(prefix) or not plan.constraint.accepts(whole):
                continue
            outcome = _read(plan, whole)
        except (LimitError, OutputValidationError):
            return None
        if outcome.text == text:
            known = {"captures": sample.captures, "quotes": find_quotes(plan, text, outcome.value), "reports": None}
            reports: dict[str, Any] = {**dict.fromkeys(REPORTS), **known}
            return replace(sample, value=outcome.value, text=text, tokens=(), draft="", **reports)
    return None


def _read(plan: Plan, data: bytes) -> Outcome:
    """Reads the bytes of a whole answer. Raises ``OutputValidationError``."""
    progress = plan.progress(plan.number, None)
    progress.feed(data)
    progress.finish()
    return progress.outcome()
