"""Checks of a schema without a model: findings, sizes, and the number of tokens that answers take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from constrain.engine.compiling import compile_any
from constrain.errors import ConstrainError, GrammarError, LimitError
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.lint.findings import Finding
from constrain.json_schema.lint.linter import Lint, lint_schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from constrain.engine.constraint import Constraint, Matcher
    from constrain.engine.report import Report
    from constrain.vocabulary.vocabulary import Vocabulary

WALKS = 20
"""Random answers whose mean length is the typical number of tokens."""

WAY_OUT = 1 / 6
"""Probability that a token of a random answer comes from a shortest way to its end; makes strings of about six tokens
and arrays of a few items."""

MAX_WALK = 1_000
"""Tokens of a random answer; beyond them it takes the shortest way to its end."""

_readable: WeakKeyDictionary[Vocabulary, NDArray[np.uint32]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Check:
    """The result of checking one schema.

    ``lint``: the findings. ``report``: policies, warnings, sizes and least tokens of the enforceable schema in
    generation; ``None`` if there is none. ``typical_tokens``: the mean length of random answers, in tokens.
    """

    lint: Lint
    report: Report | None
    typical_tokens: int | None

    @property
    def passed(self) -> bool:
        """Whether the whole schema is enforced and every part of it can be used."""
        return self.lint.exact and not self.lint.unsatisfiable


def check_schema(schema: object, vocabulary: Vocabulary, *, registry: object = None, **policies: Any) -> Check:
    """Checks a parsed JSON Schema (dict or bool) against the tokens of a vocabulary; policies as for ``compile``.

    As in ``generate``, objects have only the keys that the schema declares.
    Where keywords are refused, sizes and tokens are those of the schema without them. Raises SchemaError or LimitError
    for an error that names no place in the schema.

    >>> from constrain import Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> check_schema({"const": "ab"}, vocabulary).typical_tokens
    4
    """
    lint = lint_schema(schema, registry=registry, **policies)
    if lint.remaining is None:
        return Check(lint, None, None)
    closing = {"close_objects": True, "registry": registry}
    try:
        constraint = compile_any(lint.remaining, vocabulary, **closing, **policies)  # type: ignore[arg-type]
    except (GrammarError, LimitError) as error:
        refused = Finding("refused", error.pointer or "", error.message)
        return Check(replace(lint, refused=(*lint.refused, refused)), None, None)
    try:
        full = compile_any(filled(lint.remaining), vocabulary, **closing, **policies)  # type: ignore[arg-type]
    except ConstrainError:  # for example a schema that contains itself has no value with all properties
        full = constraint
    return Check(lint, constraint.report, typical_tokens(full))


def filled(schema: object) -> object:
    """The schema with all properties required: models mostly answer with all of them."""
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

    With probability ``WAY_OUT`` the next token lies on a shortest way to the end; otherwise it is any allowed token of
    printable ASCII, with equal probability.
    """
    walker = _Walker(constraint)
    # ``Random`` makes walks repeatable; nothing here is secret
    return round(sum(walker.length(Random(walk)) for walk in range(walks)) / walks)  # noqa: S311


class _Walker:
    """A source of random answers in one language."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.ends = constraint.vocabulary.eos
        self.readable = readable_tokens(constraint.vocabulary)
        self.row = constraint.allocate_bitmask()[0]

    def length(self, rng: Random) -> int:
        """Walks through one random answer and returns its number of tokens."""
        matcher, length = self.constraint.matcher(), 0
        while not matcher.is_finished:
            if length == MAX_WALK:
                return length + matcher.min_tokens_left
            token = self._random(matcher, rng) if rng.random() > WAY_OUT else None
            if token in self.ends or (token is None and matcher.is_accepting):
                break
            matcher.accept(matcher.completion_tokens()[0] if token is None else token)
            length += 1
        return length

    def _random(self, matcher: Matcher, rng: Random) -> int | None:
        """A random allowed token of printable ASCII; ``None`` if no such token is allowed."""
        import numpy as np

        matcher.fill_bitmask(self.row)
        allowed = self.row & self.readable
        ends = _count_bits(allowed).cumsum(dtype=np.int64)
        if not ends[-1]:
            return None
        number = rng.randrange(int(ends[-1]))
        place = int(ends.searchsorted(number, side="right"))
        word, before = int(allowed[place]), int(ends[place - 1]) if place else 0
        return 32 * place + [bit for bit in range(32) if word >> bit & 1][number - before]


def _count_bits(words: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Returns the number of bits of each word."""
    import numpy as np

    counts: NDArray[np.uint8]
    if hasattr(np, "bitwise_count"):  # since NumPy 2
        counts = np.bitwise_count(words)
    else:
        counts = np.unpackbits(words.view(np.uint8)).reshape(-1, 32).sum(axis=1, dtype=np.uint8)
    return counts


def readable_tokens(vocabulary: Vocabulary) -> NDArray[np.uint32]:
    """Returns the tokens of printable ASCII as a row of a mask; found once for each vocabulary."""
    import numpy as np

    found = _readable.get(vocabulary)
    if found is None:
        texts = map(vocabulary.token_bytes, range(vocabulary.n_vocab))
        bits = np.fromiter((text.isascii() and text.decode().isprintable() for text in texts), bool)
        bits.resize(32 * -(-vocabulary.n_vocab // 32), refcheck=False)
        found = _readable[vocabulary] = np.packbits(bits, bitorder="little").view(np.uint32)
    return found
