"""The parts of an answer that a request gives schemas and grammars for, and what is said where one cannot be compiled.

Places are named as chat completions have them; the other endpoints rename them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import Calls, CustomCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.errors import LimitError
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import refused_schema
from constrain.server.requests.places import Place

if TYPE_CHECKING:
    from constrain.errors import ConstrainError
    from constrain.generation.job import Language
    from constrain.server.requests.formats import Format


@dataclass(frozen=True, slots=True)
class Part:
    """One of them: ``language`` is an answer that is nothing else; ``tool``: its name, "" for content."""

    place: Place
    language: Language
    tool: str = ""


def parts_of(language: Language, content: Format | None) -> list[Part]:
    """The parts of what is compiled: content, and each tool that may be called."""
    parts = [] if content is None else [Part(_place_of(content), language)]
    if not isinstance(language.schema, AnswerLanguage):
        return parts
    answer = replace(language.schema, reasoning=Reasoning.NONE)
    if content is not None:
        alone = replace(answer, tools=(), allowed=None, calls=Calls.NONE)
        parts = [] if answer.calls is Calls.REQUIRED else [Part(_place_of(content), replace(language, schema=alone))]
    for index in answer.callable_tools():
        tool = answer.tools[index]
        one = replace(
            answer, tools=(tool,), allowed=None, calls=Calls.REQUIRED, parallel=False, content=None, refusal=False
        )
        if isinstance(tool, CustomCalls):
            place = Place(f"tools[{index}].custom.format", "invalid_grammar", f"grammar of the tool '{tool.name}'")
        else:
            name = f"schema for function '{tool.name}'"
            place = Place(f"tools[{index}].function.parameters", "invalid_function_parameters", name)
        parts.append(Part(place, replace(language, schema=one), tool.name))
    return parts


def refused_part(place: Place, error: ConstrainError, content: Format | None) -> ApiError:
    """What is answered where a part cannot be compiled by itself."""
    is_content = content is not None and place == _place_of(content)
    reason = refused_schema(content.schema, error) if content is not None and is_content else str(error)
    return ApiError(f"Invalid {place.name}: {reason}", param=place.param, code=place.code)


def refused(content: Format | None, error: ConstrainError, *, has_tools: bool) -> ApiError:
    """What is answered where no part of an answer is to blame by itself, or there is content alone."""
    if content is not None and not has_tools:
        return refused_part(_place_of(content), error, content)
    wrong = "The tools are too much" if isinstance(error, LimitError) else "The tools cannot be used"
    beside = "together" if content is None else "together with the response_format"
    return ApiError(f"{wrong} {beside}: {error}", param="tools", code="invalid_grammar")


def _place_of(content: Format) -> Place:
    name = f"schema for response_format '{content.name}'" if content.name else "schema for response_format"
    return Place("response_format", "invalid_json_schema", name)
