"""Regular texts of a structural tag: formats, or parts of them, as one expression each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain import kernel
from constrain.composition.texts import NO_TEXT, Text, Texts, shortened
from constrain.errors import GrammarError
from constrain.language.grammar import Kind
from constrain.language.tree import ANY_BYTES, ANY_CHAR, Complement, Intersection, Literal, Window
from constrain.regex.anchors import sequence, union
from constrain.regex.free_text import up_to, without
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.source import Regex
from constrain.structural.formats import AnyText, Constant, InOrder, Language, OneOf, Repeated, Tag
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.language.tree import Expression
    from constrain.structural.formats import Mark
    from constrain.structural.marks import Names


class RegularTexts:
    """The texts made so far; equal ones are made once, so that they become one terminal."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.texts = Texts()
        self._made: dict[object, Text] = {}

    def text(
        self, key: object, make: Callable[[], Expression], label: str, place: str, kind: Kind = Kind.OTHER
    ) -> Text:
        """Returns a text, which is made once for each key: the first to ask gives its label and place."""
        if key not in self._made:
            self._made[key] = Text(make(), shortened(label), place, kind)
        return self._made[key]

    def literal(self, text: bytes, place: str) -> Text:
        """Returns exactly one text."""
        return self.text(text, lambda: Literal(text), repr(text.decode(errors="replace")), place) if text else NO_TEXT

    def excluded(self, excludes: tuple[Mark, ...], ends: tuple[Mark, ...], *, of_tokens: bool) -> list[bytes]:
        """Returns the texts that free text must not contain: its own, and those that end the tag around it."""
        ending = [end for end in ends if isinstance(end, str) != of_tokens]
        return self.names.texts_of((*excludes, *ending))

    def free(self, excluded: tuple[bytes, ...], place: str) -> Text:
        """Returns free text without some texts."""
        key = tuple(dict.fromkeys(excluded))
        listed = ", ".join(repr(mark.decode(errors="replace")) for mark in key)
        label = f"text without {listed}" if listed else "text"
        return self.text(("free", *key), lambda: without(key), label, place, Kind.PROSE)

    def ending(self, ending: bytes, excluded: tuple[bytes, ...], place: str) -> Text:
        """Returns free text without some texts, with the given end."""
        free = self.free(excluded, place)
        ends = sequence(ANY_BYTES, Literal(ending))
        label = f"text that ends in {ending.decode(errors='replace')!r}"
        key = "ending", free, ending
        return self.text(key, lambda: Intersection((free.expression, ends)), label, place, Kind.PROSE)

    def up_to(self, mark: bytes, marks: list[bytes], excluded: list[bytes], place: str) -> Text:
        """Returns free text without some texts and the first of several marks, which is ``mark``.

        Where two of the marks end at one place, the longer one counts.
        """
        key = "up to", mark, *marks, None, *excluded
        label = f"text up to {mark.decode(errors='replace')!r}"
        longer = [sequence(ANY_BYTES, Literal(each)) for each in marks if each != mark and each.endswith(mark)]

        def expression() -> Expression:
            found = without(excluded, up_to(mark, marks))
            return Intersection((found, Complement(union(longer)))) if longer else found

        return self.text(key, expression, label, place, Kind.PROSE)

    def any_text(self, node: AnyText, ends: tuple[Mark, ...]) -> Text:
        """Returns free text. A limit in tokens is not part of the expression."""
        text = self.free(tuple(self.excluded(node.excludes, ends, of_tokens=node.of_tokens)), node.place)
        most = node.max_chars
        if most is None:
            return text
        key, label = ("window", text, most), f"{text.label} ({most} characters)"
        return self.text(key, lambda: Window(text.expression, ANY_CHAR, 0, most), label, node.place, Kind.PROSE)

    def of(self, node: Expression, ends: tuple[Mark, ...]) -> Text | None:
        """Returns the texts of a format as one expression; None if it has schemas, grammars or limits in tokens."""
        match node:
            case Constant(value):
                return self.plain(value, node.place)
            case AnyText():
                if node.max_tokens is None:
                    return self.any_text(node, ends)
                return NO_TEXT if node.max_tokens == 0 else None
            case Language(Regex(pattern)):
                return self._pattern(pattern, node.place)
            case OneOf(parts):
                known = _all([self.of(part, ends) for part in parts])
                return None if known is None else self.texts.either(*known)
            case InOrder(parts):
                known = _all([self.of(part, ends) for part in parts])
                return None if known is None else self.texts.joined(*known)
            case Repeated():
                return self._repetition(node, ends)
            case Tag(begin, content, after):
                before = _all([self.plain(begin, f"{node.place}/begin"), self.of(content, after)])
                closing = _all([self.plain(end, f"{node.place}/end") for end in dict.fromkeys(after)])
                if before is not None and closing is not None:
                    return self.texts.joined(*before, self.texts.either(*closing))
        return None

    def _repetition(self, node: Repeated, ends: tuple[Mark, ...]) -> Text | None:
        part, separator = self.of(node.part, ends), self.plain(node.separator, f"{node.place}/separator")
        if part is None or separator is None:
            return None
        if separator is NO_TEXT or node.maximum == 0:
            return self.texts.repeated(part, node.minimum, node.maximum)
        again = self.texts.joined(separator, part)
        most = None if node.maximum is None else node.maximum - 1
        some = self.texts.joined(part, self.texts.repeated(again, max(node.minimum - 1, 0), most))
        return some if node.minimum else self.texts.either(NO_TEXT, some)

    def plain(self, mark: Mark, place: str) -> Text | None:
        """Returns a mark as a text; None if it has special tokens."""
        match self.names.pieces(mark):
            case []:
                return NO_TEXT
            case [bytes() as text]:
                return self.literal(text, place)
        return None

    def _pattern(self, pattern: str, place: str) -> Text:
        text = self.text(
            ("pattern", pattern), lambda: parse_pattern(pattern, "rust", all_rust=True), f"regex {pattern!r}", place
        )
        if asked(kernel.is_empty, text.expression):
            raise GrammarError(f"the pattern {pattern!r:.200} matches no text at all; change it", pointer=place)
        return text


def _all(texts: list[Text | None]) -> list[Text] | None:
    """Returns the texts; None if one is missing."""
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None
