"""Conversion of a composition to one ``Grammar``: regular texts become terminals, schemas and grammars rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain import kernel
from constrain.composition.boundaries import lexemes_end_by_themselves
from constrain.composition.labels import label
from constrain.composition.nodes import Composed, InSequence, OneOf, Repeated
from constrain.composition.parts import FreeText, Schema
from constrain.composition.texts import NO_TEXT, Text, shortened
from constrain.composition.ways import Combined, Ways, at_position
from constrain.errors import ConstrainError, PatternError
from constrain.language.grammar import Edge, Grammar, Kind, Rule
from constrain.language.merging import Merging, edges_of
from constrain.language.tree import Literal
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.source import Regex
from constrain.work import asked

if TYPE_CHECKING:
    from constrain.composition.parts import Part
    from constrain.language.source import Source
    from constrain.language.tree import Expression


def composition_grammar(composition: Composed) -> Grammar:
    """Returns the grammar of a composition.

    The name of a terminal ends in the name of its part, and its pointer begins with the place of the part: ``/0/part``
    is the part that the first part repeats. Raises the errors of the parts; LimitError.
    """
    composer = _Composer()
    return composer.grammar(composer.ways(composition, ""))


class _Composer(Merging):
    """The grammar under construction, and the rule of each position."""

    def __init__(self) -> None:
        super().__init__()
        self.start = self.reserve()
        self.positions: list[int] = []
        self.combined = Combined()
        self.parts: dict[str, int] = {}
        self.leaves: dict[str, Text] = {}
        self.self_delimiting: set[int] = set()
        self.only_schemas = True

    def ways(self, part: Part, place: str) -> Ways:
        """Returns the ways through a part."""
        if isinstance(part, str | Regex):
            return Ways(self.leaf(part, place))
        if not isinstance(part, Composed):
            self.positions.append(self.merge(part, place))
            return at_position(len(self.positions) - 1)
        inner = [(each, f"{place}/{name}") for name, each in part.inner().items()]
        match part.node:
            case FreeText():
                return Ways(self.leaf(part.node, place))
            case OneOf():
                return self.combined.choice([self.ways(*each) for each in inner])
            case Repeated(_, minimum, maximum, separator):
                return self.repeated(inner, minimum, maximum, separated=separator != "")
            case InSequence():
                ways = Ways(NO_TEXT)
                for each in inner:
                    ways = self.combined.sequence(ways, self.ways(*each))
                return ways

    def repeated(self, inner: list[tuple[Part, str]], minimum: int, maximum: int | None, *, separated: bool) -> Ways:
        """Returns the ways through a repeated part, with a separator in between."""
        part, separator = inner
        if not separated:
            return self.combined.repeat(lambda: self.ways(*part), minimum, maximum)

        def again() -> Ways:
            return self.combined.sequence(self.ways(*separator), self.ways(*part))

        if maximum == 0:
            return Ways(NO_TEXT)
        more = self.combined.repeat(again, max(minimum - 1, 0), None if maximum is None else maximum - 1)
        ways = self.combined.sequence(self.ways(*part), more)
        return ways if minimum else self.combined.choice([Ways(NO_TEXT), ways])

    def leaf(self, part: str | Regex | FreeText, place: str) -> Text:
        """Returns the texts of a regular part without inner parts. Raises PatternError if there are none."""
        if part == "":
            return NO_TEXT
        if place not in self.leaves:
            match part:
                case str():
                    expression: Expression = Literal(part.encode())
                case Regex(pattern, dialect):
                    expression = parse_pattern(pattern, dialect, all_rust=True)
                    if asked(kernel.is_empty, expression):
                        raise PatternError(f"{label(part)} matches no text at all")
                case FreeText():
                    expression = part.expression()
            kind = Kind.PROSE if isinstance(part, FreeText) else Kind.OTHER
            self.leaves[place] = Text(expression, shortened(label(part)), place, kind)
        return self.leaves[place]

    def merge(self, part: Source, place: str) -> int:
        """Returns the symbol of the first rule of a schema or grammar. Raises its errors, with its place."""
        if place in self.parts:
            return self.parts[place]
        written = shortened(label(part))
        try:
            grammar = part.grammar()
        except ConstrainError as error:
            pointer = None if error.pointer is None else place + error.pointer
            message = f"{error.message}\n(in {written}, at {place})"
            raise type(error)(message, pointer=pointer, line=error.line, column=error.column) from error
        symbol = self.parts[place] = self.add(grammar, f" of {written}", place, f" (in {written}, at {place})")
        self.only_schemas &= isinstance(part, Schema)
        if grammar.self_delimiting:
            self.self_delimiting.add(symbol)
        return symbol

    def grammar(self, ways: Ways) -> Grammar:
        """Returns the grammar of a composition's ways: two states for each position, before and after it."""
        edges = [Edge(2 * index + 2, symbol, 2 * index + 3) for index, symbol in enumerate(self.positions)]
        if ways.regular is not None:
            edges += self.edges(0, ways.regular, 1)
        for position, text in ways.first.items():
            edges += self.edges(0, text, 2 * position + 2)
        for (one, two), text in ways.follow.items():
            edges += self.edges(2 * one + 3, text, 2 * two + 2)
        for position, text in ways.last.items():
            edges += self.edges(2 * position + 3, text, 1)
        self.rules[self.start] = Rule("start", tuple(edges), (1,))
        grammar = self.merged()
        ends = self.is_one_part(ways) or (self.only_schemas and lexemes_end_by_themselves(grammar))
        return replace(grammar, self_delimiting=ends)

    def is_one_part(self, ways: Ways) -> bool:
        """Returns whether there is a single part whose lexemes end by themselves, so that all lexemes do."""
        beside = {ways.regular, *ways.first.values(), *ways.last.values()} - {None, NO_TEXT}
        return len(self.positions) == 1 and self.positions[0] in self.self_delimiting and not beside | {*ways.follow}

    def edges(self, source: int, text: Text, target: int) -> list[Edge]:
        """Returns the edges that read a text from one state to another."""
        texts = self.texts(text, text.expression, text.label, text.place, text.kind)
        return edges_of(source, texts, target)[::-1]
