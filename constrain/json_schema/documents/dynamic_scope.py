"""Dynamic scopes: which resources an evaluation came through, as far as ``$dynamicRef`` and ``$recursiveRef`` ask.

A schema inside a resource means different things to callers that came through different resources, if it has a dynamic
reference. So a location exists once per dynamic scope. Of a scope only this matters: for each dynamic anchor, the
outermost resource that declares it. A scope only grows, an anchor's resource never changes in it, and equal scopes are
one object; documents without dynamic references have only the empty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.documents.locations import Scope

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import SchemaSource

MAX_DYNAMIC_SCOPES = 1_000
"""Dynamic scopes of one schema; choices between resources can combine exponentially, metaschemas make 2. Beyond:
LimitError."""

RECURSIVE = ""
"""The name under which ``$recursiveAnchor`` stands among the dynamic anchors; no anchor has an empty name."""


class DynamicScopeNeeded(Exception):  # noqa: N818  a signal between phases, no error
    """A dynamic reference was met while no dynamic scopes were kept; the compilation must begin again with them."""


class Scopes:
    """All dynamic scopes of one compilation."""

    def __init__(self) -> None:
        self._interned: dict[frozenset[tuple[str, SchemaSource]], Scope] = {}

    def enter(self, scope: Scope, source: SchemaSource) -> Scope:
        """The scope after ``source`` was entered from ``scope``."""
        if scope.outermost.keys() >= source.dynamic.keys():
            return scope
        outermost = {**dict.fromkeys(source.dynamic, source), **scope.outermost}
        key = frozenset(outermost.items())
        entered = self._interned.get(key)
        if entered is None:
            if len(self._interned) >= MAX_DYNAMIC_SCOPES:
                raise LimitError(
                    f"dynamic references are reached in more ways than MAX_DYNAMIC_SCOPES = {MAX_DYNAMIC_SCOPES} allows"
                )
            entered = self._interned[key] = Scope(outermost)
        return entered
