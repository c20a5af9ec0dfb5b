"""Whether to call a tool: the model's own choice, also where content is not free text.

Where an answer is either a call or, say, a JSON value, the mask leaves what calls begin with and what such values begin
with. A model that would rather talk than call has put most of what it says on words, and the mask takes these away: of
what is left, a call may be by far the likeliest, so that a small model calls again and again and never answers. So at
this one place whatever does not begin a call counts for content: a call is as likely as the model makes it, and content
takes the rest, shared out as the model does among what content may begin with.

    fork --first token--> mark of a call, token by token --> call
     |  ^                            |
     |  +------- take back ----------+
     +----> content

A mark that is written in several tokens (``<tool_call>`` as text) is no call before all of it is there: the model may
have meant ``<tool_response>``. At each of these tokens the mask leaves one continuation, so what the model says to that
counts, too. Where it would have written something else, the answer takes back what it has of the mark, and is content.

Where calls begin like content, as JSON objects, the first token does not say which it is, and the mask alone decides.
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


class Fork:
    """The place of one answer at which it becomes a call or content. See ``constrain.llama.decoding.answer.Fork``.

    Args:
        answer: the answer, for which ``has_fork`` holds.
        vocabulary: of the model.
        sampling: how its tokens are chosen: what is likely, and which chances are taken, is up to that.
    """

    def __init__(self, answer: Choices, vocabulary: Vocabulary, sampling: Sampling) -> None:
        thinking = answer.format.thinking
        self._vocabulary = vocabulary
        self._temperature = sampling.temperature
        self._drawn = random.Random(sampling.seed)  # noqa: S311 - equal seeds give equal answers
        planned = answer_trees(answer)
        self._calls = [
            self._written([step] if isinstance(step, SpecialName) else [step.decode("utf-8", "surrogateescape")])
            for step, _ in planned.second.onward
            if not isinstance(step, Variable)
        ]
        self._marks = [found[0] for call in self._calls if (found := _FIRST_WORD.match(call))]
        self._begin = self._end = b""
        if thinking is not None and answer.reasoning is not Reasoning.NONE:
            names = frozenset(answer.special)
            self._begin = self._written(structure_parts(thinking.begin, names))
            self._end = self._written(structure_parts(thinking.end, names))
        self._text = self._begin if answer.reasoning is Reasoning.OPENED else b""
        self._read = 0
        self._is_past = bool(planned.beside_json)  # the first token does not say which it is
        self._is_behind_reasoning = answer.reasoning is Reasoning.OPENED
        self._likelihood: float | None = None  # of a call, as far as that is known; once there is a choice
        self._largest_share = 1.0  # of content, that its likeliest token has
        self._begun = b""  # of a mark
        self._turned_back_at = -1

    def allows(self, tokens: Sequence[int], logits: NDArray[np.float32], candidates: NDArray[Any]) -> bool:
        """At the fork, makes candidates that begin content as likely, together, as all that does not begin a call.

        Args:
            tokens: the answer so far.
            logits: after the last of them, float32 of shape (n_vocab,).
            candidates: what is allowed next, ``CANDIDATE`` of shape (n,).

        Returns ``False`` where a call was begun, but the model goes on otherwise.
        """
        if self._begun:
            return self._goes_on(logits, candidates)
        if self._is_reached(tokens):
            self._weigh(logits, candidates)
        return True

    def doubts(self, token: int) -> bool:
        """Whether it begins the mark of a call, or goes on with one, and more of that mark is to come."""
        if self._likelihood is None:
            return False
        self._begun += self._vocabulary.marked_bytes(token)
        is_in_doubt = any(each != self._begun and each.startswith(self._begun) for each in self._marks)
        if not is_in_doubt:
            self._begun, self._likelihood = b"", None
        return is_in_doubt

    def _weigh(self, logits: NDArray[np.float32], candidates: NDArray[Any]) -> None:
        calls, content, reasoning = self._sorted_out(candidates["id"])
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

    def _goes_on(self, logits: NDArray[np.float32], candidates: NDArray[Any]) -> bool:
        """Whether the model goes on with the mark of a call, of which the candidates are the next token."""
        assert self._likelihood is not None
        before = self._sharpened(self._likelihood)
        share = _log_sum(candidates["logit"].astype(np.float64)) - _log_sum(logits.astype(np.float64))
        self._likelihood *= math.exp(min(share, 0.0))
        if before == 0 or self._drawn.random() * before < self._sharpened(self._likelihood):
            return True
        self._begun, self._likelihood, self._turned_back_at = b"", None, self._read
        return False

    def _sharpened(self, likelihood: float) -> float:
        """How likely a call is at the temperature; without chance, whether it is likelier than any content."""
        if self._temperature == 0 or likelihood in (0, 1):
            return float(likelihood > (1 - likelihood) * self._largest_share)
        return _logistic((math.log(likelihood) - math.log1p(-likelihood)) / self._temperature)

    def _is_reached(self, tokens: Sequence[int]) -> bool:
        """Whether there is nothing yet but reasoning and spaces."""
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

    def _sorted_out(self, ids: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """The places of the candidates that begin calls, content and reasoning; none where content may begin as calls.

        What may begin either of calls and reasoning is among the last.
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
            if _agree(text, section):  # maybe a call, too
                reasoning.append(place)
            elif any(_agree(text, call) for call in self._calls):
                calls.append(place)
            else:  # content that begins with the same byte
                return none, none, none
        content = np.setdiff1d(np.arange(len(ids)), near)
        return np.array(calls, np.intp), content, np.array(reasoning, np.intp)

    def _written(self, parts: Sequence[str | SpecialName]) -> bytes:
        """Structure as ``Vocabulary.marked_bytes`` has it: tokens that have a text are that text."""
        return b"".join(
            mark(part.name)
            if isinstance(part, SpecialName) and part.name in self._vocabulary.special_tokens
            else (part.name if isinstance(part, SpecialName) else part).encode("utf-8", "surrogateescape")
            for part in parts
        )


def fork_of(answer: Choices, vocabulary: Vocabulary) -> Callable[[Sampling], Fork] | None:
    """What makes the fork of an answer, if it has one. Takes a moment for the first one of a vocabulary."""
    if not has_fork(answer):
        return None
    _first_bytes(vocabulary)
    return partial(Fork, answer, vocabulary)


def has_fork(answer: Choices) -> bool:
    """Whether an answer is calls or content that begin at the same place, and content is no free text."""
    return (
        answer.content is not None
        and answer.format.content is None
        and answer.calls is Calls.AUTO
        and bool(answer.callable_tools())
    )


_MOST_ODDS = 700.0
"""Logarithms beyond which an exponential is no finite number."""


def _logistic(odds: float) -> float:
    """The likelihood of something whose odds have this logarithm."""
    return 1 / (1 + math.exp(-min(max(odds, -_MOST_ODDS), _MOST_ODDS)))


def _agree(text: bytes, begin: bytes) -> bool:
    """Whether one of two texts, which are not empty, begins with the other one."""
    return bool(text and begin) and (text.startswith(begin) or begin.startswith(text))


def _log_sum(logits: NDArray[np.float64]) -> float:
    """The logarithm of the sum of the exponentials."""
    largest = logits.max()
    if not np.isfinite(largest):
        return float(largest)
    return float(largest + np.log(np.exp(logits - largest).sum()))


_known_first_bytes: WeakKeyDictionary[Vocabulary, NDArray[np.int16]] = WeakKeyDictionary()


def _first_bytes(vocabulary: Vocabulary) -> NDArray[np.int16]:
    """The first byte of each token, as ``Vocabulary.marked_bytes`` has it; -1 for tokens without one."""
    found = _known_first_bytes.get(vocabulary)
    if found is None:
        texts = map(vocabulary.marked_bytes, range(vocabulary.n_vocab))
        found = np.fromiter((text[0] if text else _NO_TEXT for text in texts), np.int16, vocabulary.n_vocab)
        _known_first_bytes[vocabulary] = found
    return found
