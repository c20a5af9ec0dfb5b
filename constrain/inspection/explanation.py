"""``explain``: the place where a text stops matching a schema or grammar, and the texts that could go on there.

``Matcher.explain`` says why a token is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.arguments import lists_options
from constrain.engine.compiling import compile_any
from constrain.engine.special import some_token
from constrain.engine.terminals import name_terminal
from constrain.inspection.characters import CharacterRange, in_words, next_bytes, next_characters
from constrain.language.grammar import Grammar
from constrain.language.policies import DEFAULTS, CompileOptions
from constrain.language.source import Source
from constrain.language.special import split_special, terminal_special
from constrain.lark.reading.places import excerpt, line_and_column
from constrain.notebooks import cut, preformatted, shorten
from constrain.remembering import remembered
from constrain.vocabulary.vocabulary import Vocabulary, as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_cpp import Llama
    from typing_extensions import Unpack

    from constrain.engine.constraint import Constraint
    from constrain.engine.terminals import ExpectedTerminal
    from constrain.vocabulary.vocabulary import HasVocabulary

SHOWN_TERMINALS = 20
"""Terminals that ``str()`` of an explanation lists; beyond them it shows only the number of the others."""

SHOWN_COMPLETION = 200
"""Characters of a shortest completion that ``str()`` of an explanation shows; longer ones are cut."""

_END = 256
"""Token of the byte vocabulary for the end of generation; special tokens follow it."""


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of an explained text.

    Attributes:
        token: token id.
        text: bytes of the token.
        offset: byte of the text at which the token begins, from 0.
        n_allowed: number of tokens that were allowed there, end of generation included.
        is_allowed: whether this token was allowed.
        min_tokens_left: tokens of a short text that finishes from before this token.
    """

    token: int
    text: bytes
    offset: int
    n_allowed: int
    is_allowed: bool
    min_tokens_left: int


@dataclass(frozen=True, slots=True, repr=False)
class TextExplanation:
    """The result of ``explain``: how far a text matches, and what could come next. ``str()`` is a summary.

    Attributes:
        text: the text, as bytes.
        offset: number of bytes of the longest prefix that some matching text begins with, cut to whole characters. The
            attributes below are about this place.
        line: line of the place, from 1; lines end with a line feed.
        column: column of the place in characters, from 1.
        expected: terminals that could continue or begin at the place.
        next_characters: characters that could come next, as ranges.
        next_bytes: bytes that could come next, also for languages that are not UTF-8.
        is_complete: whether the text up to the place matches as a whole.
        completion: bytes of a shortest text that, put behind the prefix, makes it match.
        steps: the text's tokens up to end of generation, or to the first one that is not allowed; empty without a
            vocabulary.
    """

    text: bytes
    offset: int
    line: int
    column: int
    expected: tuple[ExpectedTerminal, ...]
    next_characters: tuple[CharacterRange, ...]
    next_bytes: bytes
    is_complete: bool
    completion: bytes
    steps: tuple[TokenStep, ...] = ()

    @property
    def accepted(self) -> bytes:
        """The longest prefix of the text, in bytes, that some matching text begins with."""
        return self.text[: self.offset]

    @property
    def matches(self) -> bool:
        """Whether the whole text matches."""
        return self.is_complete and self.offset == len(self.text)

    def __repr__(self) -> str:
        parts = [f"matches={self.matches}", f"line={self.line}", f"column={self.column}"]
        parts += [f"next={in_words(self.next_characters)}"] if self.next_characters else []
        parts += [] if self.is_complete else [f"completion={cut(self.completion)}"]
        return shorten(f"TextExplanation({', '.join(parts)})")

    def _repr_html_(self) -> str:
        """Returns the summary for notebooks."""
        return preformatted(str(self))

    def __str__(self) -> str:
        if self.matches:
            return "\n".join(["the text matches", *self._next("it may go on with")])
        place = f"line {self.line}, column {self.column} (byte {self.offset})"
        ended = self.offset == len(self.text)
        first = f"the text is incomplete: it ends at {place}" if ended else f"the text stops matching at {place}"
        before = self.accepted.decode(errors="replace")
        after = self.text[self.offset :].decode(errors="replace")
        lines = [first, excerpt(before + after, len(before)), *self._expected(), *self._next("next may come")]
        if self.is_complete:
            lines.append("the text before this place is complete")
        else:
            lines.append(f"a shortest way to finish from here: {_quoted(self.completion)}")
        return "\n".join(lines)

    def _expected(self) -> list[str]:
        if not self.expected:
            return ["expected: the end of the text"]
        names = [name_terminal(*terminal) for terminal in self.expected[:SHOWN_TERMINALS]]
        if len(self.expected) > SHOWN_TERMINALS:
            names.append(f"{len(self.expected) - SHOWN_TERMINALS} more")
        if len(names) == 1:
            return [f"expected: {names[0]}"]
        return ["expected one of:", *(f"    {name}" for name in names)]

    def _next(self, lead: str) -> list[str]:
        if self.next_characters:
            return [f"{lead}: {in_words(self.next_characters)}"]
        return [f"{lead}: byte {', '.join(f'{byte:#04x}' for byte in self.next_bytes)}"] if self.next_bytes else []


@lists_options(CompileOptions, DEFAULTS)
def explain(
    schema: object,
    text: bytes | str,
    vocabulary: Vocabulary | HasVocabulary | Llama | None = None,
    *,
    closed: bool = False,
    **policies: Unpack[CompileOptions],
) -> TextExplanation:
    """Finds where a text stops matching a schema or grammar, and what was expected there.

    Args:
        schema: schema or grammar, as for ``compile``.
        text: text to examine. A ``str`` is encoded as UTF-8. Where the grammar asks for a token, by name or id, the
            text has what the grammar has: ``<|name|>``, ``<[5-9]>``.
        vocabulary: a ``Vocabulary`` with ``encode``, or a model. If given, ``steps`` of the result follows the text
            token by token.
        closed: whether objects take only keys that the schema declares, as in answers of ``generate``.
        policies: ``whitespace`` and the other options of ``compile`` for JSON Schemas.

    Returns a ``TextExplanation``; ``print`` shows it in a few lines. Raises the errors of ``compile``, and
    ``ValueError`` for a vocabulary without ``encode``.

    >>> found = explain({"enum": ["red", "green"]}, '"rot"')
    >>> found.matches, found.offset, found.next_characters, found.completion
    (False, 2, (CharacterRange(first='e', last='e'),), b'ed"')
    """
    if closed and isinstance(schema, Grammar | Source):
        raise ValueError(f"closed applies to JSON Schemas only, but this is a {type(schema).__name__}")
    whole = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text  # a lone surrogate never matches
    names = _special_names(schema)
    constraint = compile_any(schema, _byte_vocabulary(names), close_objects=closed, cache=False, **policies)
    matcher = constraint.matcher()
    tokens: list[int] = []
    offsets = [0]
    for part, is_special in _parts(whole, names):
        tokens += [constraint.vocabulary.special_tokens[part.decode()]] if is_special else part
        sizes = [len(part)] if is_special else range(1, len(part) + 1)
        offsets += [offsets[-1] + size for size in sizes]
    count = matcher.accept_many(tokens)
    offset = offsets[count]
    if offset < len(whole) or not matcher.is_accepting:
        begin = _character_start(whole, offset) if count and tokens[count - 1] < _END else offset
        matcher.rollback(offset - begin)
        offset = begin
    before = whole[:offset].decode(errors="replace")
    line, column = line_and_column(before, len(before))
    following = next_bytes(matcher)
    return TextExplanation(
        whole,
        offset,
        line,
        column,
        matcher.expected_terminals(),
        next_characters(matcher),
        following,
        matcher.is_accepting,
        b"".join(split_special(matcher.shortest_completion())),
        ()
        if vocabulary is None
        else _steps(
            compile_any(schema, as_vocabulary(vocabulary), close_objects=closed, **policies),
            _parts(whole, names),
        ),
    )


def _special_names(schema: object) -> tuple[str, ...]:
    """The names of the special tokens that a grammar uses."""
    grammar = schema.grammar() if isinstance(schema, Source) else schema
    if not isinstance(grammar, Grammar):
        return ()
    names = (terminal_special(terminal) for terminal in grammar.terminals)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _parts(text: bytes, names: tuple[str, ...]) -> list[tuple[bytes, bool]]:
    """The text, cut where names of special tokens stand: (part, whether the part is such a name)."""
    if not names:
        return [(text, False)]
    longest_first = sorted((name.encode() for name in names), key=len, reverse=True)
    parts = re.split(b"(%b)" % b"|".join(map(re.escape, longest_first)), text)
    return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]


VOCABULARY_BYTES = 8 << 20
"""Bytes that all remembered vocabularies of bytes and special tokens may take together; the oldest are forgotten."""


@remembered(64, VOCABULARY_BYTES, lambda names: 50_000 + sum(map(len, names)))
def _byte_vocabulary(names: tuple[str, ...]) -> Vocabulary:
    """A vocabulary in which token ``i`` is byte ``i``, then come end-of-generation and special tokens."""
    tokens = [bytes([byte]) for byte in range(256)] + [b""] * (1 + len(names))
    return Vocabulary.from_tokens(tokens, eos=[_END], special=dict(enumerate(names, _END + 1)))


def _character_start(text: bytes, offset: int) -> int:
    """The start of the UTF-8 character around a place; the place itself if it lies between characters."""
    for start in range(offset - 1, max(offset - 4, -1), -1):
        lead = text[start]
        if not 0x80 <= lead < 0xC0:
            length = 1 + (lead >= 0xC2) + (lead >= 0xE0) + (lead >= 0xF0) if lead < 0xF5 else 1
            return start if offset < start + length else offset
    return offset


def _steps(constraint: Constraint, parts: list[tuple[bytes, bool]]) -> tuple[TokenStep, ...]:
    vocabulary = constraint.vocabulary
    if vocabulary.encode is None:
        raise ValueError("the vocabulary has no encode, so the text has no tokens; use a vocabulary of from_llama")
    tokens: list[tuple[int, bytes]] = []
    for part, is_special in parts:
        if is_special:
            tokens.append((some_token(part.decode(), vocabulary), part))
        else:
            tokens += [(token, vocabulary.token_bytes(token)) for token in vocabulary.encode(part)]
    return token_steps(constraint, tokens)


def token_steps(constraint: Constraint, tokens: Sequence[tuple[int, bytes]]) -> tuple[TokenStep, ...]:
    """Returns the steps of a text in tokens, each with its bytes; the end of generation follows them."""
    matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
    steps: list[TokenStep] = []
    offset = 0
    for token, part in [*tokens, (constraint.vocabulary.eos[0], b"")]:
        matcher.fill_bitmask(row)
        n_allowed, left = int.from_bytes(row.tobytes(), "little").bit_count(), matcher.min_tokens_left
        steps.append(TokenStep(token, part, offset, n_allowed, matcher.accept(token), left))
        if not steps[-1].is_allowed:
            break
        offset += len(part)
    return tuple(steps)


def _quoted(text: bytes) -> str:
    """A text in quotes, cut if it is long."""
    decoded = text.decode(errors="replace")
    more = len(decoded) - SHOWN_COMPLETION
    return repr(decoded[:SHOWN_COMPLETION]) + (f" and {more} characters more" if more > 0 else "")
