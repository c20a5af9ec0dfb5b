"""The rule of an answer's form under construction: states, edges, terminals, and rules of other grammars."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain import kernel
from constrain.chat.answers.structure import SpecialName, structure_parts
from constrain.engine.compiling import compile as compile_grammar
from constrain.errors import ConstrainError, GrammarError
from constrain.language.digest import spell_source
from constrain.language.grammar import EPSILON, Edge, Grammar, Kind, Rule
from constrain.language.merging import Merging, edges_of
from constrain.language.tree import ANY_BYTES, Expression, Intersection, Literal
from constrain.regex.anchors import sequence
from constrain.regex.free_text import up_to, without
from constrain.remembering import remembered
from constrain.vocabulary.vocabulary import Vocabulary
from constrain.work import apart, asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.language.source import Source

BEGIN, END = 0, 1
"""First state of the form, and the state where an answer may end."""


def is_apart(text: bytes, others: list[Expression]) -> bool:
    """Returns whether no other expression begins with the first byte of a text."""
    begin = sequence(Literal(text[:1]), ANY_BYTES)
    return all(asked(kernel.is_empty, Intersection((begin, other))) for other in others)


BEGINNING_BYTES = 4 << 20
"""Bytes of the languages whose first bytes are cached, together: 4 MiB; beyond it, the least recently used are dropped.
"""


def _source_bytes(source: Source, text: bytes) -> int:
    return len(spell_source(source)) + len(text)


def may_begin_with(grammar: Grammar, text: bytes) -> bool:
    """Returns whether a text of the grammar begins with the given text."""
    tokens = [bytes([byte]) for byte in range(256)]
    constraint = compile_grammar(grammar, Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)]), cache=False)
    return constraint.matcher().accept_many(list(text)) == len(text)


@remembered(64, BEGINNING_BYTES, _source_bytes)
def may_begin_like(source: Source, text: bytes) -> bool:
    """Returns whether a text of a language may begin with the first byte of ``text``.

    Raises the errors of the language.
    """
    made = Assembly(frozenset())
    with apart():
        return not is_apart(text, made.beginnings(made.merge(source.grammar, "", "content")))


class Assembly(Merging):
    """A grammar under construction; the form is rule 0. ``names``: special tokens that structure may contain."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names
        self._form = self.reserve()
        self._edges: list[Edge] = []
        self._states = 2
        self._free: dict[tuple[bytes, ...], Expression] = {}
        self._self_delimiting = True

    def grammar(self) -> Grammar:
        """Returns the finished grammar."""
        self.rules[self._form] = Rule("answer", tuple(self._edges), (END,))
        return replace(self.merged(), self_delimiting=self._self_delimiting)

    def state(self) -> int:
        """Adds a state and returns it."""
        self._states += 1
        return self._states - 1

    def edge(self, source: int, symbol: int | None, target: int) -> None:
        """Adds an edge for a symbol, or an empty edge."""
        self._edges.append(Edge(source, symbol, target))

    def read(self, source: int, expression: Expression, target: int, name: str, kind: Kind = Kind.OTHER) -> None:
        """Adds an edge that reads an expression, and an empty edge if the expression matches the empty text."""
        self._edges += edges_of(source, self.texts((expression, kind), expression, name, kind=kind), target)

    def read_structure(self, source: int, text: str) -> int:
        """Adds edges that read a structure text; returns the state behind it."""
        for part in structure_parts(text, self.names):
            target = self.state()
            literal = part.literal if isinstance(part, SpecialName) else Literal(part.encode())
            self.read(source, literal, target, text)
            source = target
        return source

    def read_up_to(
        self,
        source: int,
        endings: list[tuple[str, int]],
        name: str,
        without_too: tuple[str, ...] = (),
        kind: Kind = Kind.OTHER,
    ) -> None:
        """Adds text up to the first of several structure texts; an empty one stands for the end of the answer."""
        firsts = [(structure_parts(ending, self.names) or [""])[0] for ending, _ in endings]
        marks = [first for first in firsts if isinstance(first, str) and first]
        for other in without_too:
            marks += [part for part in structure_parts(other, self.names)[:1] if isinstance(part, str)]
        plain = tuple(mark.encode() for mark in dict.fromkeys(marks))
        for (ending, target), first in zip(endings, firsts, strict=True):
            behind = self.state()
            if isinstance(first, SpecialName) or not first:
                self.read(source, self.without(plain), behind, name, kind)
                rest = ending
            else:
                self.read(source, up_to(first.encode(), plain), behind, name, kind)
                rest = ending[len(first) :]
            self._edges.append(Edge(self.read_structure(behind, rest), EPSILON, target))

    def without(self, marks: tuple[bytes, ...]) -> Expression:
        """Returns ``without(marks)``, as the same object for the same marks, so that one terminal serves all uses."""
        if marks not in self._free:
            self._free[marks] = without(marks)
        return self._free[marks]

    def merge(self, make: Callable[[], Grammar], place: str, what: str) -> int:
        """Adds the rules of a grammar and returns the symbol of the first.

        Raises its errors with ``place`` and ``what``.
        """
        try:
            grammar = make()
        except ConstrainError as error:
            pointer = None if error.pointer is None else place + error.pointer
            message = f"{error.message}\n(in {what})"
            raise type(error)(message, pointer=pointer, line=error.line, column=error.column) from error
        if grammar.ignored:
            raise GrammarError(
                f"{what} has %ignore, which would also apply to the text around it; read these terminals in rules"
            )
        # a proof tells nothing about text behind the grammar's own
        self._self_delimiting &= grammar.self_delimiting and not grammar.proved
        return self.add(grammar, f" of {what}", place, f" (in {what})")

    def beginnings(self, symbol: int) -> list[Expression]:
        """Returns expressions for the beginnings of a rule's texts; too many if an inner rule can be empty."""
        found: dict[int, None] = {}
        rules = [~symbol]
        for rule in rules:
            onward: dict[int, list[Edge]] = {}
            for edge in self.rules[rule].edges:
                onward.setdefault(edge.source, []).append(edge)
            reached, waiting = {0}, [0]
            for state in waiting:
                for edge in onward.get(state, ()):
                    if edge.symbol is not EPSILON and edge.symbol >= 0:
                        found[edge.symbol] = None
                        continue
                    if edge.symbol is not EPSILON and ~edge.symbol not in rules:
                        rules.append(~edge.symbol)
                    if edge.target not in reached:
                        reached.add(edge.target)
                        waiting.append(edge.target)
        return [self.terminals[index].expression for index in found]
