"""Function calls, judged by the rules of BFCL (Berkeley Function Calling Leaderboard, v4, "AST" categories).

A call is right if the function is the expected one, no argument is missing that must be given, and each argument is
given in one of the accepted values. Texts are compared in lower case without blanks and some punctuation. A whole
number may stand for a number with a fraction, not the reverse. Of objects, each member has accepted values of its own.
"""

from __future__ import annotations

import re
from typing import Any

_LEFT_OUT = re.compile(r"[ ,./\-_*^]")


def is_right(name: str, arguments: object, accept: list[dict[str, Any]]) -> bool:
    """Whether a call is one of the accepted ones: ``{"name": ..., "arguments": {name: [accepted values]}}``."""
    return any(name == each["name"] and _fits_object(arguments, each["arguments"]) for each in accept)


def _fits_object(given: object, accepted: dict[str, list[Any]]) -> bool:
    if not isinstance(given, dict) or not given.keys() <= accepted.keys():
        return False
    return all(_fits_any(given[name], values) if name in given else "" in values for name, values in accepted.items())


def _fits_any(given: object, values: list[Any]) -> bool:
    return any(_fits(given, value) for value in values)


def _fits(given: object, value: object) -> bool:
    if isinstance(value, dict):
        return _fits_object(given, value)
    if isinstance(value, list):
        return isinstance(given, list) and len(given) == len(value) and all(map(_fits, given, value))
    if isinstance(value, str):
        return isinstance(given, str) and _plain(given) == _plain(value)
    if isinstance(value, bool) or isinstance(given, bool):
        return given is value
    if isinstance(value, float):
        return isinstance(given, int | float) and given == value
    return type(given) is type(value) and given == value


def _plain(text: str) -> str:
    return _LEFT_OUT.sub("", text).lower().replace("'", '"')
