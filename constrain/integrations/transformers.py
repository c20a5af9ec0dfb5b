"""A logits processor for ``generate`` of Hugging Face transformers: batches, several answers, and beam search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.arguments import integer, wrong_type
from constrain.engine.constraint import Constraint
from constrain.engine.logits import require_scores
from constrain.engine.torch_masks import mask_rows
from constrain.errors import ConstrainError
from constrain.integrations.rows import Row, move_rows

if TYPE_CHECKING:
    from constrain.engine.constraint import Matcher
    from constrain.vocabulary.vocabulary import Vocabulary


def logits_processor(
    constraints: Constraint | Sequence[Constraint | None],
    *,
    max_new_tokens: int | None = None,
    num_beams: int = 1,
    max_string_tokens: int | None = None,
    max_number_tokens: int | None = None,
    max_reasoning_tokens: int | None = None,
) -> BatchLogitsProcessor:
    """Makes a logits processor for one call of ``model.generate`` of transformers.

    Args:
        constraints: one for all prompts, or one for each prompt of the batch, ``None`` for a prompt whose answer is
            free. All are compiled for one vocabulary: ``Vocabulary.from_transformers(tokenizer)``.
        max_new_tokens: the same as for ``generate``. Each answer is then complete within so many tokens; without it,
            ``generate`` may cut answers.
        num_beams: the same as for ``generate``.
        max_string_tokens: soft limit on the tokens of a string, as for ``Constraint.matcher``; the other two likewise.
        max_number_tokens: soft limit on the tokens of a number.
        max_reasoning_tokens: soft limit on the tokens of a reasoning section.

    Raises ``BudgetError`` if no answer fits into ``max_new_tokens``, ``ValueError`` for constraints of
    different vocabularies, ``TypeError`` for other objects.

    >>> # model.generate(**inputs, max_new_tokens=200, logits_processor=[logits_processor(one, max_new_tokens=200)])
    """
    for_all = isinstance(constraints, Constraint)
    given: list[Constraint | None] = [constraints] if isinstance(constraints, Constraint) else _listed(constraints)
    vocabulary = _one_vocabulary(given)
    beams = integer("num_beams", num_beams)
    if beams < 1:
        raise ValueError(f"num_beams is {beams}; it must be 1 or more")

    def matcher_of(constraint: Constraint) -> Matcher:
        return constraint.matcher(
            max_new_tokens,
            max_string_tokens=max_string_tokens,
            max_number_tokens=max_number_tokens,
            max_reasoning_tokens=max_reasoning_tokens,
        )

    starts = [None if constraint is None else matcher_of(constraint) for constraint in given]
    return BatchLogitsProcessor(starts, vocabulary, for_all=for_all, num_beams=beams)


class BatchLogitsProcessor:
    """Sets the logits of tokens that the constraint of a row does not allow to minus infinity.

    ``logits_processor`` makes one; ``generate`` calls it. It serves one call of ``generate``.
    """

    def __init__(
        self, starts: Sequence[Matcher | None], vocabulary: Vocabulary, *, for_all: bool, num_beams: int
    ) -> None:
        """``starts``: a matcher at the beginning for each prompt, or one for all prompts."""
        self._starts = starts
        self._vocabulary = vocabulary
        self._for_all = for_all
        self._num_beams = num_beams
        self._rows: list[Row | None] = []
        self._prompts: Any = None
        self._masks: Any = None
        self._own: list[Any] = []  # of each row, the words of tokens in the vocabulary
        self._is_whole: list[bool] = []  # of each row, whether all bits of its mask are 1

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns the scores with minus infinity for each token that the constraint of its row does not allow.

        Args:
            input_ids: a tensor of all tokens so far, the prompts with their padding included; shape (rows, n). In the
                first call all tokens are prompts.
            scores: a tensor of floats, shape (rows, V), on any device. V is at least ``n_vocab``: a model may have more
                logits than tokens, and the logits beyond the vocabulary are masked.

        Returns:
            A new tensor with the shape, type and device of ``scores``. A row whose answer has ended has its ends of
            generation only.

        Raises ``ValueError`` for other shapes, ``TypeError`` for scores that are not floats, and ``ConstrainError`` if
        the tokens are not those of one ``generate`` under these masks.
        """
        if not hasattr(scores, "masked_fill"):
            raise wrong_type("scores", "a torch tensor", scores)
        if len(scores.shape) != 2 or len(input_ids.shape) != 2 or len(input_ids) != len(scores):
            raise ValueError(
                f"input_ids have the shape {tuple(input_ids.shape)} and scores {tuple(scores.shape)}; they must be "
                f"(rows, tokens) and (rows, logits)"
            )
        require_scores(scores, self._vocabulary.n_vocab)
        if self._prompts is None:
            self._begin(input_ids, width=scores.shape[-1])
        self._rows = move_rows(self._rows, self._answers(input_ids))
        self._require_allowed()
        return self._mask(scores)

    def _begin(self, input_ids: Any, *, width: int) -> None:
        """Makes the rows of the batch; ``generate`` repeats each prompt for its beams and answers."""
        count = len(input_ids)
        repeats, left = divmod(count, len(self._starts))
        if left or repeats % self._num_beams:
            beams = f" of {self._num_beams} beams each" if self._num_beams > 1 else ""
            raise ValueError(
                f"the batch has {count} rows, which do not fit {len(self._starts)} constraints{beams}: pass one "
                f"constraint for all prompts, or one for each prompt"
            )
        if not self._for_all:
            groups = input_ids.reshape(len(self._starts), repeats, -1)
            if not groups.eq(groups[:, :1]).all():
                raise ValueError(
                    f"there are {len(self._starts)} constraints for more prompts in {count} rows: pass one constraint "
                    f"for all prompts, or one for each prompt"
                )
        starts = [self._starts[row // repeats] for row in range(count)]
        self._rows = [None if start is None else Row(start.fork()) for start in starts]
        self._prompts = input_ids.clone()
        self._masks = np.zeros((count, -(-width // 32)), np.int32)
        words = -(-self._vocabulary.n_vocab // 32)
        self._is_whole = [False] * count
        self._own = [mask[:words].view(np.uint32) for mask in self._masks]

    def _answers(self, input_ids: Any) -> list[list[int]]:
        """The tokens of each row after its prompt. Raises ``ConstrainError`` if the prompts are others."""
        length = self._prompts.shape[1]
        if not input_ids[:, :length].equal(self._prompts):
            raise ConstrainError(
                "input_ids do not begin with the prompts of the first call; a logits processor follows one call of "
                "generate, so make a new one with constrain.integrations.transformers.logits_processor"
            )
        answers: list[list[int]] = input_ids[:, length:].tolist()
        return answers

    def _require_allowed(self) -> None:
        """Raises ``ConstrainError`` if a row left its language, or tokens follow the ends of all rows.

        Guesses of speculative decoding may have an end as their last token, so an end alone is no error.
        Where fewer tokens are allowed than there are beams, beam search goes on with tokens of the score minus
        infinity. The score of such a beam never changes again.
        """
        for place, row in enumerate(self._rows):
            if row is not None and row.refused is not None and self._num_beams == 1:
                raise ConstrainError(
                    f"row {place}: the generation left the language: {row.why_refused()}. Other stopping criteria "
                    f"(stop_strings, max_time) and processors must not end an answer; with beam search, pass num_beams"
                )
        if all(row is not None and row.refused is None and row.goes_on_after_end for row in self._rows):
            raise ConstrainError(
                f"all answers have ended, but the generation goes on; it must stop at the end-of-generation tokens "
                f"{list(self._vocabulary.eos)}, too (eos_token_id)"
            )

    def _mask(self, scores: Any) -> Any:
        import torch

        for place, (row, own) in enumerate(zip(self._rows, self._own, strict=True)):
            if row is None or row.refused is not None:
                self._masks[place] = -1
                self._is_whole[place] = True
                continue
            if self._is_whole[place]:  # a refused beam, whose place another one has now
                self._masks[place] = 0
                self._is_whole[place] = False
            if row.has_ended:
                own[:] = 0
                for token in self._vocabulary.eos:
                    own[token // 32] |= np.uint32(1 << token % 32)
            else:
                row.matcher.fill_bitmask(own)
        masked, empty = mask_rows(scores, torch.from_numpy(self._masks))
        if empty is not None:
            raise ConstrainError(
                f"row {empty}: no token is left: other logits processors (min_new_tokens, "
                f"suppress_tokens, bad_words_ids) have removed all tokens that the constraint allows"
            )
        return masked


def _listed(constraints: object) -> list[Constraint | None]:
    if not isinstance(constraints, Sequence):
        raise wrong_type("constraints", "a Constraint or a list of them", constraints)
    for each in constraints:
        if each is not None and not isinstance(each, Constraint):
            raise wrong_type("each of the constraints", "a Constraint or None", each)
    return list(constraints)


def _one_vocabulary(constraints: Sequence[Constraint | None]) -> Vocabulary:
    """The vocabulary of all constraints. Raises ``ValueError`` if there is none, or several."""
    vocabularies = [constraint.vocabulary for constraint in constraints if constraint is not None]
    if not vocabularies:
        raise ValueError("there is no constraint")
    first = vocabularies[0]
    for other in vocabularies:
        if other is not first and other.fingerprint != first.fingerprint:
            raise ValueError("the constraints were compiled for different vocabularies; compile them for one")
    return first
