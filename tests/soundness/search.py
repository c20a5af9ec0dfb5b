"""What is compared: for each schema, what its constraint accepts with what is valid; and where walks end."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import jsonschema_rs

import constrain
from constrain.engine.constraint import Constraint
from constrain.generation.plan import Language
from constrain.vocabulary.vocabulary import Vocabulary
from tests.soundness.models import Models
from tests.soundness.schemas import random_schema
from tests.soundness.values import Values
from tests.support import allowed, byte_vocabulary
from tests.support.judges import Judges
from tests.support.judging import PLAIN_DIGITS, written

WIDEST = {"whitespace": "any", "property_order": "any", "formats": "annotation", "numbers": "any"}
BUDGETS = (0, 1, 4, 15)
"""Tokens above the fewest possible."""

MAX_LISTED = 400
"""Findings of each kind that are kept."""


class Finding(NamedTuple):
    """Something to look at."""

    kind: str
    seed: str
    detail: str


@dataclass
class Tally:
    """What a search has come to. ``wrong``: answers that are no good; ``counts``: everything by kind."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def note(self, kind: str, seed: str, detail: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= MAX_LISTED:
            self.findings.append(Finding(kind, seed, detail))

    @property
    def wrong(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind.startswith("WRONG")]

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.findings += other.findings


def random_policies(rng: Random) -> dict[str, str]:
    """The widest policies half of the time, any others otherwise."""
    if rng.random() < 0.5:
        return {**WIDEST, "formats": rng.choice(("annotation", "assert"))}
    return {
        "whitespace": rng.choice(("flexible", "any")),
        "property_order": rng.choice(("schema", "any")),
        "formats": rng.choice(("assert", "annotation")),
        "numbers": rng.choice(("canonical", "any")),
    }


def compiled(schema: str, tally: Tally, **policies: Any) -> Constraint | bool | None:
    """The constraint; None if nothing satisfies the schema; False if it is refused."""
    try:
        return constrain.compile(schema, byte_vocabulary(), cache=False, **policies)
    except constrain.UnsatisfiableSchemaError:
        return None
    except constrain.ConstrainError as error:
        tally.counts[f"refused: {reason(error)}"] += 1
        return False


def reason(error: constrain.ConstrainError) -> str:
    """What an error says, without what belongs to the single schema."""
    message = re.sub(r"'(?:[^'\\]|\\.)*'(?:\.\.\.)?|\"(?:[^\"\\]|\\.)*\"", "...", error.message)
    return re.sub(r"[-+0-9.eE]*\d[-+0-9.eE]*|\(at [^)]*\)", "N", f"{type(error).__name__}: {message}")[:100]


def without_endless(schema: dict[str, Any], *, meaning: bool) -> dict[str, Any]:
    """The schema with a meaning for definitions that apply themselves to the same value, also by way of others."""
    name = "$defs" if "$defs" in schema else "definitions"
    definitions = schema.get(name, {})
    applied = {key: set(applied_in_place(each)) for key, each in definitions.items()}
    for _ in definitions:
        applied = {key: found.union(*(applied.get(each, ()) for each in found)) for key, found in applied.items()}
    plain = {} if meaning else {"not": {}}  # draft 4 has no booleans
    return {**schema, name: {key: plain if key in applied[key] else each for key, each in definitions.items()}}


def applied_in_place(schema: Any) -> Iterator[str]:
    """The names of definitions that a schema applies to its own value."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    parts = [schema[key] for key in ("not", "if", "then", "else") if key in schema]
    for key in ("allOf", "anyOf", "oneOf"):
        parts += schema.get(key, ())
    for key in ("dependencies", "dependentSchemas"):
        parts += schema.get(key, {}).values()
    for part in parts:
        yield from applied_in_place(part)


# Schemas and texts


class Case:
    """One schema with its constraint and judges."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self.seed = seed
        self.tally = tally
        self.rng = Random(f"soundness {seed}")
        self.schema = random_schema(self.rng)
        self.text = written(self.schema)
        self.policies = random_policies(self.rng)
        self.constraint = compiled(self.text, tally, **self.policies)
        self.widest: Constraint | bool | None = False
        self.asked_widest = False

    def check(self, values: int) -> None:
        if self.constraint is False:
            return
        self.tally.counts["schemas"] += 1
        self.tally.counts["schemas without a value"] += self.constraint is None
        judges = Judges(self.schema, formats=self.policies["formats"] != "annotation")
        plainly = self.policies["numbers"] == "canonical" or self.policies["property_order"] == "schema"
        maker = Values(self.rng, self.schema, plainly=plainly)
        for _ in range(values):
            self.judge(maker.text(), judges)

    def judge(self, text: str, judges: Judges) -> None:
        counts = self.tally.counts
        try:
            verdict = judges.verdict(text)
        except ValueError:  # an object with a key twice, or an integer of thousands of digits
            counts["texts that are no JSON"] += 1
            return
        except RecursionError:  # a $ref that leads back to itself, in a part that no value may reach
            if isinstance(self.constraint, constrain.Constraint) and self.constraint.accepts(text):
                self.judge_without_endless(text)
            counts["texts that reach a $ref that never ends"] += 1
            return
        counts["texts"] += 1
        try:
            accepted = isinstance(self.constraint, constrain.Constraint) and self.constraint.accepts(text)
        except constrain.LimitError as error:
            self.note("WRONG: a limit after compiling", text, str(error))
            return
        counts["texts accepted"] += accepted
        counts["texts valid"] += not verdict.error
        if verdict.dispute:
            self.note(f"disputed: {verdict.dispute}", text, verdict.error)
        if accepted and verdict.error:
            self.note("WRONG: accepted", text, verdict.error)
        if not accepted and not verdict.error:
            why = self.explained(text)
            counts[f"narrowed: {why}"] += 1
            if why == "UNEXPLAINED":
                self.note("narrowed: UNEXPLAINED", text, "")

    def judge_without_endless(self, text: str) -> None:
        """Judges an accepted text with each endless ``$ref`` as true, and as false: it must be valid either way."""
        for meaning in (True, False):
            judges = Judges(
                without_endless(self.schema, meaning=meaning), formats=self.policies["formats"] != "annotation"
            )
            try:
                error = judges.verdict(text).error
            except RecursionError:
                error = "a $ref never ends"
            if error:
                self.note(f"WRONG: accepted, though a $ref never ends, read as {meaning}", text, error)

    def note(self, kind: str, text: str, error: str) -> None:
        self.tally.note(kind, str(self.seed), f"{text} | {error} | {self.policies} | {self.text}")

    def explained(self, text: str) -> str:
        """Why a valid text is not taken: policies, or the digits that the report tells of."""
        if not self.asked_widest:
            self.asked_widest = True
            self.widest = compiled(self.text, Tally(), **{**WIDEST, "formats": self.policies["formats"]})
        if self.widest is False:
            return "the widest policies are refused"
        if isinstance(self.widest, constrain.Constraint) and self.widest.accepts(text):
            return "policies" if self.constraint is not None else "UNEXPLAINED"
        if self.policies["formats"] != "annotation":
            strict = jsonschema_rs.validator_for(json.loads(self.text), validate_formats=True)
            if not strict.is_valid(json.loads(text)):
                return "formats, as jsonschema-rs has them"
        limits = (why for why, ask, limit in LIMITS if re.search(ask, self.text) and re.search(limit, text))
        return next(limits, "long multiples" if self.has_long_multiple(text) else "UNEXPLAINED")

    def has_long_multiple(self, text: str) -> bool:
        """Whether a number has more than 15 digits, those after the point counted that multiples have in the schema."""
        divisors = map(Decimal, re.findall(r'"multipleOf": ([^,}]+)', self.text))
        places = max((-int(each.as_tuple().exponent) for each in divisors), default=-PLAIN_DIGITS)
        return re.search(rf"[0-9]{{{max(1, PLAIN_DIGITS + 1 - places)}}}", text) is not None


LIMITS = (
    ("more than 17 digits before an exponent", "", r"[0-9]{18}(\.[0-9]*)?[eE]|\.[0-9]{18,}[eE]"),
    ("more than 64 digits after the point", "", r"\.[0-9]{65}"),
    ("like a bound that is no double", r'imum": -?[0-9.]{16}', r"[0-9]{16}[0-9]*(\.[0-9]|[eE])|[0-9][eE]"),
    ("more than 308 digits before the point", "", r"[0-9]{309}"),
    ("numbers beyond the doubles", "", r"[0-9][eE]\+?[0-9]{3}|[0-9]e-[0-9]{3}"),
    ("whole numbers with a fraction in draft 4", "draft-04", r"[0-9]\.0+(?![0-9])|[0-9][eE]|-0"),
    ("multiples with an exponent", r'"multipleOf"', r"[0-9][eE]"),
    ("no integers, with an exponent", r'"(not|oneOf|if|maxContains|contains)"(.|\n)*"integer"', r"[0-9][eE]"),
    ("numbers like a constant in 16 digits", "", r"[0-9.]{17}"),
    ("a line break at the end, which jsonschema overlooks in some formats", '"format"', r'\\n"'),
)
"""What the precision and the spelling of numbers leave out (see the README), and where jsonschema is lax: patterns for
the schema and the text."""


# Walks


class Walk(NamedTuple):
    text: str
    problem: str


def walked(constraint: Constraint, vocabulary: Vocabulary, rng: Random, budget: int | None, most: int = 60) -> Walk:
    """A text of random allowed tokens, within a budget or at most so many and then along the shortest completion."""
    matcher = constraint.matcher(max_tokens=budget)
    row, text, used = constraint.allocate_bitmask()[0], b"", 0
    end = set(vocabulary.eos)
    problem = ""
    while True:
        ids = allowed(matcher, row)
        if not len(ids):
            problem = "no token is allowed"
            break
        if budget is None and used >= most:
            text += bytes(matcher.shortest_completion())
            break
        token = int(ids[rng.randrange(len(ids))])
        if not matcher.accept(token):
            problem = f"the mask has {token}, accept refuses it"
            break
        if token in end:
            break
        text += vocabulary.token_bytes(token)
        used += 1
        if budget is not None and used > budget:
            problem = f"more than {budget} tokens"
            break
        if matcher.is_finished:
            break
    try:
        return Walk(text.decode(), problem or ("" if constraint.accepts(text) else "accepts() refuses it"))
    except UnicodeDecodeError:
        return Walk(repr(text), problem or "is no UTF-8")


def walks(constraint: Constraint, vocabulary: Vocabulary, rng: Random, tally: Tally) -> Iterator[Walk]:
    """Two walks without a budget, and one for each of ``BUDGETS``."""
    fewest = constraint.matcher().min_tokens_left
    for budget in (None, None, *(fewest + more for more in BUDGETS)):
        most = rng.choice((5, 20, 60))
        yield walked(constraint, vocabulary, rng, budget, most)
        tally.counts["walks, no budget" if budget is None else f"walks, fewest +{budget - fewest}"] += 1
        tally.counts["walks"] += 1


def kinds_of(schema: Any, vocabulary: Vocabulary) -> Iterator[tuple[str, dict[str, str], Any]]:
    """A name, policies, and what compiles the schema with them."""
    yield "default", {}, lambda: constrain.compile(schema, vocabulary, cache=False)
    yield "closed", {}, lambda: Language(schema).compile(vocabulary, cache=False)  # type: ignore[arg-type]
    yield "widest", WIDEST, lambda: constrain.compile(schema, vocabulary, cache=False, **WIDEST)


def walk_schema(seed: int, vocabulary: Vocabulary, tally: Tally) -> None:
    """Walks over one random schema."""
    rng = Random(f"walks {seed}")
    schema = random_schema(rng)
    text = written(schema)
    for name, policies, compile_it in kinds_of(text, vocabulary):
        try:
            constraint = compile_it()
        except constrain.ConstrainError as error:
            tally.counts["walks refused: unsatisfiable" if _is_empty(error) else "walks refused"] += 1
            continue
        judges = Judges(schema, formats=policies.get("formats") != "annotation")
        for walk in walks(constraint, vocabulary, rng, tally):
            tally.counts[f"walks, {name}"] += 1
            error = walk.problem
            if not error:
                try:
                    verdict = judges.verdict(walk.text)
                except ValueError as why:
                    error = str(why)
                else:
                    error = verdict.error
                    if verdict.dispute:
                        tally.note(f"disputed: {verdict.dispute}", f"walk {seed}", f"{walk.text} | {name} | {text}")
            if error:
                tally.note("WRONG: a walk", f"walk {seed}", f"{walk.text} | {error} | {name} | {text}")


def _is_empty(error: constrain.ConstrainError) -> bool:
    return isinstance(error, constrain.UnsatisfiableSchemaError)


def walk_model(seed: int, vocabulary: Vocabulary, tally: Tally) -> None:
    """Walks over one random Pydantic model, which must read what is written."""
    rng = Random(f"model {seed}")
    models = Models(rng)
    model = models.model(2)
    for name, policies, compile_it in kinds_of(model, vocabulary):
        try:
            constraint = compile_it()
        except constrain.ConstrainError as error:
            tally.counts[f"models refused: {reason(error)}"] += 1
            continue
        for walk in walks(constraint, vocabulary, rng, tally):
            tally.counts[f"walks over models, {name}"] += 1
            error = walk.problem or models.error(model, walk.text)
            if error:
                tally.note(
                    "WRONG: a model", f"model {seed}", f"{walk.text} | {error} | {policies} | {models.described(model)}"
                )
