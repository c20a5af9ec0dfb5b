"""The note next to a batch's answers: the settings that they depend on, and the table or file made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINISHED = "finished"


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


def compare_note(note: bytes | None, settings: Mapping[str, object], output: str, name: str) -> None:
    """Raises ``ValueError`` if answers were made with other settings than those given.

    Args:
        note: content of the note; ``None`` if there is none.
        settings: settings of this run.
        output: name of the answers, for the error.
        name: name of the note, for the error.
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


def _describe(settings: dict[str, Any], key: str) -> str:
    value = settings.get(key)
    return "not given" if value is None else json.dumps(value)
