"""The lines of a batch's input: each becomes a task, or an error that says why it cannot."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from constrain.generation.options import options_beside
from constrain.llama.decoding.ranges import seed_of
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from constrain.chat.prompt.messages import Prompt
    from constrain.generation.options import ChatOptions, Options
    from constrain.language.source import Source

Id: TypeAlias = str | int | float | None

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Task:
    """One line of the input: the prompt, and how to answer it.

    Attributes:
        line: number of the line, from 1.
        id: name that the line gives itself, if any; copied to the answer.
        prompt, schema, options: arguments for ``complete``.
    """

    line: int
    id: Id
    prompt: Prompt
    schema: object
    options: ChatOptions


class LineError(ValueError):
    """A line of the input that is not a valid task. ``id`` is the name that the line gives itself, if it is known."""

    def __init__(self, message: str, *, id: Id = None) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id


class _Line(BaseModel):
    """The fields that a line may have. A default means that the field is missing."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: str = ""
    messages: list[dict[str, Any]] = []
    id: Id = None
    schema_: Annotated[dict[str, Any] | bool | None, Field(alias="schema")] = None
    max_tokens: int | None = None
    max_string_tokens: int | None = None
    max_number_tokens: int | None = None
    temperature: float = 0
    top_p: float = 0
    top_k: int = 0
    min_p: float = 0
    seed: int | None = None
    stop: str | list[str] = ""
    logit_bias: dict[Annotated[int, Field(strict=False)], float] = {}
    repeat_penalty: float = 0
    presence_penalty: float = 0
    frequency_penalty: float = 0
    logprobs: bool = False
    top_logprobs: int = 0
    timeout: float | None = None
    tools: list[dict[str, Any]] = []
    tool_choice: str | dict[str, Any] | list[str] | None = None
    parallel_tool_calls: bool = True
    tool_format: str | None = None
    allow_refusal: bool = False
    thinking: bool | None = None
    max_reasoning_tokens: int | None = None
    show_schema: bool | str = True
    whitespace: str = ""
    property_order: str = ""
    formats: str = ""
    numbers: str = ""
    precision: str = ""
    escapes: str = ""
    strict: bool = False
    registry: dict[str, dict[str, Any] | bool] | None = None


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields the non-blank lines of a file with their numbers, which count from 1 and include blank lines.

    Only a line feed ends a line (after an optional carriage return): other separators may be part of a JSON text.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if text := text.strip(b" \t\r\n"):
                yield number, text


def read_task(number: int, line: bytes, schema: str | Source | None, options: Options) -> Task:
    """Returns the task that a line stands for. Raises ``LineError``.

    A line is a JSON object with ``prompt`` (a text) or ``messages``, and optionally ``id``, ``schema`` (``null`` for
    none) and the ``ChatOptions`` that can be written as JSON (tools in OpenAI's form). A line can also be a JSON
    string: the prompt.

    Args:
        number: number of the line, from 1.
        line: bytes of the line, without its line end.
        schema: JSON text or another source, for lines without a ``schema`` field.
        options: defaults for the other fields. ``seed`` is the seed of line 1; each later line adds one.
    """
    found = _parse(line)
    if isinstance(found, str):
        found = {"prompt": found}
    if not isinstance(found, dict):
        raise LineError("a line must be a JSON object or a JSON string")
    name = found.get("id")
    known: Id = name if isinstance(name, (str, int, float)) else None
    try:
        fields: dict[str, Any] = _Line.model_validate(found).model_dump(by_alias=True, exclude_unset=True)
    except ValidationError as error:
        raise LineError(_complaint(error), id=known) from error
    if ("prompt" in fields) == ("messages" in fields):
        raise LineError("give either prompt or messages, and not both", id=known)
    prompt: Prompt = fields.pop("prompt") if "prompt" in fields else fields.pop("messages")
    used: object = fields.pop("schema", schema)
    fields.pop("id", None)
    seed = options.get("seed")
    given: ChatOptions = {**options}  # type: ignore[typeddict-item]
    if seed is not None:
        given["seed"] = seed_of(seed, number - 1)
    if "tools" in fields:
        given["tools"] = fields["tools"]
    return Task(number, known, prompt, used, {**options_beside(given, used), **fields})  # type: ignore[typeddict-item]


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode(), object_pairs_hook=_object, parse_constant=_not_json)
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8: {error}") from error
    except json.JSONDecodeError as error:
        raise LineError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except LineError:
        raise
    except (ValueError, RecursionError) as error:  # integers with too many digits; texts nested too deeply
        raise LineError(f"not readable JSON:{error}") from error


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise LineError("a key occurs twice in one object")
    return found


def _not_json(name: str) -> object:
    raise LineError(f"not JSON: {name}")


def _complaint(error: ValidationError) -> str:
    said: dict[str, list[str]] = {}
    for each in error.errors(include_url=False):
        name = str(each["loc"][0])
        is_unknown = each["type"] == "extra_forbidden"
        wrong = (
            f"unknown field{did_you_mean(name, (field.alias or key for key, field in _Line.model_fields.items()))}"
            if is_unknown
            else each["msg"]
        )
        said.setdefault(name, []).append(wrong)
    return "; ".join(f"{name}: {', or: '.join(wrong)}" for name, wrong in said.items())
