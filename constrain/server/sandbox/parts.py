"""The parts of an answer with a schema or grammar of their own, and the errors for parts that cannot be compiled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import Calls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.errors import LimitError
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import describe_refusals, tag_error
from constrain.structural.source import StructuralTag

if TYPE_CHECKING:
    from constrain.errors import ConstrainError
    from constrain.generation.plan import Language
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Place, Places


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer.

    Attributes:
        place: its place in the request.
        whole: language of the answer.
        tool: its name; ``""`` for content.
    """

    place: Place
    whole: Language
    tool: str = ""

    def language(self) -> Language:
        """Returns the language of answers that consist of this part only."""
        answer = self.whole.schema
        if not isinstance(answer, AnswerLanguage):
            return self.whole
        if not self.tool:
            alone = replace(answer, tools=(), allowed=None, calls=Calls.NONE, reasoning=Reasoning.NONE)
            return replace(self.whole, schema=alone)
        tools = tuple(tool for tool in answer.tools if tool.name == self.tool)
        one = replace(
            answer, tools=tools, allowed=None, calls=Calls.REQUIRED, parallel=False, content=None, refusal=False
        )
        return replace(self.whole, schema=replace(one, reasoning=Reasoning.NONE))


def parts_of(language: Language, content: Format | None, places: Places) -> list[Part]:
    """Returns the parts of a language: content, and each tool that may be called."""
    parts = [] if content is None else [Part(content.place, language)]
    answer = language.schema
    if not isinstance(answer, AnswerLanguage):
        return parts
    if answer.calls is Calls.REQUIRED:
        parts = []
    names = [answer.tools[index].name for index in answer.callable_tools()]
    return [*parts, *(Part(places.of_tools[name], language, name) for name in names)]


def part_error(place: Place, error: ConstrainError, content: Format | None) -> ApiError:
    """Returns the error for a part that cannot be compiled."""
    is_content = content is not None and place == content.place
    if content is not None and is_content and isinstance(content.schema, StructuralTag):
        return tag_error(content.schema.tag, place, error)
    reason = describe_refusals(content.schema, error) if content is not None and is_content else str(error)
    return ApiError(f"Invalid {place.name}: {reason}", param=place.param, code=place.code)


def answer_error(content: Format | None, error: ConstrainError, *, tools: str) -> ApiError:
    """Returns the error for an answer that cannot be compiled, if no tool alone is the cause.

    ``tools``: name of the request's field for tools; ``""`` if none may be called.
    """
    if content is not None and not tools:
        return part_error(content.place, error, content)
    wrong = "The tools are too much" if isinstance(error, LimitError) else "The tools cannot be used"
    beside = "together" if content is None else "together with the response_format"
    return ApiError(f"{wrong} {beside}: {error}", param=tools or "tools", code="invalid_grammar")
