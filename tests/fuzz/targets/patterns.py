"""Regular expressions in three dialects. The first byte of an input chooses the dialect, the rest is the pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import constrain
from tests.fuzz.judge import Meter
from tests.fuzz.mutation import Texts
from tests.fuzz.walking import random_of, vocabulary, walk

DECLARED = (constrain.PatternError, constrain.GrammarError, constrain.LimitError)
MAX_SIZE = 1024

DIALECTS = ("rust", "ecma", "python")


def run(data: bytes, meter: Meter) -> None:
    """Compiles the pattern and walks."""
    dialect = DIALECTS[(data[:1] or b"0")[0] % len(DIALECTS)]
    pattern = data[1:].decode("utf-8", "surrogateescape")
    with meter.call("compile"):
        made = constrain.compile(constrain.Regex(pattern, dialect=dialect), vocabulary(), cache=False)
    walk(made, random_of(data), meter)


def seeds() -> Iterable[bytes]:
    """None beside the files."""
    return ()


def mutate(data: bytes, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """Another dialect, or a changed pattern."""
    head = bytes([48 + rng.randrange(len(DIALECTS))]) if rng.random() < 0.15 or not data else data[:1]
    return head + _TEXTS.mutated(data[1:], rng, mutate_bytes)


_WORDS = (
    "a", "b", "ab", "c", "0", " ", "é", "ß", "K", "😀", "\n", ".", "*", "+", "?", "*?", "+?", "??", "*+", "|", "(",
    ")", "(?:", "(?i)",
    "(?s)", "(?m)", "(?x)", "(?-i:", "(?i:", "(?u)", "(?a)", "(?P<n>", "(?P=n)", "(?<n>", "\\k<n>", "\\1", "(?=",
    "(?!", "(?<=", "(?<!",
    "(?#x)", "(?>", "{2}", "{1,3}", "{0,}", "{,3}", "{0}", "{1000}", "{20,400}", "{2,1}", "{99999999999}", "[", "]",
    "[^", "[a-z]",
    "[ab]", "[^a]", "[[:alpha:]]", "[a&&b]", "[a--b]", "[a~~b]", "[]a]", "[^]", "[\\d-z]", "[z-a]", "[\\]\\\\]",
    "[[a]]", "-", "&&",
    "^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B", "\\b{start}", "\\<", "\\>", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S",
    "\\p{L}",
    "\\P{L}", "\\p{Greek}", "\\p{Script=Han}", "\\p{scx=Grek}", "\\pN", "\\p{^Lu}", "\\p{Any}", "\\p{Emoji}", "\\x41",
    "\\x{1F600}",
    "\\u0041", "\\u{41}", "\\U0001F600", "\\ud83d\\ude00", "\\cA", "\\0", "\\07", "\\n", "\\t", "\\Q", "\\E", "\\/",
    "\\-", "\\R", "\\X",
    "\\h", "\\N{LATIN SMALL LETTER A}", "(a|b)*", "(a?){9}a{9}", "(a*)*", "(a|aa)+", ".*", "(?=.*a)", "(?!.*b)",
    "x{3,5}y",
)  # fmt: skip
_WRAPS = (("(", ")"), ("(?:", ")*"), ("(?=", ")"), ("(?!", ")"), ("[", "]"), ("[^", "]"), ("(", "){2,5}"), ("(?i:",
")"), ("(?<=", ")"),
          ("(?<!", ")"), ("\\b", "\\b"), ("^", "$"), ("(", ")+?"))  # fmt: skip
_TEXTS = Texts(_WORDS, _WRAPS)
