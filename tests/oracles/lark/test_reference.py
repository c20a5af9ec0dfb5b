"""The reference itself, against languages written out by hand, and against texts put together from the rules."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.oracles import expressions as rx
from tests.support.oracles.lark.generator import Case, make_case
from tests.support.oracles.lark.reference import Reference
from tests.support.oracles.lark.syntax import Alias, Alt, Chars, LarkGrammar, Name, Node, Pattern, Rep, Seq, Text
from tests.support.oracles.search import Oracle

LONGEST = 4

A, B = Text("a"), Text("b")
RUN = Pattern(Rep(A, 1, None, "+"))
BLANKS = Pattern(Rep(Text("_"), 1, None, "+"))


def grammar(start: Node, *ignored: Node, **terminals: Node) -> LarkGrammar:
    return LarkGrammar({"start": start}, {"start": ""}, terminals, ignored)


def texts(alphabet: bytes, longest: int) -> list[bytes]:
    return [bytes(text) for length in range(longest + 1) for text in product(alphabet, repeat=length)]


def language(reference: Reference, alphabet: bytes, longest: int) -> set[bytes]:
    oracle = Oracle(reference, alphabet)
    return {text for text in texts(alphabet, longest) if oracle.may_end(text)}


@pytest.mark.parametrize(
    ("what", "accepted"),
    [
        (grammar(Seq((RUN, B))), "ab aab aaab"),
        (grammar(Seq((RUN, A))), ""),  # the run takes every a
        (grammar(Seq((Alt((RUN, Text("aa"))), A))), ""),
        (grammar(Alt((Seq((Text("ab"), B)), RUN))), "a aa aaa aaaa abb"),
        (grammar(Alt((Seq((A, Name("start"), B)), Seq(())))), " ab aabb"),
        (grammar(Alt((Seq((Name("start"), Name("start"))), B))), "b bb bbb bbbb"),
        (grammar(Rep(A, 2, 3, "~2..3")), "aa aaa"),
        (grammar(Rep(Text("ab", any_case=True), 1, 2, "~1..2")), "ab abab"),
        (grammar(Rep(Name("A"), 0, 2, "~0..2"), A=Rep(A, 0, 1, "?")), " a aa"),
    ],
)
def test_the_reference_reads_small_languages(what: LarkGrammar, accepted: str) -> None:
    assert language(Reference(what), b"ab", LONGEST) == {
        text.encode() for text in accepted.split(" ") if text or accepted
    }


@pytest.mark.parametrize(
    ("what", "accepted"),
    [
        (grammar(Seq((A, B)), BLANKS), "ab a_b a__b"),
        (grammar(Rep(A, 0, None, "*"), Text("_")), " a aa a_a aaa a__a aa_a a_aa aaaa"),
        (grammar(Seq((A, Text("_b"))), Text("_")), "a_b a__b"),  # of one blank or more, the last may be the terminal's
        (grammar(Seq((A, Text("_b"))), BLANKS), "a_b"),  # a run of blanks takes the one that it begins with
        (grammar(Seq((A, Alt((Text("_b"), B)))), BLANKS), "ab a_b a__b"),
        (grammar(Rep(A, 1, None, "+"), Pattern(Seq((Text("_"), Text("b"))))), "a aa aaa aaaa a_ba"),
    ],
)
def test_ignored_text_stands_between_lexemes(what: LarkGrammar, accepted: str) -> None:
    assert language(Reference(what), b"ab_", LONGEST) == {text.encode() for text in accepted.split(" ")}


def test_stranded_texts_are_found() -> None:
    assert Oracle(Reference(grammar(Seq((RUN, A)))), b"ab").stranded(longest=3, most=100) == b""
    assert Oracle(Reference(grammar(Alt((Seq((B, RUN, A)), B)))), b"ab").stranded(longest=3, most=100) == b"ba"
    assert Oracle(Reference(grammar(Seq((RUN, B)))), b"ab").stranded(longest=3, most=100) is None


def test_grammars_without_texts_are_empty() -> None:
    assert Reference(grammar(Name("start"))).is_empty
    assert Reference(grammar(Seq((A, Name("start"))))).is_empty
    assert not Reference(grammar(Alt((Name("start"), Seq(()))))).is_empty


class Texts:
    """All texts of a grammar's rules up to some length, put together from their parts; nothing is a longest match."""

    def __init__(self, case: Case) -> None:
        self.reference = Reference(case.grammar)
        self.all = texts(case.alphabet, LONGEST)
        self.rules: dict[str, frozenset[bytes]] = dict.fromkeys(case.grammar.rules, frozenset())
        self.lexemes: set[bytes] = set()
        while (found := {name: self.of(body) for name, body in case.grammar.rules.items()}) != self.rules:
            self.rules = found

    def of(self, node: Node) -> frozenset[bytes]:
        match node:
            case Name(name) if not node.is_terminal:
                return self.rules[name]
            case Text() | Chars() | Pattern() | Name():
                found = frozenset(text for text in self.all if rx.matches(self.reference.expression(node), text))
                self.lexemes |= found - {b""}
                return found
            case Seq(parts):
                found = frozenset([b""])
                for part in parts:
                    found = self.joined(found, self.of(part))
                return found
            case Alt(parts):
                return frozenset().union(*map(self.of, parts))
            case Alias(part, _):
                return self.of(part)
        assert isinstance(node, Rep)
        part = self.of(node.part)
        now = frozenset([b""])
        found = now if node.low == 0 else frozenset()
        for times in range(1, node.low + LONGEST + 1 if node.high is None else node.high + 1):
            now = self.joined(now, part)
            found |= now if times >= node.low else frozenset()
        return found

    def joined(self, left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
        return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)

    @property
    def end_by_themselves(self) -> bool:
        """No lexeme begins another one: then the longest match is the only one."""
        return not any(long != short and long.startswith(short) for long in self.lexemes for short in self.lexemes)


@pytest.mark.slow
def test_accepted_texts_are_those_put_together_from_the_rules() -> None:
    equal = 0
    for case in map(make_case, range(120)):
        if case.grammar.ignored or len(case.alphabet) > 4:
            continue
        expected = Texts(case)
        accepted = language(expected.reference, case.alphabet, LONGEST)
        assert accepted <= expected.rules["start"], case.text
        if expected.end_by_themselves:
            assert accepted == expected.rules["start"], case.text
            equal += len(accepted) > 1
    assert equal > 5


def test_grammars_are_varied() -> None:
    text = "\n".join(make_case(seed).text for seed in range(300))
    for wanted in (
        "%ignore WS",
        "%ignore /",
        '"i',
        "/i",
        "&&[^",
        "..",
        "~0..",
        "~2\n",
        "..70",
        "[",
        "-> alias",
        "?start:",
    ):
        assert wanted in text, wanted
