from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from typing_extensions import Buffer


class StorageError(ValueError):
    """Stored tables are damaged or of another build."""

def checksum(data: Buffer) -> bytes:
    """
    A checksum of 16 bytes; it detects every change of up to 8 adjacent bytes, and nearly every other one.

    It does not protect against forgery.
    """

def mask_logits(logits: Buffer, bitmask: Buffer, masked: Buffer, rows: int, width: int, words: int) -> int:
    """
    Copies logits, with minus infinity for each token whose bit is 0 or that has no bit.

    Args:
        logits: float32 of shape (rows * width,).
        bitmask: uint32 of shape (rows * words,); bit ``token % 32`` of word ``token // 32`` of a row.
        masked: where the logits go; float32 of shape (rows * width,).
        rows: number of places.
        width: logits of one row.
        words: words of one row of ``bitmask``.

    Returns:
        The first row without a token left (all of its logits are minus infinity); -1 if there is none.

    Raises TypeError or ValueError for other buffers.
    """

def seed() -> bytes:
    """
    The 16 bytes with which this process hashes the tables of its grammars; random, drawn at first use.
    """

def offer_seed(seed: bytes) -> bool:
    """
    Offers a seed of 16 bytes to the process, which takes it if it has none yet; returns whether it uses that seed.

    Constraints of one seed share the context-independent tokens of a vocabulary. Raises ValueError for other lengths.
    """

class Vocabulary:
    """
    The tokens of a tokenizer as a byte trie, with the masks that all grammars share.
    """

    def __init__(self, tokens: list[bytes], special: Sequence[int], eos: Sequence[int], names: Sequence[tuple[int, bytes]] = ()) -> None:
        """
        ``tokens[i]``: bytes of token i, empty for ids without text; ``special`` and ``eos`` have none.

        ``names``: (id, name) of special tokens that grammars may use. Raises ValueError for an id outside of
        ``tokens``, and for the name of an id that is not in ``special``.
        """

    @property
    def n_vocab(self) -> int: ...

    def token_bytes(self, token_id: int) -> bytes: ...

    def beginnings_of(self, text: bytes, start: int = 0) -> list[int]:
        """
        All tokens with which the text from ``start`` on begins, by their bytes, shortest first.
        """

    @property
    def memory_bytes(self) -> int: ...

    def description(self) -> bytes:
        """
        Bytes that identify this vocabulary: equal for equal vocabularies only.
        """

    def store(self) -> bytes:
        """The shared context-independent tokens, as bytes for ``restore``."""

    def restore(self, stored: Buffer) -> None:
        """
        Takes over stored context-independent tokens of an equal vocabulary, while there is room.

        ``stored`` must begin at a multiple of 8 and have passed ``checksum``. Raises StorageError otherwise.
        """

def lexing_conflict(grammar: object, lossless: bool = False) -> tuple[int, int, list[int]] | None:
    """
    The first conflict that keeps the longest match from being proved safe; None if it is safe.

    With ``lossless``, it must also read every text that the rules have.

    A conflict is a terminal, one that may follow it and whose beginning may be taken, and the terminals that may take
    it: those read in parallel with the first, and itself. Raises LimitError if deciding takes too long.
    """

def conflicting_terminals(grammar: object, lossless: bool) -> list[int]:
    """
    Terminals whose removal leaves no conflict, in ascending order; terminals that replace them may conflict again.

    For each conflict: the terminals that may take the beginning, unless its first terminal is already listed.
    Raises LimitError if deciding takes too long.
    """

def lexing_claims(grammar: object) -> tuple[bool, bool]:
    """
    Whether reading the longest match leads to no dead end, and whether lexemes end by themselves.

    They do if no terminal can continue with a byte that may follow it. A claim that takes too long to prove counts as
    false. Raises LimitError if an expression is too large.
    """

class CompiledGrammar:
    """
    The automaton of a grammar over a vocabulary, built while it is used; safe to share between threads.
    """

    def __init__(self, grammar: object, vocabulary: Vocabulary, memory_limit: int = ..., limits: dict[str, int] = ..., proved: bool = ..., classes: Sequence[Sequence[tuple[int, int]]] = ..., rule_limits: Sequence[int] = ...) -> None:
        """
        Compiles a grammar for a vocabulary.

        ``memory_limit``: bytes of tables at which they are built again from the parts in use. ``limits``: values by
        name that replace the kernel's own limits, for tests; ValueError for an unknown name. ``proved``: whether
        ``lexing_conflict`` has found no conflict in this grammar. ``classes``: ranges of ids, first and last of each,
        of the tokens that the grammar reads as the marks of these classes. ``rule_limits``: the most tokens between the
        border i and the last border, for each i (``language.special``).

        Raises GrammarError (malformed, generates no text, lexemes that cannot be separated) or LimitError.
        """

    @staticmethod
    def restore(stored: Buffer, vocabulary: Vocabulary, memory_limit: int = ..., classes: Sequence[Sequence[tuple[int, int]]] = ...) -> CompiledGrammar:
        """
        Reads a grammar that ``store`` of the same build has written, in any process, for an equal vocabulary.

        ``stored`` must begin at a multiple of 8 and have passed ``checksum``. Raises StorageError otherwise.
        """

    def precompute(self, max_masks: int, max_bytes: int) -> int:
        """
        Computes masks along texts as they are usually written; returns the number of places visited.

        Stops after ``max_masks`` places, when the tables take ``max_bytes``, or when no place is left.
        """

    def store(self) -> bytes:
        """
        The grammar with its tables and all known masks, as bytes for ``restore``.
        """

    def lexemes(self, text: bytes) -> list[tuple[int, list[int]]] | None:
        """
        The lexemes of a text: the end of each, and the terminals that match it; None if the text does not match.
        """

    @overload
    def accepts(self, text: bytes) -> bool: ...

    @overload
    def accepts(self, text: bytes, detours: Sequence[tuple[int, int, bytes]]) -> bool:
        """
        Whether the whole text matches, where each detour (begin, end, bytes) may be taken or not.

        The part of the text from begin to end is then read as these bytes. Detours ascend by their begin.
        """

    def lexeme_graph(self, text: bytes, detours: Sequence[tuple[int, int, bytes]]) -> tuple[list[int], list[tuple[int, int, list[int]]]] | None:
        """
        The lexemes of all ways to read a text with detours, as ``accepts`` does; None if the text does not match.

        Returns the offset of each place between lexemes, ascending: the first is the beginning of the text, the last
        its end. Then lexemes, in any order: the places where one begins and ends, and the terminals that match it. Some
        of them may be on no way to the end.
        """

    @property
    def n_words(self) -> int:
        """Number of 32-bit words of a bitmask."""

    @property
    def memory_bytes(self) -> int:
        """
        Bytes of grammar and tables after the last computed mask. Takes no lock.
        """

    def stats(self) -> dict[str, int]: ...

class RuleAutomaton:
    """
    The automaton of a rule while it is made: state 0 and the accepting state 1 always exist.

    Only one alternative of a rule is active at a time, so alternatives share slots.
    """

    def state(self) -> int:
        """Returns a new state."""

    def slot(self, kind: int) -> int:
        """
        Returns a slot for the current alternative: a counter up to ``kind``, or a set of texts or values.
        """

    @property
    def edges(self) -> list[Any]:
        """The edges that the module at work has added."""

    @edges.setter
    def edges(self, given: list[Any], /) -> None: ...

class Draft:
    """
    The grammar of a JSON Schema, made by ``Emission``: input of ``CompiledGrammar``.
    """

    def __init__(self, any_key: object, colon_tail: object, numbers_by_double: bool, strings_by_value: bool) -> None:
        """
        ``any_key``: expression of a JSON string; ``colon_tail``: expression of what follows a key in its lexeme.
        """

    def terminal_parts(self) -> list[Any]:
        """
        For each terminal, the ``Terminal``, or (name, expression, texts, whether the colon is apart) of a key.
        """

    def places(self) -> list[tuple[str, str]]:
        """Name and pointer of each terminal."""

    def rule_parts(self) -> list[tuple[str, list[tuple[Any, ...]], list[int], list[int]]]:
        """Name, edges, accepting states and slots of each rule."""

def unproductive_item(shape: Any) -> tuple[Any, int] | None:
    """
    A required item of an array that is not known to have a value, with its index; None if there is none.
    """

def longest_length(shape: Any) -> int | None:
    """
    The greatest number of items whose goals admit a value, as far as known; None: no bound.
    """

def unproductive_member(shape: Any) -> tuple[Any, str] | None:
    """
    A required member that is not known to have a value, with its key; None if there is none.
    """

def goals_with_alternatives(goals: Iterable[Any]) -> list[Any]:
    """
    Those of some goals that have several shapes of arrays or objects, or combined ones.
    """

class Emission:
    """
    Makes the grammar of goals in a ``Draft``: gives terminals and goals their symbols, and makes the rules of goals.
    """

    def __init__(self, draft: object, punctuation: object, *, any_order: bool, close_objects: bool, keys_apart: bool, any_spelling: bool) -> None: ...

    @property
    def keys_apart(self) -> bool:
        """
        Whether keys and colons are separate lexemes in the rule that is being made.
        """

    @property
    def notation(self) -> Any:
        """The notation of the object or array that is being made; None for JSON."""

    @notation.setter
    def notation(self, given: Any, /) -> None: ...

    @property
    def punctuation(self) -> Any:
        """The lexemes of the rule that is being made."""

    @punctuation.setter
    def punctuation(self, given: Any, /) -> None: ...

    @property
    def goal(self) -> Any:
        """The goal whose rule is being made."""

    def set_ambiguous(self, goals: Iterable[Any]) -> None:
        """Sets the goals in whose rules keys and colons are separate lexemes."""

    def add(self, terminal: Any) -> int | None:
        """
        Adds a terminal to the grammar, each object once; returns its symbol, None for the empty text.
        """

    def key(self, name: str) -> int:
        """
        Returns the symbol that reads a declared key and its colon; only the key if ``keys_apart``.
        """

    def undeclared_key(self, expression: Any) -> tuple[int | None, int, int | None]:
        """
        Returns the symbols that read an undeclared key, and what stands before and after it; None for nothing.
        """

    def symbols(self, goal: Any) -> tuple[int, ...]:
        """
        Returns the symbols that read a value of a goal, which must admit one, as JSON.
        """

    def member(self, key: int, goal: Any) -> tuple[int, ...]:
        """
        Returns the symbols that read a member's value, and what stands behind it, after a key.
        """

    def item(self, goal: Any) -> tuple[int, ...]:
        """
        Returns the symbols that read an item of an array, and what stands around it.
        """

    def inner(self, goal: Any, kind: str) -> int | None:
        """
        Returns the symbol that reads arrays or objects (``kind``) of a goal; None if it has none.
        """

    def reserve(self) -> int:
        """Returns the number of a rule to be made."""

    def set_rule(self, number: int, rule: Any) -> None:
        """Makes a reserved rule."""

    def make_start(self, goal: Any) -> None:
        """
        Makes the first rule: the values of a goal, and white space around if that is allowed.
        """

    def make_rule(self, goal: Any, rule: int, kind: str) -> None:
        """Makes a reserved rule: the arrays or objects (``kind``) of a goal."""

    def make_rules(self) -> None:
        """
        Makes the rules that symbols of goals have reserved, and those that they reserve.
        """

class Matcher:
    """
    The position of one sequence in a compiled grammar. Not to be used by two threads at once.
    """

    @overload
    def __init__(self, grammar: CompiledGrammar, max_tokens: int | None = None, lexeme_limits: Sequence[int | None] = ()) -> None:
        """
        Makes a matcher at the beginning of a text.

        ``lexeme_limits``: tokens after which a lexeme is brought to its end, by ``Terminal.kind``. Raises BudgetError
        if no known text takes at most ``max_tokens``.
        """

    @overload
    def __init__(self, grammar: Matcher) -> None: ...

    def _become(self, other: Matcher) -> None:
        """
        Takes over grammar, position, limits and budget of another matcher. Private.
        """

    def _change_to(self, grammar: CompiledGrammar, max_tokens: int | None, lexeme_limits: Sequence[int | None]) -> bool:
        """
        Goes on in another grammar, as if that had read all tokens; False, without a change, if it refuses them or
        cannot end the text within the budget. Private.
        """

    def accept(self, token_id: int) -> bool:
        """
        Takes an allowed token and moves on. For any other token, returns False and changes nothing.

        Computes the mask first if it is not known. Raises IndexError for an id that is not in the vocabulary.
        """

    def accept_many(self, token_ids: Sequence[int]) -> int:
        """
        Takes tokens up to the first that is not allowed; returns the number of tokens taken.

        Raises IndexError, and takes none, if an id is not in the vocabulary.
        """

    def rollback(self, count: int) -> None:
        """
        Takes back the last ``count`` accepted tokens. Raises ValueError if fewer were accepted.
        """

    def reset(self) -> None:
        """
        Takes back all accepted tokens; the limits met so far are forgotten, too.
        """

    @property
    def n_accepted(self) -> int:
        """Number of accepted tokens, end of generation included."""

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""

    @property
    def is_finished(self) -> bool:
        """Whether end of generation was accepted, or nothing else is possible."""

    def fill_bitmask(self, bitmask: Buffer, unlimited: bool = False) -> None:
        """
        Writes the mask of the next token: every word of ``bitmask``, uint32 of shape (ceil(n_vocab / 32),).

        Bit ``token % 32`` of word ``token // 32`` is set if and only if the text so far and this token can be
        completed. The bits of end-of-generation ids are set where the text may end. ``unlimited``: as if there were
        neither budget nor limits on lexemes. Raises TypeError or ValueError for another buffer.
        """

    def fill_candidates(self, logits: Buffer, candidates: Buffer, unlimited: bool = False) -> int:
        """
        Writes the allowed tokens with their logits, ascending by id, for llama.cpp's samplers; returns their number.

        ``logits``: float32 of shape (n_vocab,). ``candidates``: room for n_vocab ``llama_token_data`` of 12 bytes
        (int32 id, float32 logit, float32 p = 0). ``unlimited``: also writes the tokens that only the budget or a limit
        on lexemes leaves out; ``accept`` refuses these. Raises TypeError or ValueError for other buffers.
        """

    @property
    def lexeme(self) -> tuple[int, bytes, int, int, int | None]:
        """
        The current lexeme: kind, shortest end, number of tokens, its offset in the first, tokens left. Private.
        """

    @property
    def is_cut(self) -> bool:
        """Whether no token of the budget is left, and the text could go on."""

    @property
    def near_limit(self) -> bool:
        """
        Whether the budget, or a limit of the lexeme, may narrow one of the next masks. Private.
        """

    @property
    def knows_mask(self) -> bool:
        """
        Whether the current mask is known, so that the next ``fill_...`` only looks it up. Private.
        """

    @property
    def is_quick(self) -> bool:
        """
        Whether the next ``fill_...`` and ``accept`` only look up tables. Private.
        """

    @property
    def n_readings(self) -> int:
        """Number of ways to read the tokens so far. Private."""

    @property
    def is_in_use(self) -> bool:
        """
        Whether a call would have to wait for another thread that uses the same grammar. Private.
        """

    def compute_mask(self) -> None:
        """
        Computes the current mask, if it is not known, without the GIL. Private.
        """

    def diagnose(self, token_id: int) -> tuple[bool, bool, bool, tuple[str, ...], int, list[int]]:
        """
        Private: use ``explain``. Finds whether a token is allowed, and if not, why.

        Returns (allowed, failed at the end of the text, left out by the limit of a lexeme, limits of the kernel that
        the mask met if the token is not in it, byte offset of the failure, terminals that were expected). ``allowed``
        ignores limits and the budget.
        """

    def expected(self) -> list[int]:
        """
        Private: use ``expected_terminals``. Returns the terminals that may continue or begin here.
        """

    @property
    def temperature(self) -> float | None:
        """
        Temperature that the grammar asks for the next token; ``None`` if it asks for none.

        It is the highest one of the lexemes that the current lexeme may still become; once that cannot continue, of
        those that may follow. Lexemes without a temperature do not count.
        """

    @property
    def limits_tokens(self) -> bool:
        """
        Whether the grammar limits the tokens of some lexeme or rule (``max_tokens``). Private.
        """

    @property
    def is_narrowed(self) -> bool:
        """
        Whether the budget or a limit has removed tokens from some mask on the way here.
        """

    @property
    def is_narrowed_by_budget(self) -> bool:
        """
        Whether the budget (``max_tokens``) has removed tokens from some mask on the way here.
        """

    @property
    def n_shortened(self) -> int:
        """
        Number of lexemes that a limit on their tokens has ended, or is ending.
        """

    @property
    def limited_masks(self) -> int:
        """
        Number of masks on the way here without some allowed tokens, because a limit of the kernel was met.

        Such a mask has the single-byte tokens that were verified, and the next token of a way to finish. The mask
        here counts once ``fill_bitmask`` or ``accept`` has asked for it.
        """

    @property
    def limits_met(self, /) -> tuple[str, ...]:
        """
        Names of the limits that ``limited_masks`` counts; docs/reference/limits.md describes them.
        """

    @property
    def min_tokens_left(self) -> int:
        """Number of tokens that ``completion_tokens`` returns."""

    def completion_tokens(self) -> list[int]:
        """
        Returns the token ids of a short text that finishes from here; with a budget, one that fits into it.
        """

    def shortest_completion(self) -> bytes:
        """Returns the bytes of a shortest text that finishes from here."""

    def forced_bytes(self) -> bytes:
        """
        Returns the next bytes that every allowed text has; empty where there is a choice, or the text may end.
        """

    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:
        """
        Private: use ``forced_tokens``. Returns (forced bytes, open starts).

        ``before``: the end of the accepted text. At an open start a token may begin that continues beyond the end of
        the forced bytes, which end with a whole UTF-8 character. Starts are offsets into ``before`` and the forced
        bytes. There are none if no byte is forced.
        """

def steps_taken() -> int:
    """
    Steps that this thread has taken so far, in questions about expressions and in proofs about grammars.
    """

class Allowance:
    """
    Work that several questions may take together: steps, and nodes of the expressions they make.

    A question that needs more than is left raises LimitError; after that, no work is left.
    """

    def __init__(self, work: int) -> None: ...

    @property
    def left(self) -> int: ...

def is_empty(expression: object, allowance: Allowance | None = None) -> bool:
    """
    Whether the expression matches no text. Raises LimitError if deciding takes too many states.
    """

def matches(expression: object, text: bytes, allowance: Allowance | None = None) -> bool:
    """Whether the expression matches the whole text."""

def has_endless_matches(expression: object, max_states: int, allowance: Allowance | None = None) -> bool | None:
    """
    Whether the expression matches infinitely many texts; None if ``max_states`` derivatives cannot decide.
    """

def list_matches(expression: object, limit: int, allowance: Allowance | None = None) -> list[bytes] | None:
    """
    All texts that the expression matches, shortest first; None if there are more than ``limit``.
    """

def automaton(expression: object, max_states: int, allowance: Allowance | None = None) -> list[tuple[bool, list[tuple[int, list[tuple[int, int]]]]]] | None:
    """
    The deterministic automaton of an expression: for each state, whether it accepts, and its edges.

    The start is state 0. An edge is the target and the bytes that lead there, as inclusive ranges. None if there are
    more than ``max_states`` states.
    """

class Texts:
    """
    The values of a table, strings, as the contents of JSON strings: sorted, without equals, immutable.

    All grammars with the values share this object's memory, which is little more than that of the texts. Raises
    UnicodeEncodeError for a lone surrogate, and LimitError.
    """

    def __init__(self, values: Iterable[str]) -> None: ...

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> bytes: ...

    def __iter__(self) -> Iterator[bytes]: ...

    def find(self, text: bytes) -> int | None:
        """The number of a text; None if it is not among them."""

    def in_both(self, other: Texts) -> Texts:
        """The texts that both have."""

    def lines(self) -> bytes:
        """
        All texts, each with a line break behind it, which none of them contains.
        """

    def __getstate__(self) -> bytes: ...

    def __setstate__(self, arg: bytes, /) -> None: ...

    def matching(self, expression: object, allowance: Allowance | None = None) -> Texts:
        """
        The texts that an expression matches. Raises LimitError if that takes too long.
        """

    @property
    def memory_bytes(self) -> int: ...

class StopTime:
    """
    A time after which the threads within it (``with``, not nested) compute no mask: they raise TimeoutError.

    The matcher stays as it is then, and nothing keeps a part of the mask. Any thread may set the time.
    """

    def __init__(self) -> None: ...

    def set(self, seconds_from_now: float) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...
