"""``Constraint``: a schema or grammar for one vocabulary; ``Matcher``: one generation, and why a token is refused.

``compile`` makes a ``Constraint`` (immutable, shared between threads, cached); its ``matcher()`` makes a ``Matcher``
(small, one per sequence), for use in any decode loop.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.arguments import integer, wrong_type
from constrain.engine import core
from constrain.engine.cache import RejectedFileError, find_cache, store_independent_tokens
from constrain.engine.captures import Captures, has_captures, read_captures
from constrain.engine.classes import Classes
from constrain.engine.forced import certain_tokens
from constrain.engine.readings import Readings
from constrain.engine.special import VocabularyTokens, resolve_special
from constrain.errors import GrammarError, LimitError, limits_at
from constrain.language.digest import grammar_digest, schema_digest, source_digest
from constrain.language.grammar import Grammar
from constrain.language.policies import CHOICES, DEFAULTS, refuse_compile_options
from constrain.language.schema_text import is_type, parse_schema, schema_text
from constrain.language.source import Source
from constrain.language.special import special_name
from constrain.suggestions import unknown_names
from constrain.vocabulary.vocabulary import Vocabulary, as_vocabulary
from constrain.work import compilation, garbage_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from llama_cpp import Llama
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from constrain.engine.cache import Cache, Directory
    from constrain.engine.classes import Ranges
    from constrain.engine.logits import LogitsProcessor
    from constrain.exporting.exporter import Target
    from constrain.json_schema.compiler import CompiledSchema
    from constrain.language.policies import CompileOptions
    from constrain.vocabulary.vocabulary import HasVocabulary

CACHED_CONSTRAINTS = 128
"""Constraints that ``compile`` remembers; beyond them it drops the least recently used one."""

CACHED_BYTES = 256 << 20
"""Bytes, of tables and schemas, that all remembered constraints may take together; beyond them ``compile`` drops the
least recently used ones. A caller can go on using a dropped constraint. A single constraint above the limit is not
remembered."""

CALLS_BETWEEN_COUNTS = 16
"""Calls of ``compile`` after which it measures all remembered constraints again, because masks add to their tables.
Other calls measure only the constraint that they find or make."""

PRECOMPUTED_MASKS = 2500
"""Masks that ``Constraint.precompute`` computes by default: a file of about 2 MiB, read in about 1 ms."""

PRECOMPUTED_BYTES = 12 << 20
"""Bytes of a constraint's tables at which ``Constraint.precompute`` stops by default."""

_DESCRIPTION_SHARE = 2
"""Bytes of a grammar's Python objects for each byte of its first tables: an estimate."""

_POLICIES = tuple(sorted(CHOICES))

_NO_LIMIT = 2**62
"""A number of tokens, masks or bytes that is never reached."""

_LIMITS = ("max_string_tokens", "max_number_tokens", "max_reasoning_tokens")

EXPLAINED_TERMINALS = 5
"""Terminals that ``Matcher.explain`` names; beyond them it gives the number of the others."""


@dataclass(frozen=True, slots=True)
class Report:
    """The facts about a constraint: policies, warnings and sizes.

    Attributes:
        policies: values of the policies that ``compile`` used, by name.
        digits: the most digits of numbers that are written, by name (see ``constrain.json_schema.spelling.numbers``);
            empty if there is no JSON Schema.
        warnings: facts that a reader of the schema should know, such as unknown keywords.
        split: terminals of a Lark grammar that are read byte by byte, by name and place, because their longest match
            could lead into a dead end: every way to divide a text among them counts. All others are read by the
            longest match.
        min_tokens: tokens of a shortest text.
        rules: number of rules of the grammar.
        states: number of states of all rules.
        terminals: number of terminals of the grammar.
        memory_bytes: bytes of the tables built so far.
        limited_masks: number of masks, of all matchers so far, without some allowed tokens, because a limit of the
            kernel was met; texts are complete nevertheless. ``Matcher.limited_masks`` counts those of one text.
    """

    policies: Mapping[str, str | bool]
    digits: Mapping[str, int]
    warnings: tuple[str, ...]
    split: tuple[str, ...]
    min_tokens: int
    rules: int
    states: int
    terminals: int
    memory_bytes: int
    limited_masks: int

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles read-only mappings as dicts, because they cannot be pickled or copied themselves."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _report_of, ({**values, "policies": dict(self.policies), "digits": dict(self.digits)},)


def _report_of(values: dict[str, Any]) -> Report:
    read_only = {name: MappingProxyType(values[name]) for name in ("policies", "digits")}
    return Report(**{**values, **read_only})


def _digits(policies: Mapping[str, str | bool]) -> Mapping[str, int]:
    """The most digits of numbers under the policies, by name."""
    if "precision" not in policies:
        return MappingProxyType({})
    from constrain.json_schema.spelling.numbers import digits_of

    return MappingProxyType(digits_of(policies["precision"] == "double"))


@dataclass(frozen=True, slots=True)
class Precomputed:
    """The result of ``Constraint.precompute``.

    Attributes:
        masks: number of places in texts whose masks were computed or known already.
        memory_bytes: bytes of the constraint's tables now.
        file: cache file with the tables; ``None`` if the constraint was not stored.
    """

    masks: int
    memory_bytes: int
    file: Path | None


@dataclass(frozen=True, slots=True)
class Packed:
    """A constraint as bytes, for another process that has an equal vocabulary and the same seed (``core.seed``)."""

    tables: bytes
    notes: bytes


@dataclass(frozen=True, slots=True)
class _Keeping:
    """The cache and key of a constraint, and a function that makes its grammar, which the cache does not store."""

    cache: Cache
    digest: Callable[[], bytes]
    make: Callable[[], Grammar]


class Constraint:
    """A schema or grammar that ``compile`` has compiled for one vocabulary. Immutable; threads may share it."""

    __slots__ = (
        "__weakref__",
        "_bytes_beside",
        "_classes",
        "_core",
        "_grammar",
        "_keeping",
        "_make",
        "_places",
        "has_captures",
        "no_forcing",
        "policies",
        "split",
        "vocabulary",
        "warnings",
    )

    def __init__(
        self,
        grammar: Grammar,
        vocabulary: Vocabulary,
        policies: Mapping[str, str | bool],
        warnings: tuple[str, ...],
        keeping: _Keeping | None = None,
    ) -> None:
        self._grammar: Grammar | None = grammar
        self._make: Callable[[], Grammar] | None = None
        self._places: bytes | None = None
        self._keeping = keeping
        self.vocabulary = vocabulary
        self.policies = MappingProxyType(dict(policies))
        self.warnings = warnings
        resolved, self._classes = resolve_special(grammar, vocabulary)
        self.split = grammar.split
        self.no_forcing = grammar.no_forcing
        self.has_captures = has_captures(grammar)
        if self.has_captures and self._classes is not None:
            raise GrammarError(
                "a grammar with captures reads tokens by name only, such as <|name|>: leave out the captures, or "
                "tokens by id (<[5]>), tokens with a text and complements (<[^5]>, !<|name|>)"
            )
        if self._classes is not None:
            self._places = json.dumps([[each.name, each.pointer] for each in resolved.terminals]).encode()
        self._core = core.CompiledGrammar(resolved, self._tokens(), proved=resolved.proved)
        self._bytes_beside = _DESCRIPTION_SHARE * self._core.memory_bytes

    def _tokens(self) -> core.Vocabulary:
        """The tokens for the kernel, with marks for the classes of tokens."""
        return self.vocabulary._core if self._classes is None else self._classes.marked.core

    def __copy__(self) -> Constraint:
        """Returns the constraint itself, which is immutable."""
        return self

    def __deepcopy__(self, _: object) -> Constraint:
        """Returns the constraint itself, which is immutable."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Constraint cannot be pickled; pickle its schema or grammar, and compile that again")

    @classmethod
    def _kept(cls, vocabulary: Vocabulary, keeping: _Keeping) -> Constraint | None:
        """The constraint from the cache; None if the cache does not have it. Raises RejectedFileError."""
        stored = keeping.cache.load(vocabulary, keeping.digest())
        if stored is None:
            return None
        try:
            return cls._read(vocabulary, stored.tables, stored.notes, keeping.make, keeping)
        except core.StorageError as error:
            raise RejectedFileError(f"{keeping.cache.path}: {error}") from error

    @classmethod
    def _unpacked(
        cls, vocabulary: Vocabulary, packed: Packed, make: Callable[[], Grammar], keeping: _Keeping | None
    ) -> Constraint:
        """A constraint that another process has packed; ``make`` makes its grammar on demand."""
        return cls._read(vocabulary, memoryview(packed.tables), packed.notes, make, keeping)

    @classmethod
    def _read(
        cls,
        vocabulary: Vocabulary,
        tables: memoryview,
        notes: bytes,
        make: Callable[[], Grammar],
        keeping: _Keeping | None,
    ) -> Constraint:
        """Reads a constraint that ``_packed`` wrote. Raises ``core.StorageError``."""
        self = cls.__new__(cls)
        about, _, self._places = notes.partition(b"\n")
        policies, warnings, self.split, self.no_forcing, self.has_captures, ranges = _noted(about)
        self._grammar = None
        self._make = make
        self._keeping = keeping
        self.vocabulary = vocabulary
        self.policies = MappingProxyType(policies)
        self.warnings = warnings
        self._classes = None if ranges is None else Classes(vocabulary, ranges)
        self._core = core.CompiledGrammar.restore(tables, self._tokens())
        self._bytes_beside = len(notes)
        return self

    def _packed(self) -> Packed:
        """The tables with everything computed so far, and the notes; without the vocabulary."""
        about = {
            "policies": dict(self.policies),
            "warnings": self.warnings,
            "split": self.split,
            "no_forcing": self.no_forcing,
            "has_captures": self.has_captures,
            "classes": self._classes and self._classes.ranges,
        }
        notes = json.dumps(about).encode()
        places = json.dumps(self._terminal_places()).encode() if self._places is None else self._places
        return Packed(self._core.store(), notes + b"\n" + places)

    def _keep(self) -> Path | None:
        """Writes the files of the constraint and of its vocabulary to the cache. Raises OSError."""
        if self._keeping is None:
            return None
        store_independent_tokens(self._keeping.cache, self.vocabulary)
        packed = self._packed()
        return self._keeping.cache.store(self.vocabulary, self._keeping.digest(), packed.tables, packed.notes)

    @property
    def grammar(self) -> Grammar:
        """The compiled ``Grammar``; built from the schema again if the constraint came from the cache."""
        if self._grammar is None:
            assert self._make is not None
            self._grammar = self._make()
        return self._grammar

    def _terminal_places(self) -> list[list[str]]:
        """Name and pointer of each terminal."""
        if self._places is not None:
            places: list[list[str]] = json.loads(self._places)
            return places
        return [[terminal.name, terminal.pointer] for terminal in self.grammar.terminals]

    def precompute(self, *, max_masks: int = PRECOMPUTED_MASKS, max_bytes: int = PRECOMPUTED_BYTES) -> Precomputed:
        """Computes masks ahead of time, likeliest first, and stores the constraint in the cache for ``compile``.

        Args:
            max_masks: the most places in texts at which to compute a mask; 0 stores only masks that are known already.
            max_bytes: bytes of the constraint's tables at which to stop.

        The order is that of usual texts: each key and each kind of value before anything unusual. Other threads may use
        the constraint meanwhile. A constraint compiled with ``registry`` or ``cache=False`` is not stored; if the cache
        cannot be written, there is a warning. Returns a ``Precomputed``: number of masks, size and file.

        >>> from constrain import Vocabulary, compile
        >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
        >>> compile({"enum": ["yes", "no"]}, vocabulary, cache=False).precompute().masks
        7
        """
        most_masks, most_bytes = integer("max_masks", max_masks), integer("max_bytes", max_bytes)
        if most_masks < 0 or most_bytes < 0:
            raise ValueError("max_masks and max_bytes must not be negative")
        masks = self._core.precompute(min(most_masks, _NO_LIMIT), min(most_bytes, _NO_LIMIT))
        file = None
        try:
            file = self._keep()
        except (OSError, MemoryError) as error:
            assert self._keeping is not None
            self._keeping.cache.warn_not_stored(error)
        return Precomputed(masks, self._core.stats()["memory_bytes"], file)

    @property
    def report(self) -> Report:
        """A ``Report``: policies in force, warnings, sizes, and the number of limited masks so far."""
        stats = self._core.stats()
        return Report(
            policies=self.policies,
            digits=_digits(self.policies),
            warnings=self.warnings,
            split=self.split,
            min_tokens=self.matcher().min_tokens_left,
            rules=stats["rules"],
            states=stats["states"],
            terminals=stats["terminals"],
            memory_bytes=stats["memory_bytes"],
            limited_masks=stats["limited_masks"],
        )

    def export(self, to: Target, *, repeated_keys: bool = False) -> str:
        """Returns a text with the same language for other programs: ``"gbnf"``, ``"lark"`` or ``"regex"``.

        ``constrain.export`` does so without a vocabulary; it describes the notations and ``repeated_keys``. Raises
        ``ExportError`` if the notation cannot say the language, and ``LimitError`` if the text would be too long.

        >>> from constrain import Lark, Vocabulary, compile
        >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
        >>> print(compile(Lark('start: "(" start? ")" | /[0-9]+/'), vocabulary).export("gbnf"), end="")
        root ::= [0-9]+ | "(" root? ")"
        """
        from constrain.exporting.exporter import export_grammar

        with deep_enough():
            return export_grammar(self.grammar, to, repeated_keys=repeated_keys)

    def accepts(self, text: bytes | str) -> bool:
        """Returns whether the whole text matches. A ``str`` is encoded as UTF-8; lone surrogates never match.

        If the grammar asks for tokens by name or id, a text matches if some division into tokens does.
        """
        if isinstance(text, str):
            try:
                text = text.encode()
            except UnicodeEncodeError:
                return False
        if not isinstance(text, bytes):
            raise wrong_type("text", "bytes or str", text)
        if self._classes is None:
            return self._core.accepts(text)
        detours = self._classes.detours(text)
        return detours is not None and self._core.accepts(text, detours)

    def captures(self, text: bytes | str) -> Captures:
        r"""Reads a complete text again and returns its captures, with their spans in characters.

        Rules of a Lark grammar have them (``name[capture]``), and named groups of a ``Regex``. Of several ways to read
        the text, the one counts in which each part of a rule, from left to right, is as long as possible; of equally
        long parts the first one in the grammar. In ``bytes``, special tokens are marked as by
        ``Vocabulary.marked_bytes``. Raises ValueError for a text that does not match, and LimitError.

        >>> from constrain import Lark, Vocabulary, compile
        >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
        >>> found = compile(Lark('start: name ("," name)*\n name[capture]: /[a-z]+/'), vocabulary).captures("ada,bo")
        >>> found["name"], found.spans["name"]
        (['ada', 'bo'], [(0, 3), (4, 6)])
        """
        if not self.accepts(text):
            raise ValueError("this text has no captures, because it does not match")
        if not self.has_captures:
            return Captures()
        data = text.encode() if isinstance(text, str) else text
        lexemes = self._core.lexemes(data)
        assert lexemes is not None
        return read_captures(self.grammar, data, lexemes)

    def matcher(
        self,
        max_tokens: int | None = None,
        *,
        max_string_tokens: int | None = None,
        max_number_tokens: int | None = None,
        max_reasoning_tokens: int | None = None,
    ) -> Matcher:
        """Returns a matcher at the beginning of a text.

        Args:
            max_tokens: the most tokens of the text, without the end of generation; ``None`` for no limit. Masks allow
                only tokens after which the text can be completed within the limit, so a loop that follows the masks
                always ends with a complete text. Near the limit, masks also leave out tokens that begin something new.
            max_string_tokens: soft limit on the tokens of one string, including the token in which it begins. At the
                limit no new word begins. After up to 8 more tokens, or at once where there are no words, masks allow
                only tokens that bring the string's end nearer. A string that the language requires to be longer gets
                the length it needs. Keys that a schema names, and constants, are not limited.
            max_number_tokens: soft limit on the tokens of one number, likewise.
            max_reasoning_tokens: soft limit on the tokens of a reasoning section, likewise.

        In a ``Grammar``, ``Terminal.kind`` says which of the three soft limits applies to a terminal.

        Raises ``BudgetError`` if no known text fits into ``max_tokens`` (``BudgetError.needed`` tokens are enough),
        ``TypeError`` or ``ValueError`` for a limit that is not a whole number of at least 1 (0 for ``max_tokens``).
        """
        limits = (max_string_tokens, max_number_tokens, max_reasoning_tokens)
        counts = [_count("max_tokens", max_tokens, 0)]
        counts += [_count(name, limit, 1) for name, limit in zip(_LIMITS, limits, strict=True)]
        made = Matcher if self._classes is None else _MatcherOfReadings
        return made(self, max_tokens=counts[0], lexeme_limits=(None, *counts[1:]))

    def allocate_bitmask(self, batch_size: int = 1) -> NDArray[np.uint32]:
        """Returns a bitmask of zeros for ``Matcher.fill_bitmask``: uint32, shape (batch_size, ceil(n_vocab / 32)).

        Row ``i`` is for sequence ``i``. In a row, bit ``token % 32`` of word ``token // 32`` stands for a token: the
        layout of llguidance, XGrammar and vLLM.
        """
        import numpy as np

        return np.zeros((integer("batch_size", batch_size), -(-self.vocabulary.n_vocab // 32)), dtype=np.uint32)

    def logits_processor(self) -> LogitsProcessor:
        """Returns a logits processor for one ``create_completion`` of llama-cpp-python or ``generate`` of transformers.

        >>> # llama.create_completion(prompt, logits_processor=LogitsProcessorList([constraint.logits_processor()]))
        >>> # model.generate(**inputs, logits_processor=LogitsProcessorList([constraint.logits_processor()]))
        """
        from constrain.engine.logits import LogitsProcessor  # imports NumPy

        return LogitsProcessor(self)


def _noted(
    about: bytes,
) -> tuple[dict[str, str | bool], tuple[str, ...], tuple[str, ...], bool, bool, list[Ranges] | None]:
    """Policies, warnings, split terminals, ``no_forcing``, ``has_captures`` and classes in the notes of ``_packed``.

    Raises ``core.StorageError``.
    """
    try:
        noted = json.loads(about)
        classes = noted["classes"] and [tuple((low, high) for low, high in ranges) for ranges in noted["classes"]]
        told = dict(noted["policies"]), tuple(noted["warnings"]), tuple(noted["split"])
        return *told, bool(noted["no_forcing"]), bool(noted["has_captures"]), classes
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise core.StorageError(f"the notes on a constraint cannot be read: {error!r}") from error


class Matcher(core.Matcher):
    """A position in a text: the tokens accepted so far, and the masks of the tokens that may come next.

    ``Constraint.matcher`` makes one at the beginning of a text. Use a matcher in one thread at a time, and ``fork`` one
    for each other thread. Methods raise ``IndexError`` for a token id that is not in the vocabulary.

    - ``accept``, ``accept_many``, ``rollback``, ``reset`` and ``fork`` change the position.
    - ``fill_bitmask`` and ``fill_candidates`` write the mask of the next token, for your own loop or for llama.cpp.
    - ``forced_tokens`` and ``forced_bytes`` return what must come next; ``completion_tokens`` and
      ``shortest_completion`` end the text.
    - ``is_accepting`` and ``is_finished`` tell whether the text may, and must, end here.
    - ``is_narrowed``, ``n_shortened`` and ``limited_masks`` tell whether a limit has removed allowed tokens.
    - ``temperature`` is the temperature that the grammar asks for the next token.

    ``rollback`` takes back limits that later masks met, ``fork`` copies them, ``reset`` clears them.

    >>> from constrain import Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> matcher = compile({"enum": ["red", "green"]}, vocabulary).matcher()
    >>> matcher.accept_many(b'"gr'), matcher.forced_bytes(), matcher.accept(ord("a"))
    (3, b'een"', False)
    """

    __slots__ = ("constraint",)

    def __init__(
        self,
        constraint: Constraint,
        state: core.Matcher | None = None,
        *,
        max_tokens: int | None = None,
        lexeme_limits: Sequence[int | None] = (),
    ) -> None:
        if state is None:
            super().__init__(constraint._core, max_tokens, lexeme_limits)
        else:
            super().__init__(state)
        self.constraint = constraint

    def fork(self) -> Matcher:
        """Returns an independent matcher at the same position, with the same limits and budget."""
        return Matcher(self.constraint, self)

    def __copy__(self) -> Matcher:
        """Returns a fork."""
        return self.fork()

    def __deepcopy__(self, _: object) -> Matcher:
        """Returns a fork."""
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Matcher cannot be pickled; make a new one and let it accept the same tokens")

    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:
        """Returns forced text for decoding as the kernel does; none if the grammar leaves it to the model."""
        found = super().forced_after(before)
        return (b"", []) if self.constraint.no_forcing else found

    def forced_tokens(self) -> list[int]:
        """Returns the token ids that must come next, split as the tokenizer splits text; empty without ``encode``.

        They spell the beginning of ``forced_bytes()``. Its end is left out where a longer token might begin there.
        """
        vocabulary = self.constraint.vocabulary
        if vocabulary.encode is None:
            return []
        text, open_starts = self.forced_after(b"")
        known = vocabulary.token_bytes, vocabulary.special_tokens
        tokens = certain_tokens(text, open_starts, b"", vocabulary.encode, *known) if text else []
        # The tokenizer may write a lexeme in more tokens than its limit allows.
        return tokens[: self.fork().accept_many(tokens)] if self.limits_tokens else tokens

    def explain(self, token_id: int) -> str:
        """Returns a sentence that says why a token is not allowed here, or that it is allowed.

        It names the byte at which the token fails, the terminals expected there, and their places in the schema.
        """
        # the kernel's part is Matcher::explain in matcher.cpp
        allowed, at_end, at_limit, limits, offset, expected = self.diagnose(token_id)
        token = self.constraint.vocabulary.marked_bytes(token_id)
        name = special_name(token)
        shown = f"token {token_id} ({token!r})" if name is None else f"token {token_id} ({name})"
        if allowed and self.fork().accept(token_id):
            return f"{shown} is allowed"
        if at_limit:
            return (
                f"{shown} may follow, but a limit on the tokens of the lexeme leaves it out: after it, "
                f"the lexeme would not come to its end in time"
            )
        if limits:
            return f"{shown} may follow, but this was not verified within the limits ({', '.join(limits)})"
        if allowed:
            return f"{shown} may follow, but leaves too little of max_tokens to complete the text"
        if at_end:
            place = f"token {token_id} ends the text, which is not complete"
        elif name is not None:
            place = f"{shown} may not stand here"
        elif not token:
            return f"token {token_id} stands for no text"
        else:
            place = f"{shown} fails at byte {offset} ({token[offset : offset + 1]!r})"
        places = self.constraint._terminal_places()
        names = [name_terminal(*places[index]) for index in expected[:EXPLAINED_TERMINALS]]
        if len(expected) > EXPLAINED_TERMINALS:
            names.append(f"{len(expected) - EXPLAINED_TERMINALS} more")
        return f"{place}; expected {', '.join(names) if names else 'the end of the text'}"


class _MatcherOfReadings(Readings, Matcher):
    """A ``Matcher`` of a grammar that asks for tokens by name or id."""

    def __init__(
        self,
        constraint: Constraint,
        state: core.Matcher | None = None,
        *,
        max_tokens: int | None = None,
        lexeme_limits: Sequence[int | None] = (),
    ) -> None:
        Matcher.__init__(self, constraint, state, max_tokens=max_tokens, lexeme_limits=lexeme_limits)
        if isinstance(state, _MatcherOfReadings):
            self._copy(state)
        else:
            assert constraint._classes is not None
            self._begin(constraint._classes)

    def fork(self) -> Matcher:
        """Returns an independent matcher at the same position, with the same limits and budget."""
        return _MatcherOfReadings(self.constraint, self)


def _count(name: str, given: int | None, least: int) -> int | None:
    """Checks a limit on tokens for the kernel. Raises ``TypeError`` and ``ValueError``."""
    if given is None:
        return None
    count = integer(name, given)
    if count < least:
        raise ValueError(f"{name} is {count}; it must be {least} or more")
    return min(count, _NO_LIMIT)


def name_terminal(name: str, pointer: str) -> str:
    """A terminal as messages show it, with its place in the schema if that is known."""
    return f"{name} (from {pointer})" if pointer else name


@dataclass(slots=True)
class CacheCounts:
    """How often ``compile`` found a remembered constraint (``known``), and how often it did not (``new``)."""

    known: int = 0
    new: int = 0


class _Kept:
    """A remembered constraint, with its size: the bytes of its description, its key and its tables."""

    __slots__ = ("_fixed_bytes", "_tables", "bytes_counted", "constraint")

    def __init__(self, constraint: Constraint, key: tuple[object, ...]) -> None:
        self.constraint = constraint
        self._tables = constraint._core
        self._fixed_bytes = constraint._bytes_beside + _source_bytes(key[0])
        self.bytes_counted = self.memory_bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes that the constraint takes now; masks add to its tables."""
        return self._fixed_bytes + self._tables.memory_bytes


class _Remembered:
    """The constraints that ``compile`` remembers, by its arguments; callers hold ``_cache_lock``."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()  # the least recently used one first
        self._bytes = 0  # the sum of bytes_counted
        self._calls_until_count = CALLS_BETWEEN_COUNTS

    def values(self) -> Iterable[_Kept]:
        """The remembered constraints."""
        return self._kept.values()

    def find(self, key: tuple[object, ...], vocabulary: Vocabulary) -> Constraint | None:
        """Finds the constraint for a key and makes it the most recently used one."""
        kept = self._kept.get(key)
        if kept is None or kept.constraint.vocabulary is not vocabulary:
            return None
        self._kept.move_to_end(key)
        self._count(kept)
        self._drop_oldest()
        return kept.constraint

    def add(self, key: tuple[object, ...], constraint: Constraint) -> None:
        """Remembers a constraint for the next equal ``compile``, unless it alone takes more than ``CACHED_BYTES``."""
        self._forget(key)
        kept = _Kept(constraint, key)
        if kept.bytes_counted <= CACHED_BYTES:
            self._kept[key] = kept
            self._bytes += kept.bytes_counted
        self._drop_oldest()

    def forget(self, vocabulary: Vocabulary) -> None:
        """Forgets the constraints of a vocabulary."""
        for key in [key for key, kept in self._kept.items() if kept.constraint.vocabulary is vocabulary]:
            self._forget(key)

    def _forget(self, key: tuple[object, ...]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.bytes_counted

    def _count(self, kept: _Kept) -> None:
        """Measures a constraint again."""
        now = kept.memory_bytes
        self._bytes += now - kept.bytes_counted
        kept.bytes_counted = now

    def _drop_oldest(self) -> None:
        """Drops the least recently used constraints until the others are within the limits."""
        self._calls_until_count -= 1
        if self._calls_until_count == 0:
            self._calls_until_count = CALLS_BETWEEN_COUNTS
            for kept in self._kept.values():
                self._count(kept)
        while len(self._kept) > CACHED_CONSTRAINTS or self._bytes > CACHED_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.bytes_counted


def _source_bytes(source: object) -> int:
    """Bytes of the source of a constraint, which is part of its key: a ``Source`` or the text of a JSON Schema."""
    return len(repr(source)) if isinstance(source, Source) else sys.getsizeof(source)


cache_counts = CacheCounts()
"""The counts of this process."""

_cache = _Remembered()
_cache_lock = threading.Lock()


def compile(  # noqa: A001 - the name of the public function
    schema: object,
    vocab: Vocabulary | HasVocabulary | Llama,
    *,
    whitespace: str = "flexible",
    property_order: str = "schema",
    formats: str = "assert",
    numbers: str = "canonical",
    precision: str = "double",
    escapes: str = "canonical",
    strict: bool = False,
    registry: object = None,
    cache: Directory = None,
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
        formats: ``"assert"`` (known formats are enforced), ``"annotation"`` (none is) or ``"strict"`` (unknown formats
            raise ``UnsupportedSchemaError``).
        numbers: ``"canonical"`` (no exponent, no ``1.0`` for an integer) or ``"any"`` (also ``1.0``, ``1e2``, ``-0``;
            the value counts).
        precision: ``"double"`` (a number must be valid both as an exact decimal and as the IEEE double that most
            readers make of it) or ``"decimal"`` (as an exact decimal).
        escapes: ``"canonical"`` (each character of a string has one spelling) or ``"any"`` (all spellings of JSON:
            ``\u0061`` is an a).
        strict: whether the schema must keep the structural rules of OpenAI's strict mode, those of
            ``check_strict(schema, subset="structural")``. A ``SchemaError`` lists all violations; ``strict_schema``
            converts a schema.
        registry: mapping from URIs to schemas, such as a ``referencing.Registry``, for ``$ref`` to other documents and
            for metaschemas of your own. Metaschemas of the drafts are known. Nothing is fetched from the network.
        cache: directory of stored constraints, as ``Constraint.precompute`` and ``constrain compile`` write them;
            ``compile`` itself only reads it. By default the directory in the environment variable CONSTRAIN_CACHE (none
            if it is empty or "0"), or else the user's cache directory; ``False`` for none. A damaged file is compiled
            again, with a warning. Each version and build of this package has its own files.

    The policies (``whitespace`` to ``escapes``), ``strict`` and ``registry`` apply to JSON Schemas and types; with
    another language they raise ``ValueError``, as does a value that a policy does not have.

    Raises ``SchemaError``, ``UnsupportedSchemaError`` or ``UnsatisfiableSchemaError`` with the JSON Pointer of the
    place; ``PatternError``; ``GrammarError``; ``LimitError``.

    >>> from constrain import Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> compile({"type": "integer", "minimum": 3}, vocabulary).accepts("12")
    True
    """
    return _compile(
        schema,
        as_vocabulary(vocab),
        close_objects=False,
        cache=cache,
        whitespace=whitespace,
        property_order=property_order,
        formats=formats,
        numbers=numbers,
        precision=precision,
        escapes=escapes,
        strict=strict,
        registry=registry,
    )


def _compile(
    schema: object,
    vocab: Vocabulary,
    *,
    close_objects: bool,
    cache: Directory = None,
    **options: Unpack[CompileOptions],
) -> Constraint:
    """``compile`` with the options of ``generate``: closed objects, and formats restricted to what readers accept."""
    with deep_enough(), compilation():
        wanted = to_compile(schema, vocab, close_objects=close_objects, cache=cache, **options)
        found = wanted.find()
        return wanted.compile() if found is None else found


class _Schema:
    """The text of a JSON Schema, and the options to compile it with."""

    __slots__ = ("_close_objects", "_plain_integers", "_policies", "_registry", "_strict", "text")

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

    def digest(self) -> bytes:
        """32 bytes that identify the schema and its options, but not the registry."""
        return schema_digest(self.text, (self._close_objects, self._strict, self._plain_integers, self._policies))

    def settings(self) -> tuple[object, ...]:
        """The options as a part of a key."""
        return (self._close_objects, self._strict, self._plain_integers, *self._policies.values())

    def grammar(self) -> Grammar:
        """The grammar of the schema. Raises the errors of schemas."""
        return self._compiled().grammar

    def constraint(self, vocabulary: Vocabulary, keeping: _Keeping | None) -> Constraint:
        """Compiles the schema in this process."""
        compiled = self._compiled()
        with limits_at(""):
            return Constraint(compiled.grammar, vocabulary, compiled.policies, compiled.warnings, keeping)

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

    def grammar(self) -> Grammar:
        """The grammar of the source. Raises the errors of grammars and patterns."""
        return self.of.grammar() if isinstance(self.of, Source) else self.of

    def constraint(self, vocabulary: Vocabulary, keeping: _Keeping | None) -> Constraint:
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
        if self._key is not None:
            with _cache_lock:
                known = _cache.find(self._key, self._vocabulary)
                if known is not None:
                    cache_counts.known += 1
                    return known
                cache_counts.new += 1
        if self._cache is None:
            return None
        kept = self._find_kept(self._cache)
        return None if kept is None else self._remember(kept)

    def compile(self) -> Constraint:
        """Compiles in this process. Raises the errors of ``constrain.compile``."""
        return self._finish(self._what.constraint(self._vocabulary, self._keeping()))

    def unpack(self, packed: Packed) -> Constraint:
        """The constraint that another process has compiled and packed. Raises ``core.StorageError``."""
        return self._finish(Constraint._unpacked(self._vocabulary, packed, self._what.grammar, self._keeping()))

    def _keeping(self) -> _Keeping | None:
        return None if self._cache is None else _Keeping(self._cache, self._what.digest, self._what.grammar)

    def _find_kept(self, cache: Cache) -> Constraint | None:
        """The constraint from the cache; also notes whether the cache has an unusable file for it."""
        keeping = _Keeping(cache, self._what.digest, self._what.grammar)
        try:
            kept = Constraint._kept(self._vocabulary, keeping) if cache.has(self._vocabulary) else None
        except RejectedFileError as error:
            cache.warn_rejected(error)
            self._is_file_useless = True
            return None
        if kept is None:
            self._is_file_useless = cache.open() and cache.has_of_another_build(self._vocabulary, keeping.digest())
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
        if self._key is not None:
            with _cache_lock:
                _cache.add(self._key, constraint)
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
    if not what.of.is_known_by_repr:
        return ToCompile(what, vocab, None, None)
    return ToCompile(what, vocab, (what.of, id(vocab), directory and directory.path), directory)


def _read(schema: object, options: CompileOptions, *, close_objects: bool) -> _Schema | _Text:
    """Reads a schema of any kind and its options. Raises TypeError, ValueError and SchemaError."""
    if not options.keys() <= DEFAULTS.keys():
        raise TypeError(unknown_names("options", options.keys() - DEFAULTS.keys(), DEFAULTS))
    settled: CompileOptions = {**DEFAULTS, **options}
    if isinstance(schema, Grammar | Source):
        refuse_compile_options(options, f"this is a {type(schema).__name__}")
        return _Text(schema.closed() if close_objects and isinstance(schema, Source) else schema)
    policies: dict[str, Any] = {name: settled[name] for name in _POLICIES}  # type: ignore[literal-required]
    text = schema_text(schema, tightened=True)
    # Pydantic reads 7e35 as a float, and refuses a float of that size as an integer.
    plain_integers = settled["numbers"] == "any" and is_type(schema)
    return _Schema(text, (close_objects, settled["strict"], plain_integers), policies, settled["registry"])


def grammar_of(schema: object, *, close_objects: bool, **options: Unpack[CompileOptions]) -> Grammar:
    """The grammar of a schema of any kind. Raises the errors of ``compile`` that do not depend on a vocabulary."""
    with compilation(), deep_enough():
        return _read(schema, options, close_objects=close_objects).grammar()


@contextlib.contextmanager
def deep_enough() -> Iterator[None]:
    """Replaces a RecursionError by a LimitError that says what to do."""
    try:
        yield
    except RecursionError as error:  # the deepest allowed nesting needs half of Python's default stack
        raise LimitError(
            "the schema or grammar is nested too deeply for what is left of Python's stack; make it flatter, call this "
            "from a shallower function, or raise the recursion limit (sys.setrecursionlimit; now "
            f"{sys.getrecursionlimit()})"
        ) from error


def forget(vocabulary: Vocabulary) -> None:
    """Frees the constraints of a vocabulary that will not be used again."""
    with _cache_lock:
        _cache.forget(vocabulary)
