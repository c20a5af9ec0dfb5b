"""The observer of ``certificate``."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import Calls
from constrain.chat.answers.language import AnswerLanguage
from constrain.generation.exclusions import refuse_together
from constrain.generation.observers.certificate.certifying import (
    SOFT_LIMITS,
    Certifying,
    describe_prompt,
    describe_sampling,
    describe_settings,
    versions,
)
from constrain.generation.observers.choices import Choices
from constrain.generation.observers.observer import Observer
from constrain.generation.options import WITH_PROMPT
from constrain.llama.decoding.ranges import SEEDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.reading.progress import Outcome, Progress
    from constrain.generation.observers.observer import Observers
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Answer


class CertificateObserver(Observer):
    """Reports ``certificate``."""

    def __init__(self, plan: Plan, choices: Choices | None) -> None:
        self._plan = plan
        self._choices = choices

    @classmethod
    def check(cls, plan: Plan) -> Plan:
        """Returns the plan with a seed, for an answer that is never cut.

        Raises ``CertificateError`` for free text.
        """
        schema = None if plan.language is None else plan.language.schema
        if isinstance(schema, AnswerLanguage) and schema.content is None and schema.calls is Calls.NONE:
            schema = None
        refuse_together(certificate=True, language=schema is not None, callable=False)
        seed = secrets.randbelow(SEEDS) if plan.sampling.seed is None else plan.sampling.seed
        return replace(plan, sampling=replace(plan.sampling, seed=seed), may_be_cut=False)

    @classmethod
    def prepare(cls, plan: Plan) -> Sequence[Mapping[str, str | int]]:
        """Returns names and hashes of the files of the model. Raises ``ModelError``."""
        return plan.model.file_hashes()

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer:
        """Returns the observer of a new answer."""
        choices = others.get("unbias")
        return cls(plan, choices if isinstance(choices, Choices) else None)

    def finish(self, answer: Answer, progress: Progress, outcome: Outcome) -> Certifying:  # noqa: ARG002
        """Returns the finished answer as its certificate is made of."""
        plan, settings, choices = self._plan, self._plan.settings, self._choices
        assert plan.language is not None
        draft = None if answer.draft is None else {"tokens": answer.draft.tokens, "request": list(plan.request)}
        facts = {
            "prompt": describe_prompt(plan.tokens, with_ids=settings.certificate == WITH_PROMPT),
            "draft": draft,
            "model": {"files": list(plan.prepared["certificate"]), "n_ctx": plan.model.n_ctx},
            "sampling": describe_sampling(plan.used_sampling),
            "settings": describe_settings(settings, plan.prefix),
            "versions": versions(),
            "origins": None if choices is None else [choices.origin(answer, n) for n in range(len(answer.tokens))],
            "finish_reason": answer.finish_reason,
        }
        limits = {name: getattr(settings, name) for name in SOFT_LIMITS}
        return Certifying(
            plan.language.schema, plan.language.policies, tuple(answer.tokens), answer.limit, limits, facts
        )
