"""Names of rules in Lark's form: ``fooBar`` is ``foo_bar``, ``two words`` is ``two_words``."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.conversion.parts import Original

START = "start"
"""The rule that a Lark grammar begins with."""

_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME = re.compile(r"_?[a-z][a-z0-9_-]*")


def lark_names(original: Original) -> dict[str, str]:
    """Returns a name for each rule, in small letters; each is different, and only the start rule may be ``start``."""
    names: dict[str, str] = {}
    taken = {START} if original.start != START else set()
    for rule in original.rules:
        name = base = _in_larks_form(rule)
        number = 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        names[rule] = name
    return names


def _in_larks_form(name: str) -> str:
    words = _WORD_BORDER.sub("_", name)
    plain = unicodedata.normalize("NFKD", words.casefold()).encode("ascii", "ignore").decode()
    found = re.sub(r"[^a-z0-9_-]+", "_", plain)
    return found if _NAME.fullmatch(found) else f"r_{found.lstrip('_-')}"
