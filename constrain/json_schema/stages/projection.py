"""The values of each source for which something is left for the fields that depend on it, and the worst of them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from constrain.errors import UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.formats.moments import BOUNDED_FORMATS, spell_moment
from constrain.json_schema.numbers.shape import exact
from constrain.json_schema.stages.bounds import (
    COUNTS,
    DIGITS,
    FORMATS,
    MAX_COUNTED,
    NUMBERS,
    WHOLE_DIGITS,
    array_around,
    conjunction,
    costly_text,
    format_of,
    read_value,
    types_of,
)
from constrain.json_schema.stages.pointers import show_path
from constrain.json_schema.stages.ranges import Limit, Ranges, flat
from constrain.json_schema.stages.rendering import render
from constrain.language.stages import DATA, GIVEN, REFERS
from constrain.tables.keyword import ONE_OF, column_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.json_schema.stages.bounds import Bound, Rows
    from constrain.json_schema.stages.places import Place
    from constrain.json_schema.stages.unique import Unique
    from constrain.tables.columns import Column

_NUMERIC = ("integer", "number")
_COUNTED = {"Length": "string", "Items": "array", "Properties": "object"}
_REPEATED = ("string", "integer", "boolean")
_BESIDE_ROWS = frozenset((ONE_OF, "type", "allOf", "anyOf", "$ref", "$defs", "definitions", "$schema", "$id"))
"""Keywords beside ``x-one-of`` with ``given``; others could leave no value for some value of the source."""


class Projection:
    """Narrows the sources of bounds, and finds the worst values; ``shortest`` returns the text of a schema's value.

    ``usual_years``, ``sized_integers``: whether the policies ``years`` and ``integers`` bound what the schema leaves
    open. ``notes``: warnings, about what is written less than the schema allows.
    """

    def __init__(
        self,
        bounds: list[Bound],
        is_satisfiable: Callable[[dict[str, Any]], bool],
        shortest: Callable[[dict[str, Any]], bytes | None],
        *,
        usual_years: bool,
        sized_integers: bool,
    ) -> None:
        self._bounds = bounds
        self._is_satisfiable = is_satisfiable
        self._shortest = shortest
        self._ranges = Ranges(is_satisfiable)
        self._usual_years = usual_years
        self._sized_integers = sized_integers
        self.notes: dict[str, None] = {}

    def project(self) -> None:
        """Narrows all sources, and sets ``worst`` of all bounds. Raises UnsupportedSchemaError."""
        for bound in self._bounds:
            if bound.rows is not None:
                self._check_rows(bound, bound.rows)
            else:
                self._check_types(bound)
        for bound in self._bounds:
            self._settle_years(bound)
        for bound in reversed(self._bounds):  # later fields first: they narrow their sources, which may be targets
            if bound.rows is not None:
                if not bound.skippable and not bound.tied:
                    _narrow(bound.source, bound.rows.sources(bound.rows.others[0]))
            elif bound.keyword in NUMBERS:
                self._project_number(bound)
            elif bound.keyword in FORMATS:
                self._project_moment(bound)
            elif bound.keyword in COUNTS:
                self._project_count(bound)
            else:
                self._project_repeated(bound)
        for bound in self._bounds:
            bound.worst = self._worst(bound)
        for bound in self._bounds:
            if not bound.skippable:
                self._require_some(bound)

    def separate(self, uniques: list[Unique]) -> None:
        """Sets ``stand_ins`` of members that differ in all items of an array, by as many of their shortest values."""
        for unique in uniques:
            place = unique.target
            if "integer" in types_of(place):
                self._limit_digits(place)
            texts: list[bytes] = []
            for count in range(unique.least):
                found = self._shortest(
                    {"allOf": [_own(place), {"not": {"enum": [*map(read_value, texts)]}}]} if count else _own(place)
                )
                if found is None:
                    message = f"{show_path(place.path)} has only {count} values, but minItems is {unique.least}"
                    raise UnsatisfiableSchemaError(message, pointer=unique.pointer)
                texts.append(found)
            unique.stand_ins = [costly_text(size) for size in sorted(map(len, texts))]

    # What a source and its target must be.

    def _check_types(self, bound: Bound) -> None:
        source, target = types_of(bound.source), types_of(bound.target)
        wanted: tuple[str, ...] = _NUMERIC
        of_target: tuple[str, ...] = _NUMERIC
        if bound.keyword in FORMATS:
            wanted = of_target = ("string",)
        elif bound.keyword in COUNTS:
            wanted, of_target = ("integer",), (_COUNTED[bound.keyword[3:]],)
        elif bound.keyword in ("const", REFERS):
            wanted, of_target = _REPEATED, target
        elif bound.keyword == "enum":
            wanted, of_target = ("array",), target
        if not source or not set(source) <= set(wanted):
            self._refuse(
                bound,
                f"{show_path(bound.source.path)} must be of the type {' or '.join(wanted)}, which its schema must name",
            )
        if not bound.repeats:
            if not set(target) & set(of_target):
                self._refuse(bound, f"name the type beside it: {' or '.join(of_target)}")
            bound.skippable |= not set(target) <= set(of_target)
        if bound.keyword in FORMATS:
            name, other = format_of(bound.target), format_of(bound.source)
            if name not in BOUNDED_FORMATS or name != other:
                known = ", ".join(BOUNDED_FORMATS)
                self._refuse(
                    bound, f"both fields must have the same format, one of {known}, not {name!r} and {other!r}"
                )
        if bound.keyword == "enum":
            place = bound.source
            tail = place.tail()
            kinds = () if tail is None or place.prefix()[1] else types_of(place.open(tail))
            if len(kinds) != 1 or kinds[0] not in _REPEATED:
                self._refuse(bound, f"the items of {show_path(place.path)} must have one of the types {_REPEATED}")
        if bound.repeats and sum(_base(other.target) is _base(bound.target) for other in self._bounds) > 1:
            self._refuse(bound, "a value that is repeated cannot depend on further fields; leave out the other $data")

    def _check_rows(self, bound: Bound, rows: Rows) -> None:
        target = _base(bound.target)
        for each in conjunction(bound.target.around()):
            for keyword in each.schema:
                if keyword not in _BESIDE_ROWS and keyword not in KEYWORDS.annotations:
                    message = f"{keyword} cannot stand beside {GIVEN}; leave it out, and rows out of the table instead"
                    raise UnsupportedSchemaError(message, pointer=f"{each.pointer}/{keyword}")
        there = _kinds(column_of(rows.keyword, target.tree.document))
        named = {*types_of(bound.target)} or there
        if "null" in named or not there <= _with_integers(named):
            kinds = " or ".join(sorted(there))
            message = f"all values of {rows.keyword} must have the type of the field: {kinds}; write null by anyOf"
            self._refuse(bound, message)
        for name, one in zip(rows.others, bound.all, strict=True):
            there = _kinds(rows.dependent.sources(name))
            named = {*types_of(one.source)} or there
            if there and not there & _with_integers(named):
                kinds = " or ".join(sorted(there))
                self._refuse(bound, f"{show_path(one.source.path)} must be of the type {kinds}, as {name!r:.80} is")
        for other in self._bounds:
            within = any(target.path[: len(at)] == at for each in other.all for at in [_base(each.source).path])
            if other is not bound and (_base(other.target) is target or (within and not self._is_of_row(other, bound))):
                self._refuse(
                    bound,
                    f"{show_path(target.path)} depends on its row; it cannot depend on further fields, "
                    "nor others than those of its row on it",
                )
        self._tie(bound, rows)

    @staticmethod
    def _is_of_row(bound: Bound, other: Bound) -> bool:
        """Returns whether two bounds name rows of the same table."""
        return (
            bound.rows is not None and other.rows is not None and bound.rows.keyword.table == other.rows.keyword.table
        )

    def _tie(self, bound: Bound, rows: Rows) -> None:
        """Finds the source that has rows itself, and requires that each of these leaves a value."""
        paths = {_base(each.source).path: name for name, each in zip(rows.others, bound.all, strict=True)}
        above = [
            other for other in self._bounds if other.rows and _base(other.target).path in paths and other is not bound
        ]
        for other in above:
            assert other.rows is not None
            of_other = {_base(each.source).path: name for name, each in zip(other.rows.others, other.all, strict=True)}
            of_other[_base(other.target).path] = str(other.rows.keyword.column)
            if other.skippable or not paths.items() <= of_other.items():
                continue
            if not bound.skippable and not rows.dependent.covers(other.rows.dependent, str(other.rows.keyword.column)):
                message = f"some rows of {other.rows.keyword} have no value for {show_path(bound.target.path)}"
                self._refuse(bound, f"{message}; leave them out of the table")
            bound.tied = True
            return
        if above or bound.further:
            self._refuse(
                bound,
                f"one of {', '.join(map(show_path, paths))} must itself be a value of the table, by {GIVEN} with the "
                "others, so that there is a row for them",
            )

    @staticmethod
    def _refuse(bound: Bound, message: str) -> None:
        name = REFERS if bound.keyword == REFERS else DATA if bound.rows is None else GIVEN
        raise UnsupportedSchemaError(f"{name}: {message}", pointer=bound.pointer)

    def _settle_years(self, bound: Bound) -> None:
        """Writes out the years of the policy, which otherwise depend on the bounds that the schema has."""
        if bound.keyword in FORMATS:
            for place in (bound.source, bound.target):
                low, high = (
                    self._ranges.moment(_own(place), bound.format, greatest=greatest, usual_years=self._usual_years)
                    for greatest in (False, True)
                )
                if low <= high:
                    ends = {"formatMinimum": low, "formatMaximum": high}
                    spelled = {keyword: spell_moment(bound.format, end) for keyword, end in ends.items()}
                    _narrow(place, {"format": bound.format, **spelled})

    # Projection.

    def _number(self, place: Place, *, greatest: bool) -> Any:
        kind = "number" if "number" in types_of(place) else "integer"
        return self._ranges.number(place, _own(place), kind, greatest=greatest)

    def _project_number(self, bound: Bound) -> None:
        source, lower = bound.source, bound.is_lower
        limit = self._number(bound.target, greatest=lower)
        if limit is not None and not bound.skippable:
            open_ = bound.is_open or not limit.attained
            _narrow(source, {bound.keyword_for(lower=not lower, open_=open_): limit.value})
        if self._sized_integers and "number" not in types_of(bound.target):
            for keyword, end in (("minimum", -(2**63)), ("maximum", 2**63 - 1)):
                if self._number(bound.target, greatest=keyword == "maximum") is None:
                    _narrow(bound.target, {keyword: end})
        self._limit_digits(source)

    def _project_moment(self, bound: Bound) -> None:
        if bound.skippable:
            return
        name, lower = bound.format, bound.is_lower
        limit = self._ranges.moment(_own(bound.target), name, greatest=lower, usual_years=False)
        keyword = bound.keyword_for(lower=not lower, open_=bound.is_open)
        _narrow(bound.source, {"format": name, keyword: spell_moment(name, limit)})

    def _project_count(self, bound: Bound) -> None:
        source = bound.source
        kind = _COUNTED[bound.keyword[3:]]
        if not bound.skippable:
            limit = self._ranges.size(_own(bound.target), kind, greatest=bound.is_lower)
            if limit is not None:
                _narrow(source, {"maximum" if bound.is_lower else "minimum": limit})
        least, most = (self._number(source, greatest=greatest) for greatest in (False, True))
        if least is None or least.value < 0:
            self._refuse(bound, f"{show_path(source.path)} counts something, so it needs a minimum of at least 0")
        if most is None or most.value > MAX_COUNTED:
            self._refuse(
                bound, f"{show_path(source.path)} counts something, so it needs a maximum of at most {MAX_COUNTED}"
            )

    def _project_repeated(self, bound: Bound) -> None:
        source, wanted = bound.source, _own(bound.target)
        if bound.keyword == REFERS:
            if "integer" in types_of(source):
                self._limit_digits(source)
            try:
                refused = self._is_satisfiable({"allOf": [_own(source), {"not": wanted}]})
            except UnsupportedSchemaError:  # it cannot be told
                refused = True
            if refused:
                message = f"not all values of {show_path(source.path)} are valid here; restrict that field instead"
                self._refuse(bound, message)
            if not bound.skippable:
                _narrow(array_around(source), {"minItems": 1})
            return
        if bound.keyword == "enum":
            tail = source.tail()
            assert tail is not None
            items = source.open(tail)
            if "integer" in types_of(items):
                self._limit_digits(items)
            if not bound.skippable:
                _narrow(source, {"minItems": 1})
                if json.dumps(wanted, default=str) != json.dumps(_own(items), default=str) and wanted.keys() - {"type"}:
                    _narrow(source, {"contains": wanted})
            return
        if "integer" in types_of(source):
            self._limit_digits(source)
        if not bound.skippable:
            _narrow(source, wanted)

    def _limit_digits(self, place: Place) -> None:
        """Limits the digits of a source, so that all its values are exact in doubles."""
        before, after = DIGITS, 0
        limits = [self._number(place, greatest=greatest) for greatest in (False, True)]
        if "number" in types_of(place):
            steps = [exact(each["multipleOf"]) for each in flat(_own(place)) if "multipleOf" in each]
            if steps or any(not {"enum", "const"}.isdisjoint(each) for each in flat(_own(place))):
                places = (-int(Decimal(step).as_tuple().exponent) for step in steps if step is not None)
                before = max(1, DIGITS - max(0, *places)) if steps else DIGITS
            elif None in limits:
                before = WHOLE_DIGITS
                after = DIGITS - before
            else:
                before = min(DIGITS, max(len(str(int(abs(limit.value)))) for limit in limits))
                after = DIGITS - before
        for keyword, limit in zip(("minimum", "maximum"), limits, strict=True):
            if limit is None or abs(limit.value) >= 10**before:
                most = 10**before - 1
                _narrow(place, {keyword: most if keyword == "maximum" else -most})
                self._note(place, f"has at most {before} digits{' before its point' if after else ''}")
        if after:
            _narrow(place, {"multipleOf": 10.0**-after})
            self._note(place, f"has at most {after} digits after its point")

    def _note(self, place: Place, narrowed: str) -> None:
        self.notes.setdefault(f"{show_path(place.path)} is narrowed, as another field depends on it: it {narrowed}")

    # The worst case.

    def _worst(self, bound: Bound) -> dict[str, Any]:
        if (bound.repeats or bound.rows) and bound.skippable and not bound.absent:
            return {"not": {}}  # the other alternative is always left
        if bound.repeats:
            bound.may_refuse = True
            source = bound.source
            tail = source.tail()
            place = source.open(tail) if bound.keyword == "enum" and tail is not None else source
            above = [other.worst for other in self._bounds if _base(other.target) is place and other.worst is not None]
            return {"allOf": [_own(place), *above]}
        if bound.rows is not None:
            bound.may_refuse = True
            return bound.rows.hardest()
        lower = bound.is_lower
        if bound.keyword in FORMATS:
            moment = self._ranges.moment(_own(bound.source), bound.format, greatest=lower, usual_years=False)
            return bound.schema_of(spell_moment(bound.format, moment))
        if bound.keyword in COUNTS and any(other.number == bound.number for other in self._opposite(bound)):
            bound.may_refuse = True  # an exact number, at most the greatest one, which costs the most
            if not lower:
                return {}
        limit = self._number(bound.source, greatest=lower)
        last = self._last(bound) if bound.absent else None
        beyond = last is not None and (last.value < limit.value if lower else last.value > limit.value)
        if last is not None and (beyond or (last.value == limit.value and bound.is_open)):
            # A number ends at the byte behind it, which must be allowed if anything is left for some values.
            bound.may_refuse = True
            return {
                bound.keyword_for(lower=lower, open_=False) if bound.keyword in NUMBERS else bound.keyword: last.value
            }
        if bound.is_open and not limit.attained:
            return {bound.keyword_for(lower=lower, open_=False): limit.value}
        return bound.schema_of(limit.value)

    def _opposite(self, bound: Bound) -> list[Bound]:
        """Returns the bounds of the same value on the other side."""
        place, lower = _base(bound.target), bound.is_lower
        return [other for other in self._bounds if _base(other.target) is place and other.is_lower != lower]

    def _last(self, bound: Bound) -> Any:
        """Returns the last value of a target, or its last size; ``None`` without any."""
        if bound.keyword in NUMBERS:
            limit = self._number(bound.target, greatest=bound.is_lower)
            return limit if limit is not None and limit.attained else None
        size = self._ranges.size(_own(bound.target), _COUNTED[bound.keyword[3:]], greatest=bound.is_lower)
        return None if size is None else Limit(size)

    def _require_some(self, bound: Bound) -> None:
        """Raises an error if no value of the target is valid with all values of its sources."""
        place = _base(bound.target)
        worst = [other.worst for other in self._bounds if _base(other.target) is place and other.worst is not None]
        if self._is_satisfiable({"allOf": [_own(bound.target), *worst]}):
            return
        if not self._is_satisfiable(_own(bound.source)):
            message = f"no value of {show_path(bound.source.path)} leaves one for {show_path(bound.target.path)}"
            raise UnsatisfiableSchemaError(message, pointer=bound.pointer)
        cure = "give the fields minimum and maximum so that this cannot happen"
        if self._opposite(bound):
            cure = "write it as a chain: low, then a value with low as its lower bound, then high with the value as its"
        self._refuse(bound, f"some values of its sources leave nothing for {show_path(bound.target.path)}; {cure}")


def _kinds(column: Column) -> set[str]:
    """Returns the types of the values of a column; of CSV, they are strings."""
    kinds = {"string"} if column.strings else set()
    kinds |= {"boolean"} if column.truths else set()
    return kinds | {"integer" if isinstance(number, int) else "number" for number in column.listed or ()}


def _with_integers(types: set[str]) -> set[str]:
    return types | {"integer"} if "number" in types else types


def _base(place: Place) -> Place:
    """Returns the outermost schema that applies to the same value in any case."""
    for each in place.around():
        if each.key[0] == "anyOf" or not each.is_in_place:
            return each
    return place


def _own(place: Place) -> dict[str, Any]:
    """Returns the schema of a value without its bounds by other fields."""
    return render(_base(place), finished=True)


def _narrow(place: Place, schema: dict[str, Any]) -> None:
    if schema not in place.extra:
        place.extra.append(schema)
