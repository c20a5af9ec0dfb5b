"""The note next to a batch's answers: the settings that they depend on, and the table or file made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypedDict

from constrain.batch.scanning import begins_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.batch.inputs import Input

_FINISHED = "finished"

FIRST_INPUT = "first input"
"""Setting with the input that answers were begun with, if it has grown since."""


class Finished(TypedDict):
    """Facts about an output that was made of answers: the number of answers, and the bytes of the output."""

    answers: int
    bytes: int


def note_text(settings: Mapping[str, object], finished: Finished | None = None) -> bytes:
    """Returns the content of a note."""
    whole = {**settings, **({} if finished is None else {_FINISHED: finished})}
    return json.dumps(whole, indent=2).encode() + b"\n"


def read_finished(note: bytes) -> Finished | None:
    """Returns the facts about the output that was made of the answers; ``None`` if there is none yet."""
    found: Finished | None = json.loads(note).get(_FINISHED)
    return found


def compare_note(
    note: bytes | None, settings: Mapping[str, object], output: str, name: str, prompts: Input | None = None
) -> Mapping[str, object]:
    """Returns the settings to go on with. Raises ``ValueError`` if answers were made with other ones.

    Rows that were added at the end of the input leave the answers to its first rows as they are.

    Args:
        note: content of the note; ``None`` if there is none.
        settings: settings of this run.
        output: name of the answers, for the error.
        name: name of the note, for the error.
        prompts: input, if it may have grown.
    """
    try:
        former = None if note is None else json.loads(note)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read ({error}); --restart overwrites {output}") from error
    if not isinstance(former, dict):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not an argument's type
            f"{output} exists, but {name}, which records its settings, does not; "
            f"name another output, or overwrite this one with --restart"
        )
    former.pop(_FINISHED, None)
    first, was = former.pop(FIRST_INPUT, None), former.get("input")
    if prompts is not None and was != settings["input"] and _begins_with(prompts, was):
        first, former["input"] = first or was, settings["input"]
    changed = [
        key if isinstance(settings.get(key), dict) else f"{key} (it was {_describe(former, key)})"
        for key in {**settings, **former}
        if former.get(key) != settings.get(key)
    ]
    if changed:
        raise ValueError(
            f"{output} was made with another {', another '.join(changed)}; restore the former settings, "
            f"name another output, or overwrite this one with --restart"
        )
    return settings if first is None else {**settings, FIRST_INPUT: first}


def _begins_with(prompts: Input, former: Any) -> bool:
    """Returns whether the first rows of an input are those of a former one; ``former``: facts about that one."""
    return isinstance(former, dict) and begins_with(prompts.read(), former.get("rows", 0), former.get("sha256", ""))


def _describe(settings: dict[str, Any], key: str) -> str:
    value = settings.get(key)
    return "not given" if value is None else json.dumps(value)
