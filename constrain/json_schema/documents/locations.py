"""Sources, resources and locations of subschemas, as data.

A location is one subschema at one place. A resource is a source (a schema with a base URI) in one dynamic scope
(``dynamic_scope``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.json_schema.documents.dialects import escape

if TYPE_CHECKING:
    from constrain.json_schema.documents.dialects import Declared, Dialect

    Place = tuple[str, dict[str, object]]  # a JSON Pointer from the root of a source, and the schema there


class SchemaSource:
    """A schema with a base URI of its own: a whole document, or a subschema with an ``$id``.

    ``pointer`` and ``depth`` are those of its root. ``anchors`` (``None``: not searched yet) and ``dynamic`` (only with
    dynamic scopes) map names to places; ``None`` marks a name that several schemas have. ``embedded``: sources inside,
    by identity of the subschema. ``resources``: this source in each dynamic scope.
    """

    __slots__ = ("anchors", "base", "declared", "depth", "dynamic", "embedded", "pointer", "resources", "schema")

    def __init__(self, schema: object, base: str, declared: Declared, pointer: str, depth: int) -> None:
        self.schema = schema
        self.base = base
        self.declared = declared
        self.pointer = pointer
        self.depth = depth
        self.anchors: dict[str, Place | None] | None = None
        self.dynamic: dict[str, Place | None] = {}
        self.embedded: dict[int, SchemaSource] = {}
        self.resources: dict[Scope, Resource] = {}


class Scope:
    """The outermost resource that declares each dynamic anchor."""

    __slots__ = ("outermost",)

    def __init__(self, outermost: dict[str, SchemaSource]) -> None:
        self.outermost = outermost


NO_SCOPE = Scope({})
"""The scope outside a document, and the only scope if dynamic scopes are not kept."""


class Resource:
    """A source in a dynamic scope, which includes the source itself; holds the locations inside it.

    ``goals``: the first goal of each schema, by its content, where formulas ask for it.
    """

    __slots__ = ("base", "dialect", "goals", "locations", "root", "scope", "source", "targets")

    def __init__(self, source: SchemaSource, scope: Scope) -> None:
        self.source = source
        self.scope = scope
        self.base = source.base
        self.dialect: Dialect = source.declared.dialect
        self.locations: dict[int, Location] = {}
        self.goals: dict[object, Any] = {}  # ``Goal`` is defined in a higher package
        self.targets: dict[str | tuple[str, str], Location] = {}
        self.root: Location


class Location:
    """One subschema at one place; ``shapes`` and ``goal`` are filled in on demand."""

    __slots__ = ("depth", "expanding", "goal", "order", "parent", "resource", "schema", "shapes", "token")

    def __init__(self, schema: object, parent: Location | None, token: str, resource: Resource, order: int) -> None:
        self.schema = schema
        self.parent = parent
        self.token = token
        self.resource = resource
        self.order = order
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.expanding = False
        self.shapes: Any = None  # ``Shapes``, and below a ``Goal``: both are defined in higher packages
        self.goal: Any = None

    def pointer(self, *tokens: str | int) -> str:
        """Returns the JSON Pointer of this location, or of something inside it. O(depth)."""
        parts = []
        location: Location | None = self
        while location is not None:
            parts.append(location.token)
            location = location.parent
        parts.reverse()
        parts += [escape(str(token)) for token in tokens]
        return "".join(parts)
