"""Parts as they were written, for messages and ``repr``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.composition.nodes import Composed, InSequence, OneOf, Repeated
from constrain.composition.parts import FreeText, Given, Schema
from constrain.gbnf.source import Gbnf
from constrain.lark.source import Lark
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from constrain.composition.nodes import Node
    from constrain.composition.parts import Part


def label(part: Part | Node) -> str:
    """Returns a part as it was written, for messages."""
    match part:
        case Composed(node):
            return label(node)
        case InSequence(parts) | OneOf(parts):
            return f"{'sequence' if isinstance(part, InSequence) else 'choice'}({', '.join(map(label, parts))})"
        case Repeated(inner, minimum, maximum, separator):
            between = f", separator={label(separator)}" if separator else ""
            return f"repeat({label(inner)}, {minimum}, {maximum}{between})"
        case FreeText(until, max_length):
            given = {"until": until, "max_length": max_length}
            return f"text({', '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)})"
        case Regex(pattern, dialect):
            return f"Regex({pattern!r}{'' if dialect == 'rust' else f', {dialect!r}'})"
        case Lark() | Gbnf():
            return f"{type(part).__name__}({(part.description.splitlines() or [part.text])[0]!r})"
        case Schema():
            return part.written
        case Given():
            return f"Grammar({part.render()})"
    return repr(part)
