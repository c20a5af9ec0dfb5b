"""The grammar of a JSON Schema: for the kernel as a ``Draft``, for others as a ``Grammar`` that is made on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain import kernel
from constrain.language.grammar import Action, Condition, Edge, Grammar, Kind, Role, Rule, Terminal
from constrain.language.tree import Complement, Concatenation, Expression, Intersection, Literal, LiteralSet

if TYPE_CHECKING:
    from constrain.json_schema.spelling.punctuation import Punctuation


class EmittedGrammar(kernel.Draft):
    """The terminals and rules that an ``Emitter`` makes."""

    __slots__ = ("_any_key", "_colon_tail", "_grammar", "_numbers_by_double", "_strings_by_value")

    def __init__(
        self, any_key: Expression, punctuation: Punctuation, *, numbers_by_double: bool, strings_by_value: bool
    ) -> None:
        super().__init__(any_key, punctuation.colon_tail, numbers_by_double, strings_by_value)
        self._any_key = any_key
        self._colon_tail = punctuation.colon_tail
        self._numbers_by_double = numbers_by_double
        self._strings_by_value = strings_by_value
        self._grammar: Grammar | None = None

    @property
    def grammar(self) -> Grammar:
        """The grammar as all front ends make it."""
        if self._grammar is None:
            self._grammar = Grammar(
                tuple(each if isinstance(each, Terminal) else self._key(*each) for each in self.terminal_parts()),
                tuple(
                    Rule(name, tuple(map(_edge, edges)), tuple(accepting), tuple(slots))
                    for name, edges, accepting, slots in self.rule_parts()
                ),
                self_delimiting=True,
                numbers_by_double=self._numbers_by_double,
                strings_by_value=self._strings_by_value,
            )
        return self._grammar

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        """The terminals of the grammar, for errors of the kernel."""
        return self.grammar.terminals

    def _key(self, name: str | None, expression: Expression | None, texts: tuple[bytes, ...], apart: bool) -> Terminal:  # noqa: FBT001
        """Returns the terminal of a key."""
        if name is None:
            if expression is None:
                expression = Intersection((self._any_key, Complement(LiteralSet(texts))))
            return Terminal("key", expression, "", Role.LABEL, kind=Kind.STRING)
        key = Literal(texts[0]) if expression is None else expression
        tail = self._colon_tail
        if apart:
            whole = key
        elif isinstance(key, Literal) and isinstance(tail, Literal):
            whole = Literal(key.text + tail.text)
        else:
            whole = Concatenation((key, tail))
        return Terminal(f"key {name}", whole, "", Role.LABEL, texts[0])


def _edge(parts: tuple[Any, ...]) -> Edge:
    source, symbol, target, conditions, actions, excluding, distinct = parts
    if not conditions and not actions:
        return Edge(source, symbol, target, (), (), excluding, distinct)
    return Edge(
        source,
        symbol,
        target,
        tuple(Condition(*each) for each in conditions),
        tuple((Action(action), slot) for action, slot in actions),
        excluding,
        distinct,
    )
