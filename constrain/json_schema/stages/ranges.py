"""The least and the greatest value of a field, by its schema alone."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain import kernel
from constrain.errors import UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.formats.moments import BOUNDED_FORMATS, FORMAT_BOUNDS, read_moment, spell_moment, within
from constrain.json_schema.numbers.shape import exact
from constrain.json_schema.stages.bounds import DIGITS, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from constrain.json_schema.emission.emitted import EmittedGrammar
    from constrain.json_schema.stages.places import Place

USUAL_YEARS = {"date": ("1000-01-01", "2999-12-31"), "date-time": ("1000-01-01T00:00:00Z", "2999-12-31T23:59:59Z")}
"""First and last moment of the policy ``years="1000-2999"``."""

_SIZES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def merged(name: str, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the schema of the days or times within all bounds of some schemas of one format."""
    low, high = BOUNDED_FORMATS[name]
    for schema in schemas:
        for keyword, value in schema.items():
            if keyword in FORMAT_BOUNDS and (moment := read_moment(name, value)) is not None:
                low, high = within(keyword, moment, low, high)
    if low > high:
        return {"not": {}}
    return {"format": name, "formatMinimum": spell_moment(name, low), "formatMaximum": spell_moment(name, high)}


class Limit(NamedTuple):
    """The end of a range; ``attained``: whether it belongs to it. As a moment, a number."""

    value: int | Decimal
    attained: bool = True


def flat(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields a schema and those in its ``allOf``."""
    yield schema
    for each in schema.get("allOf", ()):
        yield from flat(each)


class Ranges:
    """Finds the ranges of fields; ``is_satisfiable`` compiles a schema."""

    def __init__(self, is_satisfiable: Callable[[dict[str, Any]], bool]) -> None:
        self._is_satisfiable = is_satisfiable

    def number(self, place: Place, schema: dict[str, Any], kind: str, *, greatest: bool) -> Limit | None:
        """Returns the least or the greatest number of a schema of ``kind``; ``None`` if there is none."""
        if not all(_is_known(each, (*NUMBERS, "multipleOf", "enum", "const")) for each in flat(schema)):
            if kind == "integer":
                return self._search(
                    schema, (1 - 10**DIGITS, 10**DIGITS - 1), ("minimum", "maximum"), lambda at: at, greatest=greatest
                )
            raise UnsupportedSchemaError(
                "this number bounds another field, or is bounded by one; beside type, only minimum, maximum, "
                "exclusiveMinimum, exclusiveMaximum, multipleOf, enum and const may restrict it",
                pointer=place.pointer,
            )
        best: Limit | None = None
        listed: list[Any] | None = None
        steps: list[Fraction] = []
        side = "Maximum" if greatest else "Minimum"
        for each in flat(schema):
            for name, attained in ((side.lower(), True), (f"exclusive{side}", False)):
                if (value := exact(each.get(name))) is not None:
                    best = _narrower(best, Limit(value, attained), greatest=greatest)
            if "multipleOf" in each and (step := exact(each["multipleOf"])) is not None:
                steps.append(Fraction(step))
            for values in ([each["const"]] if "const" in each else [], each.get("enum", [])):
                if values:
                    listed = [
                        one for one in map(exact, values) if one is not None and (listed is None or one in listed)
                    ]
        if listed is not None:
            allowed = [one for one in listed if self._is_satisfiable({"allOf": [schema, {"const": one}]})]
            return Limit((max if greatest else min)(allowed)) if allowed else Limit(0)
        if kind == "integer":
            steps.append(Fraction(1))
        if best is None or not steps:
            return best
        common = Fraction(math.lcm(*(one.numerator for one in steps)), math.gcd(*(one.denominator for one in steps)))
        return Limit(_multiple(best, common, greatest=greatest))

    def moment(self, schema: dict[str, Any], name: str, *, greatest: bool, usual_years: bool) -> int:
        """Returns the first or the last day or second of a string with a format."""
        first, last = BOUNDED_FORMATS[name]
        keywords = "formatMinimum", "formatMaximum"
        found = merged(name, [*flat(schema)])
        low, high = (read_moment(name, found.get(keyword)) for keyword in keywords)
        if low is None or high is None:  # no moment is left
            return first if greatest else last
        number = int(high if greatest else low)
        if not all(_is_known(each, (*FORMAT_BOUNDS, "format")) for each in flat(schema)):
            limit = self._search(
                {"allOf": [schema, {"format": name}]},
                (int(low), int(high)),
                keywords,
                lambda at: spell_moment(name, at),
                greatest=greatest,
                more={"format": name},
            )
            number = number if limit is None else int(limit.value)
        if usual_years and name in USUAL_YEARS and number == (last if greatest else first):
            usual = read_moment(name, USUAL_YEARS[name][greatest])
            assert usual is not None
            return int(usual)
        return number

    def size(self, schema: dict[str, Any], kind: str, *, greatest: bool) -> int | None:
        """Returns the least or greatest length, number of items or of members; ``None`` for no limit."""
        sizes = [each[_SIZES[kind][greatest]] for each in flat(schema) if _SIZES[kind][greatest] in each]
        whole = [size for size in map(exact, sizes) if isinstance(size, int)]
        if greatest:
            return min(whole, default=None)
        needed = {key for each in flat(schema) for key in each.get("required", ())} if kind == "object" else ()
        return max([*whole, len(needed)])

    def _search(
        self,
        schema: dict[str, Any],
        ends: tuple[int, int],
        keywords: tuple[str, str],
        spelled: Callable[[int], Any],
        *,
        greatest: bool,
        more: dict[str, Any] | None = None,
    ) -> Limit | None:
        """Returns the last value that a schema allows, by questions to the compiler; ``None`` if it lies beyond."""
        keyword = keywords[0 if greatest else 1]

        def is_beyond(at: int) -> bool:
            return self._is_satisfiable({"allOf": [schema, {**(more or {}), keyword: spelled(at)}]})

        near, far = ends if greatest else ends[::-1]
        if is_beyond(far):
            return None
        if not is_beyond(near):
            return Limit(near)
        while abs(far - near) > 1:
            middle = (near + far) // 2
            near, far = (middle, far) if is_beyond(middle) else (near, middle)
        return Limit(near)


def satisfiable(
    compile_document: Callable[[dict[str, Any]], object], document: dict[str, Any], schema: dict[str, Any]
) -> bool:
    """Returns whether a schema within a document without ``$data`` has a value."""
    try:
        compile_document(within_document(document, schema))
    except UnsatisfiableSchemaError:
        return False
    return True


def shortest(
    compile_document: Callable[[dict[str, Any]], EmittedGrammar], document: dict[str, Any], schema: dict[str, Any]
) -> bytes | None:
    """Returns the text of the shortest value known of a schema within a document; ``None`` without any."""
    try:
        draft = compile_document(within_document(document, schema))
    except UnsatisfiableSchemaError:
        return None
    return kernel.Matcher(kernel.CompiledGrammar(draft, _bytes())).shortest_completion()


@cache
def _bytes() -> kernel.Vocabulary:
    return kernel.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], [256], [256])


def within_document(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a document of one of a document's schemas, with all that it may refer to."""
    definitions: dict[str, Any] = {key: document[key] for key in ("$schema", "$defs", "definitions") if key in document}
    return {**definitions, "allOf": [schema]}


def _is_known(schema: dict[str, Any], keywords: tuple[str, ...]) -> bool:
    return all(each in keywords or each in ("type", "allOf") or each in KEYWORDS.annotations for each in schema)


def _narrower(best: Limit | None, other: Limit, *, greatest: bool) -> Limit:
    if best is None or (other.value < best.value if greatest else other.value > best.value):
        return other
    return best if other.value != best.value else Limit(best.value, best.attained and other.attained)


def _multiple(limit: Limit, step: Fraction, *, greatest: bool) -> int | Decimal:
    """Returns the last multiple of a step within a limit."""
    quotient = Fraction(limit.value) / step
    whole = math.floor(quotient) if greatest else math.ceil(quotient)
    if whole == quotient and not limit.attained:
        whole += -1 if greatest else 1
    found = whole * step
    return int(found) if found.denominator == 1 else Decimal(found.numerator) / Decimal(found.denominator)
