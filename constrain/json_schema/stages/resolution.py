"""Finds the fields that ``$data`` points at, and puts them before those that depend on them."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.stages.bounds import SUPPORTED, Bound, Rows, conjunction, types_of
from constrain.json_schema.stages.pointers import ITEM, data_pointer, read_pointer, reference, show_path, steps_of
from constrain.json_schema.stages.unique import MAX_REQUIRED, Unique
from constrain.language.stages import DATA, GIVEN, REFERS, UNIQUE_BY
from constrain.suggestions import closest
from constrain.tables.keyword import ONE_OF, read_given, rows_of

if TYPE_CHECKING:
    from constrain.json_schema.stages.places import Key, Place, Tree

_ABSENT = "it must always be there"


def resolve_bounds(tree: Tree) -> tuple[list[Bound], list[Unique]]:
    """Returns the bounds and ``x-unique-by`` of a tree; notes the order of keys and the sources in the tree.

    Bounds are in the order of the text.
    """
    found = [
        (place, keyword, f"{place.pointer}/{keyword}", value)
        for place in [*tree.root.walk()]
        for keyword, value in place.schema.items()
        if keyword not in KEYWORDS.annotations and reference(keyword, value) is not None
    ]
    bounds = [_resolve(place, keyword, *more) for place, keyword, *more in found if keyword != UNIQUE_BY]
    uniques = [_resolve_unique(place, *more) for place, keyword, *more in found if keyword == UNIQUE_BY]
    for bound in bounds:
        bound.target.bounds.append(bound)
    for bound in bounds:
        _follow_repetitions(bound)
    for bound in bounds:
        for each in bound.all:
            each.number = tree.sources.setdefault(each.source.path, len(tree.sources))
            each.items = each.source.path.count(ITEM)
            _settle_skippable(each)
        bound.skippable = all(each.skippable for each in bound.all)
        bound.absent = all(each.absent for each in bound.all)
    for unique in uniques:
        unique.number = tree.sources.setdefault(unique.target.path, len(tree.sources))
        _check_unique(unique, bounds)
    _order_keys(tree)
    sources = [each for bound in bounds for each in bound.all]
    ends = [place for each in sources for place in (each.target, each.source)] + [each.target for each in uniques]
    around = {place.path[:depth] for place in ends for depth in range(len(place.path))}
    for place in [*tree.root.walk()]:
        if place.path in around:
            place.check_beside()
            if "anyOf" in place.schema:
                _check_alternatives(place, [*sources, *uniques])
    for number, place in enumerate(tree.root.walk()):
        place.number = number
    for bound in sources:
        for other in tree.sources:
            path = bound.source.path
            if path != other and path == other[: len(path)]:
                message = f"{show_path(path)} and {show_path(other)}, which lies in it, cannot both be pointed at"
                raise UnsupportedSchemaError(message, pointer=bound.pointer)
    return sorted(bounds, key=lambda bound: bound.target.number), uniques


def _resolve_unique(place: Place, pointer: str, value: str) -> Unique:
    """Returns the rule of ``x-unique-by`` in a place."""
    if not value.startswith("/"):
        message = f"{UNIQUE_BY} must be a JSON Pointer to a member of the items, such as /id, not {value!r:.80}"
        raise SchemaError(message, pointer=pointer)
    key, array = _any_item(place.around(), UNIQUE_BY, pointer)
    for step in steps_of(value, pointer):
        _check_kind(key, "object", UNIQUE_BY, pointer)
        key, _ = _step(key.around(), step, f"{value!r:.80}", pointer)
    return Unique(pointer, array, key, key.path.count(ITEM), least_items(conjunction(place.around())))


def _check_kind(place: Place, kind: str, keyword: str, pointer: str) -> None:
    """Raises UnsupportedSchemaError if a value on the way of a keyword's pointer may be of another type."""
    if types_of(place) != (kind,):
        message = f"{keyword}: {show_path(place.path)} must be of the type {kind}, which its schema must name"
        raise UnsupportedSchemaError(message, pointer=pointer)


def _any_item(chain: list[Place], keyword: str, pointer: str) -> tuple[Place, Place]:
    """Returns the place of all items of a value, and the place that declares them."""
    schemas = conjunction(chain)
    lists = [each.prefix()[0] for each in schemas if each.prefix()[1]]
    if lists:
        message = f"{keyword} cannot be read with {lists[0]} as a list; describe all items in one schema"
        raise UnsupportedSchemaError(message, pointer=pointer)
    holders = [(each, tail) for each in schemas if (tail := each.tail()) is not None]
    if len(holders) != 1:
        message = f"{keyword} needs exactly one schema of the items, not {len(holders)}"
        raise UnsupportedSchemaError(message, pointer=pointer)
    array, tail = holders[0]
    return array.open(tail), array


def _check_unique(unique: Unique, bounds: list[Bound]) -> None:
    """Raises UnsupportedSchemaError for what cannot be the different member of items, and notes it in its place."""
    place, shown = unique.target, f"{UNIQUE_BY}: {show_path(unique.target.path)}"
    message = ""
    if types_of(place) not in (("string",), ("integer",), ("boolean",)):
        message = f"{shown} must be of the type string, integer or boolean, which its schema must name"
    elif any(each.bounds for each in conjunction(place.around())):
        message = f"{shown} cannot depend on other fields; leave out $data there"
    elif any(bound.source is place and bound.keyword == "const" for bound in bounds):
        message = f"{shown} cannot be repeated by const; leave it out"
    elif any(bound.keyword == "minItems" and bound.target.path == unique.array.path for bound in bounds):
        message = f"minItems cannot be $data beside {UNIQUE_BY}; name a number"
    elif unique.least > MAX_REQUIRED:
        message = f"minItems can be at most {MAX_REQUIRED} beside {UNIQUE_BY}"
    if message:
        raise UnsupportedSchemaError(message, pointer=unique.pointer)
    place.unique = unique


def _resolve(target: Place, keyword: str, pointer: str, value: object) -> Bound:
    data = data_pointer(value)
    if keyword == ONE_OF and data is None:
        pointers, rows = _rows(target, value, pointer)
        first, *further = (_bound(target, keyword, pointer, each, GIVEN) for each in pointers)
        first.rows, first.further = rows, tuple(further)
        return first
    name = DATA
    if keyword == REFERS:
        data, name = value, REFERS
        if not str(value).startswith("/") or str(value).split("/").count("*") != 1:
            message = f"{REFERS} must be an absolute JSON Pointer with one *, such as /items/*/id, not {value!r:.80}"
            raise UnsupportedSchemaError(message, pointer=pointer)
    elif keyword not in SUPPORTED:
        message = f"$data is not supported for {keyword}, only for {', '.join(sorted(SUPPORTED))}"
        raise UnsupportedSchemaError(message, pointer=pointer)
    return _bound(target, keyword, pointer, data, name)


def _bound(target: Place, keyword: str, pointer: str, data: object, name: str) -> Bound:
    """Returns the bound of a target by the value that a pointer points at. ``name``: of what is the pointer."""
    start, steps = read_pointer(data, target.path, pointer, name)
    depth, rest = len(start), list(steps)
    while rest and depth < len(target.path) and target.path[depth] is not ITEM and str(target.path[depth]) == rest[0]:
        depth += 1  # the target shares this step
        rest.pop(0)
    if not rest or depth == len(target.path):
        message = f"{data!r:.80} points at the value that it bounds itself, or at one around or inside it"
        raise SchemaError(message, pointer=pointer)
    if keyword == REFERS and rest[0] == "*":
        message = f"{data!r:.80} refers to the array in which it lies; put it into another member, behind the array"
        raise UnsupportedSchemaError(message, pointer=pointer)
    below = inner = target
    while len(inner.path) > depth:
        assert inner.parent is not None
        below, inner = inner, inner.parent
    source = top = inner
    for number, step in enumerate(rest):
        chain = source.around() if not number else [source]
        if keyword == REFERS and number:
            _check_kind(source, "array" if step == "*" else "object", REFERS, pointer)
        if keyword == REFERS and step == "*":
            source, holder = _any_item(chain, REFERS, pointer)
        else:
            source, holder = _step(chain, step, f"{data!r:.80}", pointer)
        if not number:
            top = holder
            _put_before(holder, source.key, below, inner, data, pointer)
    return Bound(keyword, pointer, target, source, top)


def _rows(target: Place, value: object, pointer: str) -> tuple[list[object], Rows]:
    """Returns the pointers in ``given``, and the rows that they need."""
    try:
        keyword, given = read_given(value)
        rows = Rows(keyword, tuple(given), rows_of(keyword, given, target.tree.document))
        return [*given.values()], rows
    except TypeError as error:
        raise SchemaError(str(error), pointer=pointer) from error
    except SchemaError as error:
        raise type(error)(error.message, pointer=pointer) from error


def is_required(schemas: list[Place], key: str) -> bool:
    """Returns whether one of the schemas requires a key."""
    lists = [each.schema.get("required") for each in schemas]
    return any(key in required for required in lists if isinstance(required, list))


def least_items(schemas: list[Place]) -> int:
    """Returns the least number of items that the schemas allow."""
    return max((least for each in schemas if isinstance(least := each.schema.get("minItems"), int)), default=0)


def depends(place: Place, branch: int) -> bool:
    """Returns whether a branch of ``anyOf`` depends on other fields."""
    part = place.parts.get(("anyOf", branch))
    return part is not None and any(each.bounds for each in part.walk())


def _check_alternatives(place: Place, bounds: list[Bound | Unique]) -> None:
    """Refuses ``anyOf`` beside other fields that depend on each other, and some around their arrays.

    The items of an array that are finished are read without their bounds. An alternative that one of them excludes
    would so be allowed again, unless the types of the alternatives tell them apart.
    """
    pointer = f"{place.pointer}/anyOf"
    chain = place.around()
    chain = chain[: next((at + 1 for at, each in enumerate(chain) if each.key[0] == "anyOf"), len(chain))]
    for each in conjunction(chain):
        if any(key[0] != "$ref" and key[0] != "allOf" for key in each.parts if key[0] != "anyOf" or each is not place):
            message = "anyOf cannot stand beside fields that depend on each other; put all of them into its schemas"
            raise UnsupportedSchemaError(message, pointer=pointer)
    deep = {bound.target.path for bound in bounds if bound.items > place.path.count(ITEM)}
    if any(path[: len(place.path)] == place.path for path in deep):
        branches = [
            place.open(("anyOf", at)) for at, each in enumerate(place.schema["anyOf"]) if isinstance(each, dict)
        ]
        kinds = [kind for branch in branches for kind in set(types_of(branch) or ("",))]
        if "" in kinds or len(set(kinds)) < len(kinds):
            message = "the schemas of anyOf around arrays whose items depend on each other must have different types"
            raise UnsupportedSchemaError(message, pointer=pointer)


def _step(chain: list[Place], step: str, data: str, pointer: str) -> tuple[Place, Place]:
    """Returns the place of a member or item of a value, and the place that declares it."""
    schemas = conjunction(chain)
    found: list[tuple[Place, Key]] = []
    for each in schemas:
        declared = each.schema.get("properties")
        if isinstance(declared, dict) and step in declared:
            found.append((each, ("properties", step)))
        keyword, prefix = each.prefix()
        if step.isdecimal() and int(step) < len(prefix):
            found.append((each, (keyword, int(step))))
        elif step.isdecimal() and each.tail() is not None:
            message = f"{data} points at an item that items describes; describe it in prefixItems"
            raise UnsupportedSchemaError(message, pointer=pointer)
    if not found:
        raise _nothing(chain, step, data, pointer)
    if len(found) > 1:
        message = f"{data}: several schemas describe {step!r:.80} ({', '.join(at.pointer or '#' for at, _ in found)})"
        raise UnsupportedSchemaError(f"{message}; describe it in one of them", pointer=pointer)
    holder, key = found[0]
    if key[0] == "properties":
        always = is_required(schemas, step)
        cure = f"add {step!r:.80} to required"
    else:
        always = least_items(schemas) > int(step)
        cure = f"add minItems {int(step) + 1}"
    if not always:
        raise UnsupportedSchemaError(f"{data}: {step!r:.80} may be absent, but {_ABSENT}: {cure}", pointer=pointer)
    return holder.open(key), holder


def _nothing(chain: list[Place], step: str, data: str, pointer: str) -> SchemaError:
    names = [key for one in chain for each in one.together() for key in each.schema.get("properties", ())]
    alternatives = [
        each for one in chain for each in one.together() if "anyOf" in each.schema or "oneOf" in each.schema
    ]
    if alternatives and not names:
        message = (
            f"{data}: {step!r:.80} lies in one of several alternatives, but {_ABSENT}: describe it outside of them"
        )
        return UnsupportedSchemaError(message, pointer=pointer)
    near = closest(step, names)
    hint = (
        f": did you mean {near!r:.80}?" if near else f"; there are {', '.join(map(repr, names))}"[:300] if names else ""
    )
    return SchemaError(f"{data} points at nothing: the schema describes no {step!r:.80} there{hint}", pointer=pointer)


def _put_before(holder: Place, key: Key, below: Place, inner: Place, data: object, pointer: str) -> None:
    """Notes that one member of a value comes before another one, in which the target lies."""
    if key[0] == "properties":
        if inner is not holder or below.key[0] != "properties":
            raise UnsupportedSchemaError(
                f"{data!r:.80}: both fields must be declared in the same properties, so that one comes first; "
                f"they are in {holder.pointer or '#'} and {inner.pointer or '#'}",
                pointer=pointer,
            )
        others = [
            each.pointer
            for one in holder.around()
            for each in one.together()
            if each is not holder and below.key[1] in each.schema.get("properties", ())
        ]
        if others:
            message = f"several schemas describe {below.key[1]!r:.80} ({holder.pointer or '#'}, {others[0] or '#'})"
            raise UnsupportedSchemaError(f"{message}; describe it in one of them", pointer=pointer)
        holder.before.setdefault((str(key[1]), str(below.key[1])), pointer)
    elif isinstance(below.key[1], int) and 0 <= below.key[1] <= int(key[1]):
        message = f"{data!r:.80} points at a later item; only what is written earlier can bound a value"
        raise UnsupportedSchemaError(message, pointer=pointer)


def _order_keys(tree: Tree) -> None:
    """Puts the keys of each object into an order in which all sources come first; otherwise that of the schema."""
    for place in tree.root.walk():
        if not place.before:
            continue
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for first, then in place.before:
            sorter.add(then, first)
        try:
            sorter.prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            pointers = [place.before[pair] for pair in pairwise(circle) if pair in place.before]
            raise SchemaError(
                f"{' needs '.join(map(repr, reversed(circle)))}: fields that bound each other cannot come first; "
                f"leave out one of {', '.join(pointers)}",
                pointer=pointers[0],
            ) from error
        properties = place.schema["properties"]
        ordered: list[str] = []
        while len(ordered) < len(properties):  # the first key, in the schema's order, whose sources are there
            ordered.append(
                next(
                    key
                    for key in properties
                    if key not in ordered and all(one in ordered for one, then in place.before if then == key)
                )
            )
        place.schema = {**place.schema, "properties": {key: properties[key] for key in ordered}}


def _follow_repetitions(bound: Bound) -> None:
    """Makes the first of several equal fields the source of all later ones."""
    seen = {bound.pointer}
    while bound.keyword == "const":
        above = [other for each in conjunction([bound.source]) for other in each.bounds if other.keyword == "const"]
        if len(above) != 1 or above[0].pointer in seen:
            return  # circles are refused later
        seen.add(above[0].pointer)
        bound.source = above[0].source
        bound.top = _common(bound.target, bound.source)


def _common(one: Place, other: Place) -> Place:
    """Returns the innermost place around both of two."""
    around: set[int] = set()
    place: Place | None = one
    while place is not None:
        around.add(id(place))
        place = place.parent
    while id(other) not in around:
        assert other.parent is not None
        other = other.parent
    return other


def _settle_skippable(bound: Bound) -> None:
    """Finds out whether the target may be left out, or satisfy another alternative, once the source is written."""
    place = bound.target
    while place is not bound.top and place.parent is not None:
        above, (keyword, name) = place.parent, place.key
        if place.path == bound.top.path:
            break
        if keyword == "anyOf":
            if all(each is False or depends(above, at) for at, each in enumerate(above.schema["anyOf"])):
                message = "every schema of this anyOf depends on other fields; add one that does not, such as null"
                raise UnsupportedSchemaError(message, pointer=f"{above.pointer}/anyOf")
            bound.skippable = True
        elif keyword == "properties":
            bound.absent |= not is_required(conjunction(above.around()), str(name))
        elif keyword not in ("allOf", "$ref"):
            first = len(above.prefix()[1]) if name == -1 else int(name)
            bound.absent |= least_items(conjunction(above.around())) <= first
            bound.times *= least_items(conjunction(above.around())) - first if name == -1 else 1
        place = above
    bound.skippable |= bound.absent
