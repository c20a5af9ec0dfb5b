"""``StagedMatcher``: goes on in another grammar when a value is complete (``constrain/language/stages.py``).

Masks and ``accept`` agree: where a token contains the end of such a value and more, and the grammar that takes over
refuses what is behind the value, the mask does not have the token.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from constrain import kernel
from constrain.engine.constraint import Matcher
from constrain.errors import BudgetError, deep_enough
from constrain.vocabulary.vocabulary import byte_vocabulary
from constrain.work import compilation

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from constrain.engine.constraint import Constraint
    from constrain.language.stages import Stage, Stages
    from constrain.vocabulary.vocabulary import Vocabulary

_SEAM_TOKENS = 3
"""Tokens that a text may take in another place beyond those of the first: there, its ends may be parts of tokens."""

_RESERVE = 8
"""Tokens of a budget that are kept for grammars of further stages in which only a longer way to the end is found."""

_KEPT_STAGES = 256
_KEPT_BYTES = 16 << 20
"""Grammars of further stages that a constraint keeps, and bytes of their tables; the latest is kept in any case."""

_MASK_SHARE = 20
"""Times the steps of one stage that all stages of one mask may take: each token that ends a value may need another."""

_ENDS = re.compile(rb'.*[",\]}]|\s+$', re.DOTALL)
"""Beginnings of tokens in which a value may end: a string at its quote, a number at what stands behind it."""

_ending: WeakKeyDictionary[Vocabulary, NDArray[np.bool_]] = WeakKeyDictionary()


class Staged:
    """The stages of one constraint, and their compiled grammars, of which the latest are kept.

    ``most_steps``: of the compilation of one of them, beyond which it ends with ``LimitError``; ``None`` for
    ``MAX_COMPILE_WORK``, and no limit for those of a mask together.
    """

    def __init__(self, constraint: Constraint, stages: Stages) -> None:
        self.stages = stages
        self.most_steps: int | None = None
        self._constraint = constraint
        self._known: OrderedDict[Hashable, kernel.CompiledGrammar] = OrderedDict()
        self._of_bytes: Constraint | None = None

    def matcher(self, max_tokens: int | None, lexeme_limits: Sequence[int | None]) -> StagedMatcher:
        """Returns a matcher at the beginning of a text; for its limits see ``Constraint.matcher``."""
        return StagedMatcher(self._constraint, self, max_tokens=max_tokens, lexeme_limits=lexeme_limits)

    def of(self, stage: Stage) -> kernel.CompiledGrammar:
        """Returns the grammar in force, for the vocabulary."""
        core = self._known.get(stage.key)
        if core is None:
            with deep_enough(), compilation(self.most_steps):
                core = self._constraint._compiled(stage.emitted())
            self._known[stage.key] = core
            while len(self._known) > _KEPT_STAGES or (self.memory_bytes > _KEPT_BYTES and len(self._known) > 1):
                self._known.popitem(last=False)
        return core

    def for_one_mask(self) -> AbstractContextManager[None]:
        """Returns a context in which all compilations together have the steps of one mask."""
        return nullcontext() if self.most_steps is None else compilation(_MASK_SHARE * self.most_steps)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the tables of the grammars that are kept."""
        return sum(core.memory_bytes for core in list(self._known.values()))

    def settled(self, text: bytes) -> Constraint:
        """Returns a constraint without stages that has a finished text if this one does; for proofs."""
        with deep_enough(), compilation():
            grammar = self.stages.settled(text)
            made = self._constraint
            return type(made)(grammar, made.vocabulary, made.policies, made.warnings)

    def accepts(self, text: bytes) -> bool:
        """Returns whether the whole text matches: each byte has to follow in the grammar that is in force then."""
        if self._of_bytes is None:
            vocabulary = byte_vocabulary()
            self._of_bytes = type(self._constraint)(self._constraint.grammar, vocabulary, {}, ())
            self._of_bytes.staged = Staged(self._of_bytes, self.stages)
        matcher = self._of_bytes.matcher()
        return matcher.accept_many(list(text)) == len(text) and matcher.is_accepting


class StagedMatcher(Matcher):
    """A matcher for a constraint with stages; one token of a text may end a stage, and later ones depend on its value.

    Invariant: ``_read`` has the stage after each number of tokens; ``_before`` the matchers of earlier stages, each at
    its end, in front of the token that ended it.
    """

    __slots__ = ("_before", "_limits", "_read", "_reserve", "_staged")

    def __init__(
        self,
        constraint: Constraint,
        staged: Staged,
        state: StagedMatcher | None = None,
        *,
        max_tokens: int | None = None,
        lexeme_limits: Sequence[int | None] = (),
    ) -> None:
        reserve = _RESERVE if staged.stages.begin().may_refuse else 0
        try:
            most = None if max_tokens is None else max(0, max_tokens - reserve)
            super().__init__(constraint, state, max_tokens=most, lexeme_limits=lexeme_limits)
        except BudgetError as error:
            needed = error.needed + reserve
            message = f"max_tokens is {max_tokens}, but the shortest text known takes {needed} tokens"
            raise BudgetError(message, needed=needed) from None
        self._staged = staged
        self._reserve = reserve
        self._limits: tuple[int | None, tuple[int | None, ...]] = max_tokens, tuple(lexeme_limits)
        self._read = [staged.stages.begin()]
        self._before: list[tuple[int, kernel.Matcher, int]] = []
        if state is not None:
            self._limits, self._read, self._before = state._limits, list(state._read), list(state._before)
            self._reserve = state._reserve
        elif self._read[0].repeats:
            self._change(self._read[0])

    def fork(self) -> StagedMatcher:
        """Returns an independent matcher at the same position, with the same limits and budget."""
        return StagedMatcher(self.constraint, self._staged, self)

    def accept(self, token_id: int) -> bool:
        """Takes an allowed token and moves on. For any other token, returns False and changes nothing."""
        stage, reserve = self._read[-1], self._reserve
        if not super().accept(token_id):
            return False
        after = stage.read(self.constraint.vocabulary.token_bytes(token_id))
        if after.key != stage.key or (after.repeats, after.begun) != (stage.repeats, stage.begun):
            before = kernel.Matcher(self)
            before.rollback(1)
            is_refused = stage.may_refuse and not self._allow_between(stage, token_id, after)
            if is_refused or (not self._change(after) and stage.may_refuse):
                # Otherwise the grammar in force stays: it has a known way to the end within the budget, and no text
                # that the next one refuses, for which the kernel may find only a longer way.
                self._become(before)
                return False
            self._before.append((before.n_accepted, before, reserve))
        self._read.append(after)
        return True

    def _allow_between(self, stage: Stage, token: int, after: Stage) -> bool:
        """Returns whether the text is allowed by the grammars of all stages that begin and end within a token.

        Each takes what comes behind its own end for the worst case, so it may refuse a text that later ones allow.
        """
        for byte in self.constraint.vocabulary.token_bytes(token):
            begun, stage = stage, stage.read(bytes([byte]))
            if stage.key not in (begun.key, after.key):
                between = kernel.Matcher(self)
                if not between._change_to(self._staged.of(stage), None, list(self._limits[1])):
                    return False
        return True

    def _change(self, stage: Stage) -> bool:
        """Goes on in the grammar of a stage; False if that refuses the text."""
        if self._limits[0] is None:
            return self._change_to(self._staged.of(stage), None, list(self._limits[1]))
        for reserve in range(self._reserve, -1, -2):
            if self._change_within(self._limits[0] - reserve, stage):
                self._reserve = reserve
                return True
        return False

    def _change_within(self, most: int, stage: Stage) -> bool:
        if stage.repeats:
            # of the tokens beyond those of the shortest way, each repetition has its share
            spare = most - self.n_accepted - super().min_tokens_left
            share = max(0, spare - _SEAM_TOKENS * stage.repeats) // (1 + stage.repeats)
            if not share:
                rest = b"".join(map(self.constraint.vocabulary.token_bytes, kernel.Matcher.completion_tokens(self)))
                fixed = stage.fixed(rest)
                if fixed is not None and self._change_to(self._staged.of(fixed), most, list(self._limits[1])):
                    return True
                if stage.is_partly_written:  # with text that costs more elsewhere
                    return False
            most -= spare - share
        return self._change_to(self._staged.of(stage), most, list(self._limits[1]))

    def accept_many(self, token_ids: Sequence[int]) -> int:
        """Takes tokens up to the first that is not allowed; returns the number of tokens taken."""
        for token in token_ids:
            self.constraint.vocabulary.token_bytes(token)  # IndexError
        for number, token in enumerate(token_ids):
            if not self.accept(token):
                return number
        return len(token_ids)

    def rollback(self, count: int) -> None:
        """Takes back the last ``count`` accepted tokens. Raises ValueError if fewer were accepted."""
        left = self.n_accepted - count
        if count < 0 or left < 0:
            super().rollback(count)  # raises
        before = None
        while self._before and self._before[-1][0] >= left:
            _, before, self._reserve = self._before.pop()
        if before is not None:
            self._become(before)
        super().rollback(self.n_accepted - left)
        del self._read[left + 1 :]

    def reset(self) -> None:
        """Takes back all accepted tokens; the limits met so far are forgotten, too."""
        self.rollback(self.n_accepted)
        super().reset()

    def fill_bitmask(self, bitmask: Any, unlimited: bool = False) -> None:  # noqa: FBT001, FBT002
        """Writes the mask of the next token, as ``kernel.Matcher.fill_bitmask``."""
        super().fill_bitmask(bitmask, unlimited)
        if (refused := self._refused()) is not None:
            import numpy as np

            words = np.asarray(bitmask).view(np.uint32).reshape(-1)
            words &= ~np.packbits(refused, bitorder="little").view(np.uint32)[: len(words)]

    def fill_candidates(self, logits: Any, candidates: Any, unlimited: bool = False) -> int:  # noqa: FBT001, FBT002
        """Writes the allowed tokens with their logits, as ``kernel.Matcher.fill_candidates``."""
        count = super().fill_candidates(logits, candidates, unlimited)
        refused = self._refused()
        if refused is None:
            return count
        import numpy as np

        rows = np.frombuffer(candidates, dtype=np.dtype("i4,f4,f4"), count=count)
        left = rows[~refused[rows["f0"]]]
        rows[: len(left)] = left
        return len(left)

    def _refused(self) -> NDArray[np.bool_] | None:
        """The allowed tokens that end a value and go on as the next grammar refuses, by id; None for none."""
        stage = self._read[-1]
        if not stage.may_refuse or self.is_finished:
            return None
        import numpy as np

        vocabulary = self.constraint.vocabulary
        mask = self.constraint.allocate_bitmask()[0]
        super().fill_bitmask(mask)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little").astype(bool)
        found = np.zeros(len(allowed), dtype=bool)
        with self._staged.for_one_mask():
            for token in np.flatnonzero(allowed & _may_end_value(vocabulary, len(allowed))).tolist():
                after = stage.read(vocabulary.token_bytes(token))
                if after.key != stage.key or after.begun != stage.begun:
                    found[token] = not self.fork().accept(token)
        return found if found.any() else None

    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:
        """Returns forced text as ``Matcher`` does; none where a stage would end in it."""
        text, starts = super().forced_after(before)
        stage = self._read[-1]
        return (text, starts) if stage.read(text).key == stage.key else (b"", [])

    def forced_bytes(self) -> bytes:
        """Returns the bytes that must come next, up to the end of the stage."""
        return self._within(super().forced_bytes())

    def _within(self, text: bytes) -> bytes:
        """The beginning of a text up to the byte that ends the stage."""
        stage = self._read[-1]
        if stage.read(text).key == stage.key:
            return text
        for number in range(len(text)):
            after = stage.read(text[number : number + 1])
            if after.key != self._read[-1].key:
                return text[: number + 1]
            stage = after
        return text

    def completion_tokens(self) -> list[int]:
        """Returns tokens that complete the text, no more than are left."""
        ahead = self.fork()
        tokens: list[int] = []
        while wanted := kernel.Matcher.completion_tokens(ahead):
            for token in wanted:
                stage = ahead._read[-1]
                if not ahead.accept(token):  # it goes on behind the end of the stage, in another way than the next one
                    tokens.append(ahead._begin_of(token))
                    break
                tokens.append(token)
                if ahead._read[-1].key != stage.key:
                    break
            else:
                break
        return tokens

    @property
    def min_tokens_left(self) -> int:
        """Number of tokens that are enough to complete the text, those in reserve included."""
        return super().min_tokens_left + (_RESERVE if self._read[-1].may_refuse and self._reserve == _RESERVE else 0)

    def _begin_of(self, token: int) -> int:
        """Takes the longest allowed token with which the text of ``token`` begins, and returns it."""
        text = self.constraint.vocabulary.token_bytes(token)
        for each in reversed(self.constraint.vocabulary._core.beginnings_of(text)):
            if self.accept(each):
                return each
        raise AssertionError(f"no token begins the text {text!r} of the completion")

    def shortest_completion(self) -> bytes:
        """Returns the text of ``completion_tokens``."""
        return b"".join(map(self.constraint.vocabulary.token_bytes, self.completion_tokens()))


def _may_end_value(vocabulary: Vocabulary, size: int) -> NDArray[np.bool_]:
    """The tokens in which a value may end, by id; bool of shape (size,)."""
    known = _ending.get(vocabulary)
    if known is None:
        import numpy as np

        known = np.zeros(size, dtype=bool)
        for token in range(vocabulary.n_vocab):
            known[token] = _ENDS.match(vocabulary.token_bytes(token)) is not None
        _ending[vocabulary] = known
    return known
