"""Judges of regular expressions and Lark grammars by others, and the short texts to ask them about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, count, product
from typing import Any

from tests.soundness.compiler import patterns

MOST_PIECES = 10
"""Characters and words of which texts are made; further ones of a source are left out."""

_IGNORE = re.compile(r"^%ignore\s+(.*)$", re.MULTILINE)
_ONLY_IGNORED = "zz_only_ignored"
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)\\?("|$)|(?<![/\w])/((?:[^/\\\n]|\\.)*)\\?(/|$)', re.MULTILINE)
"""A literal or a pattern, each with its end; without one, it reaches to the end of the line, and is read once."""


@dataclass(frozen=True)
class TextJudge:
    """An independent judge of texts.

    Attributes:
        name: name of its package.
        accepts: whether a text is one of the language.
        pieces: pieces of which texts are made, likely ones first.
        likely: whole texts to ask about first.
        is_ignored: whether a text is one that the grammar ignores; ``None`` if it ignores none.
    """

    name: str
    accepts: Callable[[str], bool]
    pieces: Sequence[str]
    likely: Sequence[str] = ()
    is_ignored: Callable[[str], bool] | None = None

    def without_ends(self, text: str) -> Iterator[str]:
        """Yields what is left of a text without ignored text at its ends."""
        if self.is_ignored is None:
            return
        begins = [at for at in range(len(text)) if at == 0 or self.is_ignored(text[:at])]
        ends = [at for at in range(1, len(text) + 1) if at == len(text) or self.is_ignored(text[at:])]
        yield from (text[begin:end] for begin in begins for end in ends if begin < end)


def judge_of(source: Mapping[str, Any]) -> TextJudge | str:
    """Returns the judge of a pattern or Lark grammar, or the reason why there is none."""
    if source["kind"] == "regex":
        return _judge_of_regex(source["pattern"], source["dialect"])
    return _judge_of_lark(source["text"], source["start"])


def _judge_of_regex(pattern: str, dialect: str) -> TextJudge | str:
    try:
        likely = patterns.samples(pattern)
    except re.error as error:
        return f"Python cannot read the pattern, of which texts are drawn: {error}"
    pieces = list(dict.fromkeys("".join(likely) + "x"))[:MOST_PIECES]
    if dialect == "python":
        read = re.compile(pattern)
        return TextJudge("re", lambda text: read.fullmatch(text) is not None, pieces, likely)
    if dialect != "ecma":
        return f"there is no independent judge for the dialect {dialect}"
    if find_spec("regress") is None:
        return "regress is not installed"
    regress: Any = import_module("regress")
    whole = regress.Regex(f"^(?:{pattern})$", "u")
    return TextJudge("regress", lambda text: whole.find(text) is not None, pieces, likely)


def _judge_of_lark(grammar: str, start: str) -> TextJudge | str:
    lark: Any = import_module("lark")
    ignored = _IGNORE.findall(grammar)
    inner = f"{_IGNORE.sub('', grammar)}\n{_ONLY_IGNORED}: ({' | '.join(ignored)})+\n"
    try:
        accepts = _parser(grammar, start)
        is_ignored = _parser(inner, _ONLY_IGNORED) if ignored else None
    except (lark.exceptions.LarkError, re.error) as error:
        return f"lark does not read the grammar: {str(error).splitlines()[0]}"
    return TextJudge("lark", accepts, _pieces_of_lark(grammar), is_ignored=is_ignored)


def _parser(grammar: str, start: str) -> Callable[[str], bool]:
    """Returns whether lark's Earley parser takes a text. Raises its errors."""
    lark: Any = import_module("lark")
    parser = lark.Lark(grammar, start=start, parser="earley", lexer="dynamic_complete")

    def accepts(text: str) -> bool:
        try:
            parser.parse(text)
        except lark.exceptions.LarkError:
            return False
        return True

    return accepts


def _pieces_of_lark(grammar: str) -> list[str]:
    """Returns the literals of a grammar and samples of its patterns, shortest first."""
    found: dict[str, None] = {}
    for literal, quote, pattern, slash in _QUOTED.findall(grammar):
        if literal and quote:
            found[re.sub(r"\\(.)", lambda each: {"n": "\n", "t": "\t"}.get(each[1], each[1]), literal)] = None
        elif pattern and slash and patterns.can_read(pattern):
            found.update(dict.fromkeys(patterns.samples(pattern)[:3]))
    pieces = sorted((piece for piece in found if piece), key=len)
    return [*pieces[: MOST_PIECES - 1], "x"]


def texts(pieces: Sequence[str], likely: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields texts with their size in pieces: those near likely ones (size 0), then all, smallest first."""
    met: set[str] = set()
    for text in chain(*(_near(each, pieces) for each in likely)):
        if text not in met:
            met.add(text)
            yield 0, text
    for size in count(1) if pieces else ():
        for parts in product(pieces, repeat=size):
            text = "".join(parts)
            if text not in met:
                met.add(text)
                yield size, text


def _near(answer: str, pieces: Sequence[str]) -> Iterator[str]:
    """Yields an answer, and all texts with one character less, another, or one piece more."""
    yield answer
    for index in range(min(len(answer), 60)):
        before, after = answer[:index], answer[index + 1 :]
        yield before + after
        for piece in pieces:
            yield before + piece + after
            yield before + piece + answer[index] + after
