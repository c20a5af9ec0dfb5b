"""The native kernel. Private: use ``constrain.compile`` and ``constrain.Vocabulary``."""

from collections.abc import Sequence
from typing import overload

from typing_extensions import Buffer

from constrain.language.grammar import Grammar
from constrain.language.tree import Expression

__all__ = [
    "Allowance",
    "CompiledGrammar",
    "Matcher",
    "StorageError",
    "Vocabulary",
    "checksum",
    "has_endless_matches",
    "is_empty",
    "list_matches",
    "matches",
    "offer_seed",
    "seed",
]

class Allowance:
    """Work that several questions may take together: derivatives, and nodes of the expressions they make.

    A question that takes more than is left raises LimitError, and nothing is left then.
    """

    def __init__(self, work: int) -> None: ...
    @property
    def left(self) -> int: ...

def is_empty(expression: Expression, allowance: Allowance | None = None) -> bool:
    """Does the expression match nothing at all? Raises LimitError where deciding takes too many states."""

def matches(expression: Expression, text: bytes, allowance: Allowance | None = None) -> bool:
    """Does the expression match the whole text?"""

def has_endless_matches(expression: Expression, max_states: int, allowance: Allowance | None = None) -> bool | None:
    """Does the expression match endlessly many texts? None if more than ``max_states`` derivatives do not tell."""

def list_matches(expression: Expression, limit: int, allowance: Allowance | None = None) -> list[bytes] | None:
    """All texts the expression matches, shortest first; None if there are more than ``limit``."""

class StorageError(ValueError):
    """Stored tables are not as they were written."""

def checksum(data: Buffer) -> bytes:
    """16 bytes that tell damaged data from whole: every change of up to 8 bytes in a row changes them, others do too.

    No protection against forgery.
    """

def seed() -> bytes:
    """The 16 bytes with which this process hashes the tables of grammars it compiles; drawn at random at first use."""

def offer_seed(seed: bytes) -> bool:
    """Makes an earlier process's seed that of this one, if it has none yet; says whether it is that now.

    Constraints of one seed share the context-independent tokens of a vocabulary. ValueError if it has not 16 bytes.
    """

class Vocabulary:
    """A tokenizer's tokens as a byte trie, with the masks that all grammars share."""

    def __init__(
        self,
        tokens: list[bytes],
        special: Sequence[int],
        eos: Sequence[int],
        names: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        """``tokens[i]`` are the bytes of token i, empty if it has no text; ids in ``special`` and ``eos`` have none.

        ``names``: of special tokens, by which grammars may ask for them. Raises ValueError for ids outside of
        ``tokens``, and for names of others than ``special``.
        """

    @property
    def n_vocab(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def token_bytes(self, token_id: int) -> bytes: ...
    def knows(self, token: bytes) -> bool:
        """Whether some token is read as these bytes."""

    def description(self) -> bytes:
        """All that tells this vocabulary from others."""

    def store(self) -> bytes:
        """The context-independent tokens that grammars share, for ``restore``."""

    def restore(self, stored: Buffer) -> None:
        """Keeps stored context-independent tokens of an equal vocabulary, while there is room.

        ``stored`` must begin at a multiple of 8 and be whole, as checksum tells. Raises StorageError otherwise.
        """

class CompiledGrammar:
    """The automaton of a grammar over a vocabulary, built as it is used; safe to share between threads."""

    def __init__(
        self, grammar: Grammar, vocabulary: Vocabulary, memory_limit: int = ..., limits: dict[str, int] = ...
    ) -> None:
        """``memory_limit``: bytes its tables may take before they are built anew from what is in use.

        ``limits``: other values than the kernel's for what a text may meet, by name; for tests. ValueError for a name
        that is none of these.

        Raises GrammarError (malformed, generates nothing, lexemes that cannot be told apart) or LimitError.
        """

    @staticmethod
    def restore(stored: Buffer, vocabulary: Vocabulary, memory_limit: int = ...) -> CompiledGrammar:
        """What ``store`` of the same build returned, in some process, for an equal vocabulary.

        ``stored`` must begin at a multiple of 8 and be whole, as ``checksum`` tells. Raises StorageError otherwise.
        """

    def precompute(self, max_masks: int, max_bytes: int) -> int:
        """Computes masks along texts as they are mostly written; returns how many places were met.

        Ends when these are ``max_masks``, when the tables take ``max_bytes``, or when there is nothing else to meet.
        """

    def store(self) -> bytes:
        """The grammar with its tables and the masks met so far."""

    @property
    def n_words(self) -> int:
        """32-bit words of a bitmask."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of grammar and tables, as of the last mask that was computed. Takes no lock."""

    def accepts(self, text: bytes) -> bool: ...
    def stats(self) -> dict[str, int]: ...

class Matcher:
    """One sequence's place in a compiled grammar. Not to be used by two threads at once."""

    @overload
    def __init__(
        self,
        grammar: CompiledGrammar,
        max_tokens: int | None = None,
        lexeme_limits: Sequence[int | None] = (),
    ) -> None:
        """``lexeme_limits``: tokens after which a lexeme is brought to its end, by ``Terminal.kind``.

        Raises BudgetError if no text is known that takes at most ``max_tokens``.
        """

    @overload
    def __init__(self, grammar: Matcher) -> None: ...
    def fill_bitmask(self, bitmask: Buffer) -> None: ...
    def fill_candidates(self, logits: Buffer, candidates: Buffer) -> int: ...
    def accept(self, token_id: int) -> bool: ...
    def accept_many(self, token_ids: Sequence[int]) -> int: ...
    def rollback(self, count: int) -> None: ...
    def reset(self) -> None: ...
    def shortest_completion(self) -> bytes: ...
    def completion_tokens(self) -> list[int]: ...
    def forced_bytes(self) -> bytes: ...
    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:
        """(forced bytes, open starts), for the end ``before`` of what was accepted; a start is an offset into both.

        A token may begin at an open start that goes on beyond the end of the forced bytes. These end with a whole
        UTF-8 character. No starts if nothing is forced.
        """

    @property
    def knows_mask(self) -> bool:
        """Is the mask here known, so that the next ``fill_...`` only looks it up?"""

    @property
    def is_quick(self) -> bool:
        """Will the next ``fill_...`` and ``accept`` only look things up?"""

    @property
    def is_in_use(self) -> bool:
        """Would a call have to wait for another thread, which uses the same grammar?"""

    def compute_mask(self) -> None:
        """Computes the mask here, if it is not known, without the GIL."""

    def diagnose(self, token_id: int) -> tuple[bool, bool, bool, tuple[str, ...], int, list[int]]:
        """Whether a token is allowed, and why it is not.

        (allowed, failed at the end of the text, left out by the limit of a lexeme, limits of the kernel that the mask
        met if the token is not in it, byte offset of the failure, terminals that were expected). A token that a limit
        or the budget leaves out is allowed all the same.
        """

    @property
    def n_accepted(self) -> int: ...
    @property
    def is_accepting(self) -> bool: ...
    @property
    def is_finished(self) -> bool: ...
    @property
    def is_narrowed(self) -> bool: ...
    @property
    def is_narrowed_by_budget(self) -> bool: ...
    @property
    def n_shortened(self) -> int: ...
    @property
    def limited_masks(self) -> int: ...
    @property
    def limits_met(self) -> tuple[str, ...]: ...
    @property
    def min_tokens_left(self) -> int: ...
