"""The official JSON-Schema-Test-Suite: what becomes of each test, and the file that remembers it.

Outcome of a test, from best to worst (a false reject that no policy explains is worse than a refusal):

- ok: a valid instance is accepted, an invalid one rejected
- order: a valid instance is rejected as written, but accepted with its keys in another order
- false reject: a valid instance is rejected in every order tried
- refused: the schema does not compile
- false accept: an invalid instance is accepted
- broken: an exception that is not ours, or a schema with a valid instance that is said to have no value

Instances are written as ``json.dumps`` does; whitespace="any", all other policies at their defaults. Schemas that do
not declare their draft are given the declaration; those of drafts 4 to 7, none of which declares it, also run as they
are, which is how a caller may well pass them: read as draft 2020-12.

The folder ``optional``, with ``optional/format``, has a file of its own: what it tests, the specification leaves
to each implementation. It runs with the declaration only.

``python -m tests.support.json_schema.official_suite`` writes the files anew (CONSTRAIN_DATA must be set) and prints
totals.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any, NamedTuple

from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

import constrain
from tests.support import byte_vocabulary, canonical, data_folder

RATCHET = Path(__file__).parents[2] / "data" / "json_schema_test_suite.json"
OPTIONAL_RATCHET = RATCHET.with_name("json_schema_test_suite_optional.json")
REGENERATE = "CONSTRAIN_DATA=... python -m tests.support.json_schema.official_suite"

DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
}
UNDECLARED = " without $schema"
RUNS = (*DRAFTS, *(draft + UNDECLARED for draft in ("draft7", "draft6", "draft4")))

OUTCOMES = ("ok", "order", "false reject", "refused", "false accept", "broken")
MAX_ORDERS = 24

POLICIES = ({"property_order": "any"}, {"formats": "annotation"}, {"numbers": "any"})
"""What may explain that a valid instance is rejected: under one of these it is accepted."""


class Outcome(NamedTuple):
    """``why``: the error of a refusal, or the policy behind a rejection."""

    kind: str
    why: str = ""

    @property
    def badness(self) -> int:
        """The greater the worse."""
        unexplained = self.kind == "false reject" and not self.why
        return OUTCOMES.index("false accept" if unexplained else self.kind)

    @property
    def wrong(self) -> bool:
        """Is this never to happen?"""
        return self.badness >= OUTCOMES.index("false accept")


Outcomes = dict[str, dict[str, dict[str, dict[str, Outcome]]]]
"""By run, keyword file, description of the group of tests and description of the test."""


def suite_folder() -> Path:
    return data_folder() / "json-schema-test-suite"


def remotes() -> Registry[Any]:
    """The documents that schemas of the suite refer to, at the address it gives them."""
    folder = suite_folder() / "remotes"
    found = []
    for path in sorted(folder.rglob("*.json")):
        resource = Resource.from_contents(json.loads(path.read_text()), default_specification=DRAFT202012)
        found.append(("http://localhost:1234/" + path.relative_to(folder).as_posix(), resource))
    return Registry().with_resources(found)


def run(name: str, files: str = "*.json") -> dict[str, dict[str, dict[str, Outcome]]]:
    """The outcomes of one draft's tests, by keyword file, group and test: required ones, or of other files."""
    draft = name.removesuffix(UNDECLARED)
    folder = suite_folder() / "tests" / draft
    registry = remotes()
    found: dict[str, dict[str, dict[str, Outcome]]] = {}
    for path in sorted(folder.glob(files)):
        groups: dict[str, dict[str, Outcome]] = {}
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema and name == draft:
                schema = {"$schema": DRAFTS[draft], **schema}
            groups[_unused(group["description"], groups)] = group_outcomes(schema, group["tests"], registry)
        found[path.relative_to(folder).with_suffix("").as_posix()] = groups
    return found


def run_optional(draft: str) -> dict[str, dict[str, dict[str, Outcome]]]:
    """The outcomes of one draft's optional tests; a file is named as ``optional/format/date``."""
    return run(draft, "optional/**/*.json")


def group_outcomes(schema: object, tests: list[dict[str, Any]], registry: Registry[Any]) -> dict[str, Outcome]:
    """What becomes of the tests of one schema."""
    found: dict[str, Outcome] = {}
    judge = Judge(schema, registry)
    for test in tests:
        try:
            outcome = judge.outcome(test["data"], valid=test["valid"])
        except UnicodeEncodeError:  # an instance that no text in UTF-8 has: a lone surrogate
            continue
        found[_unused(test["description"], found)] = outcome
    return found


class Judge:
    """One schema, compiled under the default policies and, where a valid instance is rejected, under others."""

    def __init__(self, schema: object, registry: Registry[Any]) -> None:
        self.text = json.dumps(schema)
        self.registry = registry
        self.error: Exception | None = None
        self.constraint: constrain.Constraint | None = None
        try:
            self.constraint = self._compile()
        except Exception as error:  # noqa: BLE001 - whatever is raised is an outcome
            self.error = error

    def _compile(self, **policies: str) -> constrain.Constraint:
        return constrain.compile(
            self.text,
            byte_vocabulary(),
            whitespace="any",
            registry=self.registry,
            **policies,  # type: ignore[arg-type]
        )

    def outcome(self, instance: object, *, valid: bool) -> Outcome:
        text = text_of(instance)
        if self.constraint is None:
            why = f"{type(self.error).__name__}: {self.error}"
            empty = isinstance(self.error, constrain.UnsatisfiableSchemaError)
            refused = isinstance(self.error, constrain.ConstrainError) and not (empty and valid)
            return Outcome("refused" if refused else "broken", why)
        try:
            accepted = self.constraint.accepts(text)
            if accepted != valid:
                return self._difference(instance) if valid else Outcome("false accept")
        except Exception as error:  # noqa: BLE001 - whatever is raised is an outcome
            return Outcome("broken", f"{type(error).__name__}: {error}")
        return Outcome("ok")

    def _difference(self, instance: object) -> Outcome:
        assert self.constraint is not None
        if any(self.constraint.accepts(text_of(other)) for other in islice(orders(instance), MAX_ORDERS)):
            return Outcome("order", "property_order")
        return Outcome("false reject", self._policy(text_of(instance)))

    def _policy(self, text: bytes) -> str:
        """The policy that explains why a valid text is rejected; empty if none does by itself."""
        assert self.constraint is not None
        if self.constraint.accepts(text_of(canonical(json.loads(text)))):
            return "numbers"
        for policy in POLICIES:
            try:
                if self._compile(**policy).accepts(text):
                    return next(iter(policy))
            except (constrain.UnsupportedSchemaError, constrain.LimitError):  # noqa: PERF203 - not under it
                continue
        return ""


def orders(value: object) -> Iterator[object]:
    """The value with the keys of its objects in every order, at every depth."""
    if isinstance(value, dict) and value:
        for keys in permutations(value):
            for items in product(*(list(islice(orders(value[key]), MAX_ORDERS)) for key in keys)):
                yield dict(zip(keys, items, strict=True))
    elif isinstance(value, list) and value:
        for items in product(*(list(islice(orders(item), MAX_ORDERS)) for item in value)):
            yield list(items)
    else:
        yield value


def text_of(instance: object) -> bytes:
    return json.dumps(instance, ensure_ascii=False).encode()


def _unused(name: str, taken: Mapping[str, object]) -> str:
    number, unused = 1, name
    while unused in taken:
        number += 1
        unused = f"{name} #{number}"
    return unused


# The file: totals for the reader, and whatever is not ok. A group whose tests all fare alike has one entry.


def record(outcomes: Outcomes) -> dict[str, Any]:
    return {"totals": {name: _totals(files) for name, files in outcomes.items()}, "not ok": _not_ok(outcomes)}


def _totals(files: dict[str, dict[str, dict[str, Outcome]]]) -> str:
    counts = Counter(o.kind for groups in files.values() for tests in groups.values() for o in tests.values())
    return ", ".join(f"{counts[kind]} {kind}" for kind in OUTCOMES if counts[kind])


def _not_ok(outcomes: Outcomes) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for name, files in outcomes.items():
        for keyword, groups in files.items():
            for description, tests in groups.items():
                texts = {test: _entry(outcome) for test, outcome in tests.items() if outcome.kind != "ok"}
                if texts:
                    alike = len(texts) == len(tests) and len(set(texts.values())) == 1
                    entry = next(iter(texts.values())) if alike else texts
                    entries.setdefault(name, {}).setdefault(keyword, {})[description] = entry
    return entries


def _entry(outcome: Outcome) -> str:
    return f"{outcome.kind}: {outcome.why}" if outcome.why else outcome.kind


def recorded(entries: dict[str, Any], name: str, keyword: str, group: str, test: str) -> Outcome:
    """What the file says about one test."""
    entry = entries.get(name, {}).get(keyword, {}).get(group, "ok")
    if isinstance(entry, dict):
        entry = entry.get(test, "ok")
    kind, _, why = entry.partition(": ")
    return Outcome(kind, why)


def main() -> None:
    write(RATCHET, {name: run(name) for name in RUNS})
    write(OPTIONAL_RATCHET, {draft: run_optional(draft) for draft in DRAFTS})


def write(path: Path, outcomes: Outcomes) -> None:
    """Writes a file and prints its totals."""
    written = record(outcomes)
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, totals in written["totals"].items():
        print(f"{path.stem}, {name}: {totals}")


if __name__ == "__main__":
    main()
