"""Parts of a schema that no value can use: branches, properties, items and listed values.

Each part is tested by a schema of its own: the constraints of the schema around it, and the use of the part. The goals
of a compilation give the answer; no rules are emitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError, PatternError, UnsupportedSchemaError
from constrain.json_schema.documents.documents import Documents
from constrain.json_schema.documents.dynamic_scope import DynamicScopeNeeded
from constrain.json_schema.documents.references import References
from constrain.json_schema.documents.subschemas import Subschema, subschemas
from constrain.json_schema.keywords.expansion import Expansion, goal_at
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.lint.findings import Finding
from constrain.json_schema.spelling.languages import begin_compilation
from constrain.json_schema.values.contradictions import why_empty
from constrain.json_schema.values.productivity import expand_all, mark_productive
from constrain.language.policies import POLICY_DEFAULTS, Policies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.documents.locations import Location

QUESTIONS = 2_000
"""Parts of one schema that ``check`` tests, before it says that it leaves out the rest; large hand-written schemas have
some hundreds."""

MAX_LISTED_VALUES = 100
"""Values of one ``enum`` that are tested one by one; values of longer lists are not."""

_NAMES = KEYWORDS.names(lambda each: each.about == "document" and each.handler is not None) | {"$schema"}
"""Keywords that identify a schema; a test schema leaves them out."""

_NOT_ENTERED = frozenset(("not", "if", "contentSchema"))
"""Keywords whose value need not hold."""

_INDEPENDENT = KEYWORDS.annotations | {"type", "properties", "required", "additionalProperties"}
"""Keywords of an object whose properties are independent: each may be present if it has a value at all."""

_RULES = {
    "properties": ("unsatisfiable-property", "this key can never be there"),
    "patternProperties": ("unsatisfiable-property", "no value can stand under a key that matches this pattern"),
    "additionalProperties": ("unsatisfiable-property", "no value can stand under an additional key"),
    "unevaluatedProperties": ("unsatisfiable-property", "no value can stand under an unevaluated key"),
    "$defs": ("unsatisfiable-definition", "no value can have this definition"),
    "definitions": ("unsatisfiable-definition", "no value can have this definition"),
    "dependentSchemas": ("unsatisfiable-branch", "the key that this depends on can never be there"),
    "dependencies": ("unsatisfiable-branch", "the key that this depends on can never be there"),
    "items": ("unsatisfiable-items", "no item can stand here"),
    "prefixItems": ("unsatisfiable-items", "no item can stand here"),
    "additionalItems": ("unsatisfiable-items", "no item can stand here"),
    "unevaluatedItems": ("unsatisfiable-items", "no item can stand here"),
    "contains": ("unsatisfiable-items", "no item can be one of these"),
    "propertyNames": ("unsatisfiable-property", "no key is allowed"),
}
"""Rule and message for subschemas that have no value by themselves."""


def find_unsatisfiable(schema: object, *, registry: object = None, **policies: str) -> tuple[Finding, ...]:
    """Returns the parts that no value can use, of a schema with values and without refused keywords."""
    settings = Policies(**{**POLICY_DEFAULTS, **policies}, close_objects=False)
    try:
        return tuple(_Search(schema, registry, settings, dynamic=False).run())
    except DynamicScopeNeeded:
        return tuple(_Search(schema, registry, settings, dynamic=True).run())


class _Search:
    """A walk over all subschemas of one document."""

    def __init__(self, schema: object, registry: object, policies: Policies, *, dynamic: bool) -> None:
        self.schema = schema
        self.registry = registry
        self.policies = policies
        self.dynamic = dynamic
        self.questions = 0
        self._begin()

    def _begin(self) -> None:
        begin_compilation()
        references = References(self.schema, Documents(self.registry), dynamic=self.dynamic)
        self.goals = Expansion(references, self.policies)

    def run(self) -> Iterator[Finding]:
        pending: list[tuple[Subschema, ...]] = [()]
        while pending:
            path = pending.pop()
            schema = path[-1].schema if path else self.schema
            if not isinstance(schema, dict):
                continue
            if "$ref" in schema and self._at(path).resource.dialect.ref_ignores_siblings:
                continue
            yield from self._values(path, schema)
            inner = []
            for part in subschemas(schema):
                if part.keyword in _NOT_ENTERED or _is_deliberate(part.schema):
                    continue
                if self.questions >= QUESTIONS:
                    message = f"only {QUESTIONS} parts of the schema were tested; check a part of it by itself"
                    yield Finding("not-examined", _pointer(path), message)
                    return
                finding = self._ask_about(path, schema, part)
                if finding is None:
                    inner.append((*path, part))
                else:
                    yield finding
            pending.extend(reversed(inner))

    def _ask_about(self, path: tuple[Subschema, ...], schema: dict[str, object], part: Subschema) -> Finding | None:
        """Returns the finding about an unusable part, or None."""
        place = _pointer((*path, part))
        keyword, also = part.keyword, [part.schema]
        if keyword in ("anyOf", "oneOf"):
            rule, message = "unsatisfiable-branch", "this branch can never hold"
        elif keyword in ("then", "else"):
            if "if" not in schema:
                return None
            also = [schema["if"] if keyword == "then" else {"not": schema["if"]}]
            rule, message = "unsatisfiable-branch", f"{keyword} can never apply"
        elif keyword in _RULES:
            rule, message = _RULES[keyword]
            why = self._why_none((*path, part), _with(part.schema, [])) if isinstance(part.schema, dict) else None
            if why is None and keyword == "properties" and not _is_plain_object(schema):
                # the part has a value; but may the key stand in this object?
                why = self._why_none(path, _with(schema, [{"type": "object", "required": [part.name]}]))
            return None if why is None else Finding(rule, place, f"{message}: {why}")
        else:
            return None
        self._at((*path, part))  # entered here first, to fix its pointer
        why = self._why_none(path, _with(schema, also))
        return None if why is None else Finding(rule, place, f"{message}: {why}")

    def _values(self, path: tuple[Subschema, ...], schema: dict[str, object]) -> Iterator[Finding]:
        """Yields findings about listed values that other keywords exclude."""
        values = schema.get("enum")
        if not isinstance(values, list) or len(schema) == 1 or len(values) > MAX_LISTED_VALUES:
            return
        for index, value in enumerate(values):
            why = self._why_none(path, _with({**schema, "enum": [value]}, []))
            if why is not None:
                place = f"{_pointer(path)}/enum/{index}"
                yield Finding("unsatisfiable-value", place, f"{value!r:.80} can never stand here: {why}")

    def _at(self, path: tuple[Subschema, ...]) -> Location:
        at = self.goals.references.root
        for part in path:
            if isinstance(part.schema, dict):
                at = self.goals.references.child(at, part.token, part.schema)
        return at

    def _why_none(self, path: tuple[Subschema, ...], question: dict[str, object]) -> str | None:
        """Returns why a schema at ``path`` has no value; None if it has one, or if that is unknown."""
        self.questions += 1
        try:
            goal = goal_at(self.goals.references.inside(self._at(path), question))
            mark_productive(expand_all(self.goals, goal))
            return None if goal.productive else why_empty(self.goals, goal).message
        except (UnsupportedSchemaError, LimitError, PatternError):
            self._begin()  # goals under expansion are unusable now
            return None


def _with(schema: dict[str, object], also: list[object]) -> dict[str, object]:
    """Returns the schema with further constraints."""
    question = {keyword: value for keyword, value in schema.items() if keyword not in _NAMES}
    if also:
        own = schema.get("allOf")
        question["allOf"] = [*(own if isinstance(own, list) else ()), *also]
    return question


def _is_plain_object(schema: dict[str, object]) -> bool:
    return schema.get("type", "object") == "object" and _INDEPENDENT.issuperset(schema)


def _is_deliberate(schema: object) -> bool:
    """Returns whether the author forbids every value here on purpose."""
    return schema is False or schema == {"not": {}} or schema == {"not": True}


def _pointer(path: tuple[Subschema, ...]) -> str:
    return "".join(part.token for part in path)
