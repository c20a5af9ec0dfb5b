"""Dynamic scopes: the resources on the way of an evaluation, for ``$dynamicRef`` and ``$recursiveRef``.

With a dynamic reference, a schema inside a resource depends on the resources through which its callers came. So a
location exists once per dynamic scope. The relevant part of a scope is the outermost resource that declares each
dynamic anchor. A scope only grows, an anchor's resource in it never changes, and equal scopes are one object. Documents
without dynamic references have only the empty scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.documents.locations import Scope
from constrain.work import spend

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import SchemaSource

SCOPE_STEPS = 2_000
"""Compilation steps for one dynamic scope; choices between resources can combine exponentially, metaschemas have 2."""

RECURSIVE = ""
"""The name of ``$recursiveAnchor`` among the dynamic anchors; no anchor has an empty name."""


class DynamicScopeNeeded(Exception):  # noqa: N818  a signal between phases, no error
    """Raised when a compilation that keeps no dynamic scopes meets a dynamic reference (``$dynamicRef``).

    The compilation then starts again and keeps them.
    """


class Scopes:
    """All dynamic scopes of one compilation."""

    def __init__(self) -> None:
        self._interned: dict[frozenset[tuple[str, SchemaSource]], Scope] = {}

    def enter(self, scope: Scope, source: SchemaSource) -> Scope:
        """Returns the dynamic scope inside ``source``, for an evaluation that comes from ``scope``."""
        if scope.outermost.keys() >= source.dynamic.keys():
            return scope
        outermost = {**dict.fromkeys(source.dynamic, source), **scope.outermost}
        key = frozenset(outermost.items())
        entered = self._interned.get(key)
        if entered is None:
            spend(SCOPE_STEPS, "use fewer dynamic references")
            entered = self._interned[key] = Scope(outermost)
        return entered
