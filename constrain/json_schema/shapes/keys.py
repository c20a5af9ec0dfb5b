"""Undeclared keys of an object: their classes, and the number of keys in each class."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.shapes.objects import key_goals
from constrain.json_schema.shapes.strings import ANY_CONTENT
from constrain.json_schema.spelling.canonical import spell_string
from constrain.json_schema.spelling.languages import count_texts, matching
from constrain.language.tree import Complement, Concatenation, Expression, Intersection, Literal, LiteralSet

if TYPE_CHECKING:
    from constrain.json_schema.shapes.data import Goal, ObjectShape

QUOTE = Literal(b'"')
JSON_STRING = Concatenation((QUOTE, ANY_CONTENT, QUOTE))


class KeyClass(NamedTuple):
    """Keys spelled as ``expression``, ``number`` of them (``inf``: too many to run out), with values for ``goal``."""

    expression: Expression
    goal: Goal
    number: float


def quoted(content: Expression) -> Expression:
    """Returns a JSON string with this content."""
    return JSON_STRING if content is ANY_CONTENT else Concatenation((QUOTE, content, QUOTE))


def unquoted(expression: Expression) -> Expression:
    """Returns the contents of the JSON strings that an expression of keys matches."""
    match expression:
        case Concatenation((_, content, _)):
            return content
        case Intersection(parts):
            return Intersection(tuple(map(unquoted, parts)))
        case Complement(part):
            return Complement(unquoted(part))
    assert isinstance(expression, LiteralSet), expression
    return LiteralSet(tuple(text[1:-1] for text in expression.texts))


def key_classes(shape: ObjectShape) -> list[KeyClass]:
    """Returns the classes that have keys, and values for them."""
    declared = tuple(dict.fromkeys((*shape.properties, *shape.required)))
    classes = []
    patterns = [pattern for pattern in shape.patterns if pattern.goal is not shape.additional]
    for pattern in patterns:
        if pattern.goal.productive:
            taken = matching(pattern.expression, declared)
            number = number_of_texts(pattern.expression) - len(taken)
            if number:
                classes.append(KeyClass(without(quoted(pattern.expression), taken), pattern.goal, number))
    if shape.additional.productive:
        if not patterns:
            classes.append(KeyClass(without(JSON_STRING, declared), shape.additional, inf))
        else:
            forbidden = tuple(pattern.expression for pattern in patterns)
            others = Intersection((ANY_CONTENT, *map(Complement, forbidden)))
            outside = matching(others, declared)
            number = number_of_texts(others) - len(outside)
            if number:
                expression = without(JSON_STRING, outside)
                complements = tuple(Complement(quoted(pattern)) for pattern in forbidden)
                classes.append(KeyClass(Intersection((expression, *complements)), shape.additional, number))
    return classes


def number_of_texts(expression: Expression) -> float:
    """Returns the number of texts; ``inf`` for more than can run out."""
    number = count_texts(expression)
    return inf if number is None else number


def without(expression: Expression, keys: list[str] | tuple[str, ...]) -> Expression:
    """Returns the JSON strings that match, except for ``keys``."""
    spelled = tuple(map(spell_string, keys))
    return Intersection((expression, Complement(LiteralSet(spelled)))) if spelled else expression


def capacity(shape: ObjectShape) -> float:
    """Returns the greatest number of members of an object of this shape."""
    declared = dict.fromkeys((*shape.properties, *shape.required))
    members: float = sum(goal.productive for goal in key_goals(shape, declared).values())
    if shape.additional.productive and not shape.patterns:
        members = inf
    elif shape.additional.productive or shape.patterns:
        members += sum(key_class.number for key_class in key_classes(shape))
    return members if shape.maximum is None else min(members, shape.maximum)
