"""The certificate of one finished answer: what it is made of, and where it is told."""

from __future__ import annotations

import hashlib
import math
import platform
import secrets
import struct
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from constrain.certificates.certificate import certify, digest
from constrain.certificates.derivation import CERTIFICATE_LIMIT
from constrain.chat.answers.choices import Calls
from constrain.chat.answers.language import AnswerLanguage
from constrain.engine import compiling as _compiling
from constrain.errors import LimitError, deep_enough
from constrain.generation.exclusions import refuse_together
from constrain.generation.observers.certificate.sources import source_to_json
from constrain.generation.observers.choices import Choices
from constrain.generation.observers.observer import Later, Observer
from constrain.generation.options import WITH_PROMPT
from constrain.llama.decoding.ranges import SEEDS
from constrain.llama.decoding.sampling import Sampling
from constrain.llama.prebuilt.finding import library_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.engine.constraint import Constraint
    from constrain.generation.observers.observer import Observers, Written
    from constrain.generation.plan import Plan
    from constrain.language.policies import CompileOptions
    from constrain.vocabulary.vocabulary import Vocabulary

SOFT_LIMITS = ("max_string_tokens", "max_number_tokens", "max_reasoning_tokens")
"""Settings of a matcher that certificates repeat."""


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

    def finish(self, written: Written) -> Certifying:
        """Returns the finished answer as its certificate is made of."""
        plan, settings, answer = self._plan, self._plan.settings, written.answer
        assert plan.language is not None
        ids = {"ids": list(plan.tokens)} if settings.certificate == WITH_PROMPT else {}
        limits = {name: getattr(settings, name) for name in SOFT_LIMITS}
        draft = None if answer.draft is None else {"tokens": answer.draft.tokens, "request": list(plan.request)}
        inserted = [{"index": place, "ids": list(tokens)} for place, tokens in answer.inserted if tokens]
        facts = {
            "prompt": {"sha256": hash_tokens(plan.tokens), "count": len(plan.tokens), **ids},
            "draft": draft,
            **({"inserted": inserted} if inserted else {}),
            "model": {"files": list(plan.prepared["certificate"]), "n_ctx": plan.model.n_ctx},
            "sampling": _describe_sampling(plan.used_sampling),
            "settings": {
                "max_tokens": settings.max_tokens,
                **limits,
                "stop": list(settings.stops),
                "prefix": list(plan.prefix),
                "draft": settings.draft,
                "timeout": settings.timeout,
                "show_schema": settings.show_schema,
            },
            "versions": {
                "constrain": _version("constrain-llm"),
                "llama_cpp_python": library_version(),
                "python": platform.python_version(),
            },
            "origins": None if self._choices is None else self._choices.origins(answer),
            "finish_reason": answer.finish_reason,
        }
        return Certifying(
            plan.language.schema, plan.language.policies, tuple(answer.tokens), answer.limit, limits, facts
        )


@dataclass(frozen=True, slots=True)
class Certifying(Later):
    """A finished answer whose certificate is still to be made.

    Attributes:
        schema: language of the answer; with ``policies``, the arguments of ``compile``.
        policies: spelling of JSON.
        tokens: token ids of the answer, without the end of generation.
        limit: the most tokens that the answer might have had.
        soft_limits: the other limits of its matcher, by name.
        facts: members of the certificate about the prompt, the model and the options.
    """

    name = "certificate"
    schema: object
    policies: CompileOptions
    tokens: tuple[int, ...]
    limit: int
    soft_limits: Mapping[str, int | None]
    facts: Mapping[str, Any]

    def make(self, vocabulary: Vocabulary, constraint: Constraint | None = None) -> dict[str, Any] | None:
        """Returns the certificate; ``None`` beyond a limit."""
        try:
            with deep_enough():
                if constraint is None:
                    constraint = _compiling.compile_any(self.schema, vocabulary, close_objects=True, **self.policies)
                return certify(
                    constraint,
                    self.tokens,
                    max_tokens=self.limit,
                    needed=self._count_needed(constraint),
                    facts={**self.facts, "source": self._describe_source(vocabulary)},
                )
        except LimitError:
            return None

    def add(self, completion: Any, made: dict[str, Any] | None) -> Any:
        """Returns the answer with its certificate; without one, ``limits_met`` has the limit."""
        if made is None:
            return replace(completion, limits_met=(*completion.limits_met, CERTIFICATE_LIMIT))
        return replace(completion, certificate=made)

    def _count_needed(self, constraint: Constraint) -> list[int]:
        """Returns the tokens that were enough to finish, before the first token and after each one."""
        matcher = constraint.matcher(self.limit, **self.soft_limits)
        needed = [matcher.min_tokens_left]
        for token in self.tokens:
            if not matcher.accept(token):
                raise RuntimeError(
                    f"token {token} is in the answer, but its proof refuses it: {matcher.explain(token)}"
                )
            needed.append(matcher.min_tokens_left)
        return needed

    def _describe_source(self, vocabulary: Vocabulary) -> dict[str, Any]:
        found = _compiling.describe_source(self.schema, vocabulary, close_objects=True, **self.policies)
        source = source_to_json(found)
        return {**source, "sha256": digest(source)}


_USUAL = frozenset(
    ("temperature", "top_k", "top_p", "min_p", "seed", "repeat_penalty", "presence_penalty", "frequency_penalty")
)
"""Options for sampling that every certificate has."""


def hash_tokens(tokens: Sequence[int]) -> str:
    """Returns the SHA-256 of token ids as little-endian 32-bit integers, in hexadecimal."""
    return hashlib.sha256(struct.pack(f"<{len(tokens)}i", *tokens)).hexdigest()


def _describe_sampling(sampling: Sampling) -> dict[str, Any]:
    """Returns the member ``sampling``, which has rarer options only where they have another value than by default."""
    usual = asdict(Sampling())
    given = {name: value for name, value in asdict(sampling).items() if name in _USUAL or value != usual[name]}
    biases = {str(token): bias if math.isfinite(bias) else str(bias) for token, bias in sampling.logit_bias.items()}
    return {**given, "logit_bias": biases}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from its sources
        return "unknown"
