"""A logits processor for mlx-lm: its loops for one sequence and for batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.arguments import wrong_type
from constrain.engine.constraint import Constraint
from constrain.errors import ConstrainError
from constrain.integrations.rows import Row

if TYPE_CHECKING:
    from constrain.engine.constraint import Matcher
    from constrain.vocabulary.vocabulary import Vocabulary


def logits_processor(
    constraint: Constraint,
    *,
    max_tokens: int | None = None,
    max_string_tokens: int | None = None,
    max_number_tokens: int | None = None,
    max_reasoning_tokens: int | None = None,
) -> SequenceLogitsProcessor:
    """Makes a logits processor for one sequence of mlx-lm.

    For a batch (``BatchGenerator``), make one for each sequence.

    Args:
        constraint: compiled for ``Vocabulary.from_transformers(tokenizer)``, where ``tokenizer`` is the one of
            transformers.
        max_tokens: the same as for the loop. The answer is then complete within so many tokens; without it, the loop
            may cut the answer.
        max_string_tokens: soft limit on the tokens of a string, as for ``Constraint.matcher``; the other two likewise.
        max_number_tokens: soft limit on the tokens of a number.
        max_reasoning_tokens: soft limit on the tokens of a reasoning section.

    Raises ``BudgetError`` if no answer fits into ``max_tokens``, ``TypeError`` if ``constraint`` is no ``Constraint``.

    >>> # generate_step(prompt, model, max_tokens=200, logits_processors=[logits_processor(one, max_tokens=200)])
    """
    if not isinstance(constraint, Constraint):
        raise wrong_type("constraint", "a Constraint", constraint)
    matcher = constraint.matcher(
        max_tokens,
        max_string_tokens=max_string_tokens,
        max_number_tokens=max_number_tokens,
        max_reasoning_tokens=max_reasoning_tokens,
    )
    return SequenceLogitsProcessor(matcher, constraint.vocabulary)


class SequenceLogitsProcessor:
    """Sets the logits of tokens that a constraint does not allow to minus infinity.

    ``logits_processor`` makes one; the loops of mlx-lm call it. It serves one sequence.
    """

    def __init__(self, matcher: Matcher, vocabulary: Vocabulary) -> None:
        """``matcher``: at the beginning of the answer."""
        self._row = Row(matcher)
        self._vocabulary = vocabulary
        self._mask: Any = np.zeros(-(-vocabulary.n_vocab // 32), np.uint32)
        self._prompt: int | None = None

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Returns the logits with minus infinity for each token that the constraint does not allow.

        Args:
            tokens: an array of all tokens so far; shape (n,). In the first call all tokens are the prompt, or its end.
            logits: an array of floats; shape (1, V). V is at least ``n_vocab``: a model may have more logits than
                tokens, and the logits beyond the vocabulary are masked.

        Returns:
            A new array with the shape and type of ``logits``. After the end of the answer, which the loops see one step
            later, ends of generation are allowed only.

        Raises ``ValueError`` for other shapes, and ``ConstrainError`` if the tokens are not those of one answer under
        these masks.
        """
        import mlx.core as mx

        n_vocab = self._vocabulary.n_vocab
        if tokens.ndim != 1 or logits.ndim != 2 or logits.shape[0] != 1 or logits.shape[1] < n_vocab:
            raise ValueError(
                f"tokens have the shape {tuple(tokens.shape)} and logits {tuple(logits.shape)}; they must be (n,) and "
                f"(1, V), with V at least {n_vocab}: make one processor for each sequence of a batch"
            )
        self._follow(tokens)
        self._fill()
        words = mx.array(self._mask)
        bits = mx.right_shift(mx.expand_dims(words, -1), mx.arange(32, dtype=mx.uint32)) & 1
        allowed = bits.reshape(-1).astype(mx.bool_)
        beyond = logits.shape[1] - allowed.size
        if beyond > 0:
            allowed = mx.concatenate([allowed, mx.zeros((beyond,), mx.bool_)])
        return mx.where(allowed[: logits.shape[1]], logits, mx.array(float("-inf"), logits.dtype))

    def _follow(self, tokens: Any) -> None:
        """Moves to the end of the answer. Raises ``ConstrainError`` if it left the language."""
        if self._prompt is None:
            self._prompt = tokens.size
        if tokens.size < self._prompt:
            raise ConstrainError(
                f"there are {tokens.size} tokens after {self._prompt} before; a logits processor follows one sequence, "
                f"so make a new one with constrain.integrations.mlx.logits_processor"
            )
        self._row.follow(tokens[self._prompt :].tolist())
        if self._row.refused is not None:
            raise ConstrainError(f"the generation left the language: {self._row.why_refused()}")

    def _fill(self) -> None:
        """Writes the mask of the next token."""
        if not self._row.has_ended:
            self._row.matcher.fill_bitmask(self._mask)
            return
        self._mask[:] = 0
        for token in self._vocabulary.eos:
            self._mask[token // 32] |= np.uint32(1 << token % 32)
