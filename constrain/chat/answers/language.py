"""``AnswerLanguage``: the language of all answers to one request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import REFUSAL, Choices, CustomCalls, Value
from constrain.language.schema_text import parse_schema, plain_schema
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.grammar import Grammar
    from constrain.language.special import Tokens


@dataclass(frozen=True, slots=True, repr=False)
class AnswerLanguage(Choices):
    """The language of all answers to one request: see ``Choices``."""

    def grammar(self) -> Grammar:
        """Returns the grammar.

        Raises GrammarError, and errors of its schemas, patterns and grammars with the tool's name.
        """
        from constrain.chat.answers.grammar import answer_grammar

        return answer_grammar(self)

    @property
    def may_be_cached(self) -> bool:
        """Whether the compared fields identify the language; a registry is not among them."""
        return self.registry is None

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """Returns the policies for JSON in arguments and content."""
        return self.policies._asdict()

    def closed(self) -> AnswerLanguage:
        """Returns the language with closed objects in content and inputs; schemas are marked closed or open already."""
        tools = tuple(
            replace(tool, input=tool.input.closed()) if isinstance(tool, CustomCalls) and tool.input else tool
            for tool in self.tools
        )
        content = self.content.closed() if isinstance(self.content, Source) else self.content
        return replace(self, tools=tools, content=content)

    def bound(self, tokens: Tokens) -> AnswerLanguage:
        """Returns the language with content and inputs for a vocabulary."""
        tools = tuple(
            replace(tool, input=tool.input.bound(tokens)) if isinstance(tool, CustomCalls) and tool.input else tool
            for tool in self.tools
        )
        content = self.content.bound(tokens) if isinstance(self.content, Source) else self.content
        return replace(self, tools=tools, content=content)

    def render(self) -> str:
        """Returns a description of the content; prompts show the tools separately."""
        if isinstance(self.content, Value):
            from constrain.json_schema.hint import render

            return render(plain_schema(parse_schema(self.content.schema)))
        return "" if self.content is None else self.content.render()

    def describe(self) -> str:
        """Returns the instruction about the form of the content for the prompt; empty for free text."""
        if self.content is None:
            return ""
        if isinstance(self.content, Source):
            written = self.content.describe()
        else:
            written = f"Answer with JSON in this format:\n{self.render()}"
        if self.refusal:
            written += f'\nIf you cannot answer, write "{REFUSAL}" and the reason instead.'
        return written
