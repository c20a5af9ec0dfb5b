"""``Constraint``: a schema or grammar for one vocabulary; ``Matcher``: one generation, and why a token is refused."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, Protocol

from constrain import kernel
from constrain.arguments import integer, wrong_type
from constrain.cache import RejectedFileError, store_independent_tokens
from constrain.engine.captures import Captures, has_captures, read_captures
from constrain.engine.classes import Classes
from constrain.engine.earley import as_graph, in_a_row
from constrain.engine.forced import certain_tokens
from constrain.engine.limited_rules import limited_rules, with_borders
from constrain.engine.report import Report, digits_of
from constrain.engine.special import resolve_special
from constrain.engine.terminals import ExpectedTerminal, name_terminal
from constrain.errors import ConstrainError, ExportError, deep_enough
from constrain.language.grammar import WORD_TOKENS
from constrain.language.special import special_name, split_special
from constrain.notebooks import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from constrain.cache import Cache
    from constrain.engine.classes import Ranges
    from constrain.engine.logits import LogitsProcessor
    from constrain.exporting.exporter import Target
    from constrain.language.grammar import Grammar
    from constrain.vocabulary.vocabulary import Vocabulary

PRECOMPUTED_MASKS = 2500
"""Masks that ``Constraint.precompute`` computes by default: a file of about 2 MiB, read in about 1 ms."""

PRECOMPUTED_BYTES = 12 << 20
"""Bytes of a constraint's tables at which ``Constraint.precompute`` stops by default."""

_DESCRIPTION_SHARE = 2
"""Bytes of a grammar's Python objects for each byte of its first tables: an estimate."""

_NO_LIMIT = 2**62
"""A number of tokens, masks or bytes that is never reached."""

EXPLAINED_TERMINALS = 5
"""Terminals that ``Matcher.explain`` names; beyond them it gives the number of the others."""

_LIMITS = ("max_string_tokens", "max_number_tokens", "max_reasoning_tokens")


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
    """A constraint as bytes, for another process that has an equal vocabulary and the same seed (``kernel.seed``)."""

    tables: bytes
    notes: bytes


@dataclass(frozen=True, slots=True)
class Keeping:
    """The cache and key of a constraint, and a function that makes its grammar, which the cache does not store."""

    cache: Cache
    digest: Callable[[], bytes]
    make: Callable[[], Grammar]


class InStages(Protocol):
    """What a constraint leaves to its stages (``staged.Staged``), if it has any.

    ``memory_bytes``: bytes of their tables now. ``most_steps``: of the compilation of one stage.
    """

    most_steps: int | None

    @property
    def memory_bytes(self) -> int:
        """Bytes of the tables of all stages."""

    def matcher(self, max_tokens: int | None, lexeme_limits: Sequence[int | None]) -> Matcher:
        """Returns a matcher at the beginning of a text."""

    def accepts(self, text: bytes) -> bool:
        """Returns whether the whole text matches."""

    def settled(self, text: bytes) -> Constraint:
        """Returns a constraint without stages that has a finished text if this one does."""


class Constraint:
    """A schema or grammar that ``compile`` has compiled for one vocabulary. Immutable; threads may share it."""

    __slots__ = (
        "__weakref__",
        "_bytes_beside",
        "_classes",
        "_core",
        "_exported",
        "_grammar",
        "_keeping",
        "_make",
        "_places",
        "_with_borders",
        "has_captures",
        "has_limited_rules",
        "no_forcing",
        "policies",
        "split",
        "staged",
        "vocabulary",
        "warnings",
    )

    def __init__(
        self,
        grammar: Grammar | kernel.Draft,
        vocabulary: Vocabulary,
        policies: Mapping[str, str | bool],
        warnings: tuple[str, ...],
        keeping: Keeping | None = None,
        make: Callable[[], Grammar] | None = None,
    ) -> None:
        """``make`` makes the grammar of a draft again, which is not kept: few ask for it, and its objects are many."""
        self._grammar = None if isinstance(grammar, kernel.Draft) else grammar
        self._make = make
        self._exported: object = None  # facts about the grammar that certificates keep
        self._keeping = keeping
        self.vocabulary = vocabulary
        self.policies = MappingProxyType(dict(policies))
        self.warnings = warnings
        self.split: tuple[str, ...] = ()
        self.no_forcing = self.has_captures = self.has_limited_rules = False
        self._classes: Classes | None = None
        self._with_borders: kernel.CompiledGrammar | None = None
        self.staged: InStages | None = None
        self._places: bytes | list[tuple[str, str]]
        if isinstance(grammar, kernel.Draft):  # of a JSON Schema, which names no tokens and nothing to capture
            self._core = self._compiled(grammar)
            self._places = grammar.places()
        else:
            resolved, self._classes = resolve_special(grammar, vocabulary)
            self.split, self.no_forcing = grammar.split, grammar.no_forcing
            self.has_captures = has_captures(grammar)
            self._core = self._compiled(resolved, proved=resolved.proved)
            self.has_limited_rules = bool(limited_rules(resolved))
            self._matched_core()
            self._places = [(each.name, each.pointer) for each in resolved.terminals]
        self._bytes_beside = 0 if self._grammar is None else _DESCRIPTION_SHARE * self._core.memory_bytes

    def __repr__(self) -> str:
        """Returns a shortest text, sizes and the number of warnings; ``report`` has more."""
        sizes = self._core.stats()
        try:
            matcher = self.matcher()
            shortest = b"".join(split_special(matcher.shortest_completion())).decode(errors="replace")
            least = f"shortest={cut(shortest, 80)}, min_tokens={matcher.min_tokens_left}, "
        except ConstrainError:  # a limit; what is known is shown
            least = ""
        return (
            f"Constraint({least}rules={sizes['rules']}, "
            f"terminals={sizes['terminals']}, n_vocab={self.vocabulary.n_vocab}, warnings={len(self.warnings)})"
        )

    def _repr_html_(self) -> str:
        """Returns the table of ``report`` for notebooks."""
        return self.report._repr_html_()

    def _compiled(
        self, resolved: Grammar | kernel.Draft, *, proved: bool = False, limits: Sequence[int] = ()
    ) -> kernel.CompiledGrammar:
        """Compiles a grammar that ``resolve_special`` has made, with the limits of its rules, if it has borders."""
        classes = [] if self._classes is None else self._classes.ranges
        return kernel.CompiledGrammar(
            resolved, self.vocabulary._core, proved=proved, classes=classes, rule_limits=limits
        )

    def _matched_core(self) -> kernel.CompiledGrammar:
        """The grammar for matchers, which limits the tokens of rules; the cache does not store these limits."""
        if not self.has_limited_rules:
            return self._core
        if self._with_borders is None:
            resolved, _ = resolve_special(self.grammar, self.vocabulary)
            limited = with_borders(resolved, limited_rules(resolved), self._compiled)
            self._with_borders = self._compiled(limited.grammar, limits=limited.limits)
        return self._with_borders

    def __copy__(self) -> Constraint:
        """Returns the constraint itself, which is immutable."""
        return self

    def __deepcopy__(self, _: object) -> Constraint:
        """Returns the constraint itself, which is immutable."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Constraint cannot be pickled; pickle its schema or grammar, and compile that again")

    @classmethod
    def _kept(cls, vocabulary: Vocabulary, keeping: Keeping) -> Constraint | None:
        """The constraint from the cache; None if the cache does not have it. Raises RejectedFileError."""
        stored = keeping.cache.load(vocabulary, keeping.digest())
        if stored is None:
            return None
        try:
            return cls._read(vocabulary, stored.tables, stored.notes, keeping.make, keeping)
        except kernel.StorageError as error:
            raise RejectedFileError(f"{keeping.cache.path}: {error}") from error

    @classmethod
    def _unpacked(
        cls, vocabulary: Vocabulary, packed: Packed, make: Callable[[], Grammar], keeping: Keeping | None
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
        keeping: Keeping | None,
    ) -> Constraint:
        """Reads a constraint that ``_packed`` wrote. Raises ``kernel.StorageError``."""
        self = cls.__new__(cls)
        about, _, self._places = notes.partition(b"\n")
        policies, warnings, self.split, flags, ranges = _noted(about)
        self.no_forcing, self.has_captures, self.has_limited_rules = flags
        self._grammar = None
        self._make = make
        self._exported = None
        self._keeping = keeping
        self._with_borders = None
        self.staged = None
        self.vocabulary = vocabulary
        self.policies = MappingProxyType(policies)
        self.warnings = warnings
        self._classes = None if ranges is None else Classes(vocabulary, ranges)
        self._core = kernel.CompiledGrammar.restore(tables, vocabulary._core, classes=ranges or [])
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
            "has_limited_rules": self.has_limited_rules,
            "classes": self._classes and self._classes.ranges,
        }
        notes = json.dumps(about).encode()
        places = self._places if isinstance(self._places, bytes) else json.dumps(self._places).encode()
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
        """The compiled ``Grammar``; built from the schema when it is first asked for."""
        if self._grammar is None:
            assert self._make is not None
            self._grammar = self._make()
            self._bytes_beside += _DESCRIPTION_SHARE * self._core.memory_bytes
        return self._grammar

    def _terminal_places(self) -> Sequence[Sequence[str]]:
        """Name and pointer of each terminal."""
        if isinstance(self._places, bytes):
            places: list[list[str]] = json.loads(self._places)
            return places
        return self._places

    def _named(self, terminals: Sequence[int]) -> tuple[ExpectedTerminal, ...]:
        """Returns names and pointers of terminals; the same name and pointer only once, and no borders."""
        places = self._terminal_places()
        return tuple(dict.fromkeys(ExpectedTerminal(*places[index]) for index in terminals if index < len(places)))

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
            digits=digits_of(self.policies),
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

        ``constrain.grammars.export`` does so without a vocabulary; it describes the notations and ``repeated_keys``.
        Raises ``ExportError`` if the notation cannot say the language, and ``LimitError`` if the text would be too
        long.

        >>> from constrain import Lark, Vocabulary, compile
        >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
        >>> print(compile(Lark('start: "(" start? ")" | /[0-9]+/'), vocabulary).export("gbnf"), end="")
        root ::= [0-9]+ | "(" root? ")"
        """
        from constrain.exporting.exporter import export_grammar

        if self.staged is not None:
            raise ExportError("it depends on values that were written before", target=to)
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
        if self.staged is not None:
            return self.staged.accepts(text)
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
        data = text.encode() if isinstance(text, str) else text
        return self._captures(data, [] if self._classes is None else self._classes.detours(data) or [])

    def _captures_of_tokens(self, tokens: Sequence[int]) -> Captures | None:
        """The captures of a complete text, by its tokens without the end of generation; None if it does not match.

        A token that the grammar names counts as itself or as its text; other tokens count as their texts. Raises
        LimitError.
        """
        if self._classes is None:
            text = b"".join(map(self.vocabulary.marked_bytes, tokens))
            return self._captures(text, []) if self._core.accepts(text) else None
        ends = [token for token in self.vocabulary.eos if self._classes.has(token)]
        for last in ((), *((token,) for token in ends)):
            text, detours = self._classes.spell([*tokens, *last])
            if self._core.accepts(text, detours):
                return self._captures(text, detours)
        return None

    def _captures(self, text: bytes, detours: list[tuple[int, int, bytes]]) -> Captures:
        """The captures of a text that matches. ``detours``: parts of it that may be tokens, with their marks."""
        if not self.has_captures:
            return Captures()
        if self._classes is None:
            lexemes = self._core.lexemes(text)
            assert lexemes is not None
            return read_captures(self.grammar, text, in_a_row(lexemes))
        graph = self._core.lexeme_graph(text, detours)
        assert graph is not None
        resolved, _ = resolve_special(self.grammar, self.vocabulary)
        return read_captures(resolved, text, as_graph(*graph))

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
                limit, masks allow only tokens that bring the string's end nearer; a string of any characters may first
                finish a word, in 8 more tokens. A string that the language requires to be longer gets the length it
                needs. Keys that a schema names, and constants, are not limited.
            max_number_tokens: soft limit on the tokens of one number, likewise.
            max_reasoning_tokens: soft limit on the tokens of a reasoning section, likewise.

        In a ``Grammar``, ``Terminal.kind`` says which of the three soft limits applies to a terminal.

        Raises ``BudgetError`` if no known text fits into ``max_tokens`` (``BudgetError.needed`` tokens are enough),
        ``TypeError`` or ``ValueError`` for a limit that is not a whole number of at least 1 (0 for ``max_tokens``).
        """
        limits = (max_string_tokens, max_number_tokens, max_reasoning_tokens)
        counts = [_count("max_tokens", max_tokens, 0)]
        counts += [_count(name, limit, 1) for name, limit in zip(_LIMITS, limits, strict=True)]
        text = None if counts[1] is None else counts[1] + WORD_TOKENS
        given = counts[0], (None, *counts[1:], text)  # by ``Kind``
        if self.staged is not None:
            return self.staged.matcher(*given)
        return Matcher(self, max_tokens=given[0], lexeme_limits=given[1])

    def allocate_bitmask(self, batch_size: int = 1) -> NDArray[np.uint32]:
        """Returns a bitmask of zeros for ``Matcher.fill_bitmask``: uint32, shape (batch_size, ceil(n_vocab / 32)).

        Row ``i`` is for sequence ``i``. In a row, bit ``token % 32`` of word ``token // 32`` stands for a token: the
        layout of llguidance, XGrammar and vLLM.
        """
        import numpy as np

        return np.zeros((integer("batch_size", batch_size), -(-self.vocabulary.n_vocab // 32)), dtype=np.uint32)

    def logits_processor(self) -> LogitsProcessor:
        """Returns a logits processor for one ``create_completion`` of llama-cpp-python.

        It serves ``generate`` of transformers for a single sequence, too; batches and beam search have
        ``constrain.integrations.transformers.logits_processor``.

        >>> # llama.create_completion(prompt, logits_processor=LogitsProcessorList([constraint.logits_processor()]))
        """
        from constrain.engine.logits import LogitsProcessor  # imports NumPy

        return LogitsProcessor(self)


def _noted(
    about: bytes,
) -> tuple[dict[str, str | bool], tuple[str, ...], tuple[str, ...], tuple[bool, bool, bool], list[Ranges] | None]:
    """Policies, warnings, split terminals, three flags and classes in the notes of ``_packed``.

    The flags are ``no_forcing``, ``has_captures`` and ``has_limited_rules``. Raises ``kernel.StorageError``.
    """
    try:
        noted = json.loads(about)
        classes = noted["classes"] and [tuple((low, high) for low, high in ranges) for ranges in noted["classes"]]
        told = dict(noted["policies"]), tuple(noted["warnings"]), tuple(noted["split"])
        return *told, (noted["no_forcing"], noted["has_captures"], noted["has_limited_rules"]), classes
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise kernel.StorageError(f"the notes on a constraint cannot be read: {error!r}") from error


class Matcher(kernel.Matcher):
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
        state: kernel.Matcher | None = None,
        *,
        max_tokens: int | None = None,
        lexeme_limits: Sequence[int | None] = (),
    ) -> None:
        if state is None:
            super().__init__(constraint._matched_core(), max_tokens, lexeme_limits)
        else:
            super().__init__(state)
        self.constraint = constraint

    def fork(self) -> Matcher:
        """Returns an independent matcher at the same position, with the same limits and budget."""
        return Matcher(self.constraint, self)

    def __repr__(self) -> str:
        """Returns where the matcher stands, by the names of its properties."""
        found: dict[str, object] = {"n_accepted": self.n_accepted}
        with contextlib.suppress(ConstrainError):  # a limit; what is known is shown
            for name in ("min_tokens_left", "is_accepting", "is_finished"):
                found[name] = getattr(self, name)
        return f"Matcher({', '.join(f'{name}={value}' for name, value in found.items())})"

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

    def expected_terminals(self) -> tuple[ExpectedTerminal, ...]:
        """Returns the terminals that may continue or begin here, in the grammar's order."""
        return self.constraint._named(self.expected())

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
        names = [name_terminal(*terminal) for terminal in self.constraint._named(expected)]
        if len(names) > EXPLAINED_TERMINALS:
            names[EXPLAINED_TERMINALS:] = [f"{len(names) - EXPLAINED_TERMINALS} more"]
        return f"{place}; expected {', '.join(names) if names else 'the end of the text'}"


def _count(name: str, given: int | None, least: int) -> int | None:
    """Checks a limit on tokens for the kernel. Raises ``TypeError`` and ``ValueError``."""
    if given is None:
        return None
    count = integer(name, given)
    if count < least:
        raise ValueError(f"{name} is {count}; it must be {least} or more")
    return min(count, _NO_LIMIT)
