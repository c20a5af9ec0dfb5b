"""Rules for the values of elements (``elements``): a chain from the mark before a value to the mark behind it.

The ways divide by the type of the value, where the mark before it tells the type, and meet at the mark behind it::

                   .-- 'string">' --> string and mark behind it ------------.
    key, type=" ---|                                                        |--> END
                   '-- 'number">' --> line break? --> JSON --> line break? -'
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.emission.elements import LIKE_JSON, is_token
from constrain.json_schema.emission.emitting import TERMINAL_STEPS, UndeclaredKey
from constrain.json_schema.emission.scalars import string_kind
from constrain.json_schema.shapes.data import BOOLEAN, NO_SHAPES, NULL, ArrayShape
from constrain.json_schema.shapes.keys import unquoted
from constrain.json_schema.shapes.strings import content, identity
from constrain.json_schema.spelling.languages import has_text
from constrain.json_schema.spelling.punctuation import Punctuation
from constrain.language.grammar import EPSILON, Edge, Kind, Role, Rule, Terminal
from constrain.language.rule_automaton import END, START
from constrain.language.tree import (
    ANY_BYTE,
    ANY_BYTES,
    EMPTY_TEXT,
    NOTHING,
    Complement,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
)
from constrain.regex.anchors import sequence, union
from constrain.regex.spelling import out_of_json
from constrain.work import spend

if TYPE_CHECKING:
    from constrain.json_schema.emission.elements import Elements, Pieces
    from constrain.json_schema.shapes.data import Goal, Shapes
    from constrain.json_schema.shapes.strings import StringShape

_NOTHING = Terminal("", EMPTY_TEXT)
_LINE_BREAK = Terminal("line break", Literal(b"\n"), role=Role.NONE)
_OPTIONAL_BREAK = Repetition(_LINE_BREAK.expression, 0, 1)
_ON_A_LINE = sequence(_LINE_BREAK.expression, ANY_BYTES)
_SOME_BYTES = Repetition(ANY_BYTE, 1, None)


class Host(Protocol):
    """An ``Emitter``: holds the grammar, and makes the rules of JSON and of inner objects and arrays."""

    def add(self, terminal: Terminal) -> int | None:
        """Adds a terminal to the grammar; returns its symbol, or ``EPSILON`` if it matches the empty text only."""

    def strings(self, goal: Goal) -> tuple[StringShape, ...]:
        """Returns the strings of a goal that the grammar contains."""

    def scalars(self, goal: Goal, shapes: Shapes) -> list[Terminal]:
        """Returns the terminals of the scalars of some shapes of a goal."""

    def reserve(self) -> int:
        """Returns the number of a rule to be made."""

    def set_rule(self, number: int, rule: Rule) -> None:
        """Makes a reserved rule."""

    def count(self, rules: int, edges: int, terminals: int, steps: int) -> None:
        """Counts rules, edges, terminals and other steps. Raises LimitError."""

    def inner(self, goal: Goal, kind: str) -> int | None:
        """Returns the symbol that reads the objects or arrays (``kind``) of a goal; ``None`` if there are none."""


class _Values(NamedTuple):
    """Values of a goal that are not strings: their type in JSON Schema, and terminals of scalars or a rule's symbol.

    ``of_elements``: whether they are not JSON.
    """

    type: str
    terminals: list[Terminal]
    inner: int | None = None
    of_elements: bool = False


class ElementEmission:
    """The symbols of one notation in one grammar, each made once."""

    def __init__(self, host: Host, form: Elements) -> None:
        self.form = form
        self._host = host
        self._keys: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._sequences: dict[Pieces, int] = {}
        self._terminals: dict[bytes, Terminal] = {}
        self._undeclared: dict[int, tuple[Expression, UndeclaredKey]] = {}
        self._strings: dict[object, tuple[tuple[StringShape, ...], Terminal | None]] = {}
        self._nonempty: dict[int, tuple[Terminal, Terminal]] = {}
        self._values: dict[tuple[int | None, Goal], tuple[int, ...]] = {}
        between = _LINE_BREAK if form.line_breaks else _NOTHING
        self.punctuation = Punctuation(
            between, between, _NOTHING, between, between, _NOTHING, between, _NOTHING, EMPTY_TEXT, None
        )

    def begin_rule(self) -> None:
        """Begins an object or array with rules of values of its own: lexing is proved faster where none are shared."""
        self._values.clear()

    def line_break(self) -> int | None:
        """Returns the symbol of a line break; ``EPSILON`` if there are none."""
        return self._host.add(self.punctuation.comma)

    def key(self, name: str) -> int:
        """Returns the symbol that reads the mark before the value of a declared argument."""
        symbol = self._keys.get(name)
        if symbol is None:
            opening = self.form.opening(name)
            if len(opening) == 1:
                terminal = Terminal(f"argument {name}", Literal(opening[0]), "", Role.LABEL, name.encode())
                symbol = self.terminal_symbol(terminal)
            else:
                symbol = self._rule(f"argument {name}", opening)
            self._keys[name] = symbol
            self._names[symbol] = name
        return symbol

    def undeclared_key(self, expression: Expression) -> UndeclaredKey:
        """Returns the symbols that read the mark before the value of an undeclared argument."""
        known = self._undeclared.get(id(expression))
        if known is None:
            before, left, right, behind = self.form.around_name()
            names = self.form.undeclared(out_of_json(unquoted(expression)))
            parts = [Literal(left)] * bool(left) + [names] + [Literal(right)] * bool(right)
            terminal = Terminal("argument", sequence(*parts), "", Role.LABEL, kind=Kind.STRING)
            key = UndeclaredKey(self.pieces_symbol(before), self.terminal_symbol(terminal), self.pieces_symbol(behind))
            known = self._undeclared[id(expression)] = expression, key
        return known[1]

    def member(self, key: int, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read a member's value and the mark behind it."""
        return self._value(key, goal, (), self.form.closing(self._names.get(key)))

    def item(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read an item with the marks around it."""
        assert self.form.item is not None
        opening, closing = self.form.item
        return self._value(None, goal, self.form.pieces(opening), closing)

    def _value(self, key: int | None, goal: Goal, opening: Pieces, closing: str) -> tuple[int, ...]:
        known = self._values.get((key, goal))
        if known is None:
            number = self._host.reserve()
            known = self._values[key, goal] = (~number,)
            self._host.set_rule(number, self._value_rule(goal, opening, closing))
        return known

    def _value_rule(self, goal: Goal, opening: Pieces, closing: str) -> Rule:
        ways = _Ways(self)
        begun = ways.read(START, self.pieces_symbol(opening))
        others = self._others(goal)
        behind, rest = self.form.split_closing(closing)
        strings = self._plain(goal, others, behind)
        for values in others:
            state = ways.opened(begun, self.form.types.get(values.type, ""))
            if strings is None or self.form.types:
                ways.add_values(state, values, self.form.pieces(closing))
            elif values.inner is None:
                ways.add_scalars_among_texts(state, values.terminals, behind, rest)
            else:
                ways.add_values(state, values, self.form.pieces(closing), breaks_before=False)
        if strings is not None:
            ways.add_string(ways.opened(begun, self.form.types.get("string", "")), strings, rest)
        line_break = self.line_break()
        around = [edge._replace(symbol=EPSILON) for edge in ways.edges if edge.symbol == line_break is not EPSILON]
        edges = (*ways.edges, *around)
        self._host.count(1, len(edges), 0, 0)
        return Rule("argument", edges, (END,))

    def _others(self, goal: Goal) -> list[_Values]:
        """Returns the values that are not strings."""
        shapes = goal.shapes
        assert shapes is not None
        parts = {
            "null": NO_SHAPES._replace(simple=shapes.simple & NULL),
            "boolean": NO_SHAPES._replace(simple=shapes.simple & BOOLEAN),
            "number": NO_SHAPES._replace(numbers=shapes.numbers),
        }
        found = [
            _Values(name, terminals)
            for name, part in parts.items()
            if part != NO_SHAPES and (terminals := self._host.scalars(goal, part))
        ]
        elements_inside = self.form.item is not None
        if elements_inside:
            _check_items(goal)
        for kind in ("array", "object"):
            symbol = self._host.inner(goal, kind)
            if symbol is not None:
                found.append(_Values(kind, [], symbol, elements_inside))
        if elements_inside and not self.form.types and {"array", "object"} <= {values.type for values in found}:
            raise UnsupportedSchemaError(
                "a value that may be an array or an object cannot be written in this style, which writes both as "
                'elements and does not tell which; give the schema one "type"',
                pointer="" if goal.location is None else goal.location.pointer(),
            )
        return found

    def _plain(self, goal: Goal, others: list[_Values], behind: bytes) -> Terminal | None:
        """Returns the strings of a goal as plain text, with the text behind them; equal ones are made once.

        Where marks do not tell types, strings that could be read as other values are left out. ``None`` if none is left
        but there are other values. Raises UnsupportedSchemaError if nothing is left.
        """
        strings = self._host.strings(goal)
        if not strings:
            return None
        mixed = bool(others) and not self.form.types
        among_elements = mixed and any(values.of_elements for values in others)
        key = tuple(map(identity, strings)), mixed, among_elements, behind
        if key not in self._strings:
            texts = union([_text(shape) for shape in strings])
            if mixed:
                empty = [EMPTY_TEXT] if among_elements else []
                on_a_line = [_ON_A_LINE] if among_elements and self.form.line_breaks else []
                texts = Intersection((texts, Complement(union([LIKE_JSON, *empty, *on_a_line]))))
            plain = Terminal("string", self.form.plain(texts, behind), kind=string_kind(strings, raw=True))
            self._strings[key] = strings, plain if has_text((plain.expression,)) else None
        found = self._strings[key][1]
        if found is not None:
            return found
        if others:
            return None
        raise UnsupportedSchemaError(
            f"every string allowed here contains {self.form.reserved or self.form.end!r}, which ends a value in this "
            "style",
            pointer="" if goal.location is None else goal.location.pointer(),
        )

    def without_empty_text(self, terminal: Terminal) -> Terminal:
        """Returns the terminal of the nonempty texts of another one, each made once; ``NOTHING`` if there are none."""
        known = self._nonempty.get(id(terminal))
        if known is None:
            some = Intersection((terminal.expression, _SOME_BYTES))
            made = replace(terminal, expression=some if has_text((some,)) else NOTHING)
            known = self._nonempty[id(terminal)] = terminal, made
        return known[1]

    # Symbols.

    def terminal_symbol(self, terminal: Terminal) -> int:
        """Returns the symbol that reads a terminal."""
        spend(TERMINAL_STEPS)
        symbol = self._host.add(terminal)
        assert symbol is not EPSILON
        return symbol

    def pieces_symbol(self, pieces: Pieces) -> int | None:
        """Returns the symbol that reads pieces one after the other; ``EPSILON`` for none."""
        if not pieces:
            return EPSILON
        if pieces not in self._sequences:
            name = "".join(piece.decode(errors="ignore") for piece in pieces)
            single = len(pieces) == 1
            self._sequences[pieces] = self._piece(pieces[0]) if single else self._rule(name, pieces)
        return self._sequences[pieces]

    def _rule(self, name: str, pieces: Pieces) -> int:
        states = [START, *range(2, len(pieces) + 1), END]
        edges = [Edge(states[index], self._piece(piece), states[index + 1]) for index, piece in enumerate(pieces)]
        self._host.count(1, len(edges), 0, 0)
        number = self._host.reserve()
        self._host.set_rule(number, Rule(name, tuple(edges), (END,)))
        return ~number

    def _piece(self, piece: bytes) -> int:
        if piece not in self._terminals:
            name = piece[1:-1] if is_token(piece) else piece
            self._terminals[piece] = Terminal(name.decode(), Literal(piece), role=Role.NONE)
        return self.terminal_symbol(self._terminals[piece])


class _Ways:
    """The edges of the rule of a value."""

    def __init__(self, emission: ElementEmission) -> None:
        self.edges: list[Edge] = []
        self._emission = emission
        self._states = 2
        self._opened: dict[str, int] = {}

    def state(self) -> int:
        """Returns a new state."""
        self._states += 1
        return self._states - 1

    def read(self, source: int, symbol: int | None) -> int:
        """Adds an edge to a new state and returns the state; the source itself if there is nothing to read."""
        if symbol is EPSILON:
            return source
        target = self.state()
        self.edges.append(Edge(source, symbol, target))
        return target

    def opened(self, begun: int, text: str) -> int:
        """Returns the state behind the end of the mark before a value."""
        if text not in self._opened:
            emission = self._emission
            self._opened[text] = self.read(begun, emission.pieces_symbol(emission.form.pieces(text)))
        return self._opened[text]

    def add_values(self, state: int, values: _Values, end: Pieces, *, breaks_before: bool = True) -> None:
        """Adds values that are not strings, and the mark behind; elements have line breaks of their own.

        ``breaks_before=False``: no line break stands before the values, because plain strings are read beside them.
        """
        line_break = EPSILON if values.of_elements else self._emission.line_break()
        before, behind = self.read(state, line_break if breaks_before else EPSILON), self.state()
        symbols = [values.inner] if values.inner is not None else map(self._emission.terminal_symbol, values.terminals)
        self.edges += [Edge(before, symbol, behind) for symbol in symbols]
        self.edges.append(Edge(self.read(behind, line_break), self._emission.pieces_symbol(end), END))

    def add_scalars_among_texts(self, state: int, terminals: list[Terminal], first: bytes, rest: Pieces) -> None:
        """Adds scalars, each as one lexeme with the mark behind it: strings may begin like scalars."""
        line_break = _OPTIONAL_BREAK if self._emission.form.line_breaks else EMPTY_TEXT
        parts = [Literal(first)] if first else []
        for terminal in terminals:
            expression = sequence(line_break, terminal.expression, line_break, *parts)
            self.add_string(state, replace(terminal, expression=expression), rest)

    def add_string(self, state: int, terminal: Terminal, end: Pieces) -> None:
        """Adds a string, with the text of the mark behind it that its lexeme has, and the rest of the mark."""
        rest = self._emission.pieces_symbol(end)
        behind = END if rest is EPSILON else self.state()
        if has_text((Intersection((terminal.expression, EMPTY_TEXT)),)):
            self.edges.append(Edge(state, EPSILON, behind))
            terminal = self._emission.without_empty_text(terminal)
        if terminal.expression is not NOTHING:
            self.edges.append(Edge(state, self._emission.terminal_symbol(terminal), behind))
        if rest is not EPSILON:
            self.edges.append(Edge(behind, rest, END))


def _text(shape: StringShape) -> Expression:
    """Returns the strings of a shape as plain text."""
    if shape.values is None:
        return out_of_json(content(shape))
    return LiteralSet(tuple(value.encode("utf-8", "surrogatepass") for value in shape.values))


def _check_items(goal: Goal) -> None:
    """Raises UnsupportedSchemaError for arrays of different items: the grammar compares no elements."""
    assert goal.shapes is not None
    arrays = [*goal.shapes.arrays, *(each.base for each in goal.shapes.combined if isinstance(each.base, ArrayShape))]
    if any(array.unique for array in arrays):
        raise UnsupportedSchemaError(
            "uniqueItems is not supported in this style, which writes items as elements; remove it",
            pointer="" if goal.location is None else f"{goal.location.pointer()}/uniqueItems",
        )
