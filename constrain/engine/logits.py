"""Logits processors: a constraint in the decode loops of llama-cpp-python and of Hugging Face transformers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from constrain.arguments import integer
from constrain.engine.torch_masks import apply_token_bitmask
from constrain.errors import ConstrainError
from constrain.notebooks import one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.vocabulary.vocabulary import Vocabulary


class Following(Protocol):
    """The part of a ``Matcher`` that a logits processor needs."""

    def fill_bitmask(self, row: Any, /) -> object:
        """Writes the mask of the tokens that may come next."""

    def accept(self, token_id: int) -> bool:
        """Moves past a token; returns ``False`` if it is not allowed."""

    def explain(self, token_id: int) -> str:
        """Says why a token may not come next."""


class Masking(Protocol):
    """The part of a ``Constraint`` that a logits processor needs."""

    vocabulary: Vocabulary

    def matcher(self) -> Following:
        """Makes a matcher for one generation."""

    def allocate_bitmask(self) -> NDArray[np.uint32]:
        """Allocates one mask."""


@dataclass
class LogitsProcessor:
    """Sets the logits of tokens that a constraint does not allow to minus infinity, in somebody else's decode loop.

    llama-cpp-python and transformers call it with all token ids so far and the next logits. A processor follows one
    sequence; ``constrain.integrations.transformers`` has one for batches and beam search.

    Args:
        constraint: a ``Constraint``.
    """

    constraint: Masking
    _matcher: Following = field(init=False)
    _seen: int | None = field(init=False, default=None)

    __repr__ = one_line

    def __post_init__(self) -> None:
        self._matcher = self.constraint.matcher()
        self._row = self.constraint.allocate_bitmask()[0]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns the scores with minus infinity for each token that the constraint does not allow.

        Args:
            input_ids: all tokens so far, the prompt included; shape (n,), or (1, n) as transformers passes them.
            scores: floats, a NumPy array or a torch tensor; shape (V,) or (1, V). V is at least ``n_vocab``: a model
                may have more logits than tokens, and the logits beyond the vocabulary are masked.

        Returns:
            A new array or tensor with the shape, type and device of ``scores``.

        Raises ``ValueError`` for other shapes, ``TypeError`` for scores that are not floats or tokens that are not
        integers, and ``ConstrainError`` if the tokens are not one generation under this processor's masks.
        """
        if not _is_tensor(scores):
            scores = np.asarray(scores)
        self._check(scores)
        self._follow(_one_sequence(input_ids))
        self._matcher.fill_bitmask(self._row)
        if not self._row.any():
            raise ConstrainError(
                f"one of the end-of-generation tokens {sorted(self.constraint.vocabulary.eos)} ended the text, "
                f"but the generation went on; it must stop at these tokens, too"
            )
        if _is_tensor(scores):
            import torch

            bitmask = torch.from_numpy(self._row.view(np.int32))
            return apply_token_bitmask(scores, bitmask.expand(*scores.shape[:-1], -1))
        masked = np.unpackbits(self._row.view(np.uint8), count=scores.shape[-1], bitorder="little") == 0
        return np.where(masked, scores.dtype.type("-inf"), scores)

    def _check(self, scores: Any) -> None:
        shape, n_vocab = tuple(scores.shape), self.constraint.vocabulary.n_vocab
        if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != 1):
            raise ValueError(
                f"scores have the shape {shape}, but a logits processor follows one sequence: "
                f"pass the shape ({n_vocab},) or (1, {n_vocab}); for batches in generate of transformers, take "
                f"constrain.integrations.transformers.logits_processor"
            )
        require_scores(scores, n_vocab)

    def _follow(self, tokens: Any) -> None:
        """Feeds the matcher the tokens since the last call."""
        count = len(tokens)
        if self._seen is None:  # in the first call all tokens are the prompt
            self._seen = count
        if count < self._seen:
            raise ConstrainError(
                f"input_ids has {count} tokens after {self._seen} before; a logits processor follows one generation, "
                f"so make a new one with constraint.logits_processor()"
            )
        for token in (integer("a token of input_ids", token) for token in tokens[self._seen :]):
            if not self._matcher.accept(token):
                raise ConstrainError(f"the generation left the language: {self._matcher.explain(token)}")
        self._seen = count


def require_scores(scores: Any, n_vocab: int) -> None:
    """Raises ``ValueError`` for fewer logits than tokens, ``TypeError`` for logits that are not floats."""
    width = scores.shape[-1]
    if width < n_vocab:
        raise ValueError(
            f"scores have {width} logits, but the vocabulary of the constraint has {n_vocab} tokens; "
            f"compile the constraint for the vocabulary of this model"
        )
    if not (scores.is_floating_point() if _is_tensor(scores) else scores.dtype.kind == "f"):
        raise TypeError(f"scores are {scores.dtype}; they must be floats, since masked ones are minus infinity")


def _is_tensor(scores: Any) -> bool:
    """Whether scores are a torch tensor, without an import of torch."""
    return hasattr(scores, "masked_fill")


def _one_sequence(input_ids: Any) -> Any:
    """The tokens of the one sequence. Raises ``ValueError`` if there is not exactly one."""
    if not hasattr(input_ids, "shape"):
        input_ids = np.asarray(input_ids)
    shape = tuple(input_ids.shape)
    sequence = input_ids[0] if len(shape) == 2 and shape[0] == 1 else input_ids
    if len(sequence.shape) != 1:
        raise ValueError(f"input_ids have the shape {shape}; a logits processor follows one sequence: (n,) or (1, n)")
    return sequence
