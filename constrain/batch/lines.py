"""The lines of a batch's input: each becomes a task, or an error that says why it cannot."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from constrain.fields.declared import Flag, Reads, Text, within
from constrain.fields.sampling import (
    DraftFields,
    KeepingFields,
    LimitOrNone,
    OptionFields,
    Prefix,
    ShowingFields,
    biases,
    sampling_fields,
    smallest_limit,
    stops,
)
from constrain.fields.values import (
    FieldError,
    array,
    boolean,
    mapping,
    optional_text,
    refuse_together,
    required_text,
    wrong_type,
)
from constrain.fields.votes import VoteFields
from constrain.generation.options import MAY_BE_NONE, OPTIONS, TOP_LOGPROBS, add_defaults, options_beside
from constrain.language.policies import CHOICES
from constrain.llama.decoding.ranges import seed_of
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from constrain.chat.prompt.messages import Prompt
    from constrain.generation.options import ChatOptions, Options
    from constrain.language.source import Source

Id: TypeAlias = str | int | float | None

FIELDS = {"prompt", "messages", "id", "schema", "n", "vote", *(name for name, each in OPTIONS.items() if each.in_batch)}
"""Fields of a line. Answers of batches have no traces, which are a hundred times as long as their texts."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_AROUND = len(_BYTE_ORDER_MARK) + len(b"\r\n") + 1
"""Bytes of a line beyond its longest text that are read, so that one byte too many is seen."""


@dataclass(frozen=True, slots=True)
class Task:
    """One line of the input: the prompt, and how to answer it.

    Attributes:
        line: number of the line, from 1.
        id: name that the line gives itself, if any; copied to the answer.
        prompt, schema, options: arguments for ``complete``.
        voters: number of answers that vote; ``None`` without a vote.
    """

    line: int
    id: Id
    prompt: Prompt
    schema: object
    options: ChatOptions
    voters: int | None = None


class LineError(ValueError):
    """A line of the input that is not a valid task. ``id`` is the name that the line gives itself, if it is known."""

    def __init__(self, message: str, *, id: Id = None) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id


def _read_tools(given: object, place: str) -> list[dict[str, Any]]:
    return [mapping(tool, f"{place}[{index}]") for index, tool in enumerate(array(given, place))]


def _read_choice(given: object, place: str) -> object:
    """Returns the choice of tools: a mode or a name, one of OpenAI's objects, or names."""
    if isinstance(given, str | dict):
        return given
    if not isinstance(given, list):
        raise wrong_type(place, "a string, an object or an array", given)
    for index, name in enumerate(given):
        if not isinstance(name, str):
            raise wrong_type(f"{place}[{index}]", "a string", name)
    return given


def _show_schema(given: object, name: str) -> object:
    if not isinstance(given, bool | str):
        raise wrong_type(name, "a boolean or a string", given)
    return given


def _thinking(given: object, name: str) -> object:
    return given if given == "adaptive" else boolean({name: given}, name)


if TYPE_CHECKING:
    _SamplingFields = OptionFields
else:
    _SamplingFields = sampling_fields({})

_Count: TypeAlias = Annotated[int | None, within((1, None))]


class _Line(VoteFields, ShowingFields, DraftFields, KeepingFields, _SamplingFields):
    n: _Count = None
    stop: Annotated[Any, stops(None)] = None
    logit_bias: Annotated[Any, biases((None, None))] = None
    max_tokens: LimitOrNone = None
    show_schema: Annotated[Any, Reads(_show_schema)] = None
    prefix: Prefix = None
    max_string_tokens: _Count = None
    max_number_tokens: _Count = None
    max_reasoning_tokens: _Count = None
    logprobs: Flag = None
    parallel_tool_calls: Flag = None
    allow_refusal: Flag = None
    strict: Flag = None
    thinking: Annotated[Any, Reads(_thinking)] = None
    tool_format: Text = None
    reasoning_effort: Text = None
    top_logprobs: Annotated[int | None, within(TOP_LOGPROBS)] = None
    timeout: Annotated[float | None, within((0, None))] = None
    tools: Annotated[Any, Reads(_read_tools)] = None
    tables: Annotated[Any, Reads(mapping)] = None
    tool_choice: Annotated[Any, Reads(_read_choice)] = None
    registry: Annotated[Any, Reads(mapping)] = None
    template_variables: Annotated[Any, Reads(mapping)] = None


def read_lines(path: Path, longest: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yields the non-blank lines of a file with their numbers, which count from 1 and include blank lines.

    Only a line feed ends a line (after an optional carriage return): other separators may be part of a JSON text. Of a
    line with more than ``longest`` bytes, the first ``longest + 1`` are yielded.
    """
    with path.open("rb") as file:
        yield from split_lines(file, longest)


def split_lines(file: BinaryIO, longest: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of an open file, as ``read_lines``."""
    size = -1 if longest is None else longest + _AROUND
    for count, line in enumerate(iter(partial(file.readline, size), b""), 1):
        text = line.removeprefix(_BYTE_ORDER_MARK) if count == 1 else line
        if longest is not None and len(text.rstrip(b"\r\n")) > longest:
            _skip_line(file, line)
            yield count, text[: longest + 1]
            continue
        if text := text.strip(b" \t\r\n"):
            yield count, text


def _skip_line(file: BinaryIO, line: bytes) -> None:
    """Reads to the end of a line whose beginning was read."""
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)


def read_task(
    line_number: int, line: bytes, schema: str | Source | None, options: Options, voters: int | None = None
) -> Task:
    """Returns the task that a line stands for. Raises ``LineError``.

    A line is a JSON object with ``prompt`` (a text) or ``messages``, and optionally ``id``, ``schema`` (``null`` for
    none), ``n`` with ``vote``, and the ``ChatOptions`` that can be written as JSON (tools in OpenAI's form). A line can
    also be a JSON string: the prompt.

    Args:
        line_number: number of the line, from 1.
        line: bytes of the line, without its line end.
        schema: JSON text or another source, for lines without a ``schema`` field.
        options: defaults for the other fields. ``seed`` is the seed of line 1; each later line adds the number
            of its answers.
        voters: number of answers that vote, for lines without ``vote``; ``None`` for no vote.
    """
    found = parse_json(line)
    if isinstance(found, str):
        found = {"prompt": found}
    if not isinstance(found, dict):
        raise LineError("a line must be a JSON object or a JSON string")
    return read_fields(line_number, found, schema, options, voters)


def read_fields(
    line_number: int,
    found: Mapping[str, Any],
    schema: str | Source | None,
    options: Options,
    voters: int | None = None,
) -> Task:
    """Returns the task of an object with the fields of a line, as ``read_task``. Raises ``LineError``."""
    known = known_id(found)
    if unknown := found.keys() - FIELDS:
        raise LineError(unknown_names("fields", unknown, FIELDS), id=known)
    try:
        refuse_together(line=True, prompt="prompt" in found, messages="messages" in found)
        prompt, asked = _read_prompt(found), _Line.read(found)
        fields, voting = _options(asked, found), _voters(asked, voters)
        used = _read_schema(found["schema"]) if "schema" in found else schema
        if known is not found.get("id"):
            raise wrong_type("id", "a string or a number", found["id"])
    except FieldError as error:
        raise LineError(error.message, id=known) from error
    seed = options.get("seed")
    given: ChatOptions = {**options}  # type: ignore[typeddict-item]
    if seed is not None:
        given["seed"] = seed_of(seed, (line_number - 1) * (voting or 1))
    if "tools" in fields:
        given["tools"] = fields["tools"]
    if voting is None and given.get("unbias"):
        given["unbias"] = False  # the default is for lines that vote
    return Task(line_number, known, prompt, used, add_defaults(options_beside(given, used), fields), voting)


def known_id(fields: Mapping[str, Any]) -> Id:
    """Returns the name that a line gives itself, if it is a text or a number that JSON can write."""
    name = fields.get("id")
    if isinstance(name, float) and not math.isfinite(name):
        return None
    return name if isinstance(name, str | int | float) and not isinstance(name, bool) else None


def _voters(asked: _Line, voters: int | None) -> int | None:
    """Returns the number of answers that vote; None without a vote. ``voters``: the number of lines that say nothing.

    Raises ``FieldError``.
    """
    if asked.vote is None:
        asked.vote = voters is not None
    if asked.votes(asked.n or voters or 1, logprobs=asked.logprobs or False):
        return asked.n or voters
    refuse_together(n=asked.n is not None and asked.n > 1, vote=False)
    return None


def _read_prompt(line: Mapping[str, Any]) -> Prompt:
    if "prompt" in line:
        return required_text(line, "prompt")
    return [mapping(message, f"messages[{index}]") for index, message in enumerate(array(line["messages"], "messages"))]


def _read_schema(given: object) -> object:
    if given is not None and not isinstance(given, dict | bool):
        raise wrong_type("schema", "an object, a boolean or null", given)
    return given


def _options(asked: _Line, line: Mapping[str, Any]) -> ChatOptions:
    """Returns the options that a line gives. A field that is null counts as missing if its option cannot be None."""
    fields = {**asked.__dict__, **{name: optional_text(line, name) for name in CHOICES}, "max_tokens": None}
    kept = {name: value for name, value in fields.items() if value is not None and name in OPTIONS}
    kept |= {name: None for name in MAY_BE_NONE & line.keys() if line[name] is None}
    kept |= smallest_limit({"max_tokens": asked.max_tokens})[0]
    return kept  # type: ignore[return-value]


def parse_json(line: bytes) -> Any:
    """Returns the value of a JSON text. Raises ``LineError``, also for keys that occur twice and for NaN."""
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
