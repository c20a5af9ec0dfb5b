"""The schema of a tree for the values that are known."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.stages.bounds import FORMATS, read_value
from constrain.json_schema.stages.ranges import merged
from constrain.language.stages import UNIQUE_BY

if TYPE_CHECKING:
    from constrain.json_schema.stages.bounds import Known
    from constrain.json_schema.stages.places import Place


def render(
    place: Place,
    known: Known = (),
    items: tuple[int | None, ...] = (),
    *,
    finished: bool = False,
    settled: bool = False,
) -> dict[str, Any]:
    """Returns the schema of a place inside of some items, whose indices are ``None`` if nothing is known inside.

    Where a source is not known, its bound holds for all its values; with ``finished``, for a value that is written
    already, it does not hold at all. ``settled``: all values of the text are known, in all items, and it has no others.
    """
    unique = None if finished and not settled else place.unique
    if unique is not None and (stand_in := unique.stand_in(known, items)) is not None:
        return stand_in  # type: ignore[no-any-return]
    bounded = {bound.keyword for bound in place.bounds} | {UNIQUE_BY}
    schema = {key: value for key, value in place.schema.items() if key not in bounded}
    more = list(place.extra)
    if unique is not None and (others := unique.others(known, items)):
        more.append({"not": {"enum": [read_value(text) for text in others]}})
    for bound in place.bounds:
        wanted = bound.known(known, items)
        if wanted is None and not finished:
            wanted = bound.worst
        if wanted is not None:
            more.append(wanted)
    source = place.tree.sources.get(place.path)
    for number, indices, text in known:
        is_here = source is not None and (number == ~source or (settled and text and number == source))
        if is_here and indices == items:
            value = read_value(text)
            is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
            more.append({"minimum": value, "maximum": value} if is_number else {"const": value})  # in any spelling
    dated = [each for each in more if "format" in each and each.keys() <= {"format", *FORMATS}]
    if dated:  # one bound instead of several: each costs a pattern
        own = {key: schema.pop(key) for key in FORMATS if key in schema}
        more = [each for each in more if each not in dated] + [merged(dated[0]["format"], [own, *dated])]
    for (keyword, name), part in place.parts.items():
        if keyword == "$ref":
            more.insert(0, render(part, known, items, finished=finished, settled=settled))
            del schema["$ref"]
        elif name != -1:
            inner = schema[keyword]
            schema[keyword] = inner.copy()
            schema[keyword][name] = render(part, known, items, finished=finished, settled=settled)
    tail = place.tail()
    if tail in place.parts:
        _render_items(place, place.parts[tail], schema, known, items, finished=finished, settled=settled)
    if not more:
        return schema
    if len(more) == 1 and all(key in KEYWORDS.annotations or key in ("$defs", "definitions") for key in schema):
        return {**schema, **more[0]} if not schema.keys() & more[0].keys() else {**more[0], **_kept(schema)}
    return {**schema, "allOf": [*schema.get("allOf", ()), *more]}


def _kept(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schemas for references, and no annotations."""
    return {key: value for key, value in schema.items() if key in ("$defs", "definitions")}


def _render_items(
    place: Place,
    part: Place,
    schema: dict[str, Any],
    known: Known,
    items: tuple[int | None, ...],
    *,
    finished: bool,
    settled: bool,
) -> None:
    """Adds the schemas of all items: those that are finished, the present one if something is known there, the rest.

    In a settled text, all values are known, and each item has a schema of its own. Where items must differ in a member,
    each required item has one, and each item if two are equal, which happens if one token writes several items.
    """
    outer = len(items)
    below = part.tree.numbers_below(part)
    indices = [at[outer] for number, at, _ in known if number in below and len(at) > outer and at[:outer] == items]
    unknown = (*items, None)
    rest = render(part, known, unknown, finished=finished, settled=settled)
    keyword, prefix = place.prefix()
    index = max(indices, default=-1)
    uniques = [] if finished else place.uniques()
    least = max((each.least for each in uniques), default=0)
    if indices or least:
        prefix = schema.get(keyword, prefix) if isinstance(schema.get(keyword), list) else prefix
        earlier = render(part, known, unknown, finished=True)
        is_whole = settled or any(each.is_repeated(known, unknown) for each in uniques)
        first = len(prefix) if is_whole else max(index, len(prefix))
        own = [
            render(part, known, (*items, n), finished=finished, settled=settled)
            for n in range(first, max(index + 1, least))
        ]
        schema[keyword] = [*prefix, *[earlier] * (first - len(prefix)), *own]
        schema["additionalItems" if keyword == "items" else "items"] = rest
    else:
        assert place.tail() is not None
        schema[place.tail()[0]] = rest  # type: ignore[index]
