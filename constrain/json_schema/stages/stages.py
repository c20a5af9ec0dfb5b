"""The stages of a schema with ``$data``: the grammar in force, by the values that are written already."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.stages import reader
from constrain.json_schema.stages.places import Tree
from constrain.json_schema.stages.pointers import ITEM
from constrain.json_schema.stages.projection import Projection
from constrain.json_schema.stages.ranges import satisfiable, shortest
from constrain.json_schema.stages.rendering import render
from constrain.json_schema.stages.resolution import resolve_bounds
from constrain.language.stages import REFERS
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from constrain.json_schema.emission.emitted import EmittedGrammar
    from constrain.json_schema.stages.bounds import Known
    from constrain.language.grammar import Grammar

_PLANS = 64
"""Schemas whose plans are remembered: a request compiles its schema more than once."""

_PLAN_BYTES = 1 << 20
"""Bytes that they may take together, by the length of the schemas."""

_BYTES_PER_CHARACTER = 40


@dataclass(frozen=True)
class SchemaStages:
    """The stages of one schema with its options. Stages with equal texts and options are equal.

    ``text``: the document as Python writes it. ``compile_draft``: compiles a document with options and registry.
    """

    text: str
    options: tuple[tuple[str, object], ...]
    compile_draft: Callable[..., EmittedGrammar]
    registry_id: int
    document: dict[str, Any] = field(compare=False, repr=False)
    registry: object = field(compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out what is made on demand."""
        return {each.name: self.__dict__[each.name] for each in fields(self)}

    def compile(self, document: dict[str, Any]) -> EmittedGrammar:
        """Compiles a schema with the same options."""
        return self.compile_draft(document, registry=self.registry, **dict(self.options))

    @cached_property
    def _plan(self) -> _Plan:
        return _plan_of(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about what is written less than the schema allows."""
        return self._plan.notes

    def schema(self, known: Known = ()) -> dict[str, Any]:
        """Returns the schema in force while these values are known."""
        return render(self._plan.tree.root, known)

    def settled(self, text: bytes) -> Grammar:
        """Returns the grammar of the schema with all values of a finished text in the place of their references.

        Raises ValueError for a text that is no JSON.
        """
        json.loads(text)
        _, found = reader.read(reader.begin(self._plan.node), text)
        known = {(number, indices): value for number, indices, value in found}
        values = tuple(sorted((*place, value) for place, value in known.items()))
        return self.compile(render(self._plan.tree.root, values, finished=True, settled=True)).grammar

    def begin(self) -> SchemaStage:
        """Returns the stage at the beginning of a text."""
        return SchemaStage(self, reader.begin(self._plan.node), ())


class _Plan:
    """All that is found out about a document once."""

    def __init__(self, stages: SchemaStages) -> None:
        document, options = stages.document, dict(stages.options)
        self.tree = Tree(document)
        self.bounds, uniques = resolve_bounds(self.tree)
        if options.get("property_order") == "any" and self.bounds:
            message = '$data and x-refers need property_order="schema": the field that is pointed at comes first'
            raise UnsupportedSchemaError(message, pointer=self.bounds[0].pointer)
        if options.get("formats") == "annotation":
            bounded = next((each for each in self.bounds if each.keyword.startswith("format")), None)
            if bounded is not None:
                message = f'{bounded.keyword} with $data needs formats="assert"'
                raise UnsupportedSchemaError(message, pointer=bounded.pointer)
        projection = Projection(
            self.bounds,
            lambda schema: satisfiable(stages.compile, self.tree.root.schema, schema),
            lambda schema: shortest(stages.compile, self.tree.root.schema, schema),
            usual_years=options.get("years") == "1000-2999",
            sized_integers=options.get("integers") == "64-bit",
        )
        projection.project()
        projection.separate(uniques)
        self.notes = tuple(projection.notes)
        self.repeated: dict[int, int] = {}
        for bound in reversed(self.bounds):  # later fields first: they may be repeated themselves
            if bound.repeats and not bound.skippable:
                again = self.repeated.get(self.tree.sources.get(bound.target.path, -1), 0)
                self.repeated[bound.number] = self.repeated.get(bound.number, 0) + bound.times * (1 + again)
        self.refusing = frozenset(
            [
                *(each.number for bound in self.bounds if bound.may_refuse for each in bound.all),
                *(each.number for each in uniques),
            ]
        )
        self.kept = {each.number: each.items - 1 for each in uniques}
        self.paths = {number: path for path, number in self.tree.sources.items()}
        places = [place for place in self.tree.root.walk() if place.prefix()[1]]
        prefixes = {place.path: len(place.prefix()[1]) for place in places}
        self.referred = {each.number: each.source.path for each in self.bounds if each.keyword == REFERS}
        self.kept |= dict.fromkeys(self.referred, 0)
        closing = {path[: path.index(ITEM)]: number for number, path in self.referred.items()}
        self.node = reader.make_node(self.tree.sources, prefixes, closing)

    def with_found(self, known: Known, found: list[reader.Found]) -> Known:
        """Returns the known values after some more are found.

        Those in finished items are dropped, but for members in which the items of an array differ, or that others
        refer to.
        """
        for number, indices, text in found:
            if not text and any(one[0] == number for one in known):
                continue
            kept = [one for one in known if one[:2] != (number, indices) and self._agree(one, number, indices)]
            known = tuple(sorted([*kept, (number, indices, text)]))
        return known

    def _agree(self, one: reader.Found, number: int, indices: tuple[int, ...]) -> bool:
        """Returns whether two sources lie in the same items of all arrays around both, or around the first array."""
        shared = 0
        for step, its in zip(self.paths[one[0]], self.paths[number], strict=False):
            if step != its:
                break
            shared += step is ITEM
        shared = min(shared, self.kept.get(one[0], shared))
        return one[1][:shared] == indices[:shared]


@remembered(_PLANS, _PLAN_BYTES, lambda stages: _BYTES_PER_CHARACTER * len(stages.text))
def _plan_of(stages: SchemaStages) -> _Plan:
    return _Plan(stages)


class SchemaStage:
    """The state of reading one text: the values of sources that are known."""

    __slots__ = ("_stages", "_state", "key")

    def __init__(self, stages: SchemaStages, state: reader.State, known: Known) -> None:
        self._stages = stages
        self._state = state
        self.key: Hashable = known

    def read(self, data: bytes) -> SchemaStage:
        """Returns the stage after further bytes of the text."""
        state, found = reader.read(self._state, data)
        known: Any = self.key
        return SchemaStage(self._stages, state, self._stages._plan.with_found(known, found) if found else known)

    @property
    def is_partly_written(self) -> bool:
        """Whether the text ends inside of a source, behind its first byte."""
        return len(self._state[3] or b"") > 1 and reader.source_inside(self._state) >= 0

    def fixed(self, rest: bytes) -> SchemaStage | None:
        """Returns the stage in which the next source has the value that it has in a text with this rest."""
        number = reader.source_inside(self._state)
        for found in reader.read(self._state, rest)[1]:
            if found[0] == number:
                known: Any = self._stages._plan.with_found(self.key, [found])  # type: ignore[arg-type]
                return SchemaStage(self._stages, self._state, (*known, (~number, *found[1:])))
        return None

    def emitted(self) -> EmittedGrammar:
        """Returns the grammar in force, of the whole text."""
        known: Any = self.key
        return self._stages.compile(self._stages.schema(known))

    @property
    def may_refuse(self) -> bool:
        """Whether a later grammar may refuse what this one allows: while values that it depends on are not known."""
        known: Any = self.key
        fixed = {number for number, indices, _ in known if not indices}
        return not reader.is_over(self._state) and not self._stages._plan.refusing <= fixed

    @property
    def repeats(self) -> int:
        """How often the value in which the text ends will have to be written again."""
        number, plan = reader.source_inside(self._state), self._stages._plan
        known: Any = self.key
        if number in plan.referred and any(one[0] == number for one in known):  # the first value can be referred to
            return 0
        return plan.repeated.get(number, 0)

    @property
    def begun(self) -> int:
        """The number of sources, or of items in them, that have begun when one that is repeated is being written."""
        return self._state[-1] if self.repeats else 0


def read_stages(
    document: dict[str, Any],
    options: Mapping[str, object],
    registry: object,
    compile_draft: Callable[..., EmittedGrammar],
) -> SchemaStages:
    """Returns the stages of a schema. Raises SchemaError, UnsupportedSchemaError and UnsatisfiableSchemaError."""
    stages = SchemaStages(
        repr(document), tuple(sorted(options.items())), compile_draft, id(registry), document, registry
    )
    stages.notes  # noqa: B018 - finds all errors
    return stages
