"""``compile_schema``: a JSON Schema to a grammar, from documents to rules."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.errors import ConstrainError, SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError, limits_at
from constrain.json_schema.documents.dialects import DRAFT_4_URI, sign_of_draft_4
from constrain.json_schema.documents.documents import Documents
from constrain.json_schema.documents.dynamic_scope import DynamicScopeNeeded
from constrain.json_schema.documents.references import References
from constrain.json_schema.emission.emitter import Emitter
from constrain.json_schema.keywords.expansion import Expansion
from constrain.json_schema.spelling.languages import begin_compilation
from constrain.json_schema.stages.pointers import find_data, without_data
from constrain.json_schema.values.contradictions import why_empty
from constrain.json_schema.values.doubles import settle_numbers, split_whole_numbers
from constrain.json_schema.values.productivity import expand_all, mark_productive
from constrain.language.policies import Policies, policy_defaults
from constrain.work import compilation, garbage_kept, steps_taken

if TYPE_CHECKING:
    from constrain.json_schema.emission.arguments import ArgumentForm
    from constrain.json_schema.emission.emitted import EmittedGrammar
    from constrain.json_schema.stages.stages import SchemaStages
    from constrain.language.grammar import Grammar


@dataclass(frozen=True)
class CompiledSchema:
    """The grammar of a schema's values, the policies in force, and warnings."""

    emitted: EmittedGrammar
    policies: dict[str, str | bool]
    warnings: tuple[str, ...]
    raw_arguments: frozenset[str] = frozenset()
    """Arguments of a call that are strings, written without quotes and escapes."""
    steps: int = 0
    """Compilation steps taken, out of ``MAX_COMPILE_WORK``."""
    stages: SchemaStages | None = None
    """The stages of a schema with ``$data``; the grammar is that of the first one."""

    @property
    def grammar(self) -> Grammar:
        """Returns the grammar."""
        return self.emitted.grammar

    @property
    def part(self) -> Grammar:
        """Returns the grammar as a part of another one, with the warnings."""
        return replace(self.grammar, warnings=self.warnings)


class _Options(NamedTuple):
    """The arguments of one call of ``compile_schema``, apart from the schema."""

    documents: Documents
    policies: Policies
    keys_apart: bool
    plain_integers: bool
    arguments: ArgumentForm | None


def compile_schema(
    schema: object,
    *,
    close_objects: bool = False,
    registry: object = None,
    keys_apart: bool = False,
    plain_integers: bool = False,
    arguments: ArgumentForm | None = None,
    in_stages: bool | None = False,
    **policies: str,
) -> CompiledSchema:
    """Returns the grammar whose texts are the JSON texts of the values of ``schema``, under the given policies.

    ``schema``: a parsed JSON Schema (dict or bool). ``registry``: a mapping from URIs to schemas (for example a
    ``referencing.Registry``) for references that leave the document; nothing is ever fetched.
    ``keys_apart``: keys and colons are separate lexemes, so that two such grammars can be read side by side.
    ``plain_integers``: integers have neither a fraction nor an exponent, whatever ``numbers`` says.
    ``arguments``: the form in which the object is written as the arguments of a call. ``in_stages``: whether the caller
    follows ``CompiledSchema.stages``; otherwise ``$data`` is refused. ``None``: there is none, as the caller knows.
    ``policies``: those of ``language.policies.CHOICES``.
    Raises SchemaError (malformed), UnsupportedSchemaError (a keyword that cannot be enforced exactly),
    UnsatisfiableSchemaError (no value), PatternError and LimitError; ``pointer`` names the place.

    >>> compile_schema({"type": "array", "items": {"type": "boolean"}}).warnings
    ()
    """
    settled = Policies(**policy_defaults(close_objects=close_objects) | policies, close_objects=close_objects)
    settled.check()
    options = _Options(Documents(registry), settled, keys_apart, plain_integers, arguments)
    with compilation(), garbage_kept(), limits_at(""):
        before = steps_taken()
        pointer = None if in_stages is None else find_data(schema)
        if pointer is not None and not in_stages:
            message = (
                "$data, given, x-unique-by and x-refers need an answer that is one JSON text: they are not supported "
                "in tools, refusals and reasoning"
            )
            raise UnsupportedSchemaError(f"{message}, and in parts of other grammars", pointer=pointer)
        compiled = _in_its_dialect(schema, options) if pointer is None else _in_stages(schema, options)
        return replace(compiled, steps=steps_taken() - before)


def _in_stages(schema: Any, options: _Options) -> CompiledSchema:
    """Compiles a schema some of whose keywords depend on the answer."""
    from constrain.json_schema.stages.stages import read_stages  # few schemas have it

    policies = options.policies._asdict() | {"plain_integers": options.plain_integers}
    try:
        stages = read_stages(schema, policies, options.documents.registry, _compile_stage)
        compiled = _in_its_dialect(stages.schema(), options)
    except ConstrainError:
        with suppress(UnsatisfiableSchemaError):
            _in_its_dialect(without_data(schema), options)  # raises an error of a keyword with its own place
        raise
    if compiled.policies != options.policies._asdict():  # objects stay open in all stages
        stages = read_stages(schema, policies | compiled.policies, options.documents.registry, _compile_stage)
    return replace(compiled, warnings=(*stages.notes, *compiled.warnings), stages=stages)


def _compile_stage(document: dict[str, object], **options: Any) -> EmittedGrammar:
    return compile_schema(document, **options).emitted


def _in_its_dialect(schema: object, options: _Options) -> CompiledSchema:
    """Compiles the schema in its dialect; without ``$schema``, in draft 4 if it is valid only there."""
    try:
        return _in_dialect(schema, options)
    except UnsatisfiableSchemaError:
        raise
    except SchemaError:
        sign = sign_of_draft_4(schema)
        if sign is None:
            raise
    assert isinstance(schema, dict)
    compiled = _in_dialect({"$schema": DRAFT_4_URI, **schema}, options)
    return replace(compiled, warnings=(f"there is no $schema; {sign} is of draft 4", *compiled.warnings))


def _in_dialect(schema: object, options: _Options) -> CompiledSchema:
    """Compiles the schema in one dialect; leaves objects open if closing them would leave no value."""
    try:
        return _for_references(schema, options)
    except UnsatisfiableSchemaError:
        if not options.policies.close_objects:
            raise
    compiled = _for_references(schema, options._replace(policies=options.policies._replace(close_objects=False)))
    note = "objects may have keys that the schema does not declare: without such keys, too few values differ"
    return replace(compiled, warnings=(note, *compiled.warnings))


def _for_references(schema: object, options: _Options) -> CompiledSchema:
    try:
        return _compile(References(schema, options.documents), options)
    except DynamicScopeNeeded:
        pass  # few schemas have dynamic references; all others are faster without scopes
    return _compile(References(schema, options.documents, dynamic=True), options)


def _compile(references: References, options: _Options) -> CompiledSchema:
    begin_compilation()
    policies = options.policies
    goals = Expansion(references, policies)
    root = goals.root()
    order = expand_all(goals, root)
    plainly = goals.has_integers_by_spelling and goals.negates_integers
    if plainly:
        split_whole_numbers(order)
    if policies.precision == "double":
        settle_numbers(goals, order)
    mark_productive(order, close_objects=policies.close_objects)
    if goals.has_unique_items:
        from constrain.json_schema.values.unique_items import settle_unique_items

        order = settle_unique_items(goals, root, order)
    if not root.productive:
        raise why_empty(goals, root)
    emitter = Emitter(
        policies,
        plain_integers=goals.has_integers_by_spelling or options.plain_integers,
        plainly_whole=plainly,
        keys_apart=options.keys_apart,
        arguments=options.arguments,
    )
    emitted = emitter.emit(root, order)
    raw = emitter.raw_arguments()
    return CompiledSchema(emitted, policies._asdict(), goals.report(), raw)
