"""``$data`` and its JSON Pointers, absolute (``/a/b``) and relative (``1/start``)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.language.stages import DATA, GIVEN, REFERS, UNIQUE_BY, mentions_data
from constrain.tables.keyword import ONE_OF

_RELATIVE = re.compile(r"(0|[1-9]\d*)((?:/[^#]*)?)")


class AnyItem(NamedTuple):
    """The step to an item of an array, whichever."""

    def __repr__(self) -> str:
        """Returns the step as a pattern of pointers writes it."""
        return "*"


ITEM = AnyItem()

Step = str | int | AnyItem
Path = tuple[Step, ...]


def show_path(path: Path) -> str:
    """Returns a path as a JSON Pointer, in which ``*`` stands for any item.

    >>> show_path(("visits", ITEM, "start"))
    '/visits/*/start'
    """
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path) or "the whole answer"


def data_pointer(value: object) -> object:
    """Returns the pointer of a reference to another field; ``None`` for all other values of keywords."""
    return value[DATA] if isinstance(value, dict) and len(value) == 1 and DATA in value else None


def reference(keyword: str, value: object) -> object:
    """Returns what a keyword's value says of another field: its pointer, or ``given``; ``None`` if it is no such."""
    if keyword == ONE_OF and isinstance(value, dict) and GIVEN in value:
        return value[GIVEN] or {}
    if keyword in (UNIQUE_BY, REFERS):
        return value if isinstance(value, str) else None
    return data_pointer(value)


def without_data(value: Any) -> Any:
    """Returns a JSON value without the members that are references to other fields."""
    if isinstance(value, dict):
        return {key: without_data(each) for key, each in value.items() if reference(key, each) is None}
    return [without_data(each) for each in value] if isinstance(value, list) else value


def find_data(document: object) -> str | None:
    """Returns the pointer of the first keyword of a schema whose value is another field; ``None`` if there is none."""
    if not mentions_data(document):
        return None
    waiting: list[tuple[str, object]] = [("", document)]
    seen: set[int] = set()
    while waiting:
        pointer, schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        for keyword, value in schema.items():
            if reference(keyword, value) is not None and keyword not in KEYWORDS.annotations:
                return f"{pointer}/{keyword}"
        waiting.extend((pointer + each.token, each.schema) for each in subschemas(schema))
    return None


def read_pointer(pointer: object, target: Path, at: str, name: str = DATA) -> tuple[Path, tuple[str, ...]]:
    """Returns the path at which a pointer starts, a beginning of ``target``, and the steps from there.

    ``at``: JSON Pointer of the keyword, and ``name``: of what is the pointer, for errors.
    """
    if not isinstance(pointer, str):
        raise SchemaError(f"{name} must be a JSON Pointer, not {pointer!r:.80}", pointer=at)
    if pointer.startswith("/"):
        return (), steps_of(pointer, at)
    found = _RELATIVE.fullmatch(pointer)
    if pointer.endswith("#"):
        raise UnsupportedSchemaError(
            f"{name}: {pointer!r:.80} asks for a key or an index, not for a value; point at a field, as 1/start does",
            pointer=at,
        )
    if found is None:
        message = (
            f"{name} must be a JSON Pointer such as /start or, relative to this value, 1/start, not {pointer!r:.80}"
        )
        raise SchemaError(message, pointer=at)
    levels = int(found[1]) if len(found[1]) < 9 else len(target) + 1
    if levels > len(target):
        raise SchemaError(
            f"{pointer!r:.80} goes up {found[1]} levels, but this value lies only {len(target)} deep", pointer=at
        )
    return target[: len(target) - levels], steps_of(found[2], at)


def steps_of(pointer: str, at: str) -> tuple[str, ...]:
    """Returns the steps of an absolute JSON Pointer; ``at``: that of the keyword, for errors."""
    if re.search("~(?![01])", pointer):
        raise SchemaError(f"{pointer!r:.80} is no JSON Pointer: ~ is written ~0, and / in a key ~1", pointer=at)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
