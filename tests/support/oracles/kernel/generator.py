"""Random grammars and vocabularies, small enough to be searched and mean enough to be worth it.

Three styles. *fenced*: lexemes of any length, each followed by a punctuation byte that cannot be in it. *coded*: no
lexeme begins another, so each ends by itself, and the grammar says so (``self_delimiting``). *wild*: anything goes;
the kernel may refuse such a grammar, because lexemes cannot be told apart in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from constrain.language import tree
from constrain.language.grammar import (
    EPSILON,
    TEXT_SET,
    VALUE_SET,
    Action,
    Condition,
    Edge,
    Grammar,
    GrammarBuilder,
    Role,
)
from tests.support.oracles import expressions as rx
from tests.support.oracles.kernel.recognizer import Recognizer

STYLES = ("fenced", "fenced", "coded", "wild")


@dataclass(frozen=True)
class Theme:
    """Letters that lexemes are made of, each a byte string that begins no other one, and punctuation bytes."""

    letters: tuple[bytes, ...]
    punctuation: bytes
    numbers: bool = False


THEMES = (
    Theme((b"a", b"b"), b",;"),
    Theme((b"a", b"b", b"c"), b",."),
    Theme((b"a", b"b"), b'":,}'),
    Theme((b"a", "é".encode(), "è".encode()), b",]"),
    Theme((b"0", b"5"), b",;", numbers=True),
    Theme((b"0", b"1", b"2"), b",", numbers=True),
)


@dataclass(frozen=True)
class Case:
    """A grammar with the bytes that are used in it."""

    grammar: Grammar
    alphabet: bytes
    style: str


def byte_class(members: bytes) -> tree.ByteClass:
    return tree.ByteClass(tuple((byte, byte) for byte in sorted(set(members))))


class GrammarMaker:
    def __init__(self, rng: Random, style: str) -> None:
        self.rng = rng
        self.style = style
        self.theme = rng.choice(THEMES)
        self.builder = GrammarBuilder()
        self.rules: list[int] = []
        self.pieces: list[list[int]] = []  # sequences of terminals from which right-hand sides are put together
        self.keys: list[int] = []
        self.marks: list[int] = []

    # Expressions

    def letter(self) -> tree.Expression:
        chosen = self.rng.sample(self.theme.letters, self.rng.randint(1, len(self.theme.letters)))
        if all(len(letter) == 1 for letter in chosen) and self.rng.random() < 0.5:
            return byte_class(b"".join(chosen))
        return tree.CharClass(tuple(sorted((ord(c.decode()), ord(c.decode())) for c in chosen)))

    def any_letter(self) -> tree.Expression:
        return tree.Alternation(tuple(map(tree.Literal, self.theme.letters)))

    def word(self) -> bytes:
        return b"".join(self.rng.choices(self.theme.letters, k=self.rng.randint(1, 3)))

    def expression(self, depth: int) -> tree.Expression:
        rng, deeper = self.rng, depth - 1
        kind = rng.choice(("letter", "word", "set") if depth == 0 else COMPOUND)
        match kind:
            case "letter":
                return self.letter()
            case "word":
                return tree.Literal(self.word())
            case "set":
                return tree.LiteralSet(tuple(sorted({self.word() for _ in range(rng.randint(1, 5))})))
            case "concatenation":
                return tree.Concatenation(tuple(self.expression(deeper) for _ in range(rng.randint(2, 3))))
            case "alternation":
                return tree.Alternation(tuple(self.expression(deeper) for _ in range(rng.randint(2, 3))))
            case "repetition":
                minimum = rng.randint(0, 3)
                maximum = rng.choice((None, minimum, minimum + 1, minimum + 3))
                return tree.Repetition(self.expression(deeper), minimum, maximum)
            case "intersection":
                return tree.Intersection((self.expression(deeper), self.expression(deeper)))
            case "complement":
                anything = tree.Repetition(self.any_letter(), 0, None)
                return tree.Intersection((anything, tree.Complement(self.expression(deeper))))
            case "window":
                minimum = rng.randint(0, 3)
                maximum = rng.choice((None, minimum, minimum + 2))
                return tree.Window(self.expression(deeper), self.any_letter(), minimum, maximum)
        raise AssertionError(kind)

    def number(self) -> tree.Expression:
        rng = self.rng
        digits = byte_class(b"".join(self.theme.letters))
        spelled: list[tree.Expression] = [tree.Repetition(digits, 1, rng.choice((2, 3, None)))]
        if rng.random() < 0.5:
            spelled.insert(0, tree.Repetition(tree.Literal(b"-"), 0, 1))
        if rng.random() < 0.5:
            decimals = tree.Concatenation((tree.Literal(b"."), tree.Repetition(digits, 1, rng.choice((2, None)))))
            spelled.append(tree.Repetition(decimals, 0, 1))
        multiple = tree.Multiple(rng.choice((1, 2, 3, 5, 7, 10, 25)), rng.randint(0, 2))
        return tree.Intersection((multiple, tree.Concatenation(tuple(spelled))))

    def lexeme(self) -> tree.Expression:
        """A random expression that does not match the empty text and, nearly always, matches something."""
        while True:
            expression = self.number() if self.theme.numbers and self.rng.random() < 0.5 else self.expression(2)
            node = rx.from_tree(expression)
            if rx.nullable(node):
                expression = tree.Intersection((expression, tree.Repetition(self.any_letter(), 1, None)))
                node = rx.from_tree(expression)
            if not rx.is_empty(node) or self.rng.random() < 0.02:
                return expression

    # Terminals

    def make_pieces(self) -> None:
        rng, theme = self.rng, self.theme
        quote, *others = (tree.Literal(bytes([byte])) for byte in theme.punctuation)
        coded = self.style == "coded"
        for index in range(rng.randint(2, 4)):
            expression = self.lexeme()
            if coded:
                quoted = others and rng.random() < 0.5
                expression = tree.Concatenation((quote, expression, quote) if quoted else (expression, quote))
            self.keys.append(self.builder.terminal(f"lexeme_{index}", expression))
        marks = [
            self.builder.terminal(f"mark_{index}", mark)
            for index, mark in enumerate(others if coded else (quote, *others))
        ]
        self.pieces = [[key, rng.choice(marks)] if self.style == "fenced" else [key] for key in self.keys]
        self.marks = marks or self.keys
        self.pieces += [[mark] for mark in marks]
        if not coded and rng.random() < 0.3:
            blank = tree.Literal(b" ")
            space = tree.Repetition(blank, 1, None) if rng.random() < 0.5 else blank
            self.builder.ignore(self.builder.terminal("space", space))

    # Rules

    def right_hand_side(self) -> list[int]:
        symbols: list[int] = []
        for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3))):
            symbols += [self.rng.choice(self.rules)] if self.rng.random() < 0.45 else self.rng.choice(self.pieces)
        return symbols

    def make_productions(self, rule: int) -> None:
        alternatives = [self.right_hand_side() for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.6:
            alternatives.append(list(self.rng.choice(self.pieces)))
        if self.rng.random() < 0.3:  # left recursion, for certain
            alternatives.append([rule, *self.rng.choice(self.pieces)])
        self.builder.define(rule, alternatives)

    def make_automaton(self, rule: int, slots: tuple[int, ...] = ()) -> None:
        """Random edges between a few states; where there is memory, random tests and updates of it."""
        rng = self.rng
        states = rng.randint(2, 4)
        edges: list[Edge] = []
        spare = states
        for _ in range(rng.randint(states, states + 3)):
            source, target = rng.randrange(states), rng.randrange(states)
            choice = rng.random()
            symbols = [EPSILON] if choice < 0.15 else [rng.choice(self.rules)] if choice < 0.4 else None
            for position, symbol in enumerate(path := symbols or rng.choice(self.pieces)):
                last = position == len(path) - 1
                conditions, actions, excluding = self.memory_of_edge(symbol, slots) if position == 0 else ((), (), -1)
                edges.append(Edge(source, symbol, target if last else spare, conditions, actions, excluding))
                if not last:
                    source, spare = spare, spare + 1
        self.builder.define_automaton(rule, edges, sorted(rng.sample(range(states), rng.randint(1, 2))), slots)

    def memory_of_edge(self, symbol: int | None, slots: tuple[int, ...]) -> tuple[tuple, tuple, int]:
        rng = self.rng
        conditions: list[Condition] = []
        actions: list[tuple[Action, int]] = []
        excluding = -1
        for slot, cap in enumerate(slots):
            if cap != TEXT_SET:
                if rng.random() < 0.4:
                    minimum = rng.randint(0, cap)
                    conditions.append(Condition(slot, minimum, rng.choice((None, rng.randint(minimum, cap)))))
                if rng.random() < 0.5:
                    actions.append((Action.INCREMENT, slot))
            elif symbol in self.keys:
                if rng.random() < 0.6:
                    actions.append((Action.REMEMBER, slot))
                if rng.random() < 0.6:
                    excluding = slot
        return tuple(conditions), tuple(actions), excluding

    def make_members(self, rule: int) -> None:
        """``mark (key value mark)* mark``: no key twice, a least and a greatest number of members.

        Without marks between members, even a finite set of keys may run out, for there is always the last mark.
        """
        rng = self.rng
        key, *fence = rng.choice(self.pieces[: len(self.keys)])
        opening, separator, closing = (rng.choice(self.marks) for _ in range(3))
        value = rng.choice((*self.rules, *(None,) * 2))
        least, most = rng.randint(0, 2), rng.choice((None, 2, 3))
        below = (Condition(1, 0, most - 1),) if most else ()
        enough = (Condition(1, least, None),) if least else ()
        actions = ((Action.REMEMBER, 0), (Action.INCREMENT, 1))
        edges = [Edge(0, opening, 1), Edge(1, closing, 2, enough), Edge(1, key, 3, below, actions, excluding=0)]
        after_key = 3
        if fence:
            edges.append(Edge(3, fence[0], 6))
            after_key = 6
        if rng.random() < 0.5:
            edges.append(Edge(after_key, value, 1))
        else:
            edges += [Edge(after_key, value, 4), Edge(4, closing, 2, enough), Edge(4, separator, 5, below)]
            edges.append(Edge(5, key, 3, below, actions, excluding=0))
        self.builder.define_automaton(rule, edges, (2,), (TEXT_SET, max(least, most or 1)))

    # Groups whose members must be distinct

    def make_groups(self) -> Case:
        """``[item,item]`` and ``{label:item,...}`` in each other, some of whose items must be distinct.

        Such items may always be one of endlessly many scalars; groups inside may have few values.
        """
        rng, builder = self.rng, self.builder
        letters = rng.choice(((b"a", b"b"), (b"0", b"5")))
        numbers = letters == (b"0", b"5")
        word: tree.Expression = tree.Repetition(byte_class(b"".join(letters)), 1, None)
        if numbers:
            word = tree.Concatenation((word, tree.Repetition(tree.Concatenation((tree.Literal(b"."), word)), 0, 1)))
        endless = builder.terminal("endless", word)
        texts = [b"".join(rng.choices(letters, k=rng.randint(1, 3))) for _ in range(4)]
        few = [
            builder.terminal(f"few_{index}", tree.LiteralSet(tuple(sorted(set(rng.sample(texts, count))))))
            for index, count in enumerate((1, 2, 3))
        ]
        self.separator = builder.terminal("separator", tree.Literal(b","), role=Role.NONE)
        self.colon = builder.terminal("colon", tree.Literal(b":"), role=Role.NONE)
        self.declared = rng.random() < 0.5  # in all groups: otherwise lexemes that differ by the colon meet
        rules = [builder.rule(f"group_{index}") for index in range(rng.randint(2, 4))]
        for index, rule in enumerate(rules):
            inner = rules if rng.random() < 0.15 else rules[index + 1 :]
            items = rng.sample([*few, *inner], min(rng.randint(1, 3), len(few) + len(inner)))
            distinct = index == 0 or rng.random() < 0.5
            if index == 0 and rules[1] not in items:
                items.append(rules[1])
            if distinct or (rule in items and not set(items) & set(few)):
                items.append(endless)
            if index == 0 or rng.random() < 0.5:
                self.make_ordered(rule, items, distinct=distinct)
            else:
                self.make_labelled(rule, items, [letter + b"" for letter in letters], endless=word)
        alphabet = b"".join(letters) + b",:[]{}" + b"." * numbers
        return Case(builder.build(), bytes(sorted(alphabet)), "fenced")

    def make_ordered(self, rule: int, items: list[int], *, distinct: bool) -> None:
        rng, builder = self.rng, self.builder
        opening = builder.terminal("[", tree.Literal(b"["), role=Role.OPEN_ORDERED)
        closing = builder.terminal("]", tree.Literal(b"]"), role=Role.CLOSE)
        if not distinct and rng.random() < 0.3:
            some = builder.rule("some")  # left recursion
            builder.define(some, [way for item in items for way in ([item], [some, self.separator, item])])
            builder.define(rule, [[opening, some, closing]])
            return
        least, most = rng.choice(((0, None), (0, 2), (1, 2), (2, 2), (1, None)))
        below = (Condition(0, 0, most - 1),) if most else ()
        edges = [Edge(0, opening, 1), Edge(2, self.separator, 1, below)]
        edges.append(Edge(2, closing, 3, (Condition(0, least, None),) if least else ()))
        if least == 0:
            edges.append(Edge(0, opening, 4))
            edges.append(Edge(4, closing, 3))
        slot = 1 if distinct else -1
        edges += [Edge(1, item, 2, (), ((Action.INCREMENT, 0),), distinct=slot) for item in items]
        builder.define_automaton(rule, edges, (3,), (most or max(least, 1), VALUE_SET))

    def make_labelled(self, rule: int, items: list[int], labels: list[bytes], endless: tree.Expression) -> None:
        rng, builder = self.rng, self.builder
        opening = builder.terminal("{", tree.Literal(b"{"), role=Role.OPEN_LABELLED)
        closing = builder.terminal("}", tree.Literal(b"}"), role=Role.CLOSE)
        edges = [Edge(0, opening, 1), Edge(2, closing, 3)]
        if self.declared:  # labels that include the colon, each once, in any order
            for number, label in enumerate(labels):
                spelled = tree.Literal(label + b":")
                symbol = builder.terminal(f"label_{number}", spelled, role=Role.LABEL, label=label)
                unused = (Condition(number, 0, 0),)
                edges.append(Edge(1, symbol, 4 + number, unused, ((Action.INCREMENT, number),)))
                edges += [Edge(4 + number, item, 2) for item in rng.sample(items, rng.randint(1, len(items)))]
            edges += [Edge(2, self.separator, 1, (Condition(number, 0, 0),)) for number in range(len(labels))]
            slots: tuple[int, ...] = (1,) * len(labels)
        else:
            symbol = builder.terminal("label", endless, role=Role.LABEL)
            edges.append(Edge(1, symbol, 4, (), ((Action.REMEMBER, 0),), excluding=0))
            edges += [Edge(4, self.colon, 5), Edge(2, self.separator, 1)]
            edges += [Edge(5, item, 2) for item in items]
            slots = (TEXT_SET,)
        builder.define_automaton(rule, edges, (3,), slots)

    def make(self) -> Case:
        rng = self.rng
        if self.style == "fenced" and rng.random() < 0.25:
            return self.make_groups()
        self.make_pieces()
        self.rules = [self.builder.rule(f"rule_{index}") for index in range(rng.randint(1, 5))]
        for rule in self.rules:
            choice = rng.random()
            if choice < 0.5:
                self.make_productions(rule)
            elif choice < 0.65:
                self.make_automaton(rule)
            elif choice < 0.8:
                self.make_automaton(rule, rng.choice(((2,), (1, 3), (TEXT_SET,), (2, TEXT_SET))))
            else:
                self.make_members(rule)
        grammar = self.builder.build(self_delimiting=self.style == "coded")
        used = b"".join(self.theme.letters) + self.theme.punctuation + b" " * bool(grammar.ignored)
        alphabet = bytes(sorted(set(used + (b"-." if self.theme.numbers else b""))))
        return Case(grammar, alphabet, self.style)


COMPOUND = (
    *("letter", "word", "set", "concatenation", "alternation"),
    *("repetition", "repetition", "intersection", "complement", "window"),
)


def is_prefix_free(grammar: Grammar) -> bool:
    """No lexeme of the grammar begins another one."""
    union = rx.alternation(rx.from_tree(terminal.expression) for terminal in grammar.terminals)
    seen, frontier = {union}, [union]
    while frontier:
        node = frontier.pop()
        following = {rx.derivative(node, byte) for byte in rx.bytes_of(union)}
        if rx.nullable(node) and not all(map(rx.is_empty, following)):
            return False
        frontier += following - seen
        seen |= following
    return True


def memory_strands(recognizer: Recognizer) -> bool:
    """Whether some rule can get to where its memory shuts every way to its end, or cannot end because of it.

    A finite terminal may run out of texts that are not excluded, so its edge is no way out.
    """
    if any(recognizer.least_length(index) == float("inf") for index in recognizer.productive):
        return True
    finite = [rx.is_finite(node) for node in recognizer.expressions]
    for index, rule in enumerate(recognizer.rules):
        if index not in recognizer.productive:
            continue
        reached, frontier, back = set(), [recognizer.first_item(index, 0)], {}
        while frontier:
            item = frontier.pop()
            if item in reached:
                continue
            reached.add(item)
            for edge in recognizer.open_edges(item):
                plain = edge._replace(actions=tuple(a for a in edge.actions if a[0] == Action.INCREMENT), distinct=-1)
                after = recognizer.along(item, plain)
                frontier.append(after)
                unlimited = edge.symbol is not EPSILON and edge.symbol >= 0 and not finite[edge.symbol]
                if (edge.excluding < 0 and edge.distinct < 0) or unlimited:
                    back.setdefault(after, set()).add(item)
        frontier = [item for item in reached if item.state in rule.accepting]
        ending = set(frontier)
        while frontier:
            new = back.get(frontier.pop(), set()) - ending
            ending |= new
            frontier += new
        if ending != reached:
            return True
    return False


def make_case(seed: int) -> Case:
    """The grammar of a seed: it generates something, and its memory leaves a way to the end everywhere."""
    rng = Random(seed)
    style = rng.choice(STYLES)
    while True:
        case = GrammarMaker(rng, style).make()
        recognizer = Recognizer(case.grammar)
        if recognizer.is_empty or memory_strands(recognizer):
            continue
        if case.style == "coded" and not is_prefix_free(case.grammar):
            continue
        return case


@dataclass(frozen=True)
class RandomVocabulary:
    tokens: list[bytes]
    special: set[int]
    end: set[int]


def make_vocabulary(rng: Random, alphabet: bytes, samples: list[bytes]) -> RandomVocabulary:
    """Every byte, pieces of sample texts, random strings, equal tokens, tokens without text, special ones."""
    tokens = [bytes([byte]) for byte in alphabet]
    for _ in range(rng.randint(5, 40)):
        if samples and rng.random() < 0.7:
            sample = rng.choice(samples)
            start = rng.randrange(len(sample) + 1)
            tokens.append(sample[start : start + rng.randint(2, 6)])
        else:
            tokens.append(bytes(rng.choices(alphabet, k=rng.randint(2, 4))))
    tokens += rng.choices(tokens, k=3)
    tokens += [b""] * rng.randint(1, 4)
    rng.shuffle(tokens)
    special = set(rng.sample(range(len(tokens)), 2))
    covered = {token for index, token in enumerate(tokens) if index not in special}
    tokens += [bytes([byte]) for byte in alphabet if bytes([byte]) not in covered]
    end = set(range(len(tokens), len(tokens) + rng.randint(1, 2)))
    return RandomVocabulary(tokens + [b""] * len(end), special | end, end)
