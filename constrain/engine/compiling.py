"""``compile``: a schema or grammar of any kind becomes a ``Constraint``, unless an equal one is remembered or kept."""

from __future__ import annotations

import hashlib
import sys
import warnings
from functools import wraps
from typing import TYPE_CHECKING, Any

from constrain.arguments import Function, lists_options
from constrain.cache import RejectedFileError, find_cache
from constrain.engine.constraint import Constraint, Keeping
from constrain.engine.remembered import remembered_constraints
from constrain.engine.special import VocabularyTokens
from constrain.engine.staged import Staged
from constrain.errors import ExportError, SchemaWarning, deep_enough, limits_at
from constrain.given import read_given
from constrain.language.digest import grammar_digest, schema_digest, source_digest
from constrain.language.grammar import Grammar
from constrain.language.iteration import with_iterations
from constrain.language.policies import (
    CHOICES,
    DEFAULTS,
    GENERATION,
    POLICY_DEFAULTS,
    CompileOptions,
    refuse_compile_options,
)
from constrain.language.schema_text import parse_schema, read_schema
from constrain.language.source import Source
from constrain.language.stages import may_mention_data, mentions_data
from constrain.suggestions import unknown_names
from constrain.tables.dependent import columns_in
from constrain.vocabulary.vocabulary import as_vocabulary
from constrain.work import compilation, garbage_kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llama_cpp import Llama
    from typing_extensions import Unpack

    from constrain.cache import Cache
    from constrain.engine.constraint import Packed
    from constrain.json_schema.compiler import CompiledSchema
    from constrain.language.stages import Stages
    from constrain.private_folders import Directory
    from constrain.vocabulary.vocabulary import HasVocabulary, Vocabulary

_POLICIES = tuple(sorted(CHOICES))

JSON_SCHEMA = "json_schema"
"""The ``kind`` of a JSON Schema that is described as JSON."""


def _asks_for_vocabulary(function: Function) -> Function:
    """Decorates ``compile``: a call without a vocabulary raises a ``TypeError`` that says what to pass."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if len(given) + ("vocab" in named) < 2 and (given or "schema" in named):
            raise TypeError(
                "compile(schema, vocab) needs the vocabulary whose tokens are masked: pass a Model, "
                "Vocabulary.from_gguf(path), or the vocabulary of another library (see Vocabulary)"
            )
        return function(*given, **named)

    return call  # type: ignore[return-value]


@lists_options(CompileOptions, DEFAULTS)
@_asks_for_vocabulary
def compile(  # noqa: A001 - the name of the public function
    schema: object,
    vocab: Vocabulary | HasVocabulary | Llama,
    *,
    cache: Directory = None,
    **options: Unpack[CompileOptions],
) -> Constraint:
    r"""Compiles a schema or grammar for the tokens of a vocabulary. An equal call returns the same constraint, quickly.

    Args:
        schema: a JSON Schema (``dict``, ``bool`` or JSON text); anything that ``pydantic.TypeAdapter`` takes (Pydantic
            models, dataclasses, ``TypedDict``, ``list[int]``, ...); a ``Regex``, ``Lark`` or ``Grammar``; or a
            composition by ``sequence``, ``choice``, ``repeat`` or ``text``. The schema of a type is Pydantic's,
            narrowed to values that its validators accept, such as the bounds of a date.
        vocab: a ``Vocabulary``, or a model (``Model`` or ``llama_cpp.Llama``).
        whitespace: ``"flexible"`` (white space as ``json.dumps`` and pretty printers write it), ``"compact"`` (none) or
            ``"any"`` (all of RFC 8259).
        property_order: ``"schema"`` (keys in the order of ``properties``, then other named keys, then all others) or
            ``"any"``.
        formats: ``"assert"`` (known formats are enforced), ``"annotation"`` (none is) or ``"strict"`` (unknown and
            inexact formats raise ``UnsupportedSchemaError``).
        inexact: ``"narrow"`` (of a format that cannot be enforced exactly, such as ``regex``, a part is written;
            ``Constraint.warnings`` says what is left out) or ``"refuse"`` (it raises ``UnsupportedSchemaError``).
        numbers: ``"canonical"`` (one spelling for each number: no exponent, no ``1.50``, no ``-0``, no ``1.0`` for an
            integer) or ``"any"`` (also ``1.0``, ``1e2``, ``-0``; the value counts).
        precision: ``"double"`` (a number must be valid both as an exact decimal and as the IEEE double that most
            readers make of it) or ``"decimal"`` (as an exact decimal).
        escapes: ``"canonical"`` (each character of a string has one spelling) or ``"any"`` (all spellings of JSON:
            ``\u0061`` is an a).
        years: ``"any"`` or ``"1000-2999"`` (dates and times of these years, unless the schema bounds the years; the
            default of ``generate``, since small models write any year).
        integers: ``"any"`` or ``"64-bit"`` (an integer without a bound on one side has that of 64 bits there; the
            default of ``generate``).
        strict: whether the schema must keep the structural rules of OpenAI's strict mode, those of
            ``check_strict(schema, subset="structural")``. A ``SchemaError`` lists all violations; ``strict_schema``
            converts a schema.
        registry: mapping from URIs to schemas, such as a ``referencing.Registry``, for ``$ref`` to other documents and
            for metaschemas of your own. Metaschemas of the drafts are known. Nothing is fetched from the network.
        sources: texts to quote from, by name: each is a text or a list of texts. Strings with ``constrain.Quote``, or
            with the keyword ``x-quote``, are pieces of them.
        tables: tables by name: each is a ``constrain.Table``, or the values for one. Fields with
            ``constrain.OneOf(table=...)``, or with the keyword ``x-one-of``, are values of their columns.
        cache: directory of stored constraints, as ``Constraint.precompute`` and ``constrain compile`` write them;
            ``compile`` itself only reads it. By default the directory in the environment variable CONSTRAIN_CACHE (none
            if it is empty or "0"), or else the user's cache directory; ``False`` for none. A damaged file is compiled
            again, with a warning. Each version and build of this package has its own files.

    The policies (``whitespace`` to ``integers``), ``strict``, ``registry``, ``sources`` and ``tables`` apply to JSON
    Schemas and types; with another language they raise ``ValueError``, as does a value that a policy does not have.

    Raises ``SchemaError``, ``UnsupportedSchemaError`` or ``UnsatisfiableSchemaError`` with the JSON Pointer of the
    place; ``PatternError``; ``GrammarError``; ``LimitError``.

    >>> from constrain import Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> compile({"type": "integer", "minimum": 3}, vocabulary).accepts("12")
    True
    """
    constraint = compile_any(schema, as_vocabulary(vocab), close_objects=False, cache=cache, **options)
    warn_of_keywords(constraint)
    return constraint


def warn_of_keywords(constraint: Constraint) -> None:
    """Issues a ``SchemaWarning`` for each unknown keyword of a schema in whose place another one seems to be meant."""
    if constraint.warnings:
        from constrain.json_schema.keywords.unknown import with_hints

        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("constrain."):
            level, frame = level + 1, frame.f_back
        for sentence in with_hints(constraint.warnings):
            warnings.warn(sentence, SchemaWarning, stacklevel=level)  # names the caller of this package


def compile_any(
    schema: object,
    vocab: Vocabulary,
    *,
    close_objects: bool,
    cache: Directory = None,
    **options: Unpack[CompileOptions],
) -> Constraint:
    """``compile`` with one more option: whether objects may have only keys that the schema names."""
    with deep_enough(), compilation():
        wanted = to_compile(schema, vocab, close_objects=close_objects, cache=cache, **options)
        found = wanted.find()
        return wanted.compile() if found is None else found


class _Schema:
    """The text of a JSON Schema, and the options to compile it with."""

    __slots__ = ("_close_objects", "_columns", "_made", "_plain_integers", "_policies", "_registry", "_strict", "text")

    def __init__(
        self,
        text: str,
        settings: tuple[bool, bool, bool],
        policies: dict[str, Any],
        registry: object,
    ) -> None:
        self.text = text
        self._close_objects, self._strict, self._plain_integers = settings
        self._policies = policies
        self._registry = registry
        self._columns = columns_in(text)  # in use as long as the schema is
        self._made: tuple[Stages | None] | None = None  # the stages, once the schema is compiled

    def digest(self) -> bytes:
        """32 bytes that identify the schema and its options, but not the registry."""
        return schema_digest(self.text, (self._close_objects, self._strict, self._plain_integers, self._policies))

    def settings(self) -> tuple[object, ...]:
        """The options as a part of a key."""
        return (self._close_objects, self._strict, self._plain_integers, *self._policies.values())

    def describe(self) -> dict[str, Any]:
        """The schema and its options as JSON; of a registry only that there is one."""
        return {
            "kind": JSON_SCHEMA,
            "text": self.text,
            "policies": dict(self._policies),
            "close_objects": self._close_objects,
            "strict": self._strict,
            "plain_integers": self._plain_integers,
            "has_registry": self._registry is not None,
        }

    def grammar(self) -> Grammar:
        """The grammar of the schema. Raises the errors of schemas."""
        return self._compiled().grammar

    def constraint(self, vocabulary: Vocabulary, keeping: Keeping | None) -> Constraint:
        """Compiles the schema in this process."""
        compiled = self._compiled()
        self._made = (compiled.stages,)
        with limits_at(""):
            return Constraint(compiled.emitted, vocabulary, compiled.policies, compiled.warnings, keeping, self.grammar)

    def stages(self) -> Stages | None:
        """The stages of the schema, if values depend on others."""
        if self._made is None:
            has_any = self._may_have_stages and mentions_data(parse_schema(self.text))
            self._made = (self._compiled().stages if has_any else None,)
        return self._made[0]

    @property
    def _may_have_stages(self) -> bool:
        return may_mention_data(self.text)

    def _compiled(self) -> CompiledSchema:
        from constrain.json_schema.compiler import compile_schema

        document = parse_schema(self.text)
        if self._strict:
            from constrain.json_schema.strict.subset import require_strict

            require_strict(document)
        return compile_schema(
            document,
            close_objects=self._close_objects,
            plain_integers=self._plain_integers,
            registry=self._registry,
            in_stages=True if self._may_have_stages else None,
            **self._policies,
        )


class _Text:
    """A ``Source`` or a ``Grammar`` to compile."""

    __slots__ = ("of",)

    def __init__(self, of: Grammar | Source) -> None:
        self.of = of

    def digest(self) -> bytes:
        """32 bytes that identify the source or grammar."""
        return source_digest(self.of) if isinstance(self.of, Source) else grammar_digest(self.of)

    def stages(self) -> None:
        """None: no source has stages."""

    def grammar(self) -> Grammar:
        """The grammar of the source. Raises the errors of grammars and patterns."""
        return with_iterations(self.of.grammar() if isinstance(self.of, Source) else self.of)

    def constraint(self, vocabulary: Vocabulary, keeping: Keeping | None) -> Constraint:
        """Compiles the source in this process."""
        policies = self.of.policies_in_force() if isinstance(self.of, Source) else {}
        with garbage_kept():
            grammar = self.grammar()
            return Constraint(grammar, vocabulary, policies, grammar.warnings, keeping)


class ToCompile:
    """A schema or grammar to be compiled for one vocabulary. Made by ``to_compile``.

    Call ``find`` first. If it returns None, call ``compile`` to make the constraint in this process, or ``unpack`` to
    make it from the bytes of another process.
    """

    __slots__ = ("_cache", "_is_file_useless", "_key", "_vocabulary", "_what")

    def __init__(
        self, what: _Schema | _Text, vocabulary: Vocabulary, key: tuple[object, ...] | None, cache: Cache | None
    ) -> None:
        self._what = what
        self._vocabulary = vocabulary
        self._key = key  # of the remembered constraint; None if it is never remembered
        self._cache = cache
        self._is_file_useless = False

    def identity(self) -> bytes:
        """32 bytes that are equal for equal sources, options and vocabularies."""
        return hashlib.sha256(self._what.digest() + self._vocabulary.fingerprint).digest()

    def find(self) -> Constraint | None:
        """The constraint if this process remembers it or the cache has it; None otherwise."""
        if self._key is not None and (known := remembered_constraints.find(self._key, self._vocabulary)) is not None:
            return known
        if self._cache is None:
            return None
        kept = self._find_kept(self._cache)
        return None if kept is None else self._remember(kept)

    def compile(self) -> Constraint:
        """Compiles in this process. Raises the errors of ``constrain.compile``."""
        return self._finish(self._what.constraint(self._vocabulary, self._keeping()))

    def unpack(self, packed: Packed) -> Constraint:
        """The constraint that another process has compiled and packed. Raises ``kernel.StorageError``."""
        return self._finish(Constraint._unpacked(self._vocabulary, packed, self._what.grammar, self._keeping()))

    def _keeping(self) -> Keeping | None:
        return None if self._cache is None else Keeping(self._cache, self._what.digest, self._what.grammar)

    def _find_kept(self, cache: Cache) -> Constraint | None:
        """The constraint from the cache; also notes whether the cache has an unusable file for it."""
        if not cache.open():
            return None
        keeping = Keeping(cache, self._what.digest, self._what.grammar)
        try:
            kept = Constraint._kept(self._vocabulary, keeping) if cache.has(self._vocabulary) else None
        except RejectedFileError as error:
            cache.warn_rejected(error)
            self._is_file_useless = True
            return None
        if kept is None:
            self._is_file_useless = cache.has_of_another_build(self._vocabulary, keeping.digest())
        return kept

    def _finish(self, constraint: Constraint) -> Constraint:
        """Remembers a new constraint and replaces an unusable file in the cache by it."""
        if self._is_file_useless:
            assert self._cache is not None
            try:
                constraint._keep()
            except (OSError, MemoryError) as error:
                self._cache.warn_not_stored(error)
        return self._remember(constraint)

    def _remember(self, constraint: Constraint) -> Constraint:
        stages = self._what.stages()
        if stages is not None:
            constraint.staged = Staged(constraint, stages)
        if self._key is not None:
            remembered_constraints.add(self._key, constraint)
        return constraint


def to_compile(
    schema: object,
    vocab: Vocabulary,
    *,
    close_objects: bool,
    cache: Directory = None,
    **options: Unpack[CompileOptions],
) -> ToCompile:
    """Prepares a schema of any kind and its options for compiling. Raises TypeError, ValueError and SchemaError."""
    bound = schema.bound(VocabularyTokens(vocab)) if isinstance(schema, Source) else schema
    what = _read(bound, options, close_objects=close_objects)
    directory = find_cache(cache) if options.get("registry") is None else None
    if isinstance(what, _Schema):
        if options.get("registry") is not None:
            return ToCompile(what, vocab, None, None)
        return ToCompile(what, vocab, (what.text, id(vocab), directory and directory.path, *what.settings()), directory)
    # The expressions of a Grammar are compared by identity, so a lookup would find no equal one.
    if isinstance(what.of, Grammar):
        return ToCompile(what, vocab, None, directory)
    if not what.of.may_be_cached:
        return ToCompile(what, vocab, None, None)
    return ToCompile(what, vocab, (what.of, id(vocab), directory and directory.path), directory)


def _read(schema: object, options: CompileOptions, *, close_objects: bool) -> _Schema | _Text:
    """Reads a schema of any kind and its options. Raises TypeError, ValueError and SchemaError."""
    if not options.keys() <= DEFAULTS.keys():
        raise TypeError(unknown_names("options", options.keys() - DEFAULTS.keys(), DEFAULTS))
    settled: CompileOptions = {**DEFAULTS, **(GENERATION if close_objects else {}), **options}  # type: ignore[typeddict-item]
    if isinstance(schema, Grammar | Source):
        refuse_compile_options(options, f"this is a {type(schema).__name__}", close_objects=close_objects)
        return _Text(schema.closed() if close_objects and isinstance(schema, Source) else schema)
    policies: dict[str, Any] = {name: settled[name] for name in _POLICIES}  # type: ignore[literal-required]
    given = read_given(settled)
    read = read_schema(schema)
    # Pydantic reads 7e35 as a float, and refuses a float of that size as an integer.
    plain_integers = settled["numbers"] == "any" and read.is_typed
    settings = close_objects, settled["strict"], plain_integers
    return _Schema(given.bind(read.text), settings, policies, settled["registry"])


def describe_source(
    schema: object, vocab: Vocabulary, *, close_objects: bool, **options: Unpack[CompileOptions]
) -> dict[str, Any] | Grammar | Source:
    """What ``compile_any`` compiles for the same arguments: a JSON Schema with its options as JSON, or a source.

    ``grammar_of_description`` makes the grammar of a JSON Schema again.
    """
    bound = schema.bound(VocabularyTokens(vocab)) if isinstance(schema, Source) else schema
    what = _read(bound, options, close_objects=close_objects)
    return what.describe() if isinstance(what, _Schema) else what.of


def grammar_of_description(described: Mapping[str, Any], text: bytes = b"") -> Grammar:
    """The grammar of a JSON Schema that ``describe_source`` has described. Raises the errors of schemas.

    ``text``: a finished text, in whose grammar the values are known on which others depend (``Stages.settled``).
    """
    settings = described["close_objects"], described["strict"], described["plain_integers"]
    with compilation(), deep_enough():
        schema = _Schema(described["text"], settings, POLICY_DEFAULTS | described["policies"], None)
        stages = schema.stages()
        if stages is None:
            return schema.grammar()
        return stages.settled(text)


def grammar_of(
    schema: object, *, close_objects: bool, target: str | None = None, **options: Unpack[CompileOptions]
) -> Grammar:
    """The grammar of a schema of any kind. Raises the errors of ``compile`` that do not depend on a vocabulary.

    ``target``: notation of an export, which has one grammar for all texts: raises ``ExportError`` if values depend on
    others.
    """
    with compilation(), deep_enough():
        made = _read(schema, options, close_objects=close_objects)
        if target is not None and made.stages() is not None:
            raise ExportError("it depends on values that were written before", target=target)
        return made.grammar()
