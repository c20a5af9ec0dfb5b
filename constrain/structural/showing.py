"""Structural tags as a short text for a prompt: constants as they are, everything else in brackets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from constrain.json_schema.hint import render
from constrain.language.schema_text import parse_schema, plain_schema
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
    Token,
    Triggered,
)

if TYPE_CHECKING:
    from constrain.language.tree import Expression
    from constrain.structural.formats import Mark


def show(node: Expression) -> str:
    """Returns the short text of a format."""
    match node:
        case Constant(value):
            return _mark(value)
        case Json(schema, style):
            kind = "JSON" if style == "json" else f"arguments as {style}"
            return f"[{kind}: {render(plain_schema(parse_schema(schema)))}]"
        case Language(source):
            return f"[text of this kind: {source.render()}]"
        case AnyText(excludes, most_chars, most_tokens):
            limits = {"characters": most_chars, "tokens": most_tokens}
            length = " and ".join(f"{most} {unit}" for unit, most in limits.items() if most is not None)
            return f"[any text{length and f' of at most {length}'}{_without(excludes)}]"
        case OneToken(excludes):
            return f"[one token{_without(excludes)}]"
        case InOrder(parts):
            return "".join(map(show, parts))
        case OneOf(parts):
            return show(parts[0]) if len(parts) == 1 else "\n".join(["[one of these:", *map(_item, parts), "]"])
        case Repeated(part, minimum, maximum, separator):
            times = "or more" if maximum is None else f"to {maximum}"
            between = f", with {json.dumps(separator)} between" if separator else ""
            return f"[{minimum} {times} times{between}: {show(part)}]"
        case Tag(begin, content, ends):
            return f"{_mark(begin)}{show(content)}{_mark(ends[0])}"
    assert isinstance(node, Triggered), node
    ways = [f"- {_mark(rule.mark)}{show(way)}" for rule in node.parts for way in rule.parts]
    return "\n".join([f"[any text{_without(node.excludes)}, in which these may stand:", *ways, "]"])


def _item(part: Expression) -> str:
    return f"- {show(part)}"


def _mark(mark: Mark) -> str:
    return mark.name if isinstance(mark, Token) else mark


def _without(excludes: tuple[Mark, ...]) -> str:
    listed = ", ".join(json.dumps(mark) for mark in excludes if isinstance(mark, str))
    return f" without {listed}" if listed else ""
