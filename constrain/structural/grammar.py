"""From the formats of a structural tag to a ``Grammar``.

Formats without schemas, grammars and special tokens are regular: each becomes one expression. All others become edges
of one rule, which meet at states (``graph``). So the language is exactly what the formats say: where one text may be
divided in several ways, every way counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constrain import kernel
from constrain.composition.texts import NO_TEXT, Text
from constrain.errors import ConstrainError, GrammarError
from constrain.language.digest import expression_digest
from constrain.language.emptiness import productive_rules
from constrain.language.grammar import EPSILON, VALUE_SET, Action, Condition, Edge, Grammar, Rule, Terminal
from constrain.language.merging import Merging, edges_of
from constrain.language.schema_text import parse_schema
from constrain.language.special import special_token
from constrain.language.tree import Literal, inside
from constrain.lark.lexing.splitting import settle_lexing
from constrain.structural.formats import (
    AnyText,
    Constant,
    InOrder,
    Json,
    Language,
    OneOf,
    OneToken,
    Repeated,
    Tag,
    Trigger,
    Triggered,
)
from constrain.structural.graph import END, START, Graph
from constrain.structural.marks import Special
from constrain.structural.regular import RegularTexts
from constrain.structural.styles import argument_form, style_marks
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.composition.texts import Text
    from constrain.language.tree import Expression
    from constrain.structural.formats import Mark
    from constrain.structural.marks import Names, Piece

MAX_COPIES = 64
"""Formats up to which a counted repetition of a schema or grammar is written out; above it, the grammar gets a counter,
which takes memory in every state."""


def tag_grammar(node: Expression, names: Names, *, close_objects: bool) -> Grammar:
    """Returns the grammar of a structural tag.

    The pointer of a terminal begins with the place of its format. Raises GrammarError, LimitError and the errors of
    schemas and patterns, with the place in the tag.
    """
    return _Emitter(names, close_objects=close_objects).grammar(node)


class _Emitter(Merging):
    """The grammar under construction; rule 0 is the tag."""

    def __init__(self, names: Names, *, close_objects: bool) -> None:
        super().__init__()
        self.names = names
        self.close_objects = close_objects
        self.regular = RegularTexts(names)
        self.of_schemas: set[int] = set()
        self.limits: list[str] = []
        self._merged: dict[object, int] = {}
        self._shared: dict[object, int] = {}
        self._digests: dict[int, bytes] = {}
        self._alive: list[Terminal] = []  # keeps alive the expressions that ``_digests`` knows by identity

    def grammar(self, node: Expression) -> Grammar:
        start, graph = self.reserve(), Graph(self.regular.texts)
        self.read(graph, node, START, END, ())
        graph.join()
        self.rules[start] = Rule("tag", tuple(self.edges(graph)), (END,))
        if 0 not in productive_rules(self.rules):
            raise GrammarError("no text matches this structural tag: each way through it excludes itself", pointer="")
        try:
            return settle_lexing(self.merged(), self.of_schemas, lossless_first=True)
        except GrammarError as error:
            if error.pointer is None and self.limits:  # the message names the formats in the way
                error.pointer = f"{self.limits[0]}/max_tokens"
            raise

    def edges(self, graph: Graph) -> list[Edge]:
        """Returns the edges of a finished graph."""
        found: list[Edge] = []
        for arrow in graph.arrows:
            texts = (arrow.label, False) if isinstance(arrow.label, int) else self.symbol(arrow.label)
            found += edges_of(arrow.source, texts, arrow.target)
        return found

    def symbol(self, text: Text) -> tuple[int | None, bool]:
        """Returns the symbol of a text, if it has nonempty ones; and whether it has the empty one."""
        return self.texts(text, text.expression, text.label, text.place, text.kind)

    def read(self, graph: Graph, node: Expression, source: int, target: int, ends: tuple[Mark, ...]) -> None:
        """Adds the texts of a format from state to state. ``ends``: the marks that end the tag around it."""
        text = self.regular.of(node, ends)
        if text is not None:
            graph.add(source, text, target)
            return
        match node:
            case Constant(value):
                self.add_pieces(graph, self.names.pieces(value), source, target, node.place)
            case AnyText():
                graph.add(source, self.limited(node, ends), target)
            case OneToken(excludes):
                token = self.names.all_but((*excludes, *ends))
                graph.add(source, self.special(token, node.place, "any other token"), target)
            case Json():
                graph.add(source, self.schema(node), target)
            case Language(language):
                graph.add(source, self.merge(language, language.grammar, node.place, whole=False), target)
            case OneOf(parts):
                self.add_choice(graph, parts, source, target, ends)
            case InOrder(parts):
                for part in parts[:-1]:
                    middle = graph.state()
                    self.read(graph, part, source, middle, ends)
                    source = middle
                self.read(graph, parts[-1], source, target, ends)
            case Repeated():
                self.add_repeated(graph, node, source, target, ends)
            case Tag():
                self.add_tag(graph, node, source, target)
            case Triggered():
                self.add_triggered(graph, node, source, target, ends)

    def add_pieces(self, graph: Graph, pieces: list[Piece], source: int, target: int, place: str) -> None:
        """Adds texts and special tokens one after the other."""
        if not pieces:
            graph.add(source, NO_TEXT, target)
        for index, piece in enumerate(pieces):
            after = target if index == len(pieces) - 1 else graph.state()
            label = self.special(piece, place) if isinstance(piece, Special) else self.regular.literal(piece, place)
            graph.add(source, label, after)
            source = after

    def limited(self, node: AnyText, ends: tuple[Mark, ...]) -> int:
        """Returns the symbol of a rule that reads free text of limited tokens."""
        text = self.regular.any_text(node, ends)
        key = text, node.max_tokens
        if key in self._merged:
            return self._merged[key]
        edges = edges_of(START, self.symbol(text), END)
        self.limits.append(node.place)
        self.rules.append(Rule(f"any text ({node.place})", tuple(edges), (END,), max_tokens=node.max_tokens))
        self._merged[key] = ~(len(self.rules) - 1)
        return self._merged[key]

    def special(self, token: Special, place: str, name: str = "") -> int:
        """Returns the symbol of a special token, or of a set of tokens with a name for people."""
        return self.terminal(token, special_token(token.name), name or token.name, place)

    def add_choice(
        self, graph: Graph, parts: tuple[Any, ...], source: int, target: int, ends: tuple[Mark, ...]
    ) -> None:
        """Adds any one of several formats; begins of tags that are alike become a tree of their letters."""
        inside: dict[bytes, int] = {}
        for part in parts:
            pieces = self.names.pieces(part.begin) if isinstance(part, Tag) else []
            if not isinstance(part, Tag) or len(pieces) != 1 or self.regular.of(part, ends) is not None:
                self.read(graph, part, source, target, ends)
                continue
            (begin,) = pieces
            if isinstance(begin, Special):
                self.add_tag(graph, part, source, target)
                continue
            state = inside.setdefault(begin, -1)
            if state < 0:
                state = inside[begin] = graph.state()
            self.add_rest(graph, part, state, target)
        self.add_tree(graph, source, inside, f"{parts[0].place}/begin")

    def add_tree(self, graph: Graph, source: int, inside: dict[bytes, int], place: str) -> None:
        """Adds texts that lead to a state each; at no state do two texts begin with the same byte."""
        waiting = [(source, inside)]
        for state, texts in waiting:
            groups: dict[bytes, dict[bytes, int]] = {}
            for text, reached in texts.items():
                groups.setdefault(text[:1], {})[text] = reached
            for group in groups.values():
                prefix = _common(list(group))
                if len(group) == 1:
                    graph.add(state, self.regular.literal(prefix, place), group[prefix])
                    continue
                middle = graph.state()
                graph.add(state, self.regular.literal(prefix, place), middle)
                waiting.append((middle, {text[len(prefix) :]: reached for text, reached in group.items()}))

    def add_tag(self, graph: Graph, node: Tag, source: int, target: int) -> None:
        inside = graph.state()
        self.add_pieces(graph, self.names.pieces(node.begin), source, inside, f"{node.place}/begin")
        self.add_rest(graph, node, inside, target)

    def add_rest(self, graph: Graph, node: Tag, inside: int, target: int) -> None:
        """Adds the content of a tag and its end."""
        behind = graph.state()
        self.read(graph, node.part, inside, behind, node.ends)
        of_elements = isinstance(node.part, Json) and bool(style_marks(node.part.style))
        for end in dict.fromkeys(node.ends):
            place = f"{node.place}/end"
            if of_elements and isinstance(end, str) and end.startswith("\n"):
                before = graph.state()
                graph.add(behind, self.line_break(place), before)
                self.add_pieces(graph, self.names.pieces(end[1:]), before, target, place)
            else:
                self.add_pieces(graph, self.names.pieces(end), behind, target, place)

    def line_break(self, place: str) -> int:
        """Returns the symbol of a line break, a lexeme of its own: elements end in such a lexeme, too."""
        return self.terminal(b"\n", Literal(b"\n"), "line break", place)

    def add_triggered(self, graph: Graph, node: Triggered, source: int, target: int, ends: tuple[Mark, ...]) -> None:
        """Adds free text with triggers: a state in front of free text, to which the ways return."""
        before = graph.state()
        graph.add(source, NO_TEXT, before)
        triggers = self.names.texts_of(rule.mark for rule in node.parts)
        excluded = self.regular.excluded(node.excludes, ends, of_tokens=node.of_tokens)
        graph.add(before, self.regular.free((*triggers, *excluded), node.place), target)
        for rule in node.parts:
            reached = graph.state()
            text, rest = self.up_to_trigger(rule, triggers, excluded)
            is_cut_off = asked(kernel.is_empty, text.expression) if excluded else False
            if is_cut_off:
                self.warnings[f"{rule.place}: this trigger cannot occur, because it holds an excluded text"] = None
                continue
            middle = graph.state()
            graph.add(before, text, middle)
            self.add_pieces(graph, rest, middle, reached, rule.place)
            self.add_choice(graph, rule.parts, reached, before if node.loop else target, ends)

    def up_to_trigger(self, rule: Trigger, triggers: list[bytes], excluded: list[bytes]) -> tuple[Text, list[Piece]]:
        """Returns free text up to a trigger, with its first text, and the rest of the trigger."""
        pieces = self.names.pieces(rule.mark)
        first, *rest = pieces
        if isinstance(first, Special):
            return self.regular.free((*triggers, *excluded), rule.place), pieces
        if rest:
            return self.regular.ending(first, (*triggers, *excluded), rule.place), rest
        return self.regular.up_to(first, triggers, excluded, rule.place), []

    def add_repeated(self, graph: Graph, node: Repeated, source: int, target: int, ends: tuple[Mark, ...]) -> None:
        if node.maximum == 0:
            graph.add(source, NO_TEXT, target)
            return
        copies = node.minimum if node.maximum is None else node.maximum
        if copies > 1 and copies * _size(node.part) > MAX_COPIES:
            graph.add(source, self.counted(node, ends), target)
            return
        separator, place = self.names.pieces(node.separator), f"{node.place}/separator"
        if node.minimum == 0:
            graph.add(source, NO_TEXT, target)
        for copy in range(1, max(copies, 1)):
            behind, middle = graph.state(), graph.state()
            self.read(graph, node.part, source, behind, ends)
            self.add_pieces(graph, separator, behind, middle, place)
            if copy >= node.minimum and node.maximum is not None:
                graph.add(behind, NO_TEXT, target)
            source = middle
        behind = graph.state()
        again = source
        if node.maximum is None:
            again = graph.state()
            graph.add(source, NO_TEXT, again)
            self.add_pieces(graph, separator, behind, again, place)
        self.read(graph, node.part, again, behind, ends)
        graph.add(behind, NO_TEXT, target)

    def counted(self, node: Repeated, ends: tuple[Mark, ...]) -> int:
        """Returns the symbol of a rule that counts how often it has read a format."""
        least, most = node.minimum, node.maximum
        name = f"repeat {least}, {'' if most is None else most} ({node.place})"
        number, graph = self.reserve(), Graph(self.regular.texts)
        begin, behind = graph.state(), graph.state()
        graph.kept |= {begin, behind}
        self.read(graph, node.part, begin, behind, ends)
        self.add_pieces(graph, self.names.pieces(node.separator), behind, START, f"{node.place}/separator")
        graph.join()
        again = () if most is None else (Condition(0, 0, most - 1),)
        edges = [
            Edge(START, EPSILON, begin, again, ((Action.INCREMENT, 0),)),
            Edge(behind, EPSILON, END, (Condition(0, least, None),) if least else ()),
            *([] if least else [Edge(START, EPSILON, END, (Condition(0, 0, 0),))]),
            *self.edges(graph),
        ]
        self.rules[number] = Rule(name, tuple(edges), (END,), (max(least, 1) if most is None else most,))
        return ~number

    def schema(self, node: Json) -> int:
        """Returns the symbol of a JSON Schema; equal schemas share their rules."""
        from constrain.json_schema.compiler import compile_schema

        form = argument_form(node.style, line_breaks=node.line_breaks, special=self.names.special)
        key = node.schema, node.style, node.any_order, node.compact, node.line_breaks

        def compile_values() -> Grammar:
            return compile_schema(
                parse_schema(node.schema),
                close_objects=self.close_objects or form is not None,
                keys_apart=True,
                property_order="any" if node.any_order else "schema",
                whitespace="compact" if node.compact else "flexible",
                arguments=form,
            ).part

        return self.merge(key, compile_values, node.place, whole=True)

    def merge(self, key: object, make: Callable[[], Grammar], place: str, *, whole: bool) -> int:
        """Adds the rules of a grammar and returns the symbol of the first. Raises its errors with the place."""
        if key in self._merged:
            return self._merged[key]
        where = f"{place}/json_schema" if whole and not place.endswith("/schema") else place
        try:
            grammar = make()
        except ConstrainError as error:
            line = "" if error.line is None else f"line {error.line}, column {error.column}: "
            raise type(error)(f"{line}{error.message}", pointer=f"{where}{error.pointer or ''}") from error
        remembered = _remembered(grammar) if whole else frozenset()
        known = [self.shared(each, where, whole=index in remembered) for index, each in enumerate(grammar.terminals)]
        self._merged[key] = self.add_rules(grammar, known, f" (in {where})", f" (in {where})")
        return self._merged[key]

    def shared(self, terminal: Terminal, where: str, *, whole: bool) -> int:
        """Returns the symbol of a terminal of another grammar; equal ones of all schemas are one terminal."""
        self._alive.append(terminal)
        about = terminal.role, terminal.label, terminal.kind, terminal.lazy, terminal.max_tokens, terminal.temperature
        bare = terminal.bare and expression_digest(terminal.bare, self._digests)
        key = whole, about, bare, expression_digest(terminal.expression, self._digests)
        if key not in self._shared:
            name = f"{terminal.name} ({where})"
            self._shared[key] = len(self.terminals)
            self.terminals.append(replace(terminal, name=name, pointer=where + terminal.pointer))
            if whole:
                self.of_schemas.add(self._shared[key])
        return self._shared[key]


def _remembered(grammar: Grammar) -> frozenset[int]:
    """Returns the terminals whose texts the grammar compares with others, so that they must stay lexemes."""
    if any(slot == VALUE_SET for rule in grammar.rules for slot in rule.slots):
        return frozenset(range(len(grammar.terminals)))
    edges = [edge for rule in grammar.rules for edge in rule.edges if edge.symbol is not EPSILON and edge.symbol >= 0]
    return frozenset(edge.symbol for edge in edges if edge.symbol is not None and (edge.excluding >= 0 or edge.actions))


def _common(texts: list[bytes]) -> bytes:
    """Returns the longest beginning that all texts have."""
    first, last = min(texts), max(texts)
    return first[: next((at for at, byte in enumerate(first) if last[at : at + 1] != bytes([byte])), len(first))]


def _size(node: Expression) -> int:
    """Returns the number of formats in a format."""
    return sum(not isinstance(each, Trigger) for each in inside(node))
