r"""Random patterns of one dialect, each with the same in plain terms and with texts that it may match.

In the plain pattern every class is a list of the characters of ``ALPHABET`` that are in it, worked out here from the
rules of the dialect and from Python's ``unicodedata``; case and all other flags are gone. What is left (alternation,
repetition, lookaround, ``\A`` and ``\Z``) means the same to every engine.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from random import Random

ALPHABET = "abkszABKSZ019_-.,~&[^ \t\n\r\u00a0\u2028\u200déÉßẞſ\u212aαΑσςΣжЖ٣ⅷ日中\u0301½😀"

MAX_PATTERN, MAX_SAMPLE, MAX_LOOPS = 80, 12, 3

_SPACE_ASCII = set(" \t\n\r\f\v")
_LINE_ENDS = {"ecma": set("\n\r\u2028\u2029"), "rust": set("\n"), "python": set("\n")}
_POSIX = {
    "alpha": str.isalpha, "digit": str.isdigit, "alnum": str.isalnum, "upper": str.isupper, "lower": str.islower,
    "space": str.isspace, "punct": lambda c: c in r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""", "ascii": lambda _: True,
    "blank": lambda c: c in " \t", "cntrl": lambda c: c < " " or c == "\x7f", "word": lambda c: c.isalnum() or c == "_",
    "xdigit": lambda c: c in "0123456789abcdefABCDEF", "graph": lambda c: "!" <= c <= "~",
    "print": lambda c: " " <= c <= "~",
}  # fmt: skip


def _category(*beginnings: str) -> set[str]:
    return {char for char in ALPHABET if unicodedata.category(char).startswith(beginnings)}


def _named(word: str) -> set[str]:
    return {char for char in ALPHABET if word in unicodedata.name(char, "")}


PROPERTIES = {
    "L": _category("L"), "Lu": _category("Lu"), "Nd": _category("Nd"), "N": _category("N"), "P": _category("P"),
    "M": _category("M"), "Script=Greek": _named("GREEK"), "Script=Cyrillic": _named("CYRILLIC"),
    "Script=Han": _named("CJK"), "Any": set(ALPHABET), "ASCII": set(filter(str.isascii, ALPHABET)),
    "White_Space": {char for char in ALPHABET if char.isspace()},
}  # fmt: skip


def folded(char: str) -> str:
    """Simple case folding: one character stays one."""
    full = char.casefold()
    return full if len(full) == 1 else char.lower()


@dataclass(frozen=True)
class Flags:
    ignore_case: bool = False
    dot_all: bool = False
    verbose: bool = False
    ascii: bool = False


@dataclass(frozen=True)
class Piece:
    """A pattern, the same in plain terms, and a text; ``looks``: has it assertions that look around?"""

    pattern: str
    plain: str
    sample: str
    looks: bool = False


@dataclass
class Generator:
    """Makes the pieces of one pattern."""

    dialect: str
    rng: Random
    names: int = field(default=0)

    def whole(self) -> Piece:
        """A whole pattern, of a size that engines which try one way after the other get through."""
        while True:
            made = self._whole()
            loops = sum(map(made.pattern.count, ("*", "+", ",}")))
            if len(made.pattern) <= MAX_PATTERN and len(made.sample) <= MAX_SAMPLE and loops <= MAX_LOOPS:
                return made

    def _whole(self) -> Piece:
        self.names = 0
        flags, start = Flags(), ""
        if self.dialect != "ecma" and self.rng.random() < 0.3:
            flags, letters = self._flags(flags)
            start = f"(?{letters})" if "-" not in letters else ""
            flags = flags if start else Flags()
        made = self.alternatives(4, flags, first=True, last=True)
        return replace(made, pattern=start + made.pattern)

    def _flags(self, flags: Flags) -> tuple[Flags, str]:
        """Other flags, and how to set them."""
        known = {"i": "ignore_case", "s": "dot_all"}
        if self.dialect != "ecma":
            known["x"] = "verbose"
        if self.dialect == "python":
            known["a"] = "ascii"
        letter = self.rng.choice(list(known))
        value = letter == "a" or self.rng.random() < 0.8
        if self.dialect == "rust" and self.rng.random() < 0.15:
            return replace(flags, ascii=True), "-u"
        return replace(flags, **{known[letter]: value}), letter if value else f"-{letter}"

    def alternatives(self, depth: int, flags: Flags, *, first: bool, last: bool) -> Piece:
        parts = [self.sequence(depth, flags, first=first, last=last) for _ in range(self.rng.choice((1, 1, 1, 2, 3)))]
        chosen = self.rng.choice(parts)
        return Piece(
            "|".join(part.pattern for part in parts),
            "|".join(part.plain for part in parts),
            chosen.sample,
            any(part.looks for part in parts),
        )

    def sequence(self, depth: int, flags: Flags, *, first: bool, last: bool) -> Piece:
        count = self.rng.choice((0, 1, 1, 2, 2, 3, 4))
        parts = []
        if first and self.rng.random() < 0.15:
            names = ("^",) if self.dialect == "ecma" else ("^", r"\A")
            parts.append(Piece(self.rng.choice(names), "" if self.dialect == "rust" else r"\A", ""))
        ends = last and self.rng.random() < 0.15
        for index in range(count):
            at = {"first": first and index == 0, "last": last and not ends and index == count - 1}
            parts.append(self.item(depth, flags, **at))
        if ends:
            ending = {"ecma": ("$",), "rust": ("$", r"\z"), "python": (r"\Z",)}
            parts.append(Piece(self.rng.choice(ending[self.dialect]), "" if self.dialect == "rust" else r"\Z", ""))
        if flags.verbose:
            spaces = [self.rng.choice(("", " ", "\n", " # a b\n")) for _ in parts]
            parts = [replace(part, pattern=space + part.pattern) for space, part in zip(spaces, parts, strict=True)]
        return Piece(
            "".join(part.pattern for part in parts),
            "".join(part.plain for part in parts),
            "".join(part.sample for part in parts),
            any(part.looks for part in parts),
        )

    def item(self, depth: int, flags: Flags, *, first: bool, last: bool) -> Piece:
        choice = self.rng.random()
        if self.dialect != "rust" and choice < 0.05:
            return self.assertion(depth, flags)
        if depth and choice < 0.35:
            return self.group(depth - 1, flags, first=first, last=last)
        if depth and choice < 0.6:
            return self.repetition(depth - 1, flags)
        return self.character(flags)

    def group(self, depth: int, flags: Flags, *, first: bool, last: bool) -> Piece:
        opening = self.rng.choice(("(", "(?:", "flags", "name"))
        if opening == "flags":
            flags, letters = self._flags(flags)
            opening = f"(?{letters}:"
        elif opening == "name":
            self.names += 1
            forms = {"ecma": ("(?<{}>",), "rust": ("(?<{}>", "(?P<{}>"), "python": ("(?P<{}>",)}
            opening = self.rng.choice(forms[self.dialect]).format(f"n{self.names}")
        inside = self.alternatives(depth, flags, first=first, last=last)
        return Piece(f"{opening}{inside.pattern})", f"(?:{inside.plain})", inside.sample, inside.looks)

    def repetition(self, depth: int, flags: Flags) -> Piece:
        single = self.rng.random() < 0.5
        inside = self.character(flags) if single else self.group(depth, flags, first=False, last=False)
        low = self.rng.randrange(3)
        high = low + self.rng.randrange(3)
        quantifier, low, high = self.rng.choice(
            (("*", 0, 3), ("+", 1, 3), ("?", 0, 1), (f"{{{low}}}", low, low), (f"{{{low},}}", low, low + 2),
             (f"{{{low},{high}}}", low, high))
        )  # fmt: skip
        plain = f"(?:{inside.plain}){quantifier}"
        pattern = inside.pattern + quantifier
        if self.dialect == "rust" and self.rng.random() < 0.2:
            more = self.rng.choice("*+")
            pattern, plain = pattern + more, f"(?:{plain}){more}"
        elif self.dialect != "rust" and self.rng.random() < 0.2:
            pattern += "?"
        return Piece(pattern, plain, inside.sample * self.rng.randint(low, high), inside.looks)

    def assertion(self, depth: int, flags: Flags) -> Piece:
        kind = self.rng.choice(("look", "look", "behind", "word", "line", "end"))
        if kind == "look":
            inside = self.alternatives(min(depth, 1), flags, first=False, last=False)
            opening = self.rng.choice(("(?=", "(?!"))
            return Piece(f"{opening}{inside.pattern})", f"{opening}{inside.plain})", "", looks=True)
        if kind == "behind":
            characters = [self.character(flags) for _ in range(self.rng.randint(1, 2))]
            opening = self.rng.choice(("(?<=", "(?<!"))
            pattern, plain = ("".join(each) for each in zip(*((c.pattern, c.plain) for c in characters), strict=True))
            return Piece(f"{opening}{pattern})", f"{opening}{plain})", "", looks=True)
        if kind == "word":
            word = self.listed(self._perl("w", flags), flags if self.dialect == "ecma" else Flags())
            sides = f"(?<={word})(?!{word})|(?<!{word})(?={word})"
            if self.rng.random() < 0.5:
                return Piece(r"\b", f"(?:{sides})", "", looks=True)
            return Piece(r"\B", f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))", "", looks=True)
        if kind == "line":
            if self.dialect == "python":  # there is no scoped flag m beside a global one that would change plain terms
                return Piece("(?m:^)", "(?m:^)", "", looks=True)
            other = self.listed(set(ALPHABET) - _LINE_ENDS["ecma"], Flags())
            at_start = self.rng.random() < 0.5
            return Piece(
                "(?m:^)" if at_start else "(?m:$)", f"(?<!{other})" if at_start else f"(?!{other})", "", looks=True
            )
        return Piece("$", r"\Z" if self.dialect == "ecma" else r"(?=\n?\Z)", "", looks=True)

    # Single characters.

    def character(self, flags: Flags) -> Piece:
        choice = self.rng.random()
        if choice < 0.5:
            text, members = self.literal(flags)
        elif choice < 0.6 and not (flags.ascii and self.dialect == "rust"):
            text, members = ".", set(ALPHABET) - (set() if flags.dot_all else _LINE_ENDS[self.dialect])
        elif choice < 0.75:
            text, members = self.escape(flags)
        else:
            text, members = self.bracket(flags, 2)
        folds = choice < 0.5 or text[0] == "[" or text[:2] in (r"\p", r"\P")
        members = self._closed(members, flags if folds else Flags())
        return Piece(text, self.listed(members, Flags()), self.rng.choice(sorted(members & set(ALPHABET)) or [""]))

    def literal(self, flags: Flags) -> tuple[str, set[str]]:
        usual = "abksAK1_- " if self.rng.random() < 0.7 or (flags.ascii and self.dialect == "rust") else ALPHABET
        char = self.rng.choice(usual)
        if char in ".[^" or (char in "-,~&" and self.dialect != "ecma"):
            return f"\\{char}", {char}
        numbered = char in "-,~&" or char.isspace() or (self.rng.random() < 0.1 and not flags.ascii)
        return self._number(char) if numbered else char, {char}

    def _number(self, char: str) -> str:
        point = ord(char)
        forms = [f"\\x{point:02x}"] if point < 0x80 else []
        if self.dialect != "python":
            forms.append(f"\\u{{{point:X}}}")
        if self.dialect == "rust":
            forms.append(f"\\x{{{point:x}}}")
        if point < 0x10000:
            forms.append(f"\\u{point:04x}")
        elif self.dialect == "python":
            forms.append(f"\\U{point:08x}")
        return self.rng.choice(forms)

    def _perl(self, letter: str, flags: Flags) -> set[str]:
        if letter == "d":
            unicode = self.dialect != "ecma" and not flags.ascii
            return _category("Nd") if unicode else set("0123456789") & set(ALPHABET)
        if letter == "s":
            if self.dialect == "ecma":
                return {char for char in ALPHABET if char.isspace() or char == "\ufeff"}
            return (_SPACE_ASCII if flags.ascii else {c for c in ALPHABET if c.isspace()}) & set(ALPHABET)
        if self.dialect == "ecma" or flags.ascii:
            return {char for char in ALPHABET if char.isascii() and (char.isalnum() or char == "_")}
        if self.dialect == "python":
            return {char for char in ALPHABET if char.isalnum() or char == "_"}
        return _category("L", "M", "Nd", "Nl", "Pc") | {"\u200d"}

    def escape(self, flags: Flags) -> tuple[str, set[str]]:
        """A class escape and its characters, case taken into account where that is not the same as outside."""
        if self.dialect == "python" or self.rng.random() < 0.6 or flags.ascii:
            letter = self.rng.choice("dsw" if self.dialect == "rust" and flags.ascii else "dswDSW")
            members = self._perl(letter.lower(), flags)
            if self.dialect == "ecma" and flags.ignore_case:
                members = self._closed(members, flags)
            return f"\\{letter}", set(ALPHABET) - members if letter.isupper() else members
        name = self.rng.choice(list(PROPERTIES))
        members = PROPERTIES[name]
        if self.rng.random() < 0.3:
            if self.dialect == "rust":
                members = self._closed(members, flags)
            return f"\\P{{{name}}}", set(ALPHABET) - members
        return f"\\p{{{name}}}", members

    def bracket(self, flags: Flags, depth: int) -> tuple[str, set[str]]:
        """A class in brackets and its characters."""
        text, members = self._members(flags, depth)
        while self.dialect == "rust" and depth and self.rng.random() < 0.3:
            operator = self.rng.choice(("&&", "--", "~~"))
            other, others = self._members(flags, depth - 1)
            members, others = self._closed(members, flags), self._closed(others, flags)
            text += operator + other
            members = {"&&": members & others, "--": members - others, "~~": members ^ others}[operator]
        negated = self.rng.random() < (0 if self.dialect == "rust" and flags.ascii else 0.25)
        if negated:
            members = set(ALPHABET) - self._closed(members, flags)
        return f"[{'^' if negated else ''}{text}]", members

    def _members(self, flags: Flags, depth: int) -> tuple[str, set[str]]:
        text, members = "", set[str]()
        for _ in range(self.rng.randint(1, 3)):
            choice = self.rng.random()
            if choice < 0.45:
                piece, more = self.literal(flags)
            elif choice < 0.65:
                low, high = self.rng.choice((("a", "k"), ("A", "Z"), ("0", "9"), ("a", "z"), ("s", "s")))
                piece, more = f"{low}-{high}", {char for char in ALPHABET if low <= char <= high}
            elif choice < 0.8 or self.dialect != "rust" or not depth:
                piece, more = self.escape(flags)
            elif self.rng.random() < 0.5:
                name, negated = self.rng.choice(list(_POSIX)), self.rng.random() < 0.3 and not flags.ascii
                more = self._closed({char for char in ALPHABET if char.isascii() and _POSIX[name](char)}, flags)
                more = set(ALPHABET) - more if negated else more
                piece = f"[:{'^' if negated else ''}{name}:]"
            else:
                piece, more = self.bracket(flags, depth - 1)
            text, members = text + piece, members | more
        return text, members

    def _closed(self, members: set[str], flags: Flags) -> set[str]:
        """With all that differ in case only, where case does not matter."""
        if not flags.ignore_case:
            return members
        if flags.ascii:
            return members | {char.swapcase() for char in members if char.isascii()}
        known = {folded(char) for char in members}
        return {char for char in ALPHABET if folded(char) in known}

    def listed(self, members: set[str], flags: Flags) -> str:
        """A class with these characters one by one."""
        closed = sorted(self._closed(members, flags) & set(ALPHABET))
        return "[" + "".join(re.escape(char) for char in closed) + "]" if closed else "(?!)"


def texts(piece: Piece, rng: Random) -> list[str]:
    """Ten texts: one that the piece may match, others that differ from it a little, and some of no kind."""
    found = ["", piece.sample, piece.sample + piece.sample[-1:], piece.sample + "\n"]
    for _ in range(4):
        place = rng.randrange(len(piece.sample) + 1)
        new = rng.choice((rng.choice(ALPHABET), ""))
        found.append(piece.sample[:place] + new + piece.sample[place + rng.randrange(2) :])
    return found + ["".join(rng.choices(ALPHABET, k=rng.randint(1, 4))) for _ in range(2)]
