"""``AnswerMatcher``: the position in a language, as an answer and its draft use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class AnswerMatcher(Protocol):
    """The part of ``constrain.Matcher`` that an answer needs."""

    @property
    def is_finished(self) -> bool:
        """Whether no token can follow."""

    def fill_candidates(self, logits: Any, out: Any, unlimited: bool = False, /) -> int:  # noqa: FBT001, FBT002
        """Writes the allowed tokens with their logits into ``out`` (``CANDIDATE``), by id; returns their number.

        ``unlimited``: also those that only the budget or a limit on lexemes leaves out.
        """

    @property
    def lexeme(self) -> tuple[int, bytes, int, int, int | None]:
        """The current lexeme: its ``Kind`` (0: none), shortest end, tokens, offset in the first one, tokens left."""

    @property
    def near_limit(self) -> bool:
        """Whether the budget, or a limit of the lexeme, may narrow one of the next masks."""

    @property
    def n_accepted(self) -> int:
        """Number of accepted tokens, end of generation included."""

    @property
    def is_accepting(self) -> bool:
        """Whether the answer may end here."""

    @property
    def is_cut(self) -> bool:
        """Whether no token of the budget is left, and the answer could go on."""

    def fill_bitmask(self, bitmask: Any, unlimited: bool = False, /) -> None:  # noqa: FBT001, FBT002
        """Writes the allowed tokens into ``bitmask``: uint32 of shape (ceil(n_vocab / 32),), a bit for each.

        ``unlimited``: also those that only the budget or a limit on lexemes leaves out.
        """

    def accept(self, token_id: int, /) -> bool:
        """Moves past a token; ``False`` if it is not allowed."""

    def rollback(self, n: int, /) -> None:
        """Removes the last ``n`` tokens."""

    def accept_many(self, token_ids: Sequence[int], /) -> int:
        """Moves past tokens until one is not allowed; returns how many were accepted."""

    def diagnose(self, token_id: int, /) -> tuple[bool, bool, bool, tuple[str, ...], int, list[int]]:
        """Finds whether a token is allowed, and if not, why; the fourth part has the names of limits that were met."""

    @property
    def min_tokens_left(self) -> int:
        """Number of tokens that ``completion_tokens`` returns."""

    def completion_tokens(self) -> list[int]:
        """Tokens that complete the answer, no more than are left."""

    @property
    def temperature(self) -> float | None:
        """The temperature that the grammar asks for the next token; ``None`` for that of the chain."""

    @property
    def n_shortened(self) -> int:
        """How many strings and numbers have reached their limits."""

    @property
    def limited_masks(self) -> int:
        """How many masks left out tokens because a limit of the kernel was met."""

    @property
    def limits_met(self) -> tuple[str, ...]:
        """The names of the kernel's limits that were met."""

    def forced_after(self, before: bytes, /) -> tuple[bytes, list[int]]:
        """The forced bytes with ``before``, the end of the text so far, and the open starts in both."""

    @property
    def knows_mask(self) -> bool:
        """Whether ``fill_candidates`` only looks up the mask."""

    @property
    def is_quick(self) -> bool:
        """Whether ``fill_candidates`` and ``accept`` only look up tables."""

    @property
    def is_in_use(self) -> bool:
        """Whether a call would have to wait for another thread."""

    def compute_mask(self) -> None:
        """Computes the mask that ``fill_candidates`` needs, if it is not known."""
