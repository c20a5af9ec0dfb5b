"""``AnswerLanguage``: the language of all answers to one request."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import REFUSAL, Choices, CustomCalls, Value
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.grammar import Grammar


@dataclass(frozen=True, slots=True)
class AnswerLanguage(Choices):
    """All answers to one request: see ``Choices``."""

    def grammar(self) -> Grammar:
        """Its language. Raises the errors of its schemas, patterns and grammars, naming the tool; GrammarError."""
        from constrain.chat.answers.grammar import answer_grammar

        return answer_grammar(self)

    @property
    def is_known_by_repr(self) -> bool:
        """Not with a registry."""
        return self.registry is None

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """Of arguments and content in JSON."""
        return self.policies._asdict()

    def closed(self) -> AnswerLanguage:
        """The same: schemas say for themselves whether they are closed, but for languages of content and inputs."""
        tools = tuple(
            replace(tool, input=tool.input.closed()) if isinstance(tool, CustomCalls) and tool.input else tool
            for tool in self.tools
        )
        content = self.content.closed() if isinstance(self.content, Source) else self.content
        return replace(self, tools=tools, content=content)

    def render(self) -> str:
        """What content is like; prompts show the tools themselves."""
        if isinstance(self.content, Value):
            from constrain.language.hint import render

            return render(json.loads(self.content.schema))
        return "" if self.content is None else self.content.render()

    def describe(self) -> str:
        """The instruction that is added to the prompt, if content is to have a form."""
        if self.content is None:
            return ""
        if isinstance(self.content, Source):
            written = self.content.describe()
        else:
            written = f"Answer with JSON in this format:\n{self.render()}"
        if self.refusal:
            written += f'\nIf you cannot answer, write "{REFUSAL}" and the reason instead.'
        return written
