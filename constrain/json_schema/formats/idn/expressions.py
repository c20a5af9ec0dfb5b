r"""Texts that are written for the formats ``idn-hostname`` (RFC 5890 to 5893) and ``idn-email`` (RFC 6531).

Every name here is valid for validators of IDNA 2008, whether or not they map characters first (UTS #46). Some rules of
IDNA are not regular; these expressions keep to texts that surely follow them:

- Normalization Form C: no code point composes with the one before it, and marks are in canonical order;
- labels of 63 and names of 253 octets, in Punycode: bounds on code points, below;
- A-labels are never written, and no label with non-ASCII characters has two hyphens in a row;
- nothing beyond U+FFFF, which is the Basic Multilingual Plane;
- names with right-to-left labels (RFC 5893): all others are ASCII, and begin with a letter;
- the rules of context (RFC 5892, appendix A): such characters stand next to the characters that they need.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from constrain.json_schema.formats.hosts import email_at, hostname, label_of
from constrain.json_schema.formats.idn.tables import (
    NUKTA,
    VIRAMA,
    Script,
    characters,
    joining_letters,
    known_viramas,
    script_code_points,
    scripts,
)
from constrain.language.tree import NOTHING, ByteClass, Intersection
from constrain.regex.builders import either, many, optional, sequence, tree
from constrain.regex.classes import intersection, normalize

if TYPE_CHECKING:
    from constrain.language.tree import CharClass, Expression

MAX_LABELS = 4
"""Labels of a name that is not all ASCII; with MAX_LABEL_OCTETS octets each, and the dots, 251 of 253 octets."""

MAX_LABEL_OCTETS = 62

_MAIN_BLOCKS = {
    "Greek": (0x370, 0x3FF),
    "Hebrew": (0x590, 0x5FF),
    "Hiragana": (0x3040, 0x309F),
    "Katakana": (0x30A0, 0x30FF),
    "Han": (0x4E00, 0x9FFF),
}
_JOINERS = r"[\u{200C}\u{200D}]"

NOT_ASCII = r"\u{80}-\u{10FFFF}"

MAX_FEW = 3
MAX_LENGTH_WITH_FEW = 44
"""Code points of a label with at most MAX_FEW that are not ASCII."""

MAX_LENGTH_OF_ONE_BLOCK = 22
"""Code points of a label of ASCII and one of BLOCKS."""

MAX_LENGTH = 14
"""Code points of any other label.

The tests compute the longest Punycode (RFC 3492) of such labels: MAX_LABEL_OCTETS octets.
"""

_DIGITS = ("[0-9\\u{6F0}-\\u{6F9}]", "[\\u{660}-\\u{669}]")
"""European and Arabic digits (RFC 5893, section 2, rule 4)."""

BLOCKS = (
    (0x80, 0x24F),  # Latin
    (0x370, 0x52F),  # Greek, Cyrillic
    (0x530, 0x6FF),  # Armenian, Hebrew, Arabic
    (0x700, 0x8FF),
    (0x900, 0xAFF),  # Devanagari, Bengali, Gurmukhi, Gujarati
    (0xB00, 0xCFF),  # Oriya, Tamil, Telugu, Kannada
    (0xD00, 0xEFF),  # Malayalam, Sinhala, Thai, Lao
    (0xF00, 0x10FF),  # Tibetan, Myanmar, Georgian
    (0x1200, 0x13FF),  # Ethiopic
    (0x1700, 0x18FF),  # Khmer, Mongolian
    (0x3040, 0x30FF),  # Hiragana, Katakana
)


@cache
def idn_hostname() -> Expression:
    """Returns a host name, internationalized or not."""
    to_right, to_left = scripts()
    octets = label_of(MAX_LABEL_OCTETS)
    label = either(octets, _short(_left_to_right(to_right)))
    beside = Intersection((octets, tree("[A-Za-z][A-Za-z0-9-]*")))
    right_to_left = either(beside, _short(either(*(_right_to_left(to_left, digits) for digits in _DIGITS))))
    return either(
        hostname(), *(sequence(one, many(sequence(r"\.", one), 0, MAX_LABELS - 1)) for one in (label, right_to_left))
    )


@cache
def idn_email() -> Expression:
    """Returns a mailbox at such a host, or at an address."""
    quoted = rf'"(?:[ !#-\[\]-~{NOT_ASCII}]|\\[!-~])*"'  # no escaped space: some validators reject it
    return email_at(idn_hostname(), NOT_ASCII, quoted, unit=ByteClass(((0, 0xFF),)))  # RFC 6531 counts octets


def _short(label: Expression) -> Expression:
    """Returns the labels that surely have at most MAX_LABEL_OCTETS octets."""
    ascii_ = tree("[0-9a-z-]")
    other = tree(r"[\u{80}-\u{FFFF}]")
    few = Intersection(
        (
            sequence(many(ascii_), many(sequence(other, many(ascii_)), 1, MAX_FEW)),
            many(either(ascii_, other), 1, MAX_LENGTH_WITH_FEW),
        )
    )
    blocks = [
        many(tree(rf"[0-9a-z\-\u{{{first:X}}}-\u{{{last:X}}}]"), 1, MAX_LENGTH_OF_ONE_BLOCK) for first, last in BLOCKS
    ]
    return Intersection((label, either(few, *blocks, many(either(ascii_, other), 1, MAX_LENGTH))))


def _label(script: Script, leading: Expression, more: Expression, further: Expression) -> Expression:
    """Returns labels that begin with a character of the script, with ``leading``, or with ``more``.

    ``leading``: ASCII that may compose with the next character. A label goes on with the same characters, marks,
    ``further`` and single hyphens; after a hyphen it starts anew.
    """
    first = either(_with_marks(script, script.first, either(leading, script.leading_first)), more)
    second = either(_with_marks(script, script.inner, script.leading_inner), further)
    return sequence(first, many(either(sequence(optional("-"), first), second)))


def _with_marks(script: Script, alone: Expression, leading: Expression) -> Expression:
    """Returns one code point of ``alone`` or ``leading`` with marks that do not compose with it."""
    trailing = many(sequence(script.trailing, _in_order(script.marks)))
    return either(
        sequence(alone, _in_order(script.marks), trailing),
        sequence(leading, optional(_in_order(script.plain_marks, minimum=1), trailing)),
    )


def _in_order(marks: dict[int, CharClass], minimum: int = 0) -> Expression:
    """Returns marks in canonical order, at least ``minimum`` (0 or 1) of them."""
    classes = sorted(marks)
    if minimum:
        return either(
            *(
                sequence(many(marks[combining], 1), *(many(marks[later]) for later in classes[place + 1 :]))
                for place, combining in enumerate(classes)
            )
        )
    return sequence(*(many(marks[combining]) for combining in classes))


def _left_to_right(script: Script) -> Expression:
    """Returns a label without characters of right-to-left scripts."""
    greek = _letters(script, "Greek")
    japanese = either(*(_letters(script, name) for name in ("Hiragana", "Katakana", "Han")))
    more = either(
        r"l(?:\u{B7}l)+",
        r"[\u{6F0}-\u{6F9}]",  # without Bidi class "AN", which such labels exclude
        sequence(r"\u{375}", greek),
        sequence(r"\u{30FB}+", japanese),
        sequence(japanese, r"\u{30FB}+"),
        _joined(script, script.first, either("[a-z]", script.leading_first)),
    )
    further = _joined(script, either(script.inner, script.trailing), script.leading_inner)
    return _label(script, tree("[0-9a-z]"), more, further)


def _joined(script: Script, alone: Expression, leading: Expression) -> Expression:
    """Returns a code point with a virama, and a joiner or non-joiner (RFC 5892, appendices A.1 and A.2)."""
    return either(
        sequence(alone, optional(script.marks[NUKTA]), known_viramas(script.marks[VIRAMA]), _JOINERS),
        sequence(leading, optional(script.plain_marks[NUKTA]), known_viramas(script.plain_marks[VIRAMA]), _JOINERS),
    )


def _right_to_left(script: Script, digits: str) -> Expression:
    """Returns a label of right-to-left letters, marks and digits of one kind (RFC 5893, section 2)."""
    before, after = joining_letters(script)
    more = either(
        sequence(_letters(script, "Hebrew"), r"[\u{5F3}\u{5F4}]"),
        sequence(many(sequence(before, r"\u{200C}"), 1), after),
    )
    return _label(script, NOTHING, more, tree(digits))


def _letters(script: Script, name: str) -> CharClass:
    """Returns the letters of a script in its main block; some validators do not know the script of others."""
    ranges = intersection(normalize(script.first.ranges + script.leading_first.ranges), (_MAIN_BLOCKS[name],))
    return characters(intersection(ranges, script_code_points(name)))
