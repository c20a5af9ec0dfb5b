"""What two independent validators say of texts: jsonschema in all readings of numbers (``judging``), and jsonschema-rs.

Ask ``validation_error`` unless numbers or formats matter that only the second one reads otherwise; ``Judges`` asks both
about many texts and explains where they differ.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any, NamedTuple

import jsonschema_rs

from tests.support.judging import Judge, written

LARGE = 2**53
"""From here on, not every integer is a double."""

ASSERTS_FORMATS = re.compile(r"draft/20")
"""Drafts whose formats jsonschema-rs knows by the names that the newest draft has."""


def second_validation_error(schema: Any, text: bytes) -> str | None:
    """What jsonschema-rs has against a text, formats asserted; None if it is valid."""
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    error = next(validator.iter_errors(json.loads(text)), None)
    return None if error is None else f"{error.instance_path}: {error.message}"


class Verdict(NamedTuple):
    """``error``: what is against the text in any reading; ``dispute``: how jsonschema-rs differs. Both may be empty."""

    error: str
    dispute: str = ""


class Judges:
    """Both validators of a schema. Where they differ, ``dispute`` names the rule that says why, or "unexplained"."""

    def __init__(self, schema: dict[str, Any], *, formats: bool) -> None:
        self.schema = schema
        self.formats = formats
        self.text = written(schema)
        self.first = Judge(self.text, formats=formats)
        self.plain = json.loads(self.text)
        self.second = self._second(self.plain)
        self.others: dict[tuple[str, ...], tuple[Judge, Any]] = {}

    def _second(self, schema: Any) -> Any:
        formats = self.formats and ASSERTS_FORMATS.search(self.schema["$schema"]) is not None
        return jsonschema_rs.validator_for(schema, validate_formats=formats)

    def verdict(self, text: str) -> Verdict:
        errors = self.first.errors(text)
        error = next(iter(errors.values()), "")
        is_valid = self.second.is_valid(json.loads(text))
        if is_valid == ("integers and doubles" not in errors):
            return Verdict(error)
        return Verdict(error, self._dispute(text))

    def _dispute(self, text: str) -> str:
        """The keywords of ``RULES`` that explain why the two differ: the first without which they agree, or two."""
        keywords = [keyword for keyword, texts in RULES.items() if re.search(texts, text)]
        for several in (*((keyword,) for keyword in keywords), *combinations(keywords, 2)):
            first, second = self._without(several)
            if ("integers and doubles" not in first.errors(text)) == second.is_valid(json.loads(text)):
                return " and ".join(several)
        return "unexplained"

    def _without(self, keywords: tuple[str, ...]) -> tuple[Judge, Any]:
        """Both judges of the schema without some keywords."""
        if keywords not in self.others:
            schema = self.schema
            for keyword in keywords:
                schema = without(schema, keyword)
            self.others[keywords] = Judge(schema, formats=self.formats), self._second(json.loads(written(schema)))
        return self.others[keywords]


RULES = {
    "format": r'"',
    "multipleOf": r"[0-9.]{16}|[0-9][eE]",
    "unevaluatedItems": r"\[",
    "maximum": r"[0-9]{300}",
    "minimum": r"[0-9]{300}",
    "exclusiveMaximum": r"[0-9]{300}",
    "exclusiveMinimum": r"[0-9]{300}",
}
"""Keywords about which jsonschema-rs has another opinion, and the texts with which it may, as patterns.

``format``: it asserts formats in the newest drafts only, and draws the lines of some elsewhere. ``multipleOf``: it
divides doubles. ``unevaluatedItems``: it takes items that ``contains`` finds for evaluated in 2019-09, too. Bounds: it
reads numbers near the greatest double otherwise.
"""


def without(schema: Any, keyword: str) -> Any:
    """The schema with a keyword left out everywhere."""
    if isinstance(schema, dict):
        return {name: without(value, keyword) for name, value in schema.items() if name != keyword}
    return [without(value, keyword) for value in schema] if isinstance(schema, list) else schema
