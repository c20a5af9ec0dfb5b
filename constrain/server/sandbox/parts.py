"""The parts of an answer that have a schema or grammar of their own, and errors for those that cannot be compiled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import Calls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.errors import LimitError
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import all_refused

if TYPE_CHECKING:
    from constrain.errors import ConstrainError
    from constrain.generation.job import Language
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Place, Places


@dataclass(frozen=True, slots=True)
class Part:
    """One of them: ``language`` is an answer that is nothing else; ``tool``: its name, "" for content."""

    place: Place
    language: Language
    tool: str = ""


def parts_of(language: Language, content: Format | None, places: Places) -> list[Part]:
    """The parts of what is compiled: content, and each tool that may be called."""
    parts = [] if content is None else [Part(content.place, language)]
    if not isinstance(language.schema, AnswerLanguage):
        return parts
    answer = replace(language.schema, reasoning=Reasoning.NONE)
    if content is not None:
        alone = replace(answer, tools=(), allowed=None, calls=Calls.NONE)
        parts = [] if answer.calls is Calls.REQUIRED else [Part(content.place, replace(language, schema=alone))]
    for index in answer.callable_tools():
        tool = answer.tools[index]
        one = replace(
            answer, tools=(tool,), allowed=None, calls=Calls.REQUIRED, parallel=False, content=None, refusal=False
        )
        parts.append(Part(places.of_tools[tool.name], replace(language, schema=one), tool.name))
    return parts


def refused_part(place: Place, error: ConstrainError, content: Format | None) -> ApiError:
    """What is answered where a part cannot be compiled by itself."""
    is_content = content is not None and place == content.place
    reason = all_refused(content.schema, error) if content is not None and is_content else str(error)
    return ApiError(f"Invalid {place.name}: {reason}", param=place.param, code=place.code)


def refused(content: Format | None, error: ConstrainError, *, tools: str) -> ApiError:
    """What is answered where no part of an answer is to blame by itself, or there is content alone.

    ``tools``: what the request calls the tools; ``""`` where none may be called.
    """
    if content is not None and not tools:
        return refused_part(content.place, error, content)
    wrong = "The tools are too much" if isinstance(error, LimitError) else "The tools cannot be used"
    beside = "together" if content is None else "together with the response_format"
    return ApiError(f"{wrong} {beside}: {error}", param=tools or "tools", code="invalid_grammar")
