"""The limits of OpenAI's strict subset on the size of a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.strict.merging import Schema

LARGE_ENUM = 250
"""Values of one ``enum`` above which its characters are limited."""

_OPT_OUT = "Consider reducing the number of enums, or use 'strict: false' to opt out of structured outputs."


class Sizes:
    """Counts over all schemas of a document."""

    def __init__(self) -> None:
        self.properties = 0
        self.characters = 0
        self.enum_values = 0
        self.large_enums: list[int] = []
        self._deepest: dict[int, int] = {}
        """The greatest level of nesting within the document and each definition, by identity."""
        self._references: dict[int, list[tuple[int, str]]] = {}
        """The references within the document and each definition, by identity, each with its level."""
        self._named: dict[str, int] = {}

    def note(self, node: Schema, base: int, level: int) -> None:
        """Counts one schema, which stands at ``level`` of the document or definition ``base``."""
        if not self._deepest:
            self._named["#"] = base
        self._deepest[base] = max(level, self._deepest.get(base, 0))
        reference = node.get("$ref")
        if isinstance(reference, str):
            self._references.setdefault(base, []).append((level, reference))
        for keyword in ("$defs", "definitions", "properties"):
            names = node.get(keyword)
            if isinstance(names, dict):
                self.characters += sum(map(len, names))
                if keyword == "properties":
                    self.properties += len(names)
                elif base == self._named["#"]:
                    self._named.update((f"#/{keyword}/{name}", id(schema)) for name, schema in names.items())
        if isinstance(node.get("const"), str):
            self.characters += len(str(node["const"]))
        values = node.get("enum")
        if isinstance(values, list):
            strings = [value for value in values if isinstance(value, str)]
            length = sum(map(len, strings))
            self.enum_values += len(values)
            self.characters += length
            if len(values) > LARGE_ENUM and strings:
                self.large_enums.append(length)

    def exceeded(self) -> Iterator[str]:
        """Yields the exceeded limits, in OpenAI's words."""
        if self.properties > 5000:
            yield f"{self.properties} parameters exceeds limit of 5000."
        if (nesting := self._nesting()) > 10:
            yield f"{nesting} levels of nesting exceeds limit of 10."
        if self.characters > 120_000:
            yield (
                "Expected at most 120000 total characters across property names, definition names, enum values and "
                f"const values, but received {self.characters}."
            )
        if self.enum_values > 1000:
            yield (
                "Expected at most 1000 enum values in total within a single schema when using structured outputs, but "
                f"received {self.enum_values}. {_OPT_OUT}"
            )
        for length in self.large_enums:
            if length > 15_000:
                yield (
                    "Expected at most 15000 total characters across enum values when there are more than "
                    f"{LARGE_ENUM} enum values, but received {length}. {_OPT_OUT}"
                )

    def _nesting(self) -> int:
        """Returns the levels of objects and arrays from the root down; references are followed unless they recur."""
        root = self._named["#"]
        found: dict[int, int] = {}
        open_: set[int] = set()
        stack = [root]
        while stack:
            base = stack[-1]
            targets = [
                (level, self._named[reference])
                for level, reference in self._references.get(base, ())
                if self._named.get(reference) in self._deepest
            ]
            if base not in open_ and base not in found:
                open_.add(base)
                stack += [target for _, target in targets if target not in found and target not in open_]
                continue
            stack.pop()
            if base in open_ and base not in found:
                open_.discard(base)
                deeper = [level + found[target] for level, target in targets if target in found]
                found[base] = max([self._deepest[base], *deeper])
        return found[root]
