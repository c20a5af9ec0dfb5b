"""Parts of given texts in a grammar text: ``%regex {"substring_words": "..."}``, and with ``_chars`` or ``_chunks``.

``{"type": "substring", "chunks": [...]}`` means the same as ``substring_chunks``.
``%regex`` matches any run of consecutive words, characters or chunks of a text, the empty run included, as llguidance
defines it. The expression comes from the suffix automaton (Blumer et al. 1985), which is linear in the text: a state's
expression matches the possible continuations. Most states only go on to the end of the text. Nested in one another,
their expressions would be as deep as the text is long. So in longer texts a path without branches is cut into blocks: a
continuation is a beginning of the block, or the whole block as one string and a continuation after it.

At the end of a grammar, a text of 10,000 words compiles in 2 s. Elsewhere, the kernel proves that the longest match
leads to no dead end, which takes at least one state for each byte: its MAX_PAIR_STATES allows for about 450 words.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.errors import LimitError
from constrain.language.tree import EMPTY_TEXT, Literal, Repetition
from constrain.lark.reading.places import error_at, placed
from constrain.regex.anchors import sequence, union
from constrain.regex.classes import normalize
from constrain.regex.unicode.properties import property_ranges
from constrain.remembering import remembered

if TYPE_CHECKING:
    from constrain.language.tree import Expression, Ranges
    from constrain.lark.reading.syntax import Substring

MAX_CHUNKS = 5_000
"""Words and the text between them, or characters, or chunks of the text of one ``%regex``; where they repeat, each
level of the expression, which the kernel follows on its stack, counts as five. Compiling takes time with the square of
the different ones: about 1 s at the limit. Beyond: LimitError."""

_LEVELS = MAX_CHUNKS // 5
"""Levels of chunks and blocks in the expression of one ``%regex``."""

KIND_BYTES = 1 << 20
"""Bytes of cached kinds of characters; beyond it, the least recently used are dropped."""

_BLOCK = 128
"""Chunks of a block, for texts of ``_LEVELS`` chunks or more: ``MAX_CHUNKS`` without a branch are about 170
deep."""

_KEYS = ("substring_words", "substring_chars", "substring_chunks")


def substring_expression(text: str, substring: Substring) -> Expression:
    """Returns the expression of a ``%regex``; ``text`` is the grammar text.

    Raises GrammarError, LimitError.
    """
    chunks = [chunk.encode() for chunk in _chunks(text, substring)]
    if len(chunks) > MAX_CHUNKS:
        message = f"this %regex is made of more than {MAX_CHUNKS} chunks (MAX_CHUNKS)"
        raise placed(LimitError, text, substring.at, message)
    expression, depth = _runs([chunk for chunk in chunks if chunk])
    if depth > _LEVELS:
        message = f"this %regex repeats itself in too many ways (MAX_CHUNKS = {MAX_CHUNKS}, five for each level)"
        raise placed(LimitError, text, substring.at, message)
    return expression


def _chunks(text: str, substring: Substring) -> list[str]:
    key, value = _key_and_value(text, substring)
    if key in ("substring_words", "substring_chars") and not isinstance(value, str):
        raise error_at(text, substring.at, f"{key} is a string")
    if key in ("substring_chunks", "chunks") and not (
        isinstance(value, list) and all(isinstance(chunk, str) for chunk in value)
    ):
        raise error_at(text, substring.at, f"{key} is a list of strings")
    try:
        "".join(value).encode()
    except UnicodeEncodeError as error:
        raise error_at(text, substring.at, "a lone surrogate cannot be encoded") from error
    return words(value) if key == "substring_words" else list(value)


def _key_and_value(text: str, substring: Substring) -> tuple[str, Any]:
    """Returns the key that says how a text is divided, and the text or its chunks."""
    pairs: tuple[tuple[str, Any], ...] = json.loads(substring.given, object_pairs_hook=tuple)
    keys = [key for key, _ in pairs]
    if "type" in keys:
        if sorted(keys) != ["chunks", "type"]:
            given = ", ".join(keys)
            raise error_at(
                text, substring.at, f"%regex of the type substring has chunks, and nothing else; given: {given}"
            )
        return "chunks", dict(pairs)["chunks"]
    if len(keys) != 1 or keys[0] not in _KEYS:
        given = ", ".join(keys) or "none"
        message = f"%regex takes one key, which is one of {', '.join(_KEYS)}; or a type; given: {given}"
        raise error_at(text, substring.at, message)
    return pairs[0]


def words(text: str) -> list[str]:
    r"""Returns runs of letters, digits and ``_``, of white space, and of other characters."""
    return ["".join(run) for _, run in groupby(text, _kind)]


@remembered(4096, KIND_BYTES, lambda _: 100)
def _kind(char: str) -> int:
    point = ord(char)
    return next((kind for kind, ranges in enumerate(_kinds()) if any(a <= point <= b for a, b in ranges)), -1)


@cache
def _kinds() -> tuple[Ranges, Ranges]:
    found = [property_ranges(name) or () for name in ("Alphabetic", "N", "White_Space")]
    return normalize((*found[0], *found[1], (ord("_"), ord("_")))), found[2]


class _State(NamedTuple):
    """A state of the suffix automaton: all runs of chunks that end at the same places of the text.

    ``link``: the state of their longest suffix that also ends elsewhere; ``length``: chunks of the longest run.
    """

    following: dict[bytes, int]
    link: int
    length: int


def _automaton(chunks: list[bytes]) -> list[_State]:
    """Returns the suffix automaton, built chunk by chunk; state 0 is the start."""
    states = [_State({}, -1, 0)]
    last = 0
    for chunk in chunks:
        made = len(states)
        states.append(_State({}, 0, states[last].length + 1))
        at, last = last, made
        while at >= 0 and chunk not in states[at].following:
            states[at].following[chunk] = made
            at = states[at].link
        if at < 0:
            continue
        known = states[at].following[chunk]
        if states[known].length == states[at].length + 1:
            states[made] = states[made]._replace(link=known)
            continue
        split = len(states)  # the runs of `known` that end at the new place, too
        states.append(_State(dict(states[known].following), states[known].link, states[at].length + 1))
        states[known] = states[known]._replace(link=split)
        states[made] = states[made]._replace(link=split)
        while at >= 0 and states[at].following.get(chunk) == known:
            states[at].following[chunk] = split
            at = states[at].link
    return states


def _runs(chunks: list[bytes]) -> tuple[Expression, int]:
    """Returns all runs of the chunks, as an expression, and its depth."""
    states = _automaton(chunks)
    strings: dict[bytes, Expression] = {chunk: Literal(chunk) for chunk in chunks}
    rests: dict[int, tuple[Expression, int]] = {}
    unbranched: dict[int, int] = {}  # the number of chunks until there is a choice, or the end
    for number in sorted(range(len(states)), key=lambda each: -states[each].length):  # longer runs first
        following = states[number].following
        if len(following) == 1:
            (target,) = following.values()
            unbranched[number] = unbranched.get(target, 0) + 1
            if len(chunks) >= _LEVELS and unbranched[number] % _BLOCK == 0:
                rests[number] = _block(states, strings, rests, number)
                continue
        depth = 1 + max((rests[target][1] for target in following.values()), default=0)
        ways = [sequence(strings[chunk], rests[target][0]) for chunk, target in following.items()]
        rests[number] = (Repetition(union(ways), 0, 1) if ways else EMPTY_TEXT, depth)
    return rests[0]


def _block(
    states: list[_State], strings: dict[bytes, Expression], rests: dict[int, tuple[Expression, int]], number: int
) -> tuple[Expression, int]:
    """Returns the continuations of a state where a block begins, as an expression, and its depth."""
    way: list[bytes] = []
    for _ in range(_BLOCK):
        ((chunk, number),) = states[number].following.items()
        way.append(chunk)
    beginning: Expression = EMPTY_TEXT
    for chunk in reversed(way[:-1]):
        beginning = Repetition(sequence(strings[chunk], beginning), 0, 1)
    behind, depth = rests[number]
    return union([beginning, sequence(Literal(b"".join(way)), behind)]), max(_BLOCK, depth) + 1
