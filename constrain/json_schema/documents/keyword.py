"""The record of a keyword, and the tables that all records make.

A keyword is one record beside its function, in the modules of ``keywords``. Importing ``keywords.table`` adds them all
to ``KEYWORDS``: modules above it import the tables from there; modules below it read them only while they run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, Literal, TypeVar

from constrain.json_schema.documents.dialects import DRAFT_4, DRAFT_2020, DRAFTS, Dialect

Handler = Callable[[Any, Any, object, Any], None]
"""The function of a keyword: takes ``Goals``, the place, the value and the ``Assertions`` that it restricts."""

_Function = TypeVar("_Function", bound=Handler)

_MISSING: Any = object()

_PARTS = {
    "about": "the kind of value that it restricts",
    "hint": "a function from its value to a note in the prompt; None, if it has no note of its own",
    "merge": "a function that joins two of its values in strict mode; None, if only equal ones join",
    "in_place": "a function for keywords.unevaluated, if its schemas apply to the value itself; None otherwise",
    "says": "its documentation: a docstring that begins with its name, or a text",
    "handler": "its function",
}
"""What each part of a record is that can be forgotten."""


@dataclass(frozen=True)
class Keyword:
    """All that is known of one keyword; as a decorator, adds its function and joins ``KEYWORDS``.

    ``holds``: forms of a value that contains schemas. ``read_by``: the keyword whose function reads this one.
    ``since``, ``until``: its drafts; ``everywhere``: read in all others, too, as many schemas have it there.
    """

    name: str
    about: Literal["any", "number", "string", "array", "object", "document", "annotation"] = _MISSING
    vocabulary: Literal["", "core", "unevaluated", "format"] = ""
    _: KW_ONLY
    hint: Callable[[Any], str] | None = _MISSING
    merge: Callable[[Any, Any], object] | None = _MISSING
    holds: Literal["", "schema", "list", "map", "schema or list"] = ""
    in_place: Callable[[Any, Any, str, object], Any] | None = _MISSING
    read_by: str = ""
    since: Dialect = DRAFT_4
    until: Dialect = DRAFT_2020
    everywhere: bool = False
    says: str = ""
    handler: Handler | None = _MISSING

    @property
    def drafts(self) -> tuple[Dialect, ...]:
        """The drafts that have the keyword."""
        return DRAFTS[DRAFTS.index(self.since) : DRAFTS.index(self.until) + 1]

    @property
    def restricts(self) -> bool:
        """Returns whether the keyword restricts values."""
        return self.about not in ("document", "annotation")

    @property
    def of_vocabulary(self) -> str:
        """The vocabulary without which the keyword is ignored; ``core`` if it never is."""
        own = self.vocabulary or ("applicator" if self.holds else "validation")
        return own if self.restricts else "core"

    def __call__(self, function: _Function) -> _Function:
        """Adds the keyword with its function, whose docstring documents it."""
        documented = re.match(rf"``{re.escape(self.name)}``: (.+)\.", function.__doc__ or "")
        says = documented[1] if documented else self.says if __debug__ else self.name
        KEYWORDS.add(replace(self, handler=function, says=says))
        return function


class Keywords:
    """The records by name; ``derive`` makes the tables, which no module can read before all keywords are there."""

    handlers: Mapping[Dialect, Mapping[str, Handler | None]]  # of a draft; None for those that assert nothing
    single: Mapping[Dialect, frozenset[str]]  # of a draft, whose value is a schema
    several: Mapping[Dialect, frozenset[str]]  # of a draft, whose value is a list of schemas or maps names to schemas
    holding: Mapping[str, frozenset[str]]  # that hold schemas in each form, in some draft; annotations left out
    annotations: frozenset[str]  # that assert nothing, and do not change the meaning of ``$ref``
    in_place: frozenset[str]  # that apply other schemas to the same value
    about_strings: frozenset[str]  # that may restrict strings

    def __init__(self) -> None:
        self.records: dict[str, Keyword] = {}

    def add(self, record: Keyword) -> None:
        """Adds a keyword. Raises TypeError with a sentence about a part that is missing."""
        needed = ["about", *(["hint", "merge"] if record.restricts else []), *(["in_place"] if record.holds else [])]
        needed += ["handler"] if record.restricts and not record.read_by else []
        needed += ["says"] if record.about != "annotation" else []
        for part in needed:
            if getattr(record, part) in (_MISSING, ""):
                raise TypeError(f"the keyword {record.name} lacks {part}: {_PARTS[part]}")
        if record.name in self.records or record.read_by not in ("", *self.records):
            raise TypeError(
                f"the keyword {record.name} has two records, or {record.read_by!r}, which reads it, has none"
            )
        left_out: dict[str, Any] = {
            each.name: None for each in fields(record) if getattr(record, each.name) is _MISSING
        }
        self.records[record.name] = replace(record, **left_out)

    def derive(self) -> None:
        """Makes the tables from the records."""
        self.handlers = {
            draft: {
                name: each.handler for name, each in self.records.items() if each.everywhere or draft in each.drafts
            }
            for draft in DRAFTS
        }
        self.single = {draft: self._holding({"schema"}, draft) for draft in DRAFTS}
        self.several = {draft: self._holding({"list", "map"}, draft) for draft in DRAFTS}
        self.annotations = self.names(lambda each: not each.restricts and each.handler is None)
        self.holding = {form: self._holding({form}) for form in ("schema", "list", "map")}
        self.in_place = self.names(lambda each: self.records[each.read_by or each.name].in_place)
        self.about_strings = self.names(lambda each: each.about in ("any", "string"))

    def _holding(self, forms: set[str], draft: Dialect | None = None) -> frozenset[str]:
        holding = self.names(lambda each: any(form in each.holds for form in forms))
        return holding & self.names(lambda each: draft in each.drafts if draft else each.about != "annotation")

    def names(self, wanted: Callable[[Keyword], object]) -> frozenset[str]:
        """Returns the names of the keywords that are wanted."""
        return frozenset(name for name, record in self.records.items() if wanted(record))


KEYWORDS = Keywords()
