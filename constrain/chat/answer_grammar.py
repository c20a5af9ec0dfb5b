"""Answers as grammars: one rule for the form, whose edges read structure and text, and rules for schemas and grammars.

Text and the first word of the call behind it are one lexeme, and so are text and the mark that ends a reasoning
section, raw input and the structure behind it. So every lexeme of the form ends where its own expression says: what may
stand at one place begins differently, as a tree of structure does, or cannot go on behind the mark. JSON that is read
between begins with a brace and ends with one. Where grammars of users stand in an answer, the kernel looks for a proof.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain import core
from constrain._errors import ConstrainError, GrammarError
from constrain._merging import moved_rules
from constrain._schema_text import parse_schema
from constrain.chat.answers import REFUSAL, Calls, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.arguments import arguments_grammar
from constrain.chat.plan import begins_with_text, has_preamble, plan, value_of
from constrain.chat.structure import CONTENT, END, PREAMBLE, REASONING, SpecialName, Variable, structure_parts
from constrain.grammar import EPSILON, Edge, Grammar, Kind, Rule, Terminal
from constrain.lark.terminals import non_empty_part
from constrain.regex.anchors import sequence, union
from constrain.regex.parser import parse_pattern
from constrain.regex.source import Regex
from constrain.regex.spelling import in_json
from constrain.regex.tree import (
    ANY_BYTE,
    ANY_BYTES,
    ANY_CHAR,
    ANY_JSON_CHAR,
    CharClass,
    Complement,
    Expression,
    Intersection,
    Literal,
    Repetition,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain._source import Source
    from constrain.chat.answers import Answer
    from constrain.chat.structure import Node

MAX_NEWLINES = 2
"""New lines between a reasoning section and what does not begin with free text."""

_ANY_TEXT = Repetition(ANY_CHAR, 0, None)
_ANY_CONTENT = Repetition(ANY_JSON_CHAR, 0, None)
_SOME_BYTES = Repetition(ANY_BYTE, 1, None)
_QUOTE = Literal(b'"')
_NEWLINES = Repetition(Literal(b"\n"), 1, MAX_NEWLINES)
_VISIBLE = CharClass(((0x21, 0x7E), (0xA1, 0x10FFFF)))


def answer_grammar(answer: Answer) -> Grammar:
    """The texts of an answer. Raises ValueError for forms that cannot be read, GrammarError, errors of the parts."""
    return _Assembly(answer).grammar()


def without(marks: tuple[bytes, ...], expression: Expression = _ANY_TEXT) -> Expression:
    """The texts that hold none of the marks."""
    inside = [sequence(ANY_BYTES, Literal(mark), ANY_BYTES) for mark in marks]
    return Intersection((expression, Complement(union(inside)))) if inside else expression


def up_to(mark: bytes, marks: tuple[bytes, ...], expression: Expression = _ANY_TEXT) -> Expression:
    """Texts with a mark behind them, which is the first place where one of the marks ends."""
    early = [sequence(ANY_BYTES, Literal(each), _SOME_BYTES) for each in marks]
    return Intersection((sequence(expression, Literal(mark)), Complement(union(early))))


class _Assembly:
    """Terminals, rules and states while they are made; the form is rule 0, state 0 its begin and state 1 its end."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.names = frozenset(answer.special)
        self.plan = plan(answer)
        self.terminals: list[Terminal] = []
        self.rules: list[Rule] = [Rule("answer", (), ())]
        self.edges: list[Edge] = []
        self.states = 2
        self.symbols: dict[object, tuple[int | None, bool]] = {}
        self.alive: list[Expression] = []
        self.places: dict[int, tuple[Node, int]] = {}  # by identity, with what keeps it alive
        self.values: dict[int, int] = {}
        self.texts: dict[tuple[bytes, ...], Expression] = {}
        self.reasoning = 0
        self.self_delimiting = True

    def grammar(self) -> Grammar:
        self.add_begin(0)
        self.rules[0] = Rule("answer", tuple(self.edges), (1,))
        return Grammar(tuple(self.terminals), tuple(self.rules), self_delimiting=self.self_delimiting)

    # States and edges.

    def state(self) -> int:
        self.states += 1
        return self.states - 1

    def read(self, source: int, expression: Expression, target: int, name: str, kind: Kind = Kind.OTHER) -> None:
        """Adds what reads an expression, which may match the empty text."""
        key = (expression if isinstance(expression, Literal) else id(expression)), kind
        if key not in self.symbols:
            self.alive.append(expression)
            some, nullable = non_empty_part(expression)
            if some is not None:
                self.terminals.append(Terminal(name, some, kind=kind))
            self.symbols[key] = None if some is None else len(self.terminals) - 1, nullable
        symbol, nullable = self.symbols[key]
        if symbol is not None:
            self.edges.append(Edge(source, symbol, target))
        if nullable:
            self.edges.append(Edge(source, EPSILON, target))

    def read_structure(self, source: int, text: str) -> int:
        """Adds what reads a structure text; returns the state behind it."""
        for part in structure_parts(text, self.names):
            target = self.state()
            literal = part.literal if isinstance(part, SpecialName) else Literal(part.encode())
            self.read(source, literal, target, text)
            source = target
        return source

    def merge(self, make: Callable[[], Grammar], place: str, what: str) -> tuple[int, list[Expression]]:
        """The symbol of the first rule of a grammar, and what its texts may begin with. Raises its errors, placed."""
        try:
            grammar = make()
        except ConstrainError as error:
            pointer = None if error.pointer is None else place + error.pointer
            message = f"{error.message}\n(in {what})"
            raise type(error)(message, pointer=pointer, line=error.line, column=error.column) from error
        if grammar.ignored:
            raise GrammarError(
                f"{what} ignores terminals, which would be ignored around it, too; have its rules read them"
            )
        symbol = ~len(self.rules)
        self.rules.extend(moved_rules(grammar, len(self.terminals), len(self.rules)))
        self.terminals.extend(
            replace(terminal, name=f"{terminal.name} of {what}", pointer=place + terminal.pointer)
            for terminal in grammar.terminals
        )
        self.self_delimiting &= grammar.self_delimiting
        return symbol, [self.terminals[index].expression for index in self.first_terminals(~symbol)]

    def first_terminals(self, start: int) -> list[int]:
        """The terminals that the texts of a rule may begin with."""
        found: dict[int, None] = {}
        rules = [start]
        silent_states: set[tuple[int, int]] = set()
        for index in rules:
            waiting = [0]
            while waiting:
                state = waiting.pop()
                if (index, state) in silent_states:
                    continue
                silent_states.add((index, state))
                for edge in self.rules[index].edges:
                    if edge.source != state:
                        continue
                    if edge.symbol is EPSILON:
                        waiting.append(edge.target)
                    elif edge.symbol >= 0:
                        found[edge.symbol] = None
                    else:
                        if ~edge.symbol not in rules:
                            rules.append(~edge.symbol)
                        waiting.append(edge.target)  # as if it could be empty, which errs on the safe side
        return list(found)

    # The form.

    def add_begin(self, start: int) -> None:
        """Adds the reasoning section, and what is behind it."""
        answer, thinking = self.answer, self.answer.format.thinking
        if answer.reasoning is Reasoning.NONE or thinking is None:
            self.add_content(start, self.plan.first)
            return
        behind = self.state()
        if answer.reasoning is Reasoning.OPENED:
            self.reasoning = start
        else:
            self.reasoning = self.state()
            self.add_content(start, self.plan.first, begin=thinking.begin)
        self.read_up_to(self.reasoning, [(thinking.end, behind)], "reasoning", kind=Kind.REASONING)
        self.add_content(behind, self.plan.second, newlines=answer.format.content is None)

    def read_up_to(
        self,
        source: int,
        endings: list[tuple[str, int]],
        name: str,
        without_too: tuple[str, ...] = (),
        kind: Kind = Kind.OTHER,
    ) -> None:
        """Adds text and the structure that ends it: the first that is there (none: at the end of the answer)."""
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
            self.edges.append(Edge(self.read_structure(behind, rest), EPSILON, target))

    def without(self, marks: tuple[bytes, ...]) -> Expression:
        """See ``without``; the same object for the same marks, so that it becomes one terminal."""
        if marks not in self.texts:
            self.texts[marks] = without(marks)
        return self.texts[marks]

    def add_content(self, start: int, node: Node, *, begin: str = "", newlines: bool = False) -> None:
        """Adds content and calls; ``begin``: what no text may begin with, since a reasoning section does."""
        answer = self.answer
        structured = self.state()  # for what does not begin with free text
        self.edges.append(Edge(start, EPSILON, structured))
        first: list[Expression] = []
        if begins_with_text(answer):
            self.add_text(start, begin)
            newlines = False
        elif answer.content is not None and answer.format.content is None and answer.calls is not Calls.REQUIRED:
            first = self.add_value(structured, 1)
        for step, _ in node.onward:
            if isinstance(step, bytes):
                self.check_apart(step, first)
                first = [*first, Literal(step)] if newlines else first
        self.edges.append(Edge(structured, EPSILON, self.place(node)))
        if newlines and self.is_apart(b"\n", first):
            self.read(start, _NEWLINES, structured, "new lines")

    def add_text(self, start: int, begin: str) -> None:
        """Adds free text, and where it may stand before calls, what joins it to them."""
        marks, form = self.plan.marks, self.answer.format
        not_at_begin = [sequence(Literal(each), ANY_BYTES) for each in (begin.encode(),) if _is_text(begin, self.names)]
        if not form.text_before:
            not_at_begin += [sequence(Literal(mark), ANY_BYTES) for mark in marks]
        outer = [Complement(union(not_at_begin))] if not_at_begin else []
        plain = Intersection((self.without(marks if form.text_before else ()), *outer))
        self.read(start, plain, 1, "text")
        for mark, node in self.plan.joined.items():
            if isinstance(mark, SpecialName):
                before = self.state()
                self.read(start, plain, before, "text")
                self.read(before, mark.literal, self.place(node), "call")
            else:
                joined = Intersection((up_to(mark, marks), *outer))
                self.read(start, joined, self.place(node), "text and call")

    def add_section(self, source: int, reached: int) -> None:
        """Adds what is inside of a section: content, or text before calls."""
        form, names = self.answer.format, self.names
        assert form.content is not None
        end = form.content.end
        if self.answer.content is not None:
            behind = self.state()
            if _is_text(end, names):
                raise GrammarError(f"in the form {form.name}, what content must be like may hold the text that ends it")
            self.add_value(source, behind)
            self.edges.append(Edge(self.read_structure(behind, end), EPSILON, 1))
            return
        endings = [(end, 1)] if reached == CONTENT else []
        joined = form.preamble is not None and form.preamble.begin == form.content.begin
        if form.preamble is not None and has_preamble(self.answer) and (reached == PREAMBLE or joined):
            endings.append((form.preamble.end, self.place(self.plan.calls)))
        self.read_up_to(source, endings, "text", (form.preamble.end,) if form.preamble is not None and joined else ())

    def add_value(self, start: int, target: int) -> list[Expression]:
        """Adds content that is a value or a text of a language, or a refusal; returns what it may begin with."""
        content = self.answer.content
        assert content is not None
        make = content.grammar if not isinstance(content, Value) else lambda: self.value_grammar(content)
        symbol, first = self.merge(make, "/content", "content")
        self.edges.append(Edge(start, symbol, target))
        if self.answer.refusal:
            self.check_apart(REFUSAL.encode(), first)
            refusal = sequence(Literal(REFUSAL.encode()), _VISIBLE, _ANY_TEXT)
            self.read(start, refusal, target, "refusal")
            first = [*first, refusal]
        return first

    def value_grammar(self, value: Value) -> Grammar:
        from constrain.json_schema import compile_schema

        policies = self.answer.policies._asdict() | {"close_objects": value.closed}
        return compile_schema(parse_schema(value.schema), **policies).grammar

    def is_apart(self, text: bytes, others: list[Expression]) -> bool:
        """Does nothing among the others begin with the first byte of a text?"""
        begin = sequence(Literal(text[:1]), ANY_BYTES)
        return all(core.is_empty(Intersection((begin, other))) for other in others)

    def check_apart(self, text: bytes, others: list[Expression]) -> None:
        """Raises GrammarError."""
        if not self.is_apart(text, others):
            raise GrammarError(
                f"{text.decode()!r} begins like content that the answer may have instead, so that they cannot be told "
                f"apart (the form is {self.answer.format.name}); choose a form whose calls begin differently, or have "
                "either calls or content"
            )

    # Calls.

    def place(self, node: Node) -> int:
        """The state of a place in a tree of structure."""
        known = self.places.get(id(node))
        if known is not None:
            return known[1]
        source = self.state()
        self.places[id(node)] = node, source
        if node.reached == END:
            self.edges.append(Edge(source, EPSILON, 1))
        elif node.reached == REASONING:
            self.edges.append(Edge(source, EPSILON, self.reasoning))
        elif node.reached in (CONTENT, PREAMBLE):
            self.add_section(source, node.reached)
        elif node.reached is not None:
            if node.onward and self.may_begin_anyhow(node.reached):
                raise ValueError(f"the form {self.answer.format.name} has input directly behind names of tools")
            self.edges.append(Edge(source, EPSILON, self.value(node.reached)))
        for step, after in node.onward:
            if isinstance(step, Variable):
                self.read_id(source, after)
            else:
                literal = step.literal if isinstance(step, SpecialName) else Literal(step)
                self.read(source, literal, self.place(after), "call")
        return source

    def may_begin_anyhow(self, tool: int) -> bool:
        return isinstance(self.answer.tools[tool], CustomCalls)

    def read_id(self, source: int, after: Node) -> None:
        """Adds an id, which ends where what follows begins."""
        form = self.answer.format
        written = parse_pattern(form.id_pattern, "rust")
        for step, _ in after.onward:
            if isinstance(step, Variable) or (
                isinstance(step, bytes)
                and not core.is_empty(Intersection((sequence(written, Literal(step[:1]), ANY_BYTES), written)))
            ):
                raise ValueError(f"ids of the form {form.name} do not end where what follows them begins")
        if after.reached is not None or not after.onward or core.matches(written, b""):
            raise ValueError(f"ids of the form {form.name} need a text behind them, and must not be empty")
        self.read(source, written, self.place(after), "id")

    def value(self, tool: int) -> int:
        """The state in front of the value of a call, with all that follows."""
        if tool in self.values:
            return self.values[tool]
        source = self.values[tool] = self.state()
        called = self.answer.tools[tool]
        node = self.plan.after[tool]
        where, what = f"/tools/{tool}", f"the tool {called.name}"
        if isinstance(called, FunctionCalls):
            symbol, _ = self.merge(lambda: arguments_grammar(self.answer, called), where, what)
            self.edges.append(Edge(source, symbol, self.place(node)))
        elif value_of(self.answer.format, called) is Variable.JSON_INPUT:
            self.add_json_input(source, called.input, node, where, what)
        else:
            self.add_raw_input(source, called.input, node, where, what)
        return source

    def add_json_input(self, source: int, written: Source | None, node: Node, where: str, what: str) -> None:
        """Adds the rest of a JSON string, behind its first quote."""
        if written is None:
            self.read(source, sequence(_ANY_CONTENT, _QUOTE), self.place(node), "input")
        elif isinstance(written, Regex):
            content = in_json(parse_pattern(written.pattern, written.dialect))
            self.read(source, self.inhabited(sequence(content, _QUOTE), what), self.place(node), "input")
        else:
            symbol, _ = self.merge(lambda: _spelled_in_json(written.grammar()), where, what)
            before = self.state()
            self.edges.append(Edge(source, symbol, before))
            self.read(before, _QUOTE, self.place(node), "input")

    def add_raw_input(self, source: int, written: Source | None, node: Node, where: str, what: str) -> None:
        """Adds input as it is, up to the structure behind it."""
        texts = [(step, after) for step, after in node.onward if isinstance(step, bytes)]
        if len(texts) > 1:
            raise ValueError(f"the form {self.answer.format.name} does not say with which text raw input ends")
        if written is None or isinstance(written, Regex):
            expression = _ANY_TEXT if written is None else parse_pattern(written.pattern, written.dialect)
            marks = tuple(step for step, _ in texts)
            for mark, after in texts:
                self.read(source, self.inhabited(up_to(mark, marks, expression), what), self.place(after), "input")
            if len(node.onward) > len(texts) or node.reached is not None:
                behind = self.place(replace(node, onward=[each for each in node.onward if each not in texts]))
                self.read(source, self.inhabited(without(marks, expression), what), behind, "input")
            return
        symbol, _ = self.merge(written.grammar, where, what)
        for mark, _ in texts:
            self.check_free_of(mark, written.grammar(), what)
        self.edges.append(Edge(source, symbol, self.place(node)))

    def check_free_of(self, mark: bytes, grammar: Grammar, what: str) -> None:
        """Raises GrammarError if lexemes of a grammar, in any order, may hold the text that ends input."""
        lexemes = Repetition(union([terminal.expression for terminal in grammar.terminals]), 0, None)
        early = sequence(ANY_BYTES, Literal(mark), _SOME_BYTES)
        if not core.is_empty(Intersection((sequence(lexemes, Literal(mark)), early))):
            raise GrammarError(
                f"{what} has a grammar, and in the form {self.answer.format.name} input of custom tools ends at the "
                f"text {mark.decode()!r}, which texts of that grammar may hold; give it a Regex, or choose a form in "
                "which input is a JSON string, or ends at a special token"
            )

    def inhabited(self, expression: Expression, what: str) -> Expression:
        """The expression. Raises GrammarError if nothing is left of it."""
        if core.is_empty(expression):
            raise GrammarError(f"no input of {what} can be written in the form {self.answer.format.name}")
        return expression


def _is_text(structure: str, names: frozenset[str]) -> bool:
    """Does a structure text begin with text, and not with a special token?"""
    return bool(structure) and isinstance(structure_parts(structure, names)[0], str)


def _spelled_in_json(grammar: Grammar) -> Grammar:
    """The same grammar within a JSON string."""
    terminals = tuple(
        replace(terminal, expression=in_json(terminal.expression), label=in_json_text(terminal.label))
        for terminal in grammar.terminals
    )
    return replace(grammar, terminals=terminals)


def in_json_text(text: bytes) -> bytes:
    """A text as the content of a JSON string."""
    spelled = in_json(Literal(text))
    assert isinstance(spelled, Literal)
    return spelled.text
