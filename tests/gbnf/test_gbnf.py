"""GBNF grammars: texts that they have, places of errors, and every answer beside that of llama.cpp's own matcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

import constrain
from constrain.gbnf import Gbnf
from constrain.work import MAX_COUNTER, MAX_NESTING
from tests.gbnf.grammars import CASES, Case
from tests.support import LONG, byte_vocabulary, for_each
from tests.support.llama.grammar_sampler import LlamaMatcher
from tests.support.matching import mask_of

TEXTS = 100 if LONG else 6


def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Gbnf(grammar), byte_vocabulary(), cache=False)


@for_each("case", CASES.values())
def test_texts_are_accepted_and_rejected_and_complete_from_every_beginning(case: Case) -> None:
    constraint = compiled(case.grammar)
    assert [text for text in case.accepted if not constraint.accepts(text)] == []
    assert [text for text in case.rejected if constraint.accepts(text)] == []

    for text in map(str.encode, case.accepted):
        matcher = constraint.matcher()
        for end, byte in enumerate(text, start=1):
            assert matcher.accept(byte)
            assert constraint.accepts(text[:end] + matcher.shortest_completion())


def test_left_recursion_is_read() -> None:
    sums = compiled('root ::= sum\nsum ::= sum "+" [0-9]+ | [0-9]+')
    assert sums.accepts("1+23+4")
    assert not sums.accepts("+1")
    assert compiled('root ::= a "x"\na ::= root? "y"').accepts("yxyx")


@for_each(
    "grammar, message, place",
    ("", "unexpected the end of the text; expected a rule with ::=", (1, 1)),
    ('start ::= "a"', "there is no rule root", (1, 1)),
    ("root ::= item", "the rule item is not defined", (1, 10)),
    ('root ::= "a"\nroot ::= "b"', "the rule root is defined more than once", (2, 1)),
    ('root ::= "a', "no closing", (1, 10)),
    ("root ::= [a", "no closing ]", (1, 10)),
    ('root ::= ("a"', "unexpected the end of the text; expected", (1, 14)),
    ('root ::= "a")', "unexpected ')'", (1, 13)),
    (r'root ::= "\q"', r"\q is no escape", (1, 11)),
    (r'root ::= "\xzz"', r"\xzz is no escape", (1, 11)),
    (r'root ::= "\-"', r"\- is no escape", (1, 11)),
    (r"root ::= [\d]", r"\d is no escape", (1, 11)),
    ('root ::= "a" (="b") "b"', "a lookahead of XGrammar", (1, 15)),
    ("root ::= [z-a]", "from one character to a later one", (1, 10)),
    ("root ::= []", "no character is in this class", (1, 10)),
    ('root ::= "a"{2,1}', "counts go up: 1 is less than 2", (1, 16)),
    (f'root ::= "a"{{{MAX_COUNTER + 1}}}', "a count is at most", (1, 14)),
    ('root ::= "a"{}', "unexpected '}'; expected a number", (1, 14)),
    ("root ::= root", "the language is empty", (1, 1)),
    ("root ::= " + "(" * (2 * MAX_NESTING) + '"a"' + ")" * (2 * MAX_NESTING), "MAX_NESTING", None),
    ('root := "a"', "unexpected", (1, 1)),
)
def test_refusals_name_the_place(grammar: str, message: str, place: tuple[int, int] | None) -> None:
    with pytest.raises(constrain.GrammarError) as caught:
        compiled(grammar)
    assert message in caught.value.message
    assert place is None or (caught.value.line, caught.value.column) == place


def test_names_and_escapes_of_xgrammar_are_read() -> None:
    """llama.cpp refuses these."""
    constraint = compiled(
        r"""root ::= select_statement
        select_statement ::= "SELECT" _columns ("\/" | "\?" | "\'" | "\f")
        _columns ::= [\^\-\.a-c\$]+"""
    )
    assert all(map(constraint.accepts, ("SELECTa-^/", "SELECT$.b'", "SELECTc\f")))
    assert not any(map(constraint.accepts, ("SELECT/", "SELECTd/", "SELECTa\\/", "SELECTaf")))


def ebnf(grammar: str) -> constrain.Constraint:
    return constrain.compile(Gbnf(grammar, dialect="xgrammar"), byte_vocabulary(), cache=False)


def test_the_dialect_says_what_dots_and_digits_are() -> None:
    grammar = r'''root ::= a.b "\x41b" # a.b "
        a ::= "1"
        b ::= "2"
        a.b ::= "3" . | [.] "."'''
    constraint = ebnf(grammar)
    assert all(map(constraint.accepts, ("3z\u041b", "..\u041b", "3.\u041b")))
    assert not any(map(constraint.accepts, ("1z2Ab", "3\u041b", "3zAb", "..Ab")))
    constraint = compiled(grammar.partition("a.b ::=")[0])
    assert constraint.accepts("1z2Ab")
    assert not constraint.accepts("1z2\u041b")


@pytest.mark.parametrize("read", [compiled, ebnf])
def test_a_count_may_lack_its_least(read: Callable[[str], constrain.Constraint]) -> None:
    constraint = read('root ::= "a"{,2} "b"')
    assert all(map(constraint.accepts, ("b", "ab", "aab")))
    assert not constraint.accepts("aaab")


@for_each(
    "grammar, message, place",
    ('root ::= TagDispatch(("a", b))\nb ::= "x"', "TagDispatch, a macro of XGrammar", (1, 10)),
    ('root ::= "Token(" Token (5)', "Token, a macro of XGrammar", (1, 19)),
    ('root ::= "a" (= "b")', "a lookahead of XGrammar", (1, 15)),
    ("root ::= a.c", "the rule a.c is not defined", (1, 10)),
    ('root ::= a.b\na.b ::= "x"\na.b ::= "y"', "the rule a.b is defined more than once", (3, 1)),
    (r'root ::= "\x"', r"\x is no escape", (1, 11)),
)
def test_refusals_of_xgrammars_dialect_name_the_place(grammar: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(constrain.GrammarError) as caught:
        ebnf(grammar)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="dialect"):
        Gbnf("", dialect="ebnf")  # type: ignore[arg-type]


def test_special_tokens_by_name_and_by_id() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"", b"", b"word"]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[256], special={257: "<|call|>"})
    by_id = constrain.compile(Gbnf('root ::= "a" (<|call|> | <[258]>) <[257]>'), vocabulary)
    matcher = by_id.matcher()
    assert matcher.accept(ord("a"))
    assert [token for token, allowed in enumerate(mask_of(matcher)) if allowed] == [257, 258]
    for wrong in ("<[256]> root", "<[300]>", "<|none|>"):
        with pytest.raises(constrain.GrammarError):
            constrain.compile(Gbnf(f"root ::= {wrong}"), vocabulary)


@pytest.fixture(scope="module")
def model() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=256, n_threads=1) as found:
        yield found


def texts(case: Case, constraint: constrain.Constraint, rng: Random) -> Iterator[str]:
    """The texts of a case, changed a little, and random walks."""
    yield from (*case.accepted, *case.rejected)
    letters = "".join((*case.accepted, *case.rejected)) + "x"
    for _ in range(TEXTS):
        text = list(rng.choice(case.accepted))
        for _ in range(rng.randint(0, 2)):
            at = rng.randint(0, len(text))
            text[at : at + rng.randint(0, 1)] = rng.choices(letters, k=rng.randint(0, 2))
        yield "".join(text)
        yield walked(constraint, letters.encode(), rng)


def walked(constraint: constrain.Constraint, alphabet: bytes, rng: Random) -> str:
    """A text of the language: some allowed bytes of an alphabet, and a short end. The model cannot spell all bytes."""
    matcher, text = constraint.matcher(), b""
    for _ in range(rng.randint(1, 25)):
        mask = mask_of(matcher)
        allowed = [byte for byte in sorted(set(alphabet)) if mask[byte]]
        if not allowed:
            break
        byte = rng.choice(allowed)
        assert matcher.accept(byte)
        text += bytes([byte])
    return (text + matcher.shortest_completion()).decode()  # which completes a character, too


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_llama_cpp_has_the_same_texts(name: str, model: constrain.Model) -> None:
    case, rng = CASES[name], Random(name)
    constraint, theirs = compiled(case.grammar), LlamaMatcher(model, case.grammar)
    encode = model.vocabulary.encode
    assert encode is not None
    for text in texts(case, constraint, rng):
        assert constraint.accepts(text) == theirs.accepts(encode(text.encode())), repr(text)
