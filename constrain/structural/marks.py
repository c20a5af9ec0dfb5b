"""Marks as a grammar reads them: texts, and special tokens between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.errors import GrammarError
from constrain.language.special import pieces
from constrain.language.tree import parts_of
from constrain.structural.formats import AnyText, Json, OneToken, Token, Trigger, Triggered, marks
from constrain.structural.styles import style_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.language.special import Tokens
    from constrain.language.tree import Expression
    from constrain.structural.formats import Mark


@dataclass(frozen=True, slots=True)
class Special:
    """A special token of the vocabulary, by its name or as ``<[id]>``."""

    name: str


Piece = bytes | Special


@dataclass(frozen=True, slots=True)
class Names:
    """What a vocabulary says about the tokens that a tag names.

    Attributes:
        special: names of special tokens; in a text, such a name stands for the token.
        texts: texts of the tokens that are no special tokens, by name or ``<[id]>``.
        ids: ids of tokens by name or ``<[id]>``; empty unless a format is ``exclude_token``.
    """

    special: frozenset[str] = frozenset()
    texts: Mapping[str, bytes] = field(default_factory=dict)
    ids: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def pieces(self, mark: Mark) -> list[Piece]:
        """Returns the texts and special tokens that a mark consists of; none for the empty text."""
        if isinstance(mark, Token):
            text = self.texts.get(mark.name)
            return [Special(mark.name)] if text is None else [text]
        return [Special(piece) if is_token else piece.encode() for piece, is_token in pieces(mark, self.special)]

    def all_but(self, excluded: Iterable[Mark]) -> Special:
        """Returns the set of all tokens except the excluded ones. A text of several tokens excludes nothing."""
        names = [mark.name if isinstance(mark, Token) else mark for mark in excluded]
        ids = sorted({each for name in names for each in self.ids.get(name, ())})
        return Special(f"<[^{','.join(map(str, ids))}]>" if ids else "<[*]>")

    def texts_of(self, marks: Iterable[Mark]) -> list[bytes]:
        """Returns the marks that are plain text, each once, without the empty one."""
        found: dict[bytes, None] = {}
        for mark in marks:
            match self.pieces(mark):
                case [bytes() as text]:
                    found[text] = None
        return list(found)


def names_in(node: Expression, tokens: Tokens) -> Names:
    """Returns what a vocabulary says about the tokens in a format. Raises GrammarError for a token that it lacks."""
    special: set[str] = set()
    texts: dict[str, bytes] = {}
    ids: dict[str, tuple[int, ...]] = {}
    waiting: list[Any] = [node]
    for each in waiting:
        for part in parts_of(each):
            waiting += parts_of(part) if isinstance(part, Trigger) else [part]
    some_token = any(isinstance(each, OneToken) for each in waiting)
    for each in waiting:
        excluded = each.excludes if isinstance(each, AnyText | OneToken | Triggered) else ()
        of_style = style_marks(each.style) if isinstance(each, Json) else ()
        for mark in (*marks(each), *of_style):
            if some_token and (isinstance(mark, Token) or mark in tokens.names):
                name = mark.name if isinstance(mark, Token) else mark
                ids[name] = tokens.ids(name)
            if isinstance(mark, str):
                special.update(name for name in tokens.names if name in mark)
            elif (text := tokens.text(mark.name)) is not None:
                texts[mark.name] = text
            elif mark not in excluded and not tokens.is_special(mark.name):
                raise GrammarError(
                    f"this vocabulary has no token {mark.name}{tokens.close_to(mark.name)}", pointer=each.place
                )
    return Names(frozenset(special), texts, ids)
