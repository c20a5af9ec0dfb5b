r"""Patterns to regular expression trees, in one pass over the text with a stack of its own.

Three dialects:

    ecma     ECMA-262 with the ``u`` flag, as JSON Schema demands; patterns written without the flag are read as
             validators read them, if this is unambiguous: ``\-`` and other escaped punctuation, ``{``, ``}`` and
             ``]`` alone, ``-`` beside a class escape
    rust     the ``regex`` crate; no anchors but at the ends; as the syntax of terminals, no word boundaries, no anchors
             at lines, and no lazy quantifiers, whose shortest match contradicts the longest match
    python   ``re`` with str patterns, of the Python in use: before 3.14, ``\B`` does not match in the empty text

``lookaround`` handles word boundaries and anchors at every line, and lookaround in "ecma" and "python". Constructs
without an expression tree, such as backreferences, are refused.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple, Union, cast

from constrain.language.tree import (
    ANY_CHAR,
    ANY_JSON_CHAR,
    EMPTY_TEXT,
    NODE_BYTES,
    NOTHING,
    PART_BYTES,
    CharClass,
    Complement,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Ranges,
    Repetition,
    encodable,
    nullable,
)
from constrain.regex import anchors, classes
from constrain.regex.anchors import Anchored, Fragment
from constrain.regex.parsing.brackets import read_class
from constrain.regex.parsing.escapes import read_escape
from constrain.regex.parsing.groups import read_group
from constrain.regex.parsing.scanner import Dialect, Flags, Scanner
from constrain.regex.unicode import properties as unicode
from constrain.remembering import remembered
from constrain.work import MAX_COUNTER, MAX_PATTERN_NESTING

if TYPE_CHECKING:
    from constrain.regex.lookaround import Elimination, Looking

MAX_PATTERN_PARTS = 150_000
"""Groups, classes, counts and alternatives of a pattern, each of which takes about 8 microseconds to compile, and pairs
of parts with ``^`` or ``$`` in one sequence. Beyond: PatternError."""

ANY_TEXT = Repetition(ANY_CHAR, 0, None)
ANY_JSON_TEXT = Repetition(ANY_JSON_CHAR, 0, None)

_EMPTY_TEXT_HAS_AN_INSIDE = sys.version_info >= (3, 14)
r"""Whether Python's ``\B`` matches in the empty text."""

_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
_COUNTS = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
_SPACED_COUNTS = re.compile(r"\{\s*([0-9]*)\s*(?:(,)\s*([0-9]*)\s*)?\}")
_MIN_LITERAL_SET = 3  # alternatives; an alternation is as good for fewer literals
_JSON_ESCAPES = {point: f"\\u{point:04x}" for point in range(0x20)} | {
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}
_NO_LINE_FEED = classes.complement(((0x0A, 0x0A),))
_IN_LINE: dict[str, Ranges] = {
    "ecma": classes.complement(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))),
    "rust": _NO_LINE_FEED,
    "python": _NO_LINE_FEED,
}
"""The characters that end no line, by dialect."""

_BOUNDARIES = ("b", "B", "<", ">")
_HALVES_BY_NAME = re.compile(r"\{(start|end|start-half|end-half)\}")
_HALVES = {"start-half": ("<!",), "end-half": ("!",), "start": ("<!", "="), "end": ("<=", "!")}
_HALVES |= {"<": _HALVES["start"], ">": _HALVES["end"]}
"""What word boundaries other than ``\\b`` ask of the characters before and after them."""

_Part = Union[Fragment, "Looking"]
_Item = str | _Part
"""A part of an unfinished sequence; characters stay text until the sequence is complete."""


PATTERN_BYTES = 32 << 20
"""Bytes of cached trees of patterns; beyond it, the least recently used are dropped."""


CLASS_BYTES = 16 << 20
"""Bytes of cached classes of characters, including the ranges that are their keys; beyond it, the least recently used
are dropped."""


def class_bytes(ranges: Ranges, **_: object) -> int:
    """Returns the bytes of ranges and of their class."""
    return NODE_BYTES + 2 * PART_BYTES * len(ranges)


def _pattern_bytes(text: str, *_: object, **__: object) -> int:
    """Estimates the bytes of a pattern's tree, rather too high: 1 KB, plus 100 bytes for each character."""
    return 1_000 + 100 * len(text)


@remembered(1024, PATTERN_BYTES, _pattern_bytes)
def parse_pattern(
    text: str, dialect: Dialect, *, json: bool = False, anchored: bool = True, all_rust: bool = False
) -> Expression:
    """Returns the expression tree of a pattern; the same object for the same arguments while it is cached.

    ``dialect``: "ecma", "rust" or "python".
    ``json``: the tree matches spellings inside a JSON string, without the quotes, instead of UTF-8 text.
    ``anchored``: the pattern matches the text as a whole; otherwise it is to be found somewhere in it.
    ``all_rust``: "rust" has its full syntax, with constructs that terminals exclude.
    Raises ``PatternError`` with a 1-based column (in code points).

    >>> parse_pattern("a[bc]*", "ecma")  # doctest: +ELLIPSIS
    Concatenation(parts=(Literal(text=b'a'), Repetition(part=CharClass(ranges=((98, 99),), json=False), ...
    """
    parser = Parser(text, dialect, json=json, anchored=anchored, all_rust=all_rust)
    fragment = parser.parse()
    if parser.elimination is not None:
        texts = parser.elimination.texts(fragment, anchored=anchored)
        if not parser.has_insides or dialect != "python" or _EMPTY_TEXT_HAS_AN_INSIDE:
            return texts
        without = Parser(text, dialect, json=json, anchored=anchored, all_rust=all_rust, insides=False)
        fragment = without.parse()
        assert without.elimination is not None
        return _with_empty_text(texts, nullable(without.elimination.texts(fragment, anchored=anchored)))
    if anchored:
        return anchors.whole(cast("Fragment", fragment))
    return anchors.search(cast("Fragment", fragment), ANY_JSON_TEXT if json else ANY_TEXT)


def _with_empty_text(texts: Expression, is_matched: bool) -> Expression:  # noqa: FBT001
    """Returns the texts with or without the empty one."""
    if is_matched == nullable(texts):
        return texts
    return anchors.union([texts, EMPTY_TEXT]) if is_matched else Intersection((texts, Complement(EMPTY_TEXT)))


@remembered(4096, CLASS_BYTES, class_bytes)
def char_class(ranges: Ranges, *, json: bool) -> Expression:
    """Returns the class of these code points, one object for equal ranges; ``NOTHING`` if none can be encoded."""
    if ranges == classes.ANY:
        return ANY_JSON_CHAR if json else ANY_CHAR
    return CharClass(ranges, json) if encodable(ranges) else NOTHING


def _may_read(item: _Item) -> bool:
    """Returns whether the item is more than anchors and empty groups."""
    parts = item if isinstance(item, Anchored) else (item,)
    return not all(part is None or part is EMPTY_TEXT for part in parts)


class _Edge(NamedTuple):
    """``^`` or ``$``: its place in the pattern, and the index of the item that is, or contains, it."""

    place: int
    item: int
    at_start: bool


class _Group(NamedTuple):
    """A group that is being read: the sequence before it in the enclosing group, the flags there, and its place."""

    alternatives: list[list[_Item]]
    items: list[_Item]
    edges: list[_Edge]
    outer_edges: dict[bool, int]
    flags: Flags
    start: int
    look: str


class Parser:
    r"""The state of reading one pattern.

    Complete alternatives and the unfinished sequence of the innermost group, and a stack of the same for the groups
    around it. ``insides``: whether ``\B`` ever matches.
    """

    def __init__(
        self, text: str, dialect: Dialect, *, json: bool, anchored: bool, all_rust: bool, insides: bool = True
    ) -> None:
        self.scanner = Scanner(text, dialect, all_rust=all_rust)
        self.json = json
        self.anchored = anchored
        self.insides = insides
        self.has_insides = False  # after the first \B
        self.alternatives: list[list[_Item]] = []
        self.items: list[_Item] = []
        self.quantifiable = False  # may a quantifier follow?
        self.edges: list[_Edge] = []  # of the sequence (rust)
        self.outer_edges: dict[bool, int] = {}  # of earlier alternatives: place of the first ^ (True) or $
        self.stack: list[_Group] = []
        self.elimination: Elimination | None = None  # after the first lookaround

    def parse(self) -> _Part:
        """Returns the pattern. Raises ``PatternError``."""
        scanner = self.scanner
        text, end = scanner.text, len(scanner.text)
        n_parts = 0
        while scanner.position < end:
            flags = scanner.flags
            if flags.verbose:
                scanner.skip_white_space()
                if scanner.position == end:
                    break
            elif not flags.ignore_case:
                plain = _PLAIN.match(text, scanner.position)
                if plain:
                    self.items.append(plain.group())
                    self.quantifiable = True
                    scanner.position = plain.end()
                    continue
            n_parts += 1
            if n_parts > MAX_PATTERN_PARTS:
                scanner.fail(f"the pattern has more than {MAX_PATTERN_PARTS} parts (MAX_PATTERN_PARTS)", 0)
            self._read(text[scanner.position])
        if self.stack:
            scanner.fail("the group that begins here has no closing )", self.stack[-1].start)
        return self._finish()

    def _read(self, char: str) -> None:
        scanner = self.scanner
        start = scanner.position
        if char == "[":
            self._add(read_class(scanner))
        elif char == "\\":
            self._escape()
        elif char in "*+?" or (char == "{" and self._is_count()):
            self._quantify()
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            self._end_sequence()
            scanner.position += 1
            self.alternatives.append(self.items)
            self.items = []
            self.quantifiable = False
        elif char == ".":
            scanner.position += 1
            self._add(classes.ANY if scanner.flags.dot_all else self._in_line())
        elif char in "^$":
            self._anchor(char)
        else:
            scanner.position += 1
            self._add(char)
        if scanner.dialect == "rust" and scanner.flags.ascii and self.items:
            item = self.items[-1]
            if isinstance(item, CharClass) and item.ranges[-1][1] > 0x7F:
                scanner.fail("with (?-u) this matches bytes, not characters; write (?u:...) around it", start)

    def _in_line(self) -> Ranges:
        ranges = _IN_LINE[self.scanner.dialect]
        return classes.difference(ranges, ((0x0D, 0x0D),)) if self.scanner.flags.any_newline else ranges

    def _add(self, atom: str | Ranges) -> None:
        """Adds one character, or one of a set."""
        self.quantifiable = True
        if isinstance(atom, str):
            if self.scanner.flags.ignore_case:
                atom = unicode.fold_character(atom, self.scanner.folding)
            else:
                self.items.append(atom)
                return
        if len(atom) == 1 and atom[0][0] == atom[0][1]:
            self.items.append(chr(atom[0][0]))
        else:
            self.items.append(char_class(atom, json=self.json))

    def _escape(self) -> None:
        scanner = self.scanner
        anchor = scanner.text[scanner.position + 1 : scanner.position + 2]
        if (anchor == "A" and scanner.dialect != "ecma") or anchor == {"rust": "z", "python": "Z"}.get(scanner.dialect):
            scanner.position += 2
            self._add_anchor(scanner.position - 2, at_start=anchor == "A")
        elif (anchor in ("b", "B") and scanner.dialect != "rust") or (scanner.all_rust and anchor in _BOUNDARIES):
            scanner.position += 2
            self._boundary(anchor)
        else:
            self._add(read_escape(scanner, in_class=False))

    def _boundary(self, letter: str) -> None:
        r"""Reads ``\b`` or ``\B``, and the further boundaries of ``regex``: ``\<``, ``\>`` and ``\b`` with a name."""
        scanner = self.scanner
        start = scanner.position - 2
        words = unicode.perl_class("w", scanner.folding)
        if scanner.flags.ignore_case and scanner.dialect == "ecma":
            words = unicode.fold_case(words, "ecma")
        word = char_class(words, json=self.json)
        name = _HALVES_BY_NAME.match(scanner.text, scanner.position) if letter == "b" and scanner.all_rust else None
        if name:
            scanner.position = name.end()
        halves = _HALVES[name[1] if name else letter] if name or letter in "<>" else ()
        for opening in halves:
            self.items.append(self._looking().look(opening, word, start))
        if letter == "B" and not self.insides:
            self.items.append(self._looking().alternate((), start))
        elif not halves:
            self.items.append(self._looking().boundary(word, start, inside=letter == "B"))
        self.has_insides |= letter == "B"
        self.quantifiable = False

    def _anchor(self, char: str) -> None:
        scanner, start = self.scanner, self.scanner.position
        scanner.position += 1
        if scanner.flags.multi_line:
            if scanner.dialect == "rust" and not scanner.all_rust:
                scanner.fail(f"{char} at every line (flag m) is not supported", start)
            if scanner.flags.any_newline:
                scanner.fail(f"{char} at every line of several kinds (flags m and R) is not supported", start)
            inside = char_class(self._in_line(), json=self.json)
            self.items.append(self._looking().line_edge(inside, start, start=char == "^"))
            self.quantifiable = False
        elif char == "$" and scanner.dialect == "python" and not (self.anchored and self._is_last()):
            self.items.append(self._looking().end_or_last_line_feed(self._literal("\n"), start))
            self.quantifiable = False
        else:
            self._add_anchor(start, at_start=char == "^")

    def _is_last(self) -> bool:
        """Returns whether nothing may follow the item just read, in any text."""
        rest = self.scanner.text[self.scanner.position :]
        after = rest.lstrip(")")
        return not after or (after[0] == "|" and len(rest) - len(after) == len(self.stack))

    def _add_anchor(self, place: int, *, at_start: bool) -> None:
        if self.scanner.dialect == "rust":
            self.edges.append(_Edge(place, len(self.items), at_start))
        self.items.append(anchors.AT_START if at_start else anchors.AT_END)
        self.quantifiable = self.scanner.dialect == "rust"

    def _end_sequence(self) -> None:
        """Refuses items before the beginning of the text, and after its end (rust)."""
        if not self.edges:
            return
        reading = [index for index, item in enumerate(self.items) if _may_read(item)]
        for place, item, at_start in self.edges:
            if at_start and reading and reading[0] < item:
                self.scanner.fail(
                    f"{self._named(place)} in the middle: other text comes before it; leave it out", place
                )
            if not at_start and reading and reading[-1] > item:
                self.scanner.fail(f"{self._named(place)} in the middle: other text follows it; leave it out", place)
            self.outer_edges.setdefault(at_start, place)
        self.edges = []

    def _named(self, place: int) -> str:
        """Returns the anchor at a place, as it is written."""
        text = self.scanner.text
        return text[place : place + 2] if text[place] == "\\" else text[place]

    def _is_count(self) -> bool:
        """Returns whether this brace is a quantifier; otherwise it is a character, or refused."""
        scanner = self.scanner
        counts = self._counts_here()
        if counts and (counts[1] or (scanner.dialect == "python" and counts[2])):
            return True
        if scanner.dialect == "rust":
            scanner.fail("{ begins a count like {2,5}; write \\{ for a brace", scanner.position)
        return False

    def _counts_here(self) -> re.Match[str] | None:
        pattern = _SPACED_COUNTS if self.scanner.dialect == "rust" else _COUNTS
        return pattern.match(self.scanner.text, self.scanner.position)

    def _quantify(self) -> None:
        scanner = self.scanner
        text, start = scanner.text, scanner.position
        if not self.quantifiable:
            scanner.fail(f"there is nothing to repeat; write \\{text[start]} for the character", start)
        minimum, maximum = self._counts()
        if text[start] == "{" and scanner.dialect == "rust" and scanner.flags.verbose:
            scanner.skip_white_space()
        self.quantifiable = scanner.dialect == "rust"
        following = text[scanner.position : scanner.position + 1]
        if following == "?":
            if scanner.dialect == "rust" and not scanner.all_rust:
                advice = "name the repeated characters, such as [^>]* for text up to a >"
                scanner.fail(
                    f"lazy quantifiers are not supported: the longest match counts; {advice}", scanner.position
                )
            scanner.position += 1
        elif following == "+" and scanner.dialect == "python":
            scanner.fail("possessive quantifiers are not supported", scanner.position)
        item = self.items.pop()
        if isinstance(item, str):
            if len(item) > 1:
                self.items.append(item[:-1])
            item = self._literal(item[-1])
        if self.elimination is not None and self.elimination.concerns([item]):
            self.items.append(self.elimination.repeat(item, minimum, maximum, start))
        else:
            self.items.append(anchors.repeat(cast("Fragment", item), minimum, maximum))

    def _counts(self) -> tuple[int, int | None]:
        scanner = self.scanner
        text, start = scanner.text, scanner.position
        counts = self._counts_here()
        if not counts:
            scanner.position += 1
            return (1 if text[start] == "+" else 0), (1 if text[start] == "?" else None)
        scanner.position = counts.end()
        if max(len(counts[1]), len(counts[3] or "")) > 20:
            scanner.fail(f"counts go up to {MAX_COUNTER} (MAX_COUNTER)", start)
        minimum = int(counts[1] or 0)
        maximum = minimum if not counts[2] else int(counts[3]) if counts[3] else None
        if max(minimum, maximum or 0) > MAX_COUNTER:
            scanner.fail(f"counts go up to {MAX_COUNTER} (MAX_COUNTER)", start)
        if maximum is not None and maximum < minimum:
            scanner.fail(f"the count {{{minimum},{maximum}}} is out of order", start)
        return minimum, maximum

    def _open(self) -> None:
        scanner = self.scanner
        start, flags = scanner.position, scanner.flags
        if not read_group(scanner):  # flags for the rest of the enclosing group, or a comment
            self.quantifiable = self.quantifiable and scanner.dialect == "python"
            return
        if len(self.stack) == MAX_PATTERN_NESTING:
            scanner.fail(f"groups are nested more than {MAX_PATTERN_NESTING} deep (MAX_PATTERN_NESTING)", start)
        group = _Group(self.alternatives, self.items, self.edges, self.outer_edges, flags, start, scanner.look)
        self.stack.append(group)
        self.alternatives, self.items, self.edges, self.outer_edges = [], [], [], {}
        self.quantifiable = False

    def _close(self) -> None:
        scanner = self.scanner
        if not self.stack:
            scanner.fail("this ) closes no group; write \\) for the character", scanner.position)
        scanner.position += 1
        group, edges = self._finish(), self.outer_edges
        self.alternatives, self.items, self.edges, self.outer_edges, scanner.flags, start, look = self.stack.pop()
        self.edges += [_Edge(place, len(self.items), at_start) for at_start, place in edges.items()]
        self.items.append(self._looking().look(look, group, start) if look else group)
        self.quantifiable = not look or scanner.dialect == "python"

    def _looking(self) -> Elimination:
        if self.elimination is None:
            from constrain.regex.lookaround import Elimination

            self.elimination = Elimination(self.scanner.fail, json=self.json)
        return self.elimination

    def _finish(self) -> _Part:
        """Returns the group just read."""
        self._end_sequence()
        if not self.alternatives:
            return self._sequence(self.items)
        alternatives = [*self.alternatives, self.items]
        if all(items and all(isinstance(item, str) for item in items) for items in alternatives):
            return self._texts(["".join(map(str, items)) for items in alternatives])
        sequences = [self._sequence(items) for items in alternatives]
        if self.elimination is not None and self.elimination.concerns(sequences):
            return self.elimination.alternate(sequences, self.scanner.position - 1)
        return anchors.alternate(cast("list[Fragment]", sequences))

    def _texts(self, texts: list[str]) -> Expression:
        """Returns one of several texts."""
        if all(len(text) == 1 for text in texts):
            return char_class(classes.normalize((ord(text), ord(text)) for text in texts), json=self.json)
        literals = [literal for literal in map(self._literal, dict.fromkeys(texts)) if isinstance(literal, Literal)]
        if len(literals) >= _MIN_LITERAL_SET:
            return LiteralSet(tuple(literal.text for literal in literals))
        return anchors.union(list(literals))

    def _sequence(self, items: list[_Item]) -> _Part:
        """Returns the concatenation of items."""
        parts: list[_Part] = []
        run: list[str] = []
        for item in items:
            if isinstance(item, str):
                run.append(item)
                continue
            if run:
                parts.append(self._literal("".join(run)))
                run = []
            parts.append(item)
        if run:
            parts.append(self._literal("".join(run)))
        if self.elimination is not None and self.elimination.concerns(parts):
            return self.elimination.concatenate(parts, self.scanner.position - 1)
        anchored = sum(isinstance(part, Anchored) for part in parts)
        if anchored:
            return self._anchored_sequence(cast("list[Fragment]", parts), anchored)
        return anchors.sequence(*cast("list[Expression]", parts))

    def _anchored_sequence(self, parts: list[Fragment], anchored: int) -> Fragment:
        if anchored**2 > MAX_PATTERN_PARTS:
            message = f"a sequence has more than {MAX_PATTERN_PARTS} pairs of parts with anchors (MAX_PATTERN_PARTS)"
            self.scanner.fail(message, self.scanner.position - 1)
        result: Fragment = EMPTY_TEXT
        plain: list[Expression] = []
        for part in parts:
            if isinstance(part, Anchored):
                result = anchors.concatenate(anchors.concatenate(result, anchors.sequence(*plain)), part)
                plain = []
            else:
                plain.append(part)
        return anchors.concatenate(result, anchors.sequence(*plain))

    def _literal(self, text: str) -> Expression:
        """Returns the text itself; ``NOTHING`` if a surrogate keeps it from being encoded."""
        try:
            return Literal((text.translate(_JSON_ESCAPES) if self.json else text).encode())
        except UnicodeEncodeError:
            return NOTHING
