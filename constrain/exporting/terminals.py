"""Expressions of terminals as nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain import kernel
from constrain.errors import LimitError
from constrain.exporting.characters import ByteArc, CharacterArc, NotCharactersError, whole_characters
from constrain.exporting.nodes import EMPTY, NOTHING, And, Name, Not, Text, choice, repeat, sequence, without_empty
from constrain.language.tree import (
    Alternation,
    ByteClass,
    CharClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    LiteralSet,
    Multiple,
    Repetition,
    Substring,
    Window,
    each_node,
    nullable,
)
from constrain.regex.classes import difference, normalize
from constrain.work import asked

if TYPE_CHECKING:
    from typing import TypeAlias

    from constrain.language.tree import Expression, Ranges

MAX_WRITTEN_STATES = 4_000
"""States of the automata of one terminal that a target cannot write as it is, and of one rule whose counters are
written out. Beyond: LimitError when a grammar is exported."""

Automaton: TypeAlias = "tuple[list[CharacterArc], list[int]]"
"""Edges over characters, and accepting states; 0 is the start."""

_LETTERS = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
"""Characters that a JSON string has as a backslash and one more character."""

_ESCAPED = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_SURROGATES = (0xD800, 0xDFFF)


class Terminals:
    """Converts expressions; collects the definitions that the nodes name.

    ``booleans``: whether the target has "and" and "not".
    """

    def __init__(self, *, booleans: bool) -> None:
        self._booleans = booleans
        self._characters: dict[Ranges, int] = {}
        self.characters: list[Expression] = []
        """Characters of JSON strings, the definitions of the names ``("character", number)``."""
        self.parts: list[Automaton] = []
        """The definitions of the names ``("part", number)``."""
        self._known: dict[int, tuple[Expression, Expression]] = {}  # by identity, with the expression to keep it alive

    def node(self, expression: Expression) -> Expression:
        """Returns the node of an expression. Raises NotCharactersError and LimitError."""
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = expression, self._made(expression)
        return known[1]

    def _made(self, expression: Expression) -> Expression:
        try:
            return self._inner(expression)
        except (NotCharactersError, UnicodeDecodeError):
            return self._part(expression)

    def _inner(self, expression: Expression) -> Expression:
        match expression:
            case Literal(text):
                return Text(text.decode()) if text else EMPTY
            case LiteralSet(texts):
                return choice(Text(text.decode()) if text else EMPTY for text in texts)
            case ByteClass(ranges):
                if any(high >= 0x80 for _, high in ranges):
                    raise NotCharactersError
                return CharClass(ranges)
            case CharClass(ranges, json):
                return self._character(ranges) if json else CharClass(_without_surrogates(ranges))
            case Concatenation(parts):
                return sequence(*map(self.node, parts))
            case Alternation(parts):
                return choice(map(self.node, parts))
            case Repetition(part, minimum, maximum):
                return self._repetition(self.node(part), minimum, maximum)
            case Intersection(parts) if self._booleans and all(map(_is_plain, parts)):
                return NOTHING if asked(kernel.is_empty, expression) else self._intersection(parts)
        return self._part(expression)

    def _repetition(self, part: Expression, minimum: int, maximum: int | None) -> Expression:
        if self._booleans or not nullable(part):
            return repeat(part, minimum, maximum)
        some = without_empty(part)
        return EMPTY if some is None else repeat(some, 0, maximum)

    def _intersection(self, parts: tuple[Expression, ...]) -> Expression:
        allowed = [self.node(part) for part in parts if not isinstance(part, Complement)]
        excluded = [
            Not(node) for part in parts if isinstance(part, Complement) and (node := self.node(part.part)) != NOTHING
        ]
        if not allowed:
            raise NotCharactersError
        kept = list(dict.fromkeys([*allowed, *excluded]))
        return kept[0] if len(kept) == 1 else And(tuple(kept))

    def _part(self, expression: Expression) -> Expression:
        """Returns the name of an automaton."""
        if asked(kernel.is_empty, expression):
            return NOTHING
        found = asked(kernel.automaton, expression, MAX_WRITTEN_STATES)
        if found is None:
            raise LimitError(
                "written out, a pattern or number with a length or a multiple here takes more than "
                f"MAX_WRITTEN_STATES = {MAX_WRITTEN_STATES} states"
            )
        accepting = [at for at, (accepts, _) in enumerate(found) if accepts]
        arcs = (ByteArc(at, tuple(ranges), target) for at, (_, steps) in enumerate(found) for target, ranges in steps)
        automaton = whole_characters(arcs, accepting), accepting
        self.parts.append(_nonempty(automaton, len(found)) if 0 in accepting else automaton)
        name = Name(("part", len(self.parts) - 1))
        return repeat(name, 0, 1) if 0 in accepting else name

    def _character(self, ranges: Ranges) -> Expression:
        """Returns one character of a JSON string, as the canonical escape policy spells it."""
        plain = _without_surrogates(difference(normalize(ranges), _ESCAPED))
        escaped = [code for low, high in _ESCAPED for code in range(low, high + 1) if _holds(ranges, code)]
        if not escaped:
            return CharClass(plain)
        if ranges not in self._characters:
            self._characters[ranges] = len(self.characters)
            ways: list[Expression] = [CharClass(plain)] if plain else []
            self.characters.append(choice([*ways, sequence(Text("\\"), choice(_escapes(escaped)))]))
        return Name(("character", self._characters[ranges]))


def _nonempty(automaton: Automaton, again: int) -> Automaton:
    """Returns an automaton without the empty text; ``again``: a new state, the start when it is reached later."""
    arcs, accepting = automaton
    later = [arc._replace(target=arc.target or again) for arc in arcs]
    return [*later, *(arc._replace(source=again) for arc in later if arc.source == 0)], [
        at or again for at in accepting
    ]


def _is_plain(expression: Expression) -> bool:
    """Returns whether a target with "and" and "not" can write an operand of "and" as it is."""
    return not any(isinstance(node, Multiple | Substring | Window) for node in each_node(expression))


def _escapes(codes: list[int]) -> list[Expression]:
    """Returns what may stand behind the backslash for characters that are escaped."""
    letters = [(ord(_LETTERS[code]),) * 2 for code in codes if code in _LETTERS]
    found: list[Expression] = [CharClass(normalize(letters))] if letters else []
    numbers = [code for code in codes if code not in _LETTERS]
    digits = []
    for high in (0, 1):
        low = [(ord(f"{code % 16:x}"),) * 2 for code in numbers if code // 16 == high]
        if low:
            digits.append(sequence(Text(f"{high}"), CharClass(normalize(low))))
    if digits:
        found.append(sequence(Text("u00"), choice(digits)))
    return found


def _holds(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _without_surrogates(ranges: Ranges) -> Ranges:
    return difference(normalize(ranges), (_SURROGATES,))
