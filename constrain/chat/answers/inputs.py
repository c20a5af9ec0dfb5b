"""Input of custom tools, as plain text or as a JSON string: its grammar, followed by the structure that ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain import kernel
from constrain.chat.answers.escapes import spell_in_json
from constrain.errors import GrammarError
from constrain.language.grammar import Kind
from constrain.language.tree import ANY_BYTES, ANY_JSON_CHAR, Expression, Intersection, Literal, Repetition
from constrain.regex.anchors import sequence, union
from constrain.regex.free_text import ANY_TEXT, SOME_BYTES, up_to, without
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.source import Regex
from constrain.regex.spelling import in_json
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.answers.assembly import Assembly
    from constrain.chat.answers.choices import CustomCalls
    from constrain.chat.answers.structure import Node
    from constrain.language.grammar import Grammar

_ANY_CONTENT = Repetition(ANY_JSON_CHAR, 0, None)
_QUOTE = Literal(b'"')


def add_json_input(made: Assembly, source: int, tool: CustomCalls, target: int, place: str) -> None:
    """Adds the rest of a JSON string after its first quote. Raises the errors of the tool's language."""
    written, what = tool.input, f"the tool {tool.name}"
    if written is None:
        made.read(source, sequence(_ANY_CONTENT, _QUOTE), target, "input", Kind.PROSE)
    elif isinstance(written, Regex):
        content = in_json(parse_pattern(written.pattern, written.dialect))
        made.read(source, _require_texts(sequence(content, _QUOTE), what), target, "input")
    else:
        before = made.state()
        made.edge(source, made.merge(lambda: spell_in_json(written.grammar()), place, what), before)
        made.read(before, _QUOTE, target, "input")


def add_raw_input(
    made: Assembly, source: int, tool: CustomCalls, after: Node, state_of: Callable[[Node], int], place: str
) -> None:
    """Adds input as plain text, up to the structure behind it; the text that ends input is not part of the input.

    Raises the errors of the tool's language, and GrammarError if its texts may contain the end.
    """
    written, what = tool.input, f"the tool {tool.name}"
    texts = [(step, behind) for step, behind in after.onward if isinstance(step, bytes)]
    marks = tuple(step for step, _ in texts)
    if len(marks) > 1:
        raise ValueError("a form must give exactly one text that ends raw input")
    if written is not None and not isinstance(written, Regex):
        made.edge(source, made.merge(written.grammar, place, what), state_of(after))
        for mark in marks:
            _check_free_of(mark, written.grammar(), what)
        return
    expression = ANY_TEXT if written is None else parse_pattern(written.pattern, written.dialect)
    kind = Kind.PROSE if written is None else Kind.OTHER
    for mark, behind in texts:
        made.read(source, _require_texts(up_to(mark, marks, expression), what), state_of(behind), "input", kind)
    if len(after.onward) > len(texts) or after.reached is not None:
        others = replace(after, onward=[each for each in after.onward if each not in texts])
        made.read(source, _require_texts(without(marks, expression), what), state_of(others), "input", kind)


def _check_free_of(mark: bytes, grammar: Grammar, what: str) -> None:
    """Raises GrammarError if a sequence of a grammar's lexemes may contain the text that ends input."""
    lexemes = Repetition(union([terminal.expression for terminal in grammar.terminals]), 0, None)
    early = sequence(ANY_BYTES, Literal(mark), SOME_BYTES)
    if not asked(kernel.is_empty, Intersection((sequence(lexemes, Literal(mark)), early))):
        raise GrammarError(
            f"{what} has a grammar, and calls of custom tools end at the text {mark.decode()!r} here, which texts of "
            "that grammar may hold; give it a Regex, or choose a form of calls in which input is a JSON string or ends "
            "at a special token"
        )


def _require_texts(expression: Expression, what: str) -> Expression:
    """Returns the expression of an input. Raises GrammarError if it matches no text."""
    if asked(kernel.is_empty, expression):
        raise GrammarError(
            f"the Regex of {what} matches no text that can be written in this model's form of calls; change the Regex, "
            "or choose another form of calls"
        )
    return expression
