"""Settings of a grammar text: ``%llguidance { ... }``, as llguidance has them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.lark.reading.places import error_at

if TYPE_CHECKING:
    from constrain.lark.reading.syntax import Settings

_SWITCHES = ("allow_initial_skip", "allow_invalid_utf8", "ignore_once", "no_forcing")
_KNOWN = (*_SWITCHES, "skip_repetition")


def read_settings(text: str, begin: int, end: int, settings: Settings) -> Settings:
    """Returns settings with those of a JSON object at a place of a grammar text.

    Raises GrammarError for unknown options, and for ones that have no meaning here.
    """
    pairs: list[tuple[str, object]] = json.loads(text[begin:end], object_pairs_hook=list)
    for name, value in pairs:
        if name not in _KNOWN:
            raise error_at(text, begin, f"%llguidance has no option {json.dumps(name)}; there are {', '.join(_KNOWN)}")
        if name == "skip_repetition":
            if value != "once":
                raise error_at(text, begin, 'skip_repetition is "once", or left out for ignored text of several parts')
            settings = replace(settings, ignore_once=True)
            continue
        if not isinstance(value, bool):
            raise error_at(text, begin, f"{name} is true or false")
        if name == "allow_invalid_utf8":
            if value:
                raise error_at(text, begin, "allow_invalid_utf8 is not supported: every answer is UTF-8; leave it out")
            continue
        settings = replace(settings, **{name: value or getattr(settings, name)})
    return settings
