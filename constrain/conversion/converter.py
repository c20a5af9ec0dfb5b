"""``lark_text``: the text of a GBNF or EBNF grammar to the text of a Lark grammar with the same texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from constrain.arguments import without_mark
from constrain.conversion.ebnf import read_ebnf
from constrain.conversion.gbnf import read_gbnf
from constrain.conversion.parts import Except, leaves, nodes
from constrain.conversion.plan import Plan
from constrain.conversion.regularity import (
    MAX_CONVERTED_DEPTH,
    expression_of,
    nullable_rules,
    productive_rules,
    regular_rules,
    without_empty,
)
from constrain.conversion.writing import write
from constrain.engine import core
from constrain.errors import LimitError
from constrain.lark.reading.places import error_at, placed
from constrain.lark.reading.syntax import Symbol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from constrain.conversion.parts import Original
    from constrain.language.tree import Expression

Syntax = Literal["gbnf", "ebnf"]
"""The syntaxes that are converted: llama.cpp's, and that of ISO/IEC 14977."""

READERS = {"gbnf": read_gbnf, "ebnf": read_ebnf}
"""The functions that read a text, by syntax."""


def lark_text(text: str, syntax: Syntax) -> str:
    """Returns the text of a Lark grammar. Raises GrammarError and LimitError with line, column and an excerpt."""
    original = READERS[syntax](without_mark(text))
    _check(original)
    plan = Plan(original)
    plan.settle()
    return write(plan)


def _check(original: Original) -> None:
    """Raises GrammarError for a grammar without any text, and for exceptions that Lark cannot say."""
    start = original.start
    if start not in productive_rules(original):
        message = f"the language is empty: every way through {start} leads back to itself"
        raise error_at(original.text, original.rules[start].at, message)
    exceptions = [node for rule in original.rules.values() for node in nodes(rule.body) if isinstance(node, Except)]
    if not exceptions:
        return
    regular = regular_rules(original)
    nullable = nullable_rules(original)
    known: dict[str, Expression] = {}
    for exception in exceptions:
        if without_empty(exception, nullable) is None:
            _require_regular(original, exception, regular)
    for name in regular:
        known[name] = expression_of(original.rules[name].body, known)
    for exception in exceptions:
        if without_empty(exception, nullable) is None:
            _require_texts(original, exception, known)


def _require_regular(original: Original, exception: Except, regular: Collection[str]) -> None:
    for leaf in leaves(exception):
        if isinstance(leaf, Symbol) and leaf.name not in regular:
            message = (
                f"an exception stands between regular parts, but the rule {leaf.name} contains itself, or a rule that "
                f"does (or more than MAX_CONVERTED_DEPTH = {MAX_CONVERTED_DEPTH} operators inside one another); "
                "write its texts without an exception"
            )
            raise error_at(original.text, leaf.at, message)


def _require_texts(original: Original, exception: Except, known: Mapping[str, Expression]) -> None:
    try:
        is_empty = core.is_empty(expression_of(exception, known))
    except LimitError as error:
        raise placed(LimitError, original.text, exception.at, f"this exception: {error.message}") from error
    if is_empty:
        message = "this exception leaves nothing: it takes away all texts before the -; remove this alternative"
        raise error_at(original.text, exception.at, message)
