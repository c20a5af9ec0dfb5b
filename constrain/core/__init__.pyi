"""The native kernel. Private: use ``constrain.compile`` and ``constrain.Vocabulary``."""

from collections.abc import Sequence

from typing_extensions import Buffer

from constrain.grammar import Grammar
from constrain.regex.tree import Expression

__all__ = [
    "Allowance",
    "CompiledGrammar",
    "Matcher",
    "Vocabulary",
    "has_endless_matches",
    "is_empty",
    "list_matches",
    "matches",
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

class Vocabulary:
    """A tokenizer's tokens as a byte trie, with the masks that all grammars share."""

    def __init__(self, tokens: list[bytes], special: Sequence[int], eos: Sequence[int]) -> None:
        """``tokens[i]`` are the bytes of token i, empty if it has no text; ids in ``special`` and ``eos`` have none.

        Raises ValueError for ids outside of ``tokens``.
        """

    @property
    def n_vocab(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def token_bytes(self, token_id: int) -> bytes: ...

class CompiledGrammar:
    """The automaton of a grammar over a vocabulary, built as it is used; safe to share between threads."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, memory_limit: int = ...) -> None:
        """``memory_limit``: bytes its tables may take before they are built anew from what is in use.

        Raises GrammarError (malformed, generates nothing, lexemes that cannot be told apart) or LimitError.
        """

    @property
    def n_words(self) -> int:
        """32-bit words of a bitmask."""

    def accepts(self, text: bytes) -> bool: ...
    def stats(self) -> dict[str, int]: ...

class Matcher:
    """One sequence's place in a compiled grammar. Not to be used by two threads at once."""

    def __init__(self, grammar: CompiledGrammar | Matcher) -> None: ...
    def fill_bitmask(self, bitmask: Buffer) -> None: ...
    def fill_candidates(self, logits: Buffer, candidates: Buffer) -> int: ...
    def accept(self, token_id: int) -> bool: ...
    def accept_many(self, token_ids: Sequence[int]) -> int: ...
    def rollback(self, count: int) -> None: ...
    def reset(self) -> None: ...
    def shortest_completion(self) -> bytes: ...
    def forced_bytes(self) -> bytes: ...
    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:
        """(forced bytes, open starts), for the end ``before`` of what was accepted; a start is an offset into both.

        A token may begin at an open start that goes on beyond the end of the forced bytes. These end with a whole
        UTF-8 character. No starts if nothing is forced.
        """

    @property
    def knows_mask(self) -> bool:
        """Is the mask here known, so that the next ``fill_...`` only looks it up?"""

    def compute_mask(self) -> None:
        """Computes the mask here, if it is not known, without the GIL."""

    def diagnose(self, token_id: int) -> tuple[bool, bool, int, list[int]]:
        """(allowed, failed at the end of the text, byte offset of the failure, terminals expected there)."""

    @property
    def n_accepted(self) -> int: ...
    @property
    def is_accepting(self) -> bool: ...
    @property
    def is_finished(self) -> bool: ...
    @property
    def min_tokens_left(self) -> int: ...
