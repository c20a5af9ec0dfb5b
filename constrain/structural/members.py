"""Members of a structural tag's JSON objects, checked; errors name the place as a JSON Pointer."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from constrain.arguments import lone_surrogate
from constrain.errors import ConstrainError, GrammarError, LimitError
from constrain.language.schema_text import parse_schema
from constrain.structural.formats import Mark, Token
from constrain.suggestions import did_you_mean

MAX_FORMATS = 5_000
"""Formats and triggers of a structural tag, inner ones included, and items in one of its lists. Beyond: LimitError."""

MAX_TAG_NUMBER = 100_000
"""Repetitions (``min``, ``max``), characters (``max_chars``) and white space (``max_whitespace_cnt``) that a structural
tag may ask for. Beyond: LimitError."""
Members = dict[str, Any]


def error_at(place: str, message: str) -> GrammarError:
    """Returns the error for a place of a structural tag."""
    return GrammarError(message, pointer=place)


def shown(value: object) -> str:
    """Returns a short text for a value in a message."""
    if isinstance(value, Token):
        return f"the token {value.name}"
    if isinstance(value, Decimal):
        return str(value)
    written = json.dumps(value, ensure_ascii=False, default=float)
    return written if len(written) <= 80 else f"{written[:80]}..."


def read_members(given: object, place: str, what: str) -> Members:
    """Returns an object."""
    if not isinstance(given, dict):
        raise error_at(place, f"{what} is a JSON object, not {shown(given)}")
    return given


def refuse_others(members: Members, known: tuple[str, ...], place: str, what: str) -> None:
    """Raises GrammarError for the first unknown member."""
    for name in members:
        if name not in known:
            close = did_you_mean(name, known)
            message = f"{what} has no member {name!r:.80}{close}; it has {', '.join(known)}"
            raise error_at(place, f"{message}. Remove it, because it could change what is allowed")


def read_required(members: Members, name: str, place: str) -> Any:
    """Returns a member that must be there."""
    if name not in members:
        raise error_at(place, f"the member {name} is missing; add it")
    return members[name]


def read_array(members: Members, name: str, place: str) -> list[Any]:
    """Returns a list with at least one item."""
    given = read_required(members, name, place)
    if not isinstance(given, list):
        raise error_at(f"{place}/{name}", f"{name} is a list, not {shown(given)}")
    if not given:
        raise error_at(f"{place}/{name}", f"{name} is empty; it needs at least one item")
    _check_length(given, f"{place}/{name}")
    return given


def read_text(members: Members, name: str, place: str) -> str:
    """Returns a text, which may be empty."""
    return read_of_text(read_required(members, name, place), f"{place}/{name}")


def read_of_text(given: object, place: str, *, may_be_empty: bool = True) -> str:
    """Returns a text."""
    if not isinstance(given, str):
        raise error_at(place, f"expected a text, not {shown(given)}")
    if not given and not may_be_empty:
        raise error_at(place, "this text must not be empty: it would be found everywhere")
    if wrong := lone_surrogate(given):
        raise error_at(place, f"character {wrong[0]} of this text is {wrong[1]}, which UTF-8 cannot encode")
    return given


def read_texts(members: Members, name: str, place: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
    """Returns a list of texts, which is empty if the member is missing or null."""
    given = members.get(name)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise error_at(f"{place}/{name}", f"{name} is a list of texts, not {shown(given)}")
    _check_length(given, f"{place}/{name}")
    return tuple(
        read_of_text(each, f"{place}/{name}/{index}", may_be_empty=may_be_empty) for index, each in enumerate(given)
    )


def read_mark(members: Members, name: str, place: str) -> Mark:
    """Returns a text, or the token of ``{"type": "token", "token": ...}``."""
    given = read_required(members, name, place)
    where = f"{place}/{name}"
    if not isinstance(given, dict):
        return read_of_text(given, where)
    if given.get("type", "token") != "token":
        raise error_at(f"{where}/type", f'expected a text or a format of type "token", not {shown(given["type"])}')
    refuse_others(given, ("type", "token"), where, "the format token")
    return read_token(read_required(given, "token", where), f"{where}/token")


def read_token(given: object, place: str) -> Token:
    """Returns a token, which is given by its text or its id."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise error_at(place, f"a token is the text or the id of a token, not {shown(given)}")
    if isinstance(given, str):
        return Token(read_of_text(given, place, may_be_empty=False))
    if given < 0:
        raise error_at(place, f"{given} is no id of a token; ids begin at 0")
    if given >= 1 << 32:
        raise error_at(place, "this id of a token has more than 32 bits; no vocabulary has it")
    return Token(f"<[{given}]>")


def read_tokens(members: Members, name: str, place: str, *, least: int = 0) -> tuple[Token, ...]:
    """Returns a list of tokens; without ``least``, it may be missing, null or empty."""
    given = read_array(members, name, place) if least else members.get(name)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise error_at(f"{place}/{name}", f"{name} is a list of tokens, not {shown(given)}")
    _check_length(given, f"{place}/{name}")
    return tuple(read_token(each, f"{place}/{name}/{index}") for index, each in enumerate(given))


def read_number(members: Members, name: str, place: str) -> int:
    """Returns an integer from 0 to ``MAX_TAG_NUMBER``."""
    given = read_required(members, name, place)
    if isinstance(given, Decimal) and given == given.to_integral_value():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise error_at(f"{place}/{name}", f"{name} is an integer of 0 or more, not {shown(given)}")
    if given > MAX_TAG_NUMBER:
        message = f"{name} is greater than {MAX_TAG_NUMBER} (MAX_TAG_NUMBER); use a smaller number, or no limit"
        raise LimitError(message, pointer=f"{place}/{name}")
    return given


def read_boolean(members: Members, name: str, place: str, *, default: bool = False) -> bool:
    """Returns true or false; the default if the member is missing or null."""
    given = members.get(name)
    if given is None:
        return default
    if not isinstance(given, bool):
        raise error_at(f"{place}/{name}", f"{name} is true or false, not {shown(given)}")
    return given


def read_parsed(text: str, place: str) -> object:
    """Returns the value of a JSON text."""
    try:
        return parse_schema(text)
    except ConstrainError as error:
        raise type(error)(error.message, pointer=f"{place}{error.pointer or ''}") from error


def read_schema(given: object, place: str) -> str:
    """Returns a JSON Schema as its text; it is checked when the tag is compiled."""
    if not isinstance(given, dict | bool):
        raise error_at(place, f"a JSON Schema is an object, true or false, not {shown(given)}")
    return _written(given)


def _written(value: object) -> str:
    """Returns a value of ``parse_schema`` as JSON text, with every digit of its numbers."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def _check_length(given: list[Any], place: str) -> None:
    if len(given) > MAX_FORMATS:
        raise LimitError(
            f"this list has {len(given)} items, and at most {MAX_FORMATS} are allowed (MAX_FORMATS); use fewer",
            pointer=place,
        )
