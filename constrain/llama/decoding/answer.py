"""One answer on its way: which tokens it takes, and when it ends. Whoever drives it evaluates what it takes.

    begin --tokens to evaluate with the prompt--> [model] --logits--> choose --tokens to evaluate--> [model] ...
                                                     |                   ^
                                                     +--- prepare -------+    the next mask, while the model computes

Where the matcher leaves one continuation, its tokens follow the one just chosen (``constrain/engine/forced.py`` says
which), without sampling (so neither biases nor penalties have a say in them), and all of them are evaluated together.

A constrained answer always ends: its matcher knows how many tokens are left, and only allows what can be completed
within them (``Matcher::fill_within_budget`` in engine/core/src/matcher.cpp). The completion that the matcher knows also
ends an answer whose time is up. It needs no evaluation.
"""

from __future__ import annotations

import math
import time
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from constrain.engine.forced import certain_tokens
from constrain.errors import BudgetError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.binding import Candidates
    from constrain.llama.decoding.logprobs import Logprobs
    from constrain.llama.decoding.sampler import Chain

FinishReason = Literal["stop", "length", "timeout"]
"""Why an answer ended: by itself or at a stop text; closed by the token budget, or cut there; at the ``timeout``."""

_CONTEXT_TOKENS = 8
"""Tokens before a forced text that it is tokenized with. Tokenizers look at what is near: at the word around."""

_EASY_SECONDS = 0.005
_EASY_CHOICES = 4
"""After so many choices with a known mask that had to search, but took less of a processor, the next one is expected
to do so, too. Those that only looked things up say nothing about that."""


class Matcher(Protocol):
    """What an answer needs of ``constrain.Matcher``."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing can follow."""

    def fill_candidates(self, logits: Any, out: Any, /) -> int:
        """Writes the allowed tokens with their logits into ``out`` (``CANDIDATE``), by id; returns how many."""

    def accept(self, token_id: int, /) -> bool:
        """Takes a token; ``False`` if it is not allowed."""

    def rollback(self, n: int, /) -> None:
        """Takes back the last ``n`` tokens."""

    def accept_many(self, token_ids: Sequence[int], /) -> int:
        """Takes tokens as long as they are allowed; returns how many."""

    def completion_tokens(self) -> list[int]:
        """Tokens after which the answer is complete, no more than are left."""

    @property
    def is_narrowed_by_budget(self) -> bool:
        """Whether the tokens left have decided what was allowed."""

    @property
    def n_shortened(self) -> int:
        """How many strings and numbers have reached their limits."""

    @property
    def limited_masks(self) -> int:
        """How many masks left out tokens because a limit of the kernel was met."""

    @property
    def limits_met(self) -> tuple[str, ...]:
        """The names of these limits."""

    def forced_after(self, before: bytes, /) -> tuple[bytes, list[int]]:
        """The only bytes that can follow ``before``, the end of what was taken, and where these two are open."""

    @property
    def knows_mask(self) -> bool:
        """Whether ``fill_candidates`` has nothing left to compute."""

    @property
    def is_quick(self) -> bool:
        """Whether ``fill_candidates`` and ``accept`` only look things up."""

    @property
    def is_in_use(self) -> bool:
        """Whether a call would have to wait for another thread."""

    def compute_mask(self) -> None:
        """Does what ``fill_candidates`` would have to compute."""


class Fork(Protocol):
    """Has a say in the choices of one answer, as long as it may become this or that (``chat.answers.fork``)."""

    def allows(self, tokens: Sequence[int], logits: NDArray[np.float32], candidates: NDArray[Any], /) -> bool:
        """Called before each choice; may change the logits of the candidates.

        ``False``, after a token that it ``doubts``: the answer takes back all of these.
        """

    def doubts(self, token: int, /) -> bool:
        """Called with the token that was chosen; whether the answer may still take it back."""


def _never(_: int) -> bool:
    return False


def _nothing() -> str:
    return ""


@dataclass(slots=True)
class Answer:
    """The decisions of one sequence.

    Call ``begin``, evaluate the prompt and the tokens it returns, then until ``is_done`` call ``choose`` (or ``take``,
    for an answer without matcher) with what the model says after the last token, and evaluate what that returns.
    What is returned last, with ``is_done``, needs no evaluation.

    With ``logprobs``, ``score`` is to be called with what the model says before each token of the answer, in order:
    after ``begin``, ``choose`` and ``take``, as long as tokens are ``unscored``, also where the answer is done.

    Args:
        prompt: the tokens of the prompt; only their number matters here.
        chain: chooses among the allowed tokens.
        start: makes the matcher for a number of tokens (``Constraint.matcher``); ``None`` where anything is allowed.
        eos: the tokens that end a generation.
        encode: bytes to tokens, as in ``Vocabulary``.
        token_bytes: the bytes of a token.
        special_tokens: the special tokens that the matcher's grammar may name, as in ``Vocabulary``.
        max_tokens: the most tokens to generate, end of generation not counted; ``None`` for what the context holds.
        deadline: the ``time.monotonic()`` after which the answer is brought to its end.
        max_choice_seconds: so is one whose choices took as long, together, of a processor.
        wants_stop: called with each token as it is taken; ``True`` ends the answer.
        fork: has a say in its choices; ``None`` to leave them to the chain.
        logprobs: takes down how likely its tokens are; ``None`` where nobody wants to know.
        about_prompt: says what the prompt holds besides the caller's text, for the error about a prompt that is too
            long.

    Attributes:
        matcher: what is allowed next, once the answer has begun; ``None`` for anything.
        tokens: all tokens of the answer so far, without the end of generation.
        n_doubtful: how many of these, the last ones, it may still take back.
        n_taken_back: how many tokens the last choice took back, before it took some, if any: they are to be forgotten,
            and what the model says after those before them is to be asked once more.
        is_done: whether the answer is complete.
        finish_reason: why, once it is.
        n_masks, n_computed_masks: the masks it was chosen with, and how many of them were not known.
        mask_seconds: wall-clock time that these took.
    """

    prompt: Sequence[int]
    chain: Chain
    start: Callable[[int], Matcher] | None
    _: KW_ONLY
    eos: Collection[int]
    encode: Callable[[bytes], list[int]]
    token_bytes: Callable[[int], bytes]
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    max_tokens: int | None = None
    deadline: float | None = None
    max_choice_seconds: float = math.inf
    wants_stop: Callable[[int], bool] = _never
    fork: Fork | None = None
    logprobs: Logprobs | None = None
    about_prompt: Callable[[], str] = _nothing

    matcher: Matcher | None = field(default=None, init=False)
    tokens: list[int] = field(default_factory=list, init=False)
    n_doubtful: int = field(default=0, init=False)
    n_taken_back: int = field(default=0, init=False)
    is_done: bool = field(default=False, init=False)
    finish_reason: FinishReason = field(default="stop", init=False)
    n_masks: int = field(default=0, init=False)
    n_computed_masks: int = field(default=0, init=False)
    mask_seconds: float = field(default=0.0, init=False)
    _choice_seconds: float = field(default=0.0, init=False)
    _n_easy: int = field(default=0, init=False)
    _limit: int = field(default=0, init=False)

    def begin(self, n_ctx: int) -> tuple[int, ...]:
        """Checks that an answer fits into a context of ``n_ctx`` tokens; returns what to evaluate with the prompt.

        Raises ``ModelError`` if the prompt leaves no room in the context, and ``BudgetError`` if the tokens left are
        too few for any answer.
        """
        self._limit, name = self._room(n_ctx)
        if self.start is None:
            return self._finish("length") if self._limit == 0 else ()
        try:
            self.matcher = self.start(self._limit)
        except BudgetError as error:
            message = f"{name}, but the shortest answer takes {error.needed} tokens"
            raise BudgetError(message, needed=error.needed) from None
        return self._follow(self.matcher, self._forced(self.matcher, None))

    def choose(self, logits: NDArray[np.float32], candidates: Candidates) -> tuple[int, ...]:
        """Takes the next token and those that follow it by force, or the tokens that complete the answer, if any.

        What it took before may turn out to be nothing that the model would go on with: see ``n_taken_back``.

        Args:
            logits: after the last token evaluated, float32 of shape (n_vocab,).
            candidates: a buffer for n_vocab candidates, which is overwritten.

        Only for answers with a matcher. Raises ``ModelError`` if the matcher contradicts itself.
        """
        assert self.matcher is not None
        is_quick, begun = self.matcher.is_quick, time.thread_time()
        try:
            return self._choose(self.matcher, logits, candidates)
        finally:
            seconds = time.thread_time() - begun
            self._choice_seconds += seconds
            if seconds >= _EASY_SECONDS:
                self._n_easy = 0
            elif not is_quick:
                self._n_easy += 1

    def _choose(self, matcher: Matcher, logits: NDArray[np.float32], candidates: Candidates) -> tuple[int, ...]:
        self.n_taken_back = 0
        if self._late():
            self._take_back(matcher)
            return self._close(matcher, "timeout")
        self.n_masks += 1
        self.n_computed_masks += not matcher.knows_mask
        started = time.perf_counter()
        count = matcher.fill_candidates(logits, candidates.buffer)
        self.mask_seconds += time.perf_counter() - started
        if self.fork is not None and not self.fork.allows(self.tokens, logits, candidates.buffer[:count]):
            self._take_back(matcher)
            return ()
        token = candidates.first() if count == 1 else self.chain.choose(candidates, count)
        self._accept(matcher, token)
        if token in self.eos:
            return self._end(matcher)
        if self.fork is not None and self.fork.doubts(token):
            self.tokens.append(token)
            self.n_doubtful += 1
            return (token,)
        stopped = self._settle()
        return self._follow(matcher, self._forced(matcher, token), stopped=stopped)

    def _take_back(self, matcher: Matcher) -> None:
        """Forgets the tokens that are in doubt."""
        count, self.n_doubtful = self.n_doubtful, 0
        matcher.rollback(count)
        del self.tokens[len(self.tokens) - count :]
        if self.logprobs is not None:
            del self.logprobs.tokens[len(self.tokens) :]
        self.n_taken_back = count

    def _settle(self) -> bool:
        """Takes the tokens that are in doubt for good; whether they lead to a stop."""
        settled = self.tokens[len(self.tokens) - self.n_doubtful :]
        self.n_doubtful = 0
        stopped = False
        for token in settled:
            self.chain.accept(token)
            stopped |= self.wants_stop(token)
        return stopped

    def take(self, token: int) -> tuple[int, ...]:
        """Takes a token that was sampled from the whole vocabulary; returns it, or nothing if the answer is complete.

        Only for answers without matcher. The chain is not told of the token: ``llama_sampler_sample`` has done that.
        """
        if self._late():
            return self._finish("timeout")
        if token in self.eos:
            return self._finish("stop")
        stopped = self._add(token)
        if stopped:
            self._finish("stop")
        elif len(self.tokens) == self._limit:
            self._finish("length")
        return (token,)

    def end_by(self, deadline: float) -> None:
        """Brings the answer to its end at ``deadline`` (``time.monotonic()``), if nothing ends it before."""
        self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)

    @property
    def unscored(self) -> int:
        """How many tokens ``score`` is to be called for: the last ones of the answer."""
        return 0 if self.logprobs is None else len(self.tokens) - len(self.logprobs.tokens)

    @property
    def is_complete(self) -> bool:
        """Whether the model has nothing to say any more."""
        return self.is_done and not self.unscored

    def score(self, logits: NDArray[np.float32]) -> None:
        """Takes what the model says before the first token that is ``unscored``; arguments as for ``choose``."""
        assert self.logprobs is not None
        self.logprobs.add(self.tokens[len(self.logprobs.tokens)], logits)

    @property
    def may_take_long(self) -> bool:
        """Whether ``choose`` may: it has to wait, or to compute a mask, or to search, which was not easy before."""
        matcher = self.matcher
        if matcher is None:
            return False
        if matcher.is_in_use or self._late():
            return True
        return not matcher.is_quick and (self._n_easy < _EASY_CHOICES or not matcher.knows_mask)

    @property
    def is_prepared(self) -> bool:
        """Whether ``prepare`` has nothing to do."""
        return self.matcher is None or self.is_done or self.matcher.knows_mask

    def prepare(self) -> None:
        """Computes the next mask, which needs no logits; another thread may do that before ``choose`` is called."""
        if not self.is_prepared:
            assert self.matcher is not None
            self.n_computed_masks += 1
            started, begun = time.perf_counter(), time.thread_time()
            self.matcher.compute_mask()
            self.mask_seconds += time.perf_counter() - started
            self._choice_seconds += time.thread_time() - begun

    def _room(self, n_ctx: int) -> tuple[int, str]:
        """The most tokens that may be generated, and what limits them."""
        room = n_ctx - len(self.prompt)
        if not self.prompt:
            raise ModelError("the prompt is empty, and the model has no token to begin a text with")
        if room < 1:
            raise ModelError(
                f"the prompt has {len(self.prompt)} tokens{self.about_prompt()}, but the context holds {n_ctx}, "
                f"the answer included; load the model with a larger n_ctx"
            )
        if self.max_tokens is not None and self.max_tokens <= room:
            return self.max_tokens, f"max_tokens is {self.max_tokens}"
        return room, f"the prompt of {len(self.prompt)} tokens leaves room for {room} in the context"

    def _forced(self, matcher: Matcher, token: int | None) -> list[int]:
        """What takes the place of ``token``, which was just accepted: mostly itself, or followed by forced tokens.

        The matcher is moved to after them.
        """
        chosen = [] if token is None else [token]
        before = b"" if token is None else self.token_bytes(token)
        text, open_starts = matcher.forced_after(before)
        if not text:
            return chosen
        context = self._text_before()
        alone = chosen if not before else []  # special tokens are
        known = self.encode, self.token_bytes, self.special_tokens
        tokens = alone + certain_tokens(before + text, open_starts, b"" if alone else context, *known)
        if tokens == chosen or sum(len(self.token_bytes(token)) for token in tokens) < len(before):
            return chosen
        matcher.rollback(len(chosen))
        accepted = matcher.accept_many(tokens)
        if accepted == len(tokens):
            return tokens
        matcher.rollback(accepted)
        for token in chosen:
            self._accept(matcher, token)
        return chosen

    def _text_before(self) -> bytes:
        """The last text of the answer, after a special token if there was one."""
        text = b""
        for token in reversed(self.tokens[-_CONTEXT_TOKENS:]):
            part = self.token_bytes(token)
            if not part:
                break
            text = part + text
        return text

    def _follow(self, matcher: Matcher, tokens: list[int], *, stopped: bool = False) -> tuple[int, ...]:
        """Notes tokens that the matcher has accepted, and whether the answer ends with them, or ``stopped`` before."""
        for token in tokens:
            self.chain.accept(token)
            stopped |= self._add(token)
        if matcher.is_finished:
            self._end(matcher)
        elif stopped:
            return (*tokens, *self._close(matcher, "stop"))
        return tuple(tokens)

    def _close(self, matcher: Matcher, reason: FinishReason) -> tuple[int, ...]:
        """Ends the answer with the completion that the matcher knows."""
        closing = tuple(matcher.completion_tokens())
        for token in closing:
            self._accept(matcher, token)
            self._add(token)
        self._finish(reason)
        return closing

    def _end(self, matcher: Matcher) -> tuple[int, ...]:
        return self._finish("length" if matcher.is_narrowed_by_budget else "stop")

    def _finish(self, reason: FinishReason) -> tuple[int, ...]:
        self.is_done = True
        self.finish_reason = reason
        self.chain.close()
        return ()

    def _accept(self, matcher: Matcher, token: int) -> None:
        if not matcher.accept(token):
            raise ModelError(f"the matcher refused the token {token} ({self.token_bytes(token)!r}), which it allowed")

    def _add(self, token: int) -> bool:
        """Notes a token of the answer; whether it leads to a stop."""
        self.tokens.append(token)
        return self.wants_stop(token)

    def _late(self) -> bool:
        if self._choice_seconds > self.max_choice_seconds:
            return True
        return self.deadline is not None and time.monotonic() > self.deadline
