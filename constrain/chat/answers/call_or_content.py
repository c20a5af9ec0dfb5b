"""The choice between call and content: the model decides, even if content is not free text.

If an answer is either a call or, for example, a JSON value, the mask allows the beginnings of both. A model that
prefers to answer in words has most of its probability on words, and the mask removes them. Among the remaining tokens,
a call may be by far the likeliest, so a small model would call again and again and never answer. At this one position,
this class therefore counts every token that does not begin a call as a vote for content. A call keeps the probability
that the model gives it; content gets the rest, divided among its allowed beginnings in the model's proportions.

    choice --first token--> mark of a call, token by token --> call
     |  ^                              |
     |  +--------- take back ----------+
     +----> content

A mark that takes several tokens (``<tool_call>`` as text) is a call only once it is complete: the model may have meant
``<tool_response>``. At each of these tokens the mask allows only the mark, so the model's probability for it is
multiplied into the probability of a call. If the model would have written another token, the answer takes back the
begun mark and becomes content.

If calls begin like content, as JSON objects do, the first token does not decide, and the mask alone applies.
"""

from __future__ import annotations

import math
import random
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from constrain.chat.answers.choices import Calls, Reasoning
from constrain.chat.answers.structure import SpecialName, Variable, structure_parts
from constrain.chat.answers.trees import answer_trees
from constrain.language.special import mark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from constrain.chat.answers.choices import Choices
    from constrain.llama.decoding.sampler import Sampling
    from constrain.vocabulary.vocabulary import Vocabulary

_NO_TEXT = -1

_FIRST_WORD = re.compile(rb"\s*\S+")


class CallOrContent:
    """The position of one answer where it becomes a call or content; a ``LogitAdjuster`` of ``llama.decoding.answer``.

    Args:
        answer: parts of the answer; ``offers_both(answer)`` holds.
        vocabulary: vocabulary of the model.
        sampling: options for choosing tokens; temperature and seed apply to the choice, too.
    """

    def __init__(self, answer: Choices, vocabulary: Vocabulary, sampling: Sampling) -> None:
        thinking = answer.format.thinking
        self._vocabulary = vocabulary
        self._temperature = sampling.temperature
        self._random = random.Random(sampling.seed)  # noqa: S311 - equal seeds give equal answers
        planned = answer_trees(answer)
        self._calls = [
            self._mark_names([step] if isinstance(step, SpecialName) else [step.decode("utf-8", "surrogateescape")])
            for step, _ in planned.second.onward
            if not isinstance(step, Variable)
        ]
        self._marks = [found[0] for call in self._calls if (found := _FIRST_WORD.match(call))]
        self._begin = self._end = b""
        if thinking is not None and answer.reasoning is not Reasoning.NONE:
            names = frozenset(answer.special)
            self._begin = self._mark_names(structure_parts(thinking.begin, names))
            self._end = self._mark_names(structure_parts(thinking.end, names))
        self._text = self._begin if answer.reasoning is Reasoning.OPENED else b""
        self._read = 0
        self._is_past = bool(planned.beside_json)  # calls begin like JSON content: the first token does not decide
        self._is_behind_reasoning = answer.reasoning is Reasoning.OPENED
        self._likelihood: float | None = None  # probability of a call so far; None before the choice
        self._largest_share = 1.0  # largest probability of one token of content
        self._begun = b""  # begun mark of a call
        self._turned_back_at = -1

    def allows(self, tokens: Sequence[int], logits: NDArray[np.float32], candidates: NDArray[Any]) -> bool:
        """Raises the logits of content, at the choice, to the probability of all tokens that do not begin a call.

        Args:
            tokens: token ids of the answer so far.
            logits: logits after the last token, float32 of shape (n_vocab,).
            candidates: allowed tokens, ``CANDIDATE`` of shape (n,); changed in place.

        Returns ``False`` if a mark was begun, but the model would continue differently.
        """
        if self._begun:
            return self._draw_continuation(logits, candidates)
        if self._is_reached(tokens):
            self._weigh(logits, candidates)
        return True

    def doubts(self, token: int) -> bool:
        """Returns whether a token begins or continues the mark of a call without completing it."""
        if self._likelihood is None:
            return False
        self._begun += self._vocabulary.marked_bytes(token)
        is_in_doubt = any(each != self._begun and each.startswith(self._begun) for each in self._marks)
        if not is_in_doubt:
            self._begun, self._likelihood = b"", None
        return is_in_doubt

    def _weigh(self, logits: NDArray[np.float32], candidates: NDArray[Any]) -> None:
        calls, content, reasoning = self._sort_candidates(candidates["id"])
        if not len(calls) or not len(content):
            return
        if self._turned_back_at == self._read:
            candidates["logit"][calls] = -np.inf
            return
        rest = logits.astype(np.float64)
        rest[candidates["id"][calls]] = rest[candidates["id"][reasoning]] = -np.inf
        others = _log_sum(rest)
        shift = others - _log_sum(candidates["logit"][content].astype(np.float64))
        if np.isfinite(shift):
            candidates["logit"][content] += np.float32(shift)
            self._largest_share = math.exp(min(float(candidates["logit"][content].max()) - others, 0.0))
            odds = _log_sum(candidates["logit"][calls].astype(np.float64)) - others
            self._likelihood = _logistic(odds)

    def _draw_continuation(self, logits: NDArray[np.float32], candidates: NDArray[Any]) -> bool:
        """Draws whether the model continues the mark of a call; the candidates are the mark's next token."""
        assert self._likelihood is not None
        before = self._sharpen(self._likelihood)
        share = _log_sum(candidates["logit"].astype(np.float64)) - _log_sum(logits.astype(np.float64))
        self._likelihood *= math.exp(min(share, 0.0))
        if before == 0 or self._random.random() * before < self._sharpen(self._likelihood):
            return True
        self._begun, self._likelihood, self._turned_back_at = b"", None, self._read
        return False

    def _sharpen(self, likelihood: float) -> float:
        """Returns the probability of a call at the temperature; at 0, whether a call is likelier than any content."""
        if self._temperature == 0 or likelihood in (0, 1):
            return float(likelihood > (1 - likelihood) * self._largest_share)
        return _logistic((math.log(likelihood) - math.log1p(-likelihood)) / self._temperature)

    def _is_reached(self, tokens: Sequence[int]) -> bool:
        """Returns whether the answer has only reasoning and white space so far."""
        if self._is_past:
            return False
        self._text += b"".join(map(self._vocabulary.marked_bytes, tokens[self._read :]))
        self._read = len(tokens)
        behind = self._text.lstrip()
        if self._begin and behind:
            if self._begin.startswith(behind):
                return False
            if behind.startswith(self._begin):
                _, end, behind = behind.partition(self._end)
                if not end:
                    return False
                self._is_behind_reasoning = True
        self._is_past = bool(behind.strip())
        return not self._is_past

    def _sort_candidates(self, ids: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Sorts candidate tokens by what they begin; returns the indices in ``ids`` of calls, content and reasoning.

        A token that may begin both a call and reasoning counts as reasoning. If some candidate begins content with
        the first byte of a call, the three cannot be told apart, and all of them are empty.
        """
        first = _first_bytes(self._vocabulary)[ids]
        section = b"" if self._is_behind_reasoning else self._begin
        begins = {text[0] for text in (*self._calls, section) if text}
        near = np.flatnonzero(np.isin(first, list(begins)))
        none = np.empty(0, np.intp)
        calls: list[int] = []
        reasoning: list[int] = []
        for place in near.tolist():
            text = self._vocabulary.marked_bytes(int(ids[place]))
            if _agree(text, section):  # could also begin a call
                reasoning.append(place)
            elif any(_agree(text, call) for call in self._calls):
                calls.append(place)
            else:  # content that begins with the same byte
                return none, none, none
        content = np.setdiff1d(np.arange(len(ids)), near)
        return np.array(calls, np.intp), content, np.array(reasoning, np.intp)

    def _mark_names(self, parts: Sequence[str | SpecialName]) -> bytes:
        """Returns structure as ``Vocabulary.marked_bytes`` has it: a special token is marked, other text is plain."""
        return b"".join(
            mark(part.name)
            if isinstance(part, SpecialName) and part.name in self._vocabulary.special_tokens
            else (part.name if isinstance(part, SpecialName) else part).encode("utf-8", "surrogateescape")
            for part in parts
        )


def make_call_or_content(answer: Choices, vocabulary: Vocabulary) -> Callable[[Sampling], CallOrContent] | None:
    """Returns a function that makes the choice of one answer; None if it has none. Slow once per vocabulary."""
    if not offers_both(answer):
        return None
    _first_bytes(vocabulary)
    return partial(CallOrContent, answer, vocabulary)


def offers_both(answer: Choices) -> bool:
    """Returns whether calls and content may begin at the same position, and content is not free text."""
    return (
        answer.content is not None
        and answer.format.content is None
        and answer.calls is Calls.AUTO
        and bool(answer.callable_tools())
    )


_MOST_ODDS = 700.0
"""Largest logarithm of odds that ``exp`` takes without overflow of a double; beyond it, odds are clipped."""


def _logistic(odds: float) -> float:
    """Returns the probability for a logarithm of odds."""
    return 1 / (1 + math.exp(-min(max(odds, -_MOST_ODDS), _MOST_ODDS)))


def _agree(text: bytes, begin: bytes) -> bool:
    """Returns whether one of two non-empty texts begins with the other."""
    return bool(text and begin) and (text.startswith(begin) or begin.startswith(text))


def _log_sum(logits: NDArray[np.float64]) -> float:
    """Returns the logarithm of the sum of the exponentials."""
    largest = logits.max()
    if not np.isfinite(largest):
        return float(largest)
    return float(largest + np.log(np.exp(logits - largest).sum()))


_known_first_bytes: WeakKeyDictionary[Vocabulary, NDArray[np.int16]] = WeakKeyDictionary()


def _first_bytes(vocabulary: Vocabulary) -> NDArray[np.int16]:
    """Returns the first byte of each token, as in ``Vocabulary.marked_bytes``; -1 for tokens without bytes."""
    found = _known_first_bytes.get(vocabulary)
    if found is None:
        texts = map(vocabulary.marked_bytes, range(vocabulary.n_vocab))
        found = np.fromiter((text[0] if text else _NO_TEXT for text in texts), np.int16, vocabulary.n_vocab)
        _known_first_bytes[vocabulary] = found
    return found
