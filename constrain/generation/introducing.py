"""Tools that a prompt shows by name only: whether it does, and how a model is shown each one that it calls.

    prompt with names | answer up to a name | insertion | rest of the answer

The insertion ends the model's turn, shows the tool in a turn of the user, and begins a turn in which the call stands
again, up to the same place. It is evaluated inside the answer (``Answer.insert``) and is no part of it.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from constrain.chat.answers.structure import SpecialName, structure_parts
from constrain.chat.answers.trees import beginning_of_call
from constrain.chat.prompt.conversation import function_of
from constrain.chat.prompt.messages import to_json
from constrain.chat.tools.kinds import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from constrain.chat.answers.language import AnswerLanguage
    from constrain.chat.reading.reply import Called, ReplyProgress
    from constrain.chat.tools.kinds import Tool
    from constrain.llama.model import Model
    from constrain.vocabulary.vocabulary import Vocabulary

TOOLS_SHARE = 4
"""Tokens of the context of which tools may take one with ``tools_shown="auto"``; beyond it, their names are shown."""

_PLAIN = frozenset(("$schema", "additionalProperties", "description", "properties", "required", "title", "type"))
"""Keywords of a schema without parameters."""


def exceed_share(model: Model, tools: Iterable[Tool]) -> bool:
    """Returns whether the definitions of tools take more than one in ``TOOLS_SHARE`` tokens of the context."""
    texts, most = [_define(tool) for tool in tools], model.n_ctx // TOOLS_SHARE
    if sum(len(text.encode(errors="replace")) for text in texts) <= most:  # a token has at least one byte
        return False
    total = 0
    return any((total := total + model.tokenizer.count(text)) > most for text in texts)


def _define(tool: Tool) -> str:
    """Returns about what a prompt shows of a tool, without writing its schema once more."""
    schema = tool.schema_text if isinstance(tool, FunctionTool) else to_json(function_of(tool))
    return f"{tool.name} {tool.description} {schema}"


class Introductions:
    """Shows the model each tool with parameters that one answer calls, once: ``Answer.insert``.

    Args:
        language: language of the answer.
        vocabulary: vocabulary of the model.
        introduce: returns the token ids that show a tool, up to the place where the call is repeated.
        progress: the reader of the answer.

    Attributes:
        names: names of the tools that were to be shown, in order.
    """

    def __init__(
        self,
        language: AnswerLanguage,
        vocabulary: Vocabulary,
        introduce: Callable[[object], list[int]],
        progress: ReplyProgress,
    ) -> None:
        self._language = language
        self._vocabulary = vocabulary
        self._introduce = introduce
        self._progress = progress
        self.names: list[str] = []

    def __call__(self, tokens: Sequence[int]) -> list[int]:
        """Returns the tokens to insert behind those of the answer; none if no call of a further tool has begun."""
        called = self._progress.called
        if called is None or called.tool.name in self.names or _takes_nothing(called.tool):
            return []
        self.names.append(called.tool.name)
        return [*self._introduce(called.tool), *self._repeat(called, tokens)]

    def told(self, inserted: Iterable[tuple[int, Sequence[int]]]) -> dict[str, bool]:
        """Returns, for each tool to be shown, whether there was room. ``inserted``: ``Answer.inserted``."""
        return {name: bool(tokens) for name, (_, tokens) in zip(self.names, inserted, strict=True)}

    def _repeat(self, called: Called, tokens: Sequence[int]) -> list[int]:
        """Returns the tokens of the call whose name was just written, with the opening of all calls."""
        form, names = self._language.format, frozenset(self._language.special)
        pieces = [self._vocabulary.marked_bytes(token) for token in tokens]
        answer = b"".join(pieces)
        begin = answer.rindex(_spell(beginning_of_call(self._language, called.number), names), 0, called.end)
        opening = _spell(form.opening, names)
        has_opening = answer.endswith(opening, 0, begin)
        begin -= len(opening) * has_opening
        ends = [0, *accumulate(map(len, pieces))]
        first = bisect_left(ends, begin)
        assert self._vocabulary.encode is not None
        cut = self._vocabulary.encode(answer[begin : ends[first]])  # the end of a token with other text in front of it
        before = [] if has_opening else structure_tokens(form.opening, names, self._vocabulary)
        return [*before, *cut, *tokens[first:]]


def structure_tokens(structure: str, names: Collection[str], vocabulary: Vocabulary) -> list[int]:
    """Returns the token ids of structure, in which ``names`` stand for special tokens."""
    assert vocabulary.encode is not None
    tokens: list[int] = []
    for part in structure_parts(structure, frozenset(names)):
        if isinstance(part, SpecialName):
            tokens.append(vocabulary.special_tokens[part.name])
        else:
            tokens += vocabulary.encode(part.encode())
    return tokens


def _spell(structure: str, names: frozenset[str]) -> bytes:
    """Returns structure as ``Vocabulary.marked_bytes`` has it."""
    parts = structure_parts(structure, names)
    return b"".join(part.written if isinstance(part, SpecialName) else part.encode() for part in parts)


def _takes_nothing(tool: Tool) -> bool:
    parameters: Mapping[str, Any] = function_of(tool)["parameters"]
    has_any = any(parameters.get(name) for name in ("properties", "additionalProperties"))
    return parameters.keys() <= _PLAIN and not has_any
