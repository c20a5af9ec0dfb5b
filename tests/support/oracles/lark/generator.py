"""Random Lark grammars over a handful of characters.

Three styles. *fenced*: words of any length, each with a punctuation mark behind it. *coded*: every terminal is of
one length, or ends with a mark, so that none goes on where it could end. *wild*: anything goes; such a grammar may be
refused, because its lexemes cannot be told apart.

Some grammars have parametric rules. In some, a rule is written as a grammar after ``%lark``, with the rules that it
needs, all terminals and the same ignored text: the texts are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.support.oracles.lark.syntax import (
    Alias,
    Alt,
    Chars,
    If,
    LarkGrammar,
    Lexeme,
    Name,
    Node,
    Pattern,
    Rep,
    Seq,
    Text,
    Valued,
)
from tests.support.oracles.lark.values import expanded, random_condition, random_value

STYLES = ("fenced", "fenced", "coded", "wild")
LETTERS = ("ab", "abc", "aé", "ab")
MARKS = (",", ",;", ".")
OPERATORS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None), "[]": (0, 1)}
IGNORED = ("_", "_", "_#")
PARAMETRIC, NESTED = 0.3, 0.3
"""The shares of grammars with parametric rules, and with one of their rules as a grammar inside the grammar."""


@dataclass(frozen=True)
class Case:
    """A grammar without values, its text, and all bytes that are used in it.

    ``parametric`` and ``nested``: whether the text has parametric rules, and a grammar inside it.
    """

    grammar: LarkGrammar
    text: str
    alphabet: bytes
    style: str
    parametric: bool = False
    nested: bool = False


def make_case(seed: int, also: str = "", *, lazy: bool = False) -> Case:
    """The grammar of a seed; the characters of ``also`` are further literals in its rules, and nowhere else.

    With ``lazy``, the grammar also has rules with the options ``lazy`` and ``suffix``.
    """
    rng = Random(seed)
    maker = _Maker(rng, rng.choice(STYLES), also, lazy=lazy)
    grammar = maker.make()
    letters = maker.letters + (maker.letters.upper() if maker.any_case else "")
    alphabet = bytes(sorted(set((letters + maker.marks + maker.blanks + also).encode())))
    rng = Random(f"extensions {seed}")  # the grammars of all seeds stay what they were
    if rng.random() < PARAMETRIC:
        grammar = with_values(rng, grammar, maker.pieces)
    inner = ""
    if rng.random() < NESTED and (others := [name for name in grammar.rules if "start" not in grammar.needed(name)]):
        inner = rng.choice([name for name in others if name not in grammar.parametric] or [""])
    return Case(expanded(grammar), grammar.write(inner), alphabet, maker.style, bool(grammar.parametric), inner != "")


def with_values(rng: Random, grammar: LarkGrammar, pieces: list[Node]) -> LarkGrammar:
    """The grammar with one or two parametric rules, which the rule to begin with reads with a value."""
    added = ("v", "w")[: rng.randint(1, 2)]
    rules = dict(grammar.rules)
    for name in added:
        ways: list[Node] = [Seq(()) if rng.random() < 0.5 else rng.choice(pieces)]
        for _ in range(rng.randint(1, 3)):
            follower = Valued(rng.choice(added), *random_value(rng))
            parts = [rng.choice(pieces), follower] if rng.random() < 0.8 else [follower, rng.choice(pieces)]
            ways.append(Seq((*parts, *([rng.choice(pieces)] if rng.random() < 0.2 else []))))
        rules[name] = Alt(tuple(If(way, *random_condition(rng)) if rng.random() < 0.8 else way for way in ways))
    called = Valued(added[0], *random_value(rng, "number"))
    ways = [Seq((called, rng.choice(pieces))) if rng.random() < 0.5 else called]
    rules["start"] = Alt((*ways, *([rules["start"]] if rng.random() < 0.95 else [])))
    modifiers = grammar.modifiers | dict.fromkeys(added, "")
    return replace(grammar, rules=rules, modifiers=modifiers, parametric=frozenset(added))


class _Maker:
    """The state of one run: what the grammar is made of, and what has been made."""

    def __init__(self, rng: Random, style: str, also: str, *, lazy: bool) -> None:
        self.rng = rng
        self.lazy = lazy
        self.style = style
        self.also = also
        self.letters = rng.choice(LETTERS)
        self.marks = rng.choice(MARKS)
        self.blanks = rng.choice(IGNORED) if rng.random() < 0.5 else ""
        self.coded_size = 1 if len(self.letters.encode()) > len(self.letters) else rng.choice((1, 2))
        self.any_case = False
        self.counted = False  # whether there is a count that is too long to be written out: one is enough
        self.terminals: dict[str, Node] = {}
        self.pieces: list[Node] = []
        self.rule_names = ["start", *rng.sample(["p", "q", "_r"], rng.randint(0, 3))]

    def make(self) -> LarkGrammar:
        rng = self.rng
        for name in rng.sample(["A", "B", "_C", "D1"], rng.randint(1, 3)):
            self.terminals[name] = self.word(2)
            self.pieces.append(self.fenced(Name(name)))
        self.pieces += [self.fenced(self.word(1)) for _ in range(rng.randint(1, 2))]
        self.pieces += [Text(mark) for mark in self.marks]
        self.pieces += [Text(other) for other in self.also * 2]
        ignored = self.ignored() if self.blanks else ()
        lexemes = {name: self.lexeme() for name in ("x", "y")[: rng.randint(1, 2)]} if self.lazy else {}
        self.pieces += [Name(name) for name in lexemes] * 2
        rules = {name: self.body(name) for name in self.rule_names} | lexemes
        modifiers = {name: rng.choice(("", "", "?", "!")) if name != "_r" else "" for name in rules}
        terminals = list(self.terminals.items())
        rng.shuffle(terminals)
        return LarkGrammar(rules, modifiers, dict(terminals), ignored)

    # Terminals

    def fenced(self, word: Node) -> Node:
        return Seq((word, Text(self.rng.choice(self.marks)))) if self.style == "fenced" else word

    def word(self, depth: int) -> Node:
        """What a terminal may be, in the body of one or inline."""
        rng = self.rng
        if self.style == "coded":
            return self.coded_word()
        part = self.terminal_part(depth)
        return part if rng.random() < 0.9 else Rep(part, *OPERATORS["?"], "?")

    def coded_word(self) -> Node:
        """Of one length, or closed by a mark that begins nothing else: the first one."""
        rng = self.rng
        if rng.random() < 0.5 and len(self.marks) > 1:
            mark = self.marks[0]
            return Pattern(Seq((self.pattern_part(1), Text(mark))))
        size = self.coded_size
        return rng.choice(
            (
                Text("".join(rng.choices(self.letters, k=size))),
                Pattern(Seq(tuple(self.pattern_chars() for _ in range(size)))),
                Seq(tuple(self.range() for _ in range(size))),
            )
        )

    def lexeme(self) -> Lexeme:
        """One that ends where it first matches: mostly at a mark, and beginning like other words."""
        rng = self.rng
        body = Rep(self.pattern_chars(), 0, None, "*") if rng.random() < 0.5 else self.pattern_part(2)
        mark = Text(rng.choice(self.marks) + (rng.choice(self.marks) if rng.random() < 0.3 else ""))
        if rng.random() < 0.5:
            return Lexeme(Pattern(body), rng.choice((mark, mark, self.literal())))
        return Lexeme(Pattern(Seq((body, mark)) if rng.random() < 0.7 else body), None)

    def terminal_part(self, depth: int) -> Node:
        rng = self.rng
        kinds = ["text", "text", "range", "pattern", "pattern"]
        if depth > 0:
            kinds += ["seq", "alt", "rep", "rep"] + ["name"] * bool(self.terminals)
        match rng.choice(kinds):
            case "text":
                return self.literal()
            case "range":
                return self.range()
            case "pattern":
                return self.pattern()
            case "seq":
                return Seq(tuple(self.terminal_part(depth - 1) for _ in range(2)))
            case "alt":
                return Alt(tuple(self.terminal_part(depth - 1) for _ in range(2)))
            case "rep":
                return self.repeated(self.terminal_part(depth - 1))
        return Name(rng.choice(list(self.terminals)))

    def literal(self) -> Text:
        any_case = self.rng.random() < 0.15
        self.any_case |= any_case
        return Text("".join(self.rng.choices(self.letters, k=self.rng.choice((1, 1, 2, 3)))), any_case)

    def range(self) -> Chars:
        first, last = sorted(self.rng.choices([char for char in self.letters if char.isascii()], k=2))
        return Chars("".join(map(chr, range(ord(first), ord(last) + 1))), f'"{first}".."{last}"')

    def pattern(self) -> Pattern:
        any_case = self.rng.random() < 0.15
        self.any_case |= any_case
        return Pattern(self.pattern_part(2), any_case)

    def pattern_part(self, depth: int) -> Node:
        rng = self.rng
        match rng.choice(("chars", "text") if depth == 0 else ("chars", "text", "seq", "alt", "rep", "rep")):
            case "chars":
                return self.pattern_chars()
            case "text":
                return Text("".join(rng.choices(self.letters, k=rng.randint(1, 2))))
            case "seq":
                return Seq(tuple(self.pattern_part(depth - 1) for _ in range(2)))
            case "alt":
                return Alt(tuple(self.pattern_part(depth - 1) for _ in range(2)))
        low, high, operator = rng.choice(
            ((0, 1, "?"), (0, None, "*"), (1, None, "+"), (2, 2, "{2}"), (1, 3, "{1,3}"), (2, None, "{2,}"))
        )
        return Rep(self.pattern_part(depth - 1), low, high, operator)

    def pattern_chars(self) -> Chars:
        members = sorted(self.rng.sample(self.letters, self.rng.randint(1, len(self.letters))))
        others = "".join(set(self.letters) - set(members))
        spellings = [f"[{''.join(members)}]", f"[{members[0]}{members[-1]}{''.join(members)}]"]
        if others:
            spellings.append(f"[{''.join(sorted(self.letters))}&&[^{others}]]")
        return Chars("".join(members), self.rng.choice(spellings))

    def ignored(self) -> tuple[Node, ...]:
        """One or two kinds: runs of blanks, comments, or what may be empty."""
        rng = self.rng
        blank = self.blanks[0]
        found: list[Node] = [
            rng.choice((Text(blank), Pattern(Rep(Text(blank), 1, None, "+")), Pattern(Rep(Text(blank), 0, None, "*"))))
        ]
        if len(self.blanks) > 1:
            inside = Rep(self.pattern_chars(), 0, None, "*")
            found.append(Pattern(Seq((Text(self.blanks[1]), inside, Text(self.blanks[1])))))
        if rng.random() < 0.3:
            self.terminals["WS"] = found[0]
            found[0] = Name("WS")
        if rng.random() < 0.2:  # what begins like ignored text, or is some
            self.pieces.append(rng.choice((found[0], Text(blank + rng.choice(self.letters) + self.marks[0]))))
        return tuple(found)

    # Rules

    def body(self, name: str) -> Node:
        rng = self.rng
        alternatives = [self.alternative() for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.6:
            alternatives.append(rng.choice(self.pieces))
        recursive = rng.random()
        if recursive < 0.2:
            alternatives.append(Seq((Name(name), rng.choice(self.pieces))))
        elif recursive < 0.4:
            alternatives.append(Seq((rng.choice(self.pieces), Name(name))))
        elif recursive < 0.45:
            alternatives.append(Seq((Name(name), Name(name))))
        rng.shuffle(alternatives)
        if rng.random() < 0.2:
            alternatives = [Alias(part, f"alias{index}") for index, part in enumerate(alternatives)]
        return Alt(tuple(alternatives))

    def alternative(self) -> Node:
        return Seq(tuple(self.part(2) for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3)))))

    def part(self, depth: int) -> Node:
        rng = self.rng
        choice = rng.random()
        if depth > 0 and choice < 0.25:
            return self.repeated(self.part(depth - 1))
        if depth > 0 and choice < 0.35:
            return Alt((self.part(depth - 1), Seq(tuple(self.part(depth - 1) for _ in range(rng.randrange(3))))))
        if choice < 0.65:
            return Name(rng.choice(self.rule_names))
        return rng.choice(self.pieces)

    def repeated(self, part: Node) -> Rep:
        rng = self.rng
        if rng.random() < 0.7:
            operator = rng.choice(list(OPERATORS))
            return Rep(part, *OPERATORS[operator], operator)
        most = [1, 2, 3]
        if part in self.pieces and not self.counted and rng.random() < 0.3:
            self.counted = True
            most = [70]
        low, high = sorted((rng.randrange(3), rng.choice(most)))
        return Rep(part, low, high, f"~{low}..{high}" if low < high or rng.random() < 0.5 else f"~{low}")
