"""The course of one answer: which tokens it takes, and when it ends. The caller evaluates the tokens.

    begin --tokens to evaluate with the prompt--> [model] --logits--> choose --tokens to evaluate--> [model] ...
                                                     |                   ^
                                                     +--- prepare -------+    the next mask, while the model computes

Where the grammar leaves only one continuation, forced tokens follow the chosen one (``constrain/engine/forced.py``
finds them). They are not sampled, so biases and penalties do not apply, and all are evaluated together.

A constrained answer always ends: its matcher knows how many tokens are left and allows only tokens after which the
answer can be completed (``Matcher::fill_within_budget`` in kernel/matching/matcher.cpp). Near a limit, the model first
chooses as if there were none; white space between lexemes that does not fit is left out. If the matcher refuses another
token, the answer ends something early instead of taking the next best token, which might continue a word without its
space:

    inside a string of any characters  what is behind its last whole word is taken back, and the string is closed
    where the answer may end           it ends
    inside free text or reasoning      the text is closed
    elsewhere                          the model chooses among the allowed tokens

Tokens of a word that may be taken back are held: streams show them once the word is whole. After a deadline, the
matcher's own completion ends the answer, without evaluation.

A draft may stand before the answer (``draft``). It has its own matcher; when the draft ends, the words that ask for the
answer are evaluated, and the answer begins with the tokens that the draft has left.

Before a choice, further tokens may be evaluated that are no part of the answer (``insert``). They take room in the
context; an answer that would have too little room left goes on without them.

A check may reject what is complete (``check``). The answer then goes back to where that began, and writes something
else (``rejections``).
"""

from __future__ import annotations

import math
import re
import time
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from constrain.engine.forced import certain_tokens
from constrain.errors import BudgetError, LimitError, ModelError
from constrain.kernel import StopTime
from constrain.language.grammar import WORD_TOKENS, Kind
from constrain.llama.decoding.distribution import Distribution
from constrain.llama.decoding.words import find_word_end

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from constrain.llama.binding import Candidates
    from constrain.llama.decoding.answer_matcher import AnswerMatcher
    from constrain.llama.decoding.draft import Draft
    from constrain.llama.decoding.rejections import AnswerCheck
    from constrain.llama.decoding.sampler import Chain

    T = TypeVar("T")
    Questions = Generator[list[list[int]], NDArray[np.float32], T]
    """Yields tokens, from the first one of the prompt on, in groups to be evaluated separately; takes the logits after
    the last one, float32 of shape (n_vocab,)."""

EndedBy = Literal["model", "grammar", "stop", "limit", "context", "timeout"]
"""The cause of an answer's end: the model, which ended it; the grammar, in which nothing can follow; a stop text (or
calls that repeat); ``max_tokens``; the size of the context; a time limit."""

FinishReason = Literal["stop", "length", "timeout"]
"""Why an answer ended, as APIs say it: "stop" by itself or at a stop text; "length" by the token budget; "timeout" by a
time limit."""

_FINISH_REASONS: dict[EndedBy, FinishReason] = {
    "model": "stop",
    "grammar": "stop",
    "stop": "stop",
    "limit": "length",
    "context": "length",
    "timeout": "timeout",
}

_CONTEXT_TOKENS = 8
"""Tokens of text before a forced text with which it is tokenized; tokenizers look no further than a word or so."""

_HELD_BEFORE_END = 24
"""Tokens before the last moment to end a string, from which on words are held until they are whole. A word of more
tokens is cut at the limit."""

_QUOTE = b'"'

_TEXTS = (Kind.STRING, Kind.TEXT, Kind.PROSE, Kind.REASONING)
"""Kinds of lexemes in which white space is a part of the text."""

_BETWEEN_VALUES = re.compile(rb"[\s,:{}\[\]]*|true|false|null")
"""Beginnings of a lexeme after which white space belongs to no value of a JSON text. (It ends a number, too.)"""

_EASY_SECONDS = 0.005
_EASY_CHOICES = 4
"""Number of choices that searched a known mask in less than ``_EASY_SECONDS`` (CPU seconds) each, after which the next
one is expected to be as fast. Choices that only looked up a mask do not count."""


_UNLIMITED = 1 << 30
"""Tokens of a budget that no answer reaches."""


class LogitAdjuster(Protocol):
    """Adjusts the logits until the answer has committed to content or to a call (``chat.answers.call_or_content``)."""

    def allows(self, tokens: Sequence[int], logits: NDArray[np.float32], candidates: NDArray[Any], /) -> bool:
        """Called before each choice; may change the logits of the candidates.

        Returns ``False`` to have the answer remove all tokens in doubt (see ``doubts``) and choose again.
        """

    def doubts(self, token: int, /) -> bool:
        """Called with each chosen token; returns whether the answer may still remove it."""


class TokenObserver:
    """Watches the tokens of one answer, and never changes them. The methods of this base class do nothing.

    Attributes:
        needs_logits: whether the answer calls ``on_token``. The model then computes the logits before forced tokens,
            too, and guesses no tokens.
    """

    needs_logits: ClassVar[bool] = False

    def on_mask(self, allowed: NDArray[Any], distribution: Distribution) -> None:
        """Called before each choice with the allowed tokens and their logits, an array of ``CANDIDATE``.

        Near a limit, one choice may take several masks; the last one counts.
        """

    def on_choice(self, number: int, token: int, distribution: Distribution) -> None:
        """Called after each choice among several tokens; ``number`` is that of the token in the answer.

        Where forced text follows, the tokens that stand there in the end may be others with the same beginning. The
        end of the generation is a choice, too.
        """

    def on_token(self, answer: Answer, number: int, distribution: Distribution) -> None:
        """Called for each token of the answer, in order, with the distribution before it; ``number`` is the token's."""

    def on_cut(self, length: int) -> None:
        """Called when the answer removes all tokens behind the first ``length``, of which some may have been seen."""


def _never(_: int) -> bool:
    return False


def _nothing() -> str:
    return ""


@dataclass(slots=True)
class Answer:
    """The decisions of one sequence.

    Call ``begin`` and evaluate the prompt with the tokens it returns. Then, until ``is_done``, call ``choose`` with the
    logits after the last token (or ``take``, for an answer without matcher), and evaluate the tokens it returns.
    Tokens returned when ``is_done`` becomes true need no evaluation.

    With ``needs_logits``, also call ``score`` with the logits before each ``unscored`` token of the answer, in order,
    even if the answer is done. ``choose`` scores the first of the tokens it returns, if its logits are those before it.

    Args:
        prompt: the tokens of the prompt; only their number matters here.
        chain: chooses among the allowed tokens.
        start: makes the matcher for a number of tokens (``Constraint.matcher``); ``None`` allows any token.
        eos: the tokens that end a generation.
        encode: bytes to tokens, as in ``Vocabulary``.
        token_bytes: the bytes of a token.
        special_tokens: the special tokens that the matcher's grammar may name, as in ``Vocabulary``.
        max_tokens: the most tokens to generate, end of generation not counted; ``None`` for all the context holds. With
            a draft, its tokens count, too.
        deadline: the ``time.monotonic()`` after which the answer is brought to its end.
        max_choice_seconds: CPU seconds all choices may take together, those of a draft excepted; beyond them the answer
            is brought to its end.
        wants_stop: called with each token; ``True`` ends the answer.
        call_or_content: adjusts the logits of early choices; ``None`` leaves them to the chain.
        observers: objects that watch masks, choices and tokens.
        prefix: tokens that the answer begins with, all of which the matcher allows; not with a draft.
        draft: the text before the answer; ``None`` for none. Only for answers with a matcher.
        check: judges what the answer has written; ``None`` to accept everything. Only for answers with a matcher.
        insert: called with the answer's tokens before each choice, if all of them are certain; returns tokens to
            evaluate first, which are no part of the answer. Only for answers with a matcher.
        questions: asks about the finished answer, for ``ask``; ``None`` to ask nothing.
        may_be_cut: whether an answer without room for its structure is empty; otherwise that is an error.
        about_prompt: describes parts of the prompt that are not the caller's text, for the error about a long prompt.

    Attributes:
        matcher: the matcher, once the answer has begun; ``None`` if any token is allowed. That of the draft until the
            draft is done.
        tokens: all tokens of the answer so far, without the end of generation and without the draft.
        n_doubtful: number of last tokens that the answer may still remove.
        n_taken_back: number of tokens that the last choice removed before it took new ones; the caller forgets them
            and evaluates the tokens before them again for their logits.
        needs_logits: whether an observer wants the logits before every token.
        is_done: whether the answer is complete.
        closing: number of the first token that completes the answer after a stop text or a time limit; ``None`` if the
            model ended it.
        ended_by: the cause of the answer's end, once it is done.
        ended_early: places at which a string or another value was ended for want of tokens: number of the token, and
            offset in it.
        n_shortened: how many strings ended at their own limit (``max_string_tokens``).
        is_inserting: whether the last choice returned tokens that are no part of the answer.
        inserted: what ``insert`` wanted: the number of the token in front of which it stands, and its tokens, none if
            there was no room for them.
        limited_masks, limits_met: those of matchers that were replaced; ``matcher`` has its own.
        n_masks, n_computed_masks: number of masks used, and of those that had to be computed.
        mask_seconds: wall-clock time spent on masks.
    """

    prompt: Sequence[int]
    chain: Chain
    start: Callable[[int], AnswerMatcher] | None
    _: KW_ONLY
    eos: Collection[int]
    encode: Callable[[bytes], list[int]]
    token_bytes: Callable[[int], bytes]
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    max_tokens: int | None = None
    deadline: float | None = None
    max_choice_seconds: float = math.inf
    wants_stop: Callable[[int], bool] = _never
    call_or_content: LogitAdjuster | None = None
    observers: Sequence[TokenObserver] = ()
    prefix: Sequence[int] = ()
    draft: Draft | None = None
    insert: Callable[[Sequence[int]], Sequence[int]] | None = None
    check: AnswerCheck | None = None
    may_be_cut: bool = False
    about_prompt: Callable[[], str] = _nothing
    questions: Callable[[], Questions[None]] | None = None

    matcher: AnswerMatcher | None = field(default=None, init=False)
    tokens: list[int] = field(default_factory=list, init=False)
    n_doubtful: int = field(default=0, init=False)
    n_taken_back: int = field(default=0, init=False)
    needs_logits: bool = field(init=False)
    is_done: bool = field(default=False, init=False)
    closing: int | None = field(default=None, init=False)
    ended_by: EndedBy = field(default="model", init=False)
    ended_early: list[tuple[int, int]] = field(default_factory=list, init=False)
    n_shortened: int = field(default=0, init=False)
    is_inserting: bool = field(default=False, init=False)
    inserted: list[tuple[int, tuple[int, ...]]] = field(default_factory=list, init=False)
    limited_masks: int = field(default=0, init=False)
    limits_met: tuple[str, ...] = field(default=(), init=False)
    n_masks: int = field(default=0, init=False)
    n_computed_masks: int = field(default=0, init=False)
    mask_seconds: float = field(default=0.0, init=False)
    _choice_seconds: float = field(default=0.0, init=False)
    _n_easy: int = field(default=0, init=False)
    _limit: int = field(default=0, init=False)
    _went_back: bool = field(default=False, init=False)  # whether the last choice has gone back for the check
    _is_cut: bool = field(default=False, init=False)  # whether the budget refused what the model would have written
    _holds: bool = field(default=False, init=False)  # whether the tokens in doubt are those of a word
    _ending: tuple[bytes, bytes] | None = field(default=None, init=False)  # end of a word, and of its string
    _n_ctx: int = field(default=0, init=False)
    _asking: Questions[None] | None = field(default=None, init=False)
    _stop: StopTime = field(default_factory=StopTime, init=False)  # the deadline, for masks
    _distribution: Distribution = field(init=False)  # before the token that is chosen; only with observers
    _n_scored: int = field(default=0, init=False)  # tokens that the observers have seen

    def __post_init__(self) -> None:
        self.needs_logits = any(each.needs_logits for each in self.observers)

    def begin(self, n_ctx: int) -> tuple[int, ...]:
        """Checks that an answer fits into ``n_ctx`` tokens; returns tokens of it to evaluate with the prompt.

        These are the prefix, and forced tokens behind it. Raises ``ModelError`` if the prompt leaves no room in the
        context, and ``BudgetError`` if the tokens left are too few for any answer.
        """
        self._n_ctx = n_ctx
        if self.deadline is not None:
            self._stop.set(self.deadline - time.monotonic())
        self._limit, name = self._room(n_ctx)
        if len(self.prefix) > self._limit:
            message = f"{name}, but the prefix of the answer alone has {len(self.prefix)} tokens"
            needed = len(self.prefix) if self.start is None else self._needed_with_prefix(self.start)
            raise BudgetError(message, needed=needed)
        if self.start is None:
            return self._begin_free_text()
        if self.draft is not None:
            try:
                self.matcher = self.draft.begin(self._limit, self.start)
            except BudgetError as error:
                raise BudgetError(f"{name}, but {error.message}", needed=error.needed) from None
            return ()
        try:
            self.matcher = self.start(self._limit)
        except BudgetError as error:
            if self.may_be_cut:
                return self._finish(self._budget)
            message = f"{name}, but the shortest answer takes {error.needed} tokens"
            raise BudgetError(message, needed=error.needed) from None
        if self.prefix:
            return self._begin_with_prefix(self.matcher, name)
        return self._follow(self.matcher, self._forced(self.matcher, None))

    def _begin_free_text(self) -> tuple[int, ...]:
        """Takes the prefix of an answer without a matcher; returns its tokens."""
        stopped = False
        for token in self.prefix:
            self.chain.accept(token)
            stopped |= self._add(token)
        if stopped:
            self._finish("stop")
        elif len(self.tokens) == self._limit:
            self._finish(self._budget)
        return tuple(self.prefix)

    def _begin_with_prefix(self, matcher: AnswerMatcher, limit: str) -> tuple[int, ...]:
        """Takes the prefix and forced tokens behind it; returns them. ``limit``: a text that names the budget."""
        known = matcher.accept_many(self.prefix)
        if known < len(self.prefix):
            assert self.start is not None
            needed = self._needed_with_prefix(self.start)
            message = f"{limit}, but the shortest answer with this prefix takes {needed} tokens"
            raise BudgetError(message, needed=needed)
        taken = self._follow(matcher, list(self.prefix))
        if self.is_done:
            return taken
        return (*taken, *self._follow(matcher, self._forced(matcher, None)))

    def _needed_with_prefix(self, start: Callable[[int], AnswerMatcher]) -> int:
        """Returns the tokens that are enough for an answer with the prefix."""
        matcher = start(_UNLIMITED)
        matcher.accept_many(self.prefix)
        return len(self.prefix) + sum(token not in self.eos for token in matcher.completion_tokens())

    def choose(self, logits: NDArray[np.float32], candidates: Candidates) -> tuple[int, ...]:
        """Chooses a token; returns it with the forced tokens after it, or the tokens that complete the answer, if any.

        The choice may first remove earlier tokens that lead nowhere: see ``n_taken_back``.

        Args:
            logits: the logits after the last evaluated token, float32 of shape (n_vocab,).
            candidates: a buffer for n_vocab candidates, which is overwritten.

        Only for answers with a matcher. Raises ``ModelError`` if the matcher contradicts itself.
        """
        assert self.matcher is not None
        if self.draft is not None and not self.draft.is_done:
            return self._write_draft(self.draft, self.matcher, logits, candidates)
        if self.observers:
            self._distribution = Distribution(logits)
        is_quick, begun = self.matcher.is_quick, time.thread_time()
        before, self._went_back = len(self.tokens), False
        try:
            if not (self.check is not None and not self._late() and self._goes_back(self.check, is_final=False)):
                tokens = self._choose(self.matcher, logits, candidates)
            if self._went_back:
                self.n_taken_back = max(0, before - len(self.tokens))
                tokens = tuple(self.tokens[before:])
        except TimeoutError:  # in a mask
            if not self._late():
                raise
            tokens = self._close_late(self.matcher)
        finally:
            seconds = time.thread_time() - begun
            self._choice_seconds += seconds
            if seconds >= _EASY_SECONDS:
                self._n_easy = 0
            elif not is_quick:
                self._n_easy += 1
        if self.unscored and not self.n_taken_back:
            self._show(self._distribution)
        return tokens

    def _choose(self, matcher: AnswerMatcher, logits: NDArray[np.float32], candidates: Candidates) -> tuple[int, ...]:
        self.n_taken_back, self.is_inserting = 0, False
        if self._late():
            return self._close_late(matcher)
        if self.draft is not None and not self.tokens and (forced := self._forced(matcher, None)):
            return self._follow(matcher, forced)
        if self._ending is not None:
            return self._write_ending(matcher)
        if inserted := self._insert(matcher):
            return inserted
        is_near = self._is_near_limit(matcher)
        is_taken = False
        if is_near:
            token, count, is_taken = self._draw_unlimited(matcher, logits, candidates)
            if token is not None and not is_taken and (ended := self._end_early(matcher, token)) is not None:
                return ended
        if not is_near or not (is_taken or token is None):
            token, count = self._draw(matcher, logits, candidates)
        if token is None:
            self._take_back(matcher)
            return ()
        if not is_taken:
            self._accept(matcher, token)
        if count > 1:
            for each in self.observers:
                each.on_choice(len(self.tokens), token, self._distribution)
        if token in self.eos:
            return self._end(matcher, "grammar" if count == 1 else "model")
        if self.call_or_content is not None and self.call_or_content.doubts(token):
            self.tokens.append(token)
            self.n_doubtful += 1
            return (token,)
        tokens = self._forced(matcher, token)
        stopped = not self._holds and self._settle(self.n_doubtful)
        if not stopped and is_near and self._may_take_back_word(matcher):
            return self._hold(matcher, tokens)
        stopped |= self._settle(self.n_doubtful)
        return self._follow(matcher, tokens, stopped=stopped)

    def _is_near_limit(self, matcher: AnswerMatcher) -> bool:
        """Returns ``near_limit``, which needs the mask. ``TimeoutError`` after the deadline."""
        self.n_computed_masks += not matcher.knows_mask
        started = time.perf_counter()
        try:
            with self._stop:
                return matcher.near_limit
        finally:
            self.mask_seconds += time.perf_counter() - started

    def _draw_unlimited(
        self, matcher: AnswerMatcher, logits: NDArray[np.float32], candidates: Candidates
    ) -> tuple[int | None, int, bool]:
        """Returns what ``_draw`` does without limits, and whether the matcher has accepted the token.

        White space between lexemes that does not fit is left out, since the answer means the same without it; but not
        where nothing else could go on with the answer.
        """
        spaces: list[int] = []
        while True:
            token, count = self._draw(matcher, logits, candidates, unlimited=True, without=spaces)
            if spaces and np.isin(candidates.buffer[:count]["id"], list(self.eos)).all():
                return spaces[0], count, False
            if token is None or self._fits(matcher, token):
                return token, count, token is not None
            if not self.token_bytes(token).isspace() or self._is_within_value(matcher):
                return token, count, False
            spaces.append(token)

    def _draw(
        self,
        matcher: AnswerMatcher,
        logits: NDArray[np.float32],
        candidates: Candidates,
        *,
        unlimited: bool = False,
        without: Sequence[int] = (),
    ) -> tuple[int | None, int]:
        """Returns the token that the model chooses, and the number of tokens to choose from.

        The token is ``None`` if the answer must first take back tokens in doubt. ``without``: tokens to leave out.
        """
        count = self._fill(matcher, logits, candidates, unlimited=unlimited)
        if without:
            allowed = candidates.buffer[:count]
            kept = allowed[~np.isin(allowed["id"], without)]
            count = len(kept)
            candidates.buffer[:count] = kept
        for each in self.observers:
            each.on_mask(candidates.buffer[:count], self._distribution)
        if self.call_or_content is not None and not self.call_or_content.allows(
            self.tokens, logits, candidates.buffer[:count]
        ):
            return None, count
        if self.check is not None:
            self.check.adjust(self.tokens, candidates.buffer[:count], matcher.temperature, matcher)
        if count == 1:
            return candidates.first(), count
        token = self.chain.choose(candidates, count, matcher.temperature)
        if self.check is not None:
            self.check.chose(self.tokens, token)
        return token, count

    def _fill(
        self, matcher: AnswerMatcher, logits: NDArray[np.float32], candidates: Candidates, *, unlimited: bool = False
    ) -> int:
        """Writes the allowed tokens into ``candidates``; returns their number. ``TimeoutError`` after the deadline."""
        self.n_masks += 1
        self.n_computed_masks += not matcher.knows_mask
        started = time.perf_counter()
        try:
            with self._stop:
                return matcher.fill_candidates(logits, candidates.buffer, unlimited)
        finally:
            self.mask_seconds += time.perf_counter() - started

    def _fits(self, matcher: AnswerMatcher, token: int) -> bool:
        """Accepts a token, unless a limit refuses it or it begins a word in a string that has reached its limit."""
        kind, _, _, _, left = matcher.lexeme
        if kind == Kind.TEXT and left is not None and left <= WORD_TOKENS:
            text, is_json = self._string(matcher)
            before, _ = find_word_end(text, is_json=is_json)
            after, ends = find_word_end(text + self.token_bytes(token), is_json=is_json)
            if after != before and not ends:
                return False
        with self._stop:
            return matcher.accept(token)

    def _string(self, matcher: AnswerMatcher) -> tuple[bytes, bool]:
        """Returns the current string so far, without an opening quote, and whether it is spelled as in JSON."""
        text = self._lexeme_text(matcher)
        is_json = text.startswith(_QUOTE) and matcher.lexeme[1].endswith(_QUOTE)
        return text[is_json:], is_json

    def _lexeme_text(self, matcher: AnswerMatcher) -> bytes:
        _, _, n_tokens, begin, _ = matcher.lexeme
        return b"".join(map(self.token_bytes, self.tokens[len(self.tokens) - n_tokens :]))[begin:]

    def _is_within_value(self, matcher: AnswerMatcher) -> bool:
        """Whether white space would be a part of the current lexeme's own text."""
        kind = matcher.lexeme[0]
        if kind in _TEXTS:
            return True
        return kind != Kind.NUMBER and _BETWEEN_VALUES.fullmatch(self._lexeme_text(matcher)) is None

    def _end_early(self, matcher: AnswerMatcher, token: int) -> tuple[int, ...] | None:
        """Ends the answer, or the text that it is in, because a limit refuses ``token``; returns the tokens taken.

        ``None`` if the model has to choose among the allowed tokens.
        """
        if matcher.diagnose(token)[3]:  # not verified within the kernel's limits
            return None
        kind, _, _, _, left = matcher.lexeme
        by_limit = left is not None and left <= (WORD_TOKENS if kind == Kind.TEXT else 0)
        if kind == Kind.TEXT:
            return self._end_string(matcher, token, by_limit=by_limit)
        if by_limit:
            return self._leave(matcher, kind) if kind == Kind.REASONING else None
        self._is_cut = True
        if matcher.is_accepting:
            self._settle(self.n_doubtful)
            return self._finish(self._budget)
        if kind in (Kind.PROSE, Kind.REASONING):
            return self._leave(matcher, kind)
        self.ended_early.append((len(self.tokens), 0))
        return None

    def _end_string(self, matcher: AnswerMatcher, token: int, *, by_limit: bool) -> tuple[int, ...] | None:
        """Takes back what is behind the last whole word of the current string, and closes the string."""
        _, rest, _, _, left = matcher.lexeme
        text, is_json = self._string(matcher)
        end, ends = find_word_end(text + self.token_bytes(token), is_json=is_json)
        n_back, word = self._behind(len(text) - end)
        if ends:
            word, rest = self.token_bytes(token)[: end - len(text)], _QUOTE
        elif n_back and self._closes(matcher, n_back, word, _QUOTE if is_json else rest):
            rest = _QUOTE if is_json else rest
        elif is_json and rest != _QUOTE:
            if not by_limit:
                self._is_cut = True
                self.ended_early.append((len(self.tokens), 0))
            return None
        else:
            n_back, word = 0, b""
        if not ends:
            self.n_shortened += by_limit and (n_back > 0 or left != 0)  # otherwise the matcher counts it
            self._is_cut |= not by_limit
            self.ended_early.append((len(self.tokens) - n_back, len(word)))
        self._settle(self.n_doubtful - n_back)
        self._ending = word, rest
        if n_back:
            self._take_back(matcher)
            return ()
        return self._write_ending(matcher)

    def _behind(self, size: int) -> tuple[int, bytes]:
        """Returns how many last tokens hold the last ``size`` bytes, and the bytes of these tokens before them.

        No tokens if not all of them are held.
        """
        n_back, held = 0, b""
        while len(held) < size and n_back < self.n_doubtful:
            n_back += 1
            held = self.token_bytes(self.tokens[-n_back]) + held
        return (n_back, held[: len(held) - size]) if 0 < size <= len(held) else (0, b"")

    def _closes(self, matcher: AnswerMatcher, n_back: int, word: bytes, rest: bytes) -> bool:
        """Returns whether ``rest`` closes the string with ``word`` in place of the last tokens; changes nothing."""
        back = self.tokens[len(self.tokens) - n_back :]
        matcher.rollback(n_back)
        tokens = self.encode(word) if word else []
        taken = matcher.accept_many(tokens)
        kind, left, _, _, _ = matcher.lexeme
        closes = taken == len(tokens) and left == rest
        if taken == len(tokens) and not kind:  # none of the string is left, and it has no opening quote
            ending = self.encode(rest)
            ended = matcher.accept_many(ending)
            closes = 0 < ended == len(ending)
            matcher.rollback(ended)
        matcher.rollback(taken)
        if matcher.accept_many(back) < n_back:
            raise ModelError("the matcher refused tokens that it had accepted")
        return closes

    def _write_ending(self, matcher: AnswerMatcher) -> tuple[int, ...]:
        """Writes the end of a string that ends early, and forced tokens behind it."""
        assert self._ending is not None
        (word, rest), self._ending = self._ending, None
        tokens = self.encode(word + rest)
        taken = matcher.accept_many(tokens)
        if taken < len(tokens):
            matcher.rollback(taken)
            if word:
                self._is_cut = True
                self.ended_early.append((len(self.tokens), 0))
            return self._leave(matcher, Kind.TEXT)
        written = self._follow(matcher, tokens)
        if not rest and not self.is_done:  # the end is no part of the string's lexeme
            written = (*written, *self._leave(matcher, Kind.TEXT))
        return written if self.is_done else (*written, *self._follow(matcher, self._forced(matcher, None)))

    def _leave(self, matcher: AnswerMatcher, kind: int) -> tuple[int, ...]:
        """Takes the tokens that end the current text soonest."""
        taken: list[int] = []
        for token in matcher.completion_tokens():
            if token in self.eos:
                break
            self._accept(matcher, token)
            taken.append(token)
            if matcher.lexeme[0] != kind:
                break
        return self._follow(matcher, taken) if taken else self._finish(self._budget)

    def _may_take_back_word(self, matcher: AnswerMatcher) -> bool:
        """Returns whether the answer is in a string of any characters that it may soon have to end."""
        kind, _, _, _, left = matcher.lexeme
        if kind != Kind.TEXT:
            return False
        if left is not None and left - WORD_TOKENS <= _HELD_BEFORE_END:
            return True
        try:
            needed = matcher.min_tokens_left
        except LimitError:  # no way to finish is known yet
            return True
        return self.limit - len(self.tokens) - needed <= _HELD_BEFORE_END

    def _hold(self, matcher: AnswerMatcher, tokens: list[int]) -> tuple[int, ...]:
        """Takes tokens of a string; settles those before the end of the last whole word."""
        self._holds = True
        for token in tokens:
            self.chain.accept(token)
        self.tokens += tokens
        self.n_doubtful += len(tokens)
        text, is_json = self._string(matcher)
        unsure = len(text) - find_word_end(text, is_json=is_json)[0]
        n_back, _ = self._behind(unsure)
        if (n_back or not unsure) and self._settle(self.n_doubtful - n_back):
            self._settle(self.n_doubtful)
            return (*tokens, *self._close(matcher, "stop"))
        return tuple(tokens)

    def _write_draft(
        self, draft: Draft, matcher: AnswerMatcher, logits: NDArray[np.float32], candidates: Candidates
    ) -> tuple[int, ...]:
        """Returns the next token of the draft; after the last one, also the tokens that ask for the answer."""
        if self._late() or draft.is_late(self.deadline):
            return self._end_draft(draft, matcher)
        try:
            token = draft.chain.choose(candidates, self._fill(matcher, logits, candidates))
        except TimeoutError:
            return self._end_draft(draft, matcher)
        self._accept(matcher, token)
        if token in self.eos:
            return self._end_draft(draft, matcher)
        draft.add(token)
        return (token, *self._end_draft(draft, matcher)) if draft.is_full else (token,)

    def _end_draft(self, draft: Draft, matcher: AnswerMatcher) -> tuple[int, ...]:
        """Completes the last character of the draft and starts the answer; returns the tokens in between.

        After the deadline, the answer is completed at once, unless its tokens need logits.
        """
        assert self.start is not None
        ending = [token for token in matcher.completion_tokens() if token not in self.eos]
        for token in ending:
            draft.add(token)
        draft.finish()
        self.matcher = self.start(self._limit - len(draft.tokens))
        if self._late() and not self.needs_logits:
            return self._close(self.matcher, "timeout")
        return (*ending, *draft.request)

    def _insert(self, matcher: AnswerMatcher) -> tuple[int, ...]:
        """Returns the tokens that are to be evaluated here and are no part of the answer; none if there is no room."""
        wanted = () if self.insert is None or self.n_doubtful else tuple(self.insert(self.tokens))
        self.is_inserting = bool(wanted) and self._has_room(matcher, len(wanted))
        if wanted:
            self.inserted.append((len(self.tokens), wanted if self.is_inserting else ()))
        return wanted if self.is_inserting else ()

    def _has_room(self, matcher: AnswerMatcher, count: int) -> bool:
        """Returns whether ``count`` tokens and the answer fit into the context; may lower the limit of the answer."""
        limit = self._n_ctx - len(self.preceding) - count - sum(len(tokens) for _, tokens in self.inserted)
        if limit >= self.limit:
            return True
        assert self.start is not None
        try:
            shorter = self.start(max(0, limit))
        except BudgetError:
            return False
        if shorter.accept_many(self.tokens) < len(self.tokens):
            return False
        self._limit -= self.limit - limit
        self.limited_masks += matcher.limited_masks
        self.limits_met = self.all_limits_met(matcher)
        self.matcher = shorter
        return True

    def _take_back(self, matcher: AnswerMatcher) -> None:
        """Removes the uncommitted tokens from the matcher, the answer and what observers know of it."""
        count, self.n_doubtful, self._holds = self.n_doubtful, 0, False
        matcher.rollback(count)
        del self.tokens[len(self.tokens) - count :]
        self.ended_early = [place for place in self.ended_early if place[0] <= len(self.tokens)]
        self._n_scored = min(self._n_scored, len(self.tokens))
        for each in self.observers:
            each.on_cut(len(self.tokens))
        self.n_taken_back = count

    def _goes_back(self, check: AnswerCheck, *, is_final: bool, in_time: bool = True) -> bool:
        """Has the answer judged; removes what is behind the tokens that are kept, and returns whether it does."""
        if self.n_doubtful or not (is_final or check.is_due):
            return False
        kept = check.judge(is_final=is_final, may_go_back=in_time)
        if kept is None:
            return False
        assert self.matcher is not None
        self.chain.forget(len(self.tokens) - kept)
        self.matcher.rollback(self.matcher.n_accepted - kept)
        del self.tokens[kept:]
        self.ended_early = [place for place in self.ended_early if place[0] < kept]
        self.closing, self._ending, self._is_cut = None, None, bool(self.ended_early)
        self._n_scored = min(self._n_scored, kept)
        for each in self.observers:
            each.on_cut(kept)
        self._went_back = True
        return True

    def _settle(self, count: int) -> bool:
        """Commits to the first tokens that could still be removed; returns whether one of them stops the answer."""
        first = len(self.tokens) - self.n_doubtful
        self.n_doubtful -= count
        stopped = False
        for token in self.tokens[first : first + count]:
            if not self._holds:
                self.chain.accept(token)
            stopped |= self.wants_stop(token)
        self._holds &= self.n_doubtful > 0
        return stopped

    def take(self, token: int) -> tuple[int, ...]:
        """Takes a token sampled from the whole vocabulary; returns it, or no token if the answer is complete.

        Only for answers without matcher. ``llama_sampler_sample`` has already updated the chain.
        """
        if self._late():
            return self._finish("timeout")
        if token in self.eos:
            return self._finish("model")
        stopped = self._add(token)
        if stopped:
            self._finish("stop")
        elif len(self.tokens) == self._limit:
            self._finish(self._budget)
        return (token,)

    def end_by(self, deadline: float) -> None:
        """Ends the answer at ``deadline`` (``time.monotonic()``) at the latest."""
        self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)
        self._stop.set(self.deadline - time.monotonic())

    @property
    def limit(self) -> int:
        """The most tokens of the answer, once it has begun; those of a draft are subtracted."""
        return self._limit - (0 if self.draft is None else len(self.draft.tokens))

    @property
    def preceding(self) -> list[int]:
        """The tokens in front of the answer: the prompt, and a draft with the request for the answer."""
        before = [] if self.draft is None else [*self.draft.tokens, *self.draft.request]
        return [*self.prompt, *before]

    def all_limits_met(self, matcher: AnswerMatcher) -> tuple[str, ...]:
        """Returns the names of the kernel's limits that a matcher has met, and those that were replaced."""
        return tuple(dict.fromkeys((*self.limits_met, *matcher.limits_met)))

    def evaluated(self, count: int, starts: Iterable[int] = ()) -> list[list[int]]:
        """Returns what is evaluated in front of the answer's token with the number ``count``, in groups.

        A group begins with each token whose number is in ``starts``. Insertions are groups of their own.
        """
        places = [(start, ()) for start in starts if start < count] + [one for one in self.inserted if one[0] <= count]
        groups, begin = [self.preceding], 0
        for place, inserted in (*sorted(places, key=itemgetter(0)), (count, ())):
            groups[-1] += self.tokens[begin:place]
            groups += [list(inserted), []]
            begin = place
        return [group for group in groups if group]

    @property
    def unscored(self) -> int:
        """How many tokens at the end of the answer the observers have not seen; 0 if none needs logits.

        Each call of ``score`` shows them one token.
        """
        return len(self.tokens) - self._n_scored if self.needs_logits else 0

    @property
    def is_complete(self) -> bool:
        """Whether the answer needs no more logits."""
        return self.is_done and not self.unscored

    def score(self, logits: NDArray[np.float32]) -> None:
        """Shows the observers the first ``unscored`` token; ``logits`` are those before it, float32 of (n_vocab,)."""
        self._show(Distribution(logits))

    def _show(self, distribution: Distribution) -> None:
        begun = time.thread_time()
        number, self._n_scored = self._n_scored, self._n_scored + 1
        for each in self.observers:
            if each.needs_logits:
                each.on_token(self, number, distribution)
        self._choice_seconds += time.thread_time() - begun

    def ask(self, logits: NDArray[np.float32] | None = None) -> list[list[int]] | None:
        """Returns tokens after which the finished answer wants logits; ``None``: it wants none.

        They begin with the prompt, and are in groups to be evaluated separately, as those of the answer were: so the
        logits are rounded as they would be. Nothing is asked after the deadline.

        ``logits``: those after the tokens that the last call has returned.
        """
        if self._asking is None:
            if self.questions is None or self.start is None:
                return None
            self._asking = self.questions()
        if not self._late():
            try:
                wanted = next(self._asking) if logits is None else self._asking.send(logits)
            except StopIteration:
                return None
            if sum(map(len, wanted)) <= self._n_ctx:
                return wanted
        self._asking.close()
        return None

    @property
    def may_take_long(self) -> bool:
        """Whether ``choose`` may wait for a thread, compute a mask, or search where recent searches were not fast."""
        matcher = self.matcher
        if matcher is None:
            return False
        if matcher.is_in_use or self._late() or self.check is not None:  # any token may complete a value
            return True
        return not matcher.is_quick and (self._n_easy < _EASY_CHOICES or not matcher.knows_mask)

    @property
    def is_prepared(self) -> bool:
        """Whether ``prepare`` has nothing to do."""
        return self.matcher is None or self.is_done or self.matcher.knows_mask

    def prepare(self) -> None:
        """Computes the next mask; needs no logits, so another thread may call it before ``choose``."""
        if not self.is_prepared:
            assert self.matcher is not None
            self.n_computed_masks += 1
            started, begun = time.perf_counter(), time.thread_time()
            with suppress(TimeoutError), self._stop:  # the choice sees the deadline, too
                self.matcher.compute_mask()
            self.mask_seconds += time.perf_counter() - started
            self._choice_seconds += time.thread_time() - begun

    def _room(self, n_ctx: int) -> tuple[int, str]:
        """The most tokens that may be generated, and a text that names the limit."""
        length = len(self.prompt) + (0 if self.draft is None else len(self.draft.request))
        room = n_ctx - length
        if not self.prompt:
            raise ModelError(
                "the prompt is empty, and this model has no begin-of-text token to start from; "
                "pass a prompt of at least one character"
            )
        if room < 1:
            raise ModelError(
                f"the prompt has {length} tokens{self.about_prompt()}, but the context holds {n_ctx}, "
                f"the answer included; load the model with a larger n_ctx"
            )
        if self.max_tokens is not None and self.max_tokens <= room:
            return self.max_tokens, f"max_tokens is {self.max_tokens}"
        return room, f"the prompt of {length} tokens leaves room for {room} in the context"

    def follow(self, matcher: AnswerMatcher, token: int, before: Sequence[int]) -> list[int]:
        """Returns the tokens that the answer would take if it chose ``token`` behind others; moves the matcher.

        No tokens if the matcher refuses it.
        """
        return self._forced(matcher, token, before) if matcher.accept(token) else []

    def _forced(self, matcher: AnswerMatcher, token: int | None, before: Sequence[int] | None = None) -> list[int]:
        """The tokens to take in place of the accepted ``token``: mostly itself, perhaps with forced tokens after it.

        Moves the matcher past them. ``before``: the tokens in front of it, if they are not those of the answer.
        """
        chosen = [] if token is None else [token]
        spelled = b"" if token is None else self.token_bytes(token)
        text, open_starts = matcher.forced_after(spelled)
        if not text:
            return chosen
        context = self._text_of(self.tokens if before is None else before)
        alone = chosen if not spelled else []  # special tokens have no bytes
        known = self.encode, self.token_bytes, self.special_tokens
        tokens = alone + certain_tokens(spelled + text, open_starts, b"" if alone else context, *known)
        if tokens == chosen or sum(len(self.token_bytes(token)) for token in tokens) < len(spelled):
            return chosen
        matcher.rollback(len(chosen))
        accepted = matcher.accept_many(tokens)
        if accepted == len(tokens):
            return tokens
        matcher.rollback(accepted)
        for token in chosen:
            self._accept(matcher, token)
        return chosen

    def _text_of(self, tokens: Sequence[int]) -> bytes:
        """Returns the text behind the last special token, from at most the last ``_CONTEXT_TOKENS`` tokens."""
        text = b""
        for token in reversed(tokens[-_CONTEXT_TOKENS:]):
            part = self.token_bytes(token)
            if not part:
                break
            text = part + text
        return text

    def _follow(self, matcher: AnswerMatcher, tokens: list[int], *, stopped: bool = False) -> tuple[int, ...]:
        """Records accepted tokens; ends the answer if nothing can follow or a stop was found (``stopped``)."""
        for token in tokens:
            self.chain.accept(token)
            stopped |= self._add(token)
        if matcher.is_finished:
            self._end(matcher, "grammar")
        elif stopped:
            return (*tokens, *self._close(matcher, "stop"))
        return tuple(tokens)

    def _close_late(self, matcher: AnswerMatcher) -> tuple[int, ...]:
        """Ends the answer after its deadline, without the tokens in doubt."""
        self._take_back(matcher)
        return self._close(matcher, "timeout")

    def _close(self, matcher: AnswerMatcher, by: EndedBy) -> tuple[int, ...]:
        """Ends the answer with the matcher's completion, of which an end of generation is no part."""
        completion = matcher.completion_tokens()
        closing = tuple(token for token in completion if token not in self.eos)
        self.closing = len(self.tokens)
        for token in completion:
            self._accept(matcher, token)
        for token in closing:
            self._add(token)
        self._finish(by)
        return closing

    def _end(self, matcher: AnswerMatcher, by: EndedBy) -> tuple[int, ...]:
        return self._finish(self._budget if self._is_cut or matcher.is_cut else by)

    @property
    def _budget(self) -> EndedBy:
        """The name of the budget on tokens: of ``max_tokens``, or of the context if that is smaller."""
        return "limit" if self._limit == self.max_tokens else "context"

    @property
    def finish_reason(self) -> FinishReason:
        """Why the answer ended, once it is done, as APIs say it."""
        return _FINISH_REASONS[self.ended_by]

    def _finish(self, by: EndedBy) -> tuple[int, ...]:
        if self.check is not None and self._goes_back(self.check, is_final=True, in_time=by != "timeout"):
            return ()
        self.is_done = True
        self.ended_by = by
        self.chain.close()
        return ()

    def _accept(self, matcher: AnswerMatcher, token: int) -> None:
        if not matcher.accept(token):
            raise ModelError(f"the matcher refused the token {token} ({self.token_bytes(token)!r}), which it allowed")

    def _add(self, token: int) -> bool:
        """Records a token of the answer; returns whether it stops the answer."""
        self.tokens.append(token)
        return self.wants_stop(token)

    def _late(self) -> bool:
        if self._choice_seconds > self.max_choice_seconds:
            return True
        return self.deadline is not None and time.monotonic() > self.deadline
