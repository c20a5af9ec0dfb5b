"""The certificate of one finished answer: what it is made of, and where it is told."""

from __future__ import annotations

import hashlib
import math
import platform
import struct
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from constrain.certificates.certificate import certify, digest
from constrain.certificates.derivation import CERTIFICATE_LIMIT
from constrain.engine import compiling as _compiling
from constrain.errors import LimitError, deep_enough
from constrain.generation.observers.certificate.sources import source_to_json
from constrain.generation.observers.observer import Later
from constrain.llama.decoding.sampling import Sampling
from constrain.llama.prebuilt.finding import library_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.engine.constraint import Constraint
    from constrain.generation.completion import Completion
    from constrain.generation.options import AnswerSettings
    from constrain.language.policies import CompileOptions
    from constrain.vocabulary.vocabulary import Vocabulary

SOFT_LIMITS = ("max_string_tokens", "max_number_tokens", "max_reasoning_tokens")
"""Settings of a matcher that certificates repeat."""


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

    def add(self, completion: Completion, made: dict[str, Any] | None) -> Completion:
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


def describe_prompt(tokens: Sequence[int], *, with_ids: bool) -> dict[str, Any]:
    """Returns the member ``prompt``: the hash and the number of its tokens and, if wanted, their ids."""
    return {"sha256": hash_tokens(tokens), "count": len(tokens), **({"ids": list(tokens)} if with_ids else {})}


def describe_sampling(sampling: Sampling) -> dict[str, Any]:
    """Returns the member ``sampling``, which has rarer options only where they have another value than by default."""
    usual = asdict(Sampling())
    given = {name: value for name, value in asdict(sampling).items() if name in _USUAL or value != usual[name]}
    biases = {str(token): bias if math.isfinite(bias) else str(bias) for token, bias in sampling.logit_bias.items()}
    return {**given, "logit_bias": biases}


def describe_settings(settings: AnswerSettings, prefix: Sequence[int]) -> dict[str, Any]:
    """Returns the member ``settings``: the options, besides sampling, on which the answer depends."""
    return {
        "max_tokens": settings.max_tokens,
        **{name: getattr(settings, name) for name in SOFT_LIMITS},
        "stop": list(settings.stops),
        "prefix": list(prefix),
        "draft": settings.draft,
        "timeout": settings.timeout,
        "show_schema": settings.show_schema,
    }


def versions() -> dict[str, str]:
    """Returns the member ``versions``."""
    return {
        "constrain": _version("constrain-llm"),
        "llama_cpp_python": library_version(),
        "python": platform.python_version(),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from its sources
        return "unknown"
