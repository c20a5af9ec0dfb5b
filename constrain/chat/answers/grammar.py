"""Answers as grammars: one rule for the form, which reads structure and text, and the rules of schemas and grammars.

Text and the first word of the call behind it form one lexeme; so do text and the mark that ends a reasoning section, or
raw input and the structure behind it. So every lexeme of the form ends where its own expression ends. Lexemes at one
position begin differently, as in a tree of structure, or cannot continue behind the mark. JSON between them begins and
ends with a brace. If an answer contains grammars of users, the kernel searches for a proof.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from constrain import kernel
from constrain.chat.answers import structure
from constrain.chat.answers.arguments import arguments_grammar, reads_languages
from constrain.chat.answers.assembly import BEGIN, END, Assembly, is_apart, may_begin_with
from constrain.chat.answers.choices import REFUSAL, Calls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.inputs import add_json_input, add_raw_input
from constrain.chat.answers.structure import CONTENT, PREAMBLE, REASONING, SpecialName, Variable, structure_parts
from constrain.chat.answers.trees import answer_trees, begins_with_text, has_preamble, value_of
from constrain.errors import GrammarError
from constrain.json_schema.compiler import compile_schema
from constrain.language.grammar import EPSILON, Grammar, Kind
from constrain.language.schema_text import parse_schema
from constrain.language.tree import ANY_BYTES, CharClass, Complement, Expression, Intersection, Literal, Repetition
from constrain.regex.anchors import sequence, union
from constrain.regex.free_text import ANY_TEXT, up_to
from constrain.regex.parsing.parser import parse_pattern
from constrain.work import asked

if TYPE_CHECKING:
    from constrain.chat.answers.choices import Choices
    from constrain.chat.answers.structure import Node

MAX_NEWLINES = 2
"""Line feeds allowed between a reasoning section and content that is not free text: 2."""

_NEWLINES = Repetition(Literal(b"\n"), 1, MAX_NEWLINES)
_VISIBLE = CharClass(((0x21, 0x7E), (0xA1, 0x10FFFF)))


def answer_grammar(answer: Choices) -> Grammar:
    """Returns the grammar of an answer. Raises ValueError for malformed forms, GrammarError, and its parts' errors."""
    form = _Form(answer)
    form.add_begin()
    return form.made.grammar()


class _Form:
    """States of the form: one for each node in a tree of structure, and one for the value of each tool."""

    def __init__(self, answer: Choices) -> None:
        self.answer = answer
        self.trees = answer_trees(answer)
        self.made = Assembly(frozenset(answer.special))
        self.places: dict[int, tuple[Node, int]] = {}  # keyed by identity; the node is kept alive
        self.values: dict[int, int] = {}
        self.content: int | None = None
        self.reasoning = BEGIN
        self.has_languages = reads_languages(answer)

    def add_begin(self) -> None:
        """Adds the reasoning section and all that follows it."""
        answer, thinking = self.answer, self.answer.format.thinking
        if answer.reasoning is Reasoning.NONE or thinking is None:
            self.add_content(BEGIN, self.trees.first)
            return
        behind = self.made.state()
        if answer.reasoning is Reasoning.OPENED:
            self.reasoning = BEGIN
        else:
            self.reasoning = self.made.state()
            self.add_content(BEGIN, self.trees.first, begin=thinking.begin)
        self.made.read_up_to(self.reasoning, [(thinking.end, behind)], "reasoning", kind=Kind.REASONING)
        self.add_content(behind, self.trees.second, newlines=answer.format.content is None)

    def add_content(self, start: int, node: Node, *, begin: str = "", newlines: bool = False) -> None:
        """Adds content and calls. ``begin``: mark of the reasoning section, which no text may begin with."""
        answer = self.answer
        structured = self.made.state()  # start of everything but free text
        self.made.edge(start, EPSILON, structured)
        first: list[Expression] = []
        if begins_with_text(answer):
            self.add_text(start, begin)
            newlines = False
        elif answer.content is not None and answer.format.content is None and answer.calls is not Calls.REQUIRED:
            first = self.add_value(structured, END)
        for step, _ in node.onward:
            if isinstance(step, bytes) and not (self.trees.beside_json and step.startswith(b"{")):
                self.check_apart(step, first)
                first = [*first, Literal(step)] if newlines else first
        self.made.edge(structured, EPSILON, self.place(node))
        if newlines and is_apart(b"\n", first):
            self.made.read(start, _NEWLINES, structured, "new lines")

    def add_text(self, start: int, begin: str) -> None:
        """Adds free text, and text before calls where the form allows it."""
        marks, form = self.trees.marks, self.answer.format
        not_at_begin = [
            sequence(Literal(each), ANY_BYTES) for each in (begin.encode(),) if _is_text(begin, self.made.names)
        ]
        if not form.text_before:
            not_at_begin += [sequence(Literal(mark), ANY_BYTES) for mark in marks]
        outer = [Complement(union(not_at_begin))] if not_at_begin else []
        plain = Intersection((self.made.without(marks if form.text_before else ()), *outer))
        self.made.read(start, plain, END, "text", Kind.PROSE)
        for mark, node in self.trees.joined.items():
            if isinstance(mark, SpecialName):
                before = self.made.state()
                self.made.read(start, plain, before, "text", Kind.PROSE)
                self.made.read(before, mark.literal, self.place(node), "call")
            else:
                joined = Intersection((up_to(mark, marks), *outer))
                self.made.read(start, joined, self.place(node), "text and call", Kind.PROSE)

    def add_section(self, source: int, reached: int) -> None:
        """Adds the inside of a section: content, or text before calls."""
        form, names = self.answer.format, self.made.names
        assert form.content is not None
        end = form.content.end
        if self.answer.content is not None:
            behind = self.made.state()
            if _is_text(end, names):
                raise GrammarError(f"in the form {form.name}, content may contain the text that ends it")
            self.add_value(source, behind)
            self.made.edge(self.made.read_structure(behind, end), EPSILON, END)
            return
        endings = [(end, END)] if reached == CONTENT else []
        joined = form.preamble is not None and form.preamble.begin == form.content.begin
        if form.preamble is not None and has_preamble(self.answer) and (reached == PREAMBLE or joined):
            endings.append((form.preamble.end, self.place(self.trees.calls)))
        others = (form.preamble.end,) if form.preamble is not None and joined else ()
        self.made.read_up_to(source, endings, "text", others, Kind.PROSE)

    def add_value(self, start: int, target: int) -> list[Expression]:
        """Adds content that is a value or a text of a language, or a refusal; returns its possible beginnings."""
        content = self.answer.content
        assert content is not None
        make = content.grammar if not isinstance(content, Value) else lambda: self.value_grammar(content)
        if self.content is None:
            self.content = self.made.merge(make, "/content", "content")
        self.made.edge(start, self.content, target)
        first = self.made.beginnings(self.content)
        if self.answer.refusal:
            self.check_apart(REFUSAL.encode(), first)
            refusal = sequence(Literal(REFUSAL.encode()), _VISIBLE, ANY_TEXT)
            self.made.read(start, refusal, target, "refusal", Kind.PROSE)
            first = [*first, refusal]
        return first

    def value_grammar(self, value: Value) -> Grammar:
        policies = self.answer.policies._asdict() | {"close_objects": value.closed}
        beside = self.trees.beside_json
        schema = parse_schema(value.schema)
        compiled = compile_schema(
            schema,
            keys_apart=bool(beside),
            plain_integers=value.typed,
            registry=self.answer.registry,
            **policies,
        )
        grammar = compiled.part
        for text in beside:
            if may_begin_with(grammar, text):
                raise GrammarError(
                    f"content may begin with {text.decode()!r}, as a call does in the form {self.answer.format.name}; "
                    "choose a form whose calls begin differently, or ask for either calls or content"
                )
        return replace(grammar, self_delimiting=False) if beside else grammar

    def check_apart(self, text: bytes, others: list[Expression]) -> None:
        """Raises GrammarError if a text begins like one of the other expressions."""
        if not is_apart(text, others):
            raise GrammarError(
                f"{text.decode()!r} begins a call in the form {self.answer.format.name}, and content may begin alike; "
                "choose a form whose calls begin differently, or ask for either calls or content"
            )

    def place(self, node: Node) -> int:
        """Returns the state of a node in a tree of structure, and adds what follows."""
        known = self.places.get(id(node))
        if known is not None:
            return known[1]
        source = self.made.state()
        self.places[id(node)] = node, source
        if node.reached == structure.END:
            self.made.edge(source, EPSILON, END)
        elif node.reached == REASONING:
            self.made.edge(source, EPSILON, self.reasoning)
        elif node.reached in (CONTENT, PREAMBLE):
            self.add_section(source, node.reached)
        elif node.reached is not None:
            if node.onward and not isinstance(self.answer.tools[node.reached], FunctionCalls):
                raise ValueError(
                    f"the form {self.answer.format.name} has input directly behind the tool's name; put a text between"
                )
            self.made.edge(source, EPSILON, self.value(node.reached))
        for step, after in node.onward:
            if isinstance(step, Variable):
                self.read_id(source, after)
            else:
                literal = step.literal if isinstance(step, SpecialName) else Literal(step)
                self.made.read(source, literal, self.place(after), "call")
        return source

    def read_id(self, source: int, after: Node) -> None:
        """Adds an id; it ends where the following structure begins."""
        form = self.answer.format
        written = parse_pattern(form.id_pattern, "rust")
        for step, _ in after.onward:
            if isinstance(step, Variable) or (
                isinstance(step, bytes)
                and not asked(kernel.is_empty, Intersection((sequence(written, Literal(step[:1]), ANY_BYTES), written)))
            ):
                raise ValueError(f"ids of the form {form.name} may contain the text that follows them")
        if after.reached is not None or not after.onward or asked(kernel.matches, written, b""):
            raise ValueError(f"ids of the form {form.name} must not be empty, and need a text behind them")
        self.made.read(source, written, self.place(after), "id")

    def value(self, tool: int) -> int:
        """Returns the state in front of a call's value, and adds the value and what follows."""
        if tool in self.values:
            return self.values[tool]
        source = self.values[tool] = self.made.state()
        called, node, where = self.answer.tools[tool], self.trees.after[tool], f"/tools/{tool}"
        if isinstance(called, FunctionCalls):
            what = f"the tool {called.name}"
            make = partial(arguments_grammar, self.answer, called, keys_apart=self.has_languages)
            symbol = self.made.merge(make, where, what)
            self.made.edge(source, symbol, self.place(node))
        elif value_of(self.answer.format, called) is Variable.JSON_INPUT:
            add_json_input(self.made, source, called, self.place(node), where)
        else:
            add_raw_input(self.made, source, called, node, self.place, where)
        return source


def _is_text(structure: str, names: frozenset[str]) -> bool:
    """Returns whether a structure text begins with text, and not with a special token."""
    return bool(structure) and isinstance(structure_parts(structure, names)[0], str)
