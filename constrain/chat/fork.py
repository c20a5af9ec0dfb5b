"""Whether to call a tool: the model's own choice, also where content is not free text.

Where an answer is either a call or, say, a JSON value, the mask leaves what calls begin with and what such values begin
with. A model that would rather talk than call has put most of what it says on words, and the mask takes these away: of
what is left, a call may be by far the likeliest, so that a small model calls again and again and never answers. So at
this one place whatever does not begin a call counts for content: a call is as likely as the model makes it, and content
takes the rest, shared out as the model does among what content may begin with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from constrain._special import mark
from constrain.chat.answers import Calls, Reasoning
from constrain.chat.plan import plan
from constrain.chat.structure import SpecialName, Variable, structure_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from constrain.chat.answers import Answer
    from constrain.vocabulary import Vocabulary

_NO_TEXT = -1


class Fork:
    """The place of one answer at which it becomes a call or content.

    Args:
        answer: the answer, for which ``has_fork`` holds.
        vocabulary: of the model.
    """

    def __init__(self, answer: Answer, vocabulary: Vocabulary) -> None:
        thinking = answer.format.thinking
        self._vocabulary = vocabulary
        self._calls = [
            self._written([step] if isinstance(step, SpecialName) else [step.decode("utf-8", "surrogateescape")])
            for step, _ in plan(answer).second.onward
            if not isinstance(step, Variable)
        ]
        self._begin = self._end = b""
        if thinking is not None and answer.reasoning is not Reasoning.NONE:
            names = frozenset(answer.special)
            self._begin = self._written(structure_parts(thinking.begin, names))
            self._end = self._written(structure_parts(thinking.end, names))
        self._text = self._begin if answer.reasoning is Reasoning.OPENED else b""
        self._read = 0
        self._is_past = False

    def weigh(self, tokens: Sequence[int], logits: NDArray[np.float32], candidates: NDArray[Any]) -> None:
        """At the fork, makes candidates that begin content as likely, together, as all that does not begin a call.

        Args:
            tokens: the answer so far; each call goes on where the last one was.
            logits: after the last of them, float32 of shape (n_vocab,).
            candidates: what is allowed next, ``CANDIDATE`` of shape (n,); its logits are changed.
        """
        if not self._is_reached(tokens):
            return
        calls, content, reasoning = self._sorted_out(candidates["id"])
        if not len(calls) or not len(content):
            return
        rest = logits.astype(np.float64)
        rest[candidates["id"][calls]] = rest[candidates["id"][reasoning]] = -np.inf
        shift = _log_sum(rest) - _log_sum(candidates["logit"][content].astype(np.float64))
        if np.isfinite(shift):
            candidates["logit"][content] += np.float32(shift)

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
        self._is_past = bool(behind.strip())
        return not self._is_past

    def _sorted_out(self, ids: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """The places of the candidates that begin calls, content and reasoning; none where that is not certain yet."""
        first = _first_bytes(self._vocabulary)[ids]
        begins = {text[0] for text in (*self._calls, self._begin) if text}
        near = np.flatnonzero(np.isin(first, list(begins)))
        none = np.empty(0, np.intp)
        calls: list[int] = []
        reasoning: list[int] = []
        for place in near.tolist():
            text = self._vocabulary.marked_bytes(int(ids[place]))
            of_calls = any(_agree(text, call) for call in self._calls)
            if of_calls == _agree(text, self._begin):  # both, or content that begins with the same byte
                return none, none, none
            (calls if of_calls else reasoning).append(place)
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


def has_fork(answer: Answer) -> bool:
    """Whether an answer is calls or content that begin at the same place, and content is no free text."""
    return (
        answer.content is not None
        and answer.format.content is None
        and answer.calls is Calls.AUTO
        and bool(answer.callable_tools())
    )


def _agree(text: bytes, begin: bytes) -> bool:
    """Whether one of two texts, which are not empty, begins with the other one."""
    return bool(text and begin) and (text.startswith(begin) or begin.startswith(text))


def _log_sum(logits: NDArray[np.float64]) -> float:
    """The logarithm of the sum of the exponentials."""
    largest = logits.max()
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
