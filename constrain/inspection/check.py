"""All that can be said about a schema before a model is asked: findings, sizes, and how many tokens answers take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from constrain.engine.constraint import _compile
from constrain.errors import ConstrainError, GrammarError, LimitError
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.lint.findings import Finding
from constrain.json_schema.lint.linter import Lint, lint_schema

if TYPE_CHECKING:
    from constrain.engine.constraint import Constraint, Matcher, Report
    from constrain.vocabulary.vocabulary import Vocabulary

WALKS = 20
"""Random answers that make the typical number of tokens."""

WAY_OUT = 1 / 6
"""How likely each token of a random answer is the next of a shortest way to its end, which makes strings of some six
tokens and arrays of a few items."""

MAX_WALK = 1_000
"""Tokens after which a random answer takes the shortest way to its end."""


@dataclass(frozen=True)
class Check:
    """What was found out about one schema.

    ``lint``: the findings. ``report``: policies, warnings, sizes and least tokens of what can be enforced, if there is
    such a thing. ``typical_tokens``: the mean length of random answers.
    """

    lint: Lint
    report: Report | None
    typical_tokens: int | None

    @property
    def passed(self) -> bool:
        """Whether all of the schema is enforced, and every part of it can be used."""
        return self.lint.exact and not self.lint.unsatisfiable


def check_schema(schema: object, vocabulary: Vocabulary, *, registry: object = None, **policies: Any) -> Check:
    """Looks at a parsed JSON Schema (dict or bool), with the tokens of a vocabulary; policies as for ``compile``.

    Where keywords are refused, sizes and tokens are those of the schema without them. Raises SchemaError or LimitError
    where an error names no place in the schema.

    >>> from constrain import Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> check_schema({"const": 12}, vocabulary).typical_tokens
    2
    """
    lint = lint_schema(schema, registry=registry, **policies)
    if lint.remaining is None:
        return Check(lint, None, None)
    try:
        opened = {"close_objects": False, "registry": registry}
        constraint = _compile(lint.remaining, vocabulary, **opened, **policies)  # type: ignore[arg-type]
    except (GrammarError, LimitError) as error:
        refused = Finding("refused", error.pointer or "", error.message)
        return Check(replace(lint, refused=(*lint.refused, refused)), None, None)
    try:
        closing = {"close_objects": True, "registry": registry}
        full = _compile(filled(lint.remaining), vocabulary, **closing, **policies)  # type: ignore[arg-type]
    except ConstrainError:  # no value has all properties, where a schema contains itself for one
        full = constraint
    return Check(lint, constraint.report, typical_tokens(full))


def filled(schema: object) -> object:
    """The schema with all its properties required: what models mostly answer."""
    if not isinstance(schema, dict):
        return schema
    changed = dict(schema)
    for keyword, name, _, inner in subschemas(schema):
        if keyword not in ("not", "if", "dependencies", "dependentSchemas"):
            value = changed[keyword]
            if value is schema[keyword] and name:
                value = changed[keyword] = value.copy()
            if isinstance(value, list):
                value[int(name)] = filled(inner)
            elif name:
                value[name] = filled(inner)
            else:
                changed[keyword] = filled(inner)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        required = schema.get("required")
        present = [name for name, inner in properties.items() if inner is not False]
        changed["required"] = [*dict.fromkeys([*(required if isinstance(required, list) else ()), *present])]
    return changed


def typical_tokens(constraint: Constraint, walks: int = WALKS) -> int:
    """The mean number of tokens of random answers, end-of-generation not counted; the same at every call.

    With likelihood ``WAY_OUT`` the next token is one of a shortest way to the end, otherwise any allowed token of
    printable ASCII, all alike.
    """
    walker = _Walker(constraint)
    # ``Random``: walks are repeatable, and nothing is secret
    return round(sum(walker.length(Random(walk)) for walk in range(walks)) / walks)  # noqa: S311


class _Walker:
    """Random answers in one language."""

    def __init__(self, constraint: Constraint) -> None:
        import numpy as np

        vocabulary = constraint.vocabulary
        texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
        self.constraint = constraint
        self.readable = np.fromiter((text.isascii() and text.decode().isprintable() for text in texts), bool)
        self.row = constraint.allocate_bitmask()[0]

    def length(self, rng: Random) -> int:
        """Tokens of one answer."""
        matcher, length = self.constraint.matcher(), 0
        while not matcher.is_finished:
            if length == MAX_WALK:
                return length + matcher.min_tokens_left
            token = self._random(matcher, rng) if rng.random() > WAY_OUT else None
            if token is None and matcher.is_accepting:
                break
            matcher.accept(matcher.completion_tokens()[0] if token is None else token)
            length += 1
        return length

    def _random(self, matcher: Matcher, rng: Random) -> int | None:
        """An allowed token of printable ASCII, if there is one."""
        import numpy as np

        matcher.fill_bitmask(self.row)
        bits = np.unpackbits(self.row.view(np.uint8), count=len(self.readable), bitorder="little").view(bool)
        allowed = np.flatnonzero(bits & self.readable)
        return int(allowed[rng.randrange(len(allowed))]) if len(allowed) else None
