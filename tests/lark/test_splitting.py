"""Where the longest match could lead into a dead end, every way to divide a text counts, as in Lark's Earley parser.

Lark's dynamic lexer, in its complete form, tries all ways. Only grammars are compared that Lark reads as we do: without
ignored text, which Lark takes at both ends, too, and without what its patterns spell in another way (``&&``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import lark
import pytest

import constrain
from constrain import kernel
from constrain.language.grammar import Grammar
from constrain.lark import Lark
from constrain.lark.lexing.splitting import SPLIT_STATES
from tests.support import LONG, Tokens, byte_vocabulary, demo_vocabulary, for_each
from tests.support.oracles.lark.generator import Case, make_case

GRAMMARS = 300 if LONG else 6
TEXTS = 5_000 // 300 if LONG else 60
LONGEST = 8


def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Lark(grammar), byte_vocabulary(), cache=False)


@for_each(
    "grammar, accepted, rejected",
    [
        ('start: "x" ","? /.+/ "\\n"', ["xa\n", "x,a\n", "x,\n", "x,,\n"], ["x\n", "xa", "x,a"]),
        ('start: A "a"\nA: /a*/', ["a", "aa", "aaaa"], ["", "ab"]),
        ('start: NAME "in" NAME\nNAME: /[a-z]+/', ["ainb", "inini", "xinin"], ["in", "aib", "ain"]),
        ('start: ("ab" | "a") ("bc" | "c")', ["abc", "abbc", "ac"], ["ab", "abcc"]),
        ('start: /[^;]+/ /é/ ";"', ["aé;", "éé;"], ["é;", "a;"]),
        ('start: /a{2,40}/ "a"~3', ["a" * 5, "a" * 43], ["a" * 4, "a" * 44]),
    ],
)
def test_texts(grammar: str, accepted: list[str], rejected: list[str]) -> None:
    constraint = compiled(grammar)
    assert constraint.report.split
    assert [text for text in accepted if not constraint.accepts(text)] == []
    assert [text for text in rejected if constraint.accepts(text)] == []


THOUGHT = r"""
start: "<think>" free "</think>" /[0-9]+/
free: FREE?
FREE: /(?s:.+)/ & ~/(?s:.*<\/think>.*)/
"""


@pytest.mark.slow
@pytest.mark.parametrize("budget", [24, 40, 100])
def test_a_budget_leaves_every_token_of_a_split_terminal_that_fits(budget: int) -> None:
    vocabulary = demo_vocabulary()
    constraint = constrain.compile(Lark(THOUGHT), vocabulary, cache=False)
    assert constraint.report.split
    free, limited = constraint.matcher(), constraint.matcher(max_tokens=budget)
    rows = constraint.allocate_bitmask(2)
    text = b"<think>The user wants a nice number, so take three.</think>3"
    for count, token in enumerate(Tokens(vocabulary).split(text)):
        free.fill_bitmask(rows[0])
        limited.fill_bitmask(rows[1])
        if count < budget - 10:  # all but the rest of a character and "</think>3"
            assert (rows[0] == rows[1]).all(), count
        assert free.accept(token)
        assert limited.accept(token)
    assert limited.limited_masks == 0


@for_each(
    "grammar, expected",
    [
        ('start: A+ "."\nA: /[a-z]+;/', True),
        ('start: A ("," A)*\nA: /[a-z]+/\n%ignore /[ ]+/', True),
        ("start: A A\nA: /[a-z]+/\n%ignore /[ ]/", False),
        ("start: a a\na[lazy]: /[a-z]*b/", False),
        ('start: A "x"\nA: /[a-z]+/', True),  # split
    ],
)
def test_lexemes_that_end_by_themselves_are_known(grammar: str, expected: bool) -> None:
    assert Lark(grammar).grammar().self_delimiting == expected


@pytest.mark.slow
def test_the_claims_of_random_grammars_are_those_of_single_proofs() -> None:
    """Lexemes that end by themselves lead to no dead end, so the proof of the one saves the proof of the other."""
    found: Counter[tuple[bool, bool]] = Counter()
    for seed in range(1_000 if LONG else 60):
        try:
            grammar = replace(compiled(make_case(seed).text).grammar, proved=False, self_delimiting=False)
        except constrain.GrammarError:
            continue
        no_dead_end, self_delimiting = kernel.lexing_claims(grammar)
        assert no_dead_end == (kernel.lexing_conflict(grammar) is None), seed
        if self_delimiting:
            assert kernel.lexing_conflict(grammar, lossless=True) is None, seed
        found[no_dead_end, self_delimiting] += 1
    assert min(found[True, True], found[True, False]) > 3


def test_the_report_names_the_terminals_and_their_places() -> None:
    text = 'start: WORD "-"? /.+/ "\\n"\nWORD: "x"'
    assert compiled(text).report.split == ('"-" (line 1, column 13)', "/.+/ (line 1, column 18)")
    assert compiled('start: WORD "-"? /[a-z]+/ "\\n"\nWORD: "x"').report.split == ()


def test_a_kept_constraint_knows_what_is_split(tmp_path: object) -> None:
    grammar = Lark('start: "x" ","? /.+/ "\\n"')
    made = constrain.compile(grammar, byte_vocabulary(), cache=tmp_path)  # type: ignore[arg-type]
    assert made.precompute().file is not None
    found = constrain.compile(grammar, byte_vocabulary(), cache=tmp_path)  # type: ignore[arg-type]
    assert found.report.split == made.report.split != ()


def test_ignored_text_that_separates_keeps_the_longest_match() -> None:
    constraint = compiled('start: NAME "in" NAME\nNAME: /[a-z]+/\n%ignore " "')
    assert constraint.report.split == ()
    assert constraint.accepts("in in in")
    assert not constraint.accepts("inini")


def test_terminals_of_json_are_not_split() -> None:
    with pytest.raises(constrain.GrammarError, match="maximal-munch conflict"):
        compiled('start: %json {"type": "integer"} %json {"const": 7}')


def test_a_terminal_with_too_many_states_is_not_split() -> None:
    with pytest.raises(constrain.LimitError, match="MAX_PAIR_STATES"):
        compiled(f'start: /a{{2,{SPLIT_STATES}}}/ "a"~2')


def test_many_conflicts_are_found_by_a_few_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs: list[int] = []
    find = kernel.conflicting_terminals

    def count(grammar: Grammar, lossless: bool) -> list[int]:
        proofs.append(len(grammar.terminals))
        return find(grammar, lossless)

    monkeypatch.setattr(kernel, "conflicting_terminals", count)
    terminals = [f'A{number}: "{chr(0x4E00 + 64 * number)}" /[a-z]*/\n' for number in range(50)]
    rules = [f'A{number} /[a-z]+/ "{number}"' for number in range(50)]
    constraint = compiled("".join(terminals) + "start: (" + " | ".join(rules) + ")+")
    assert len(constraint.report.split) > 50
    assert len(proofs) <= 5
    assert constraint.accepts("一ab0")


def cases() -> Iterator[tuple[int, Case, constrain.Constraint]]:
    """Random grammars that are split, with their seeds."""
    for seed in range(100_000):
        case = make_case(seed)
        if case.grammar.ignored or "&&" in case.text:
            continue
        try:
            constraint = compiled(case.text)
        except constrain.GrammarError as error:
            if "the language is empty" not in error.message:
                raise
            continue
        if constraint.report.split:
            yield seed, case, constraint


@pytest.mark.slow
def test_random_grammars_have_the_texts_of_larks_earley_parser() -> None:
    counts: Counter[str] = Counter()
    read = ((seed, each, case.text, reader(case.text)) for seed, case, each in cases())
    for seed, constraint, grammar, parser in islice((each for each in read if each[-1]), GRAMMARS):
        assert parser is not None
        rng = Random(seed)
        letters = "".join(sorted(set("abcAB,;.é") & set(grammar)))
        for _ in range(TEXTS):
            text = "".join(rng.choices(letters, k=rng.randint(0, LONGEST)))
            text += constraint.matcher().shortest_completion().decode() if rng.random() < 0.2 else ""
            try:
                parser.parse(text)
                expected = True
            except lark.exceptions.LarkError:
                expected = False
            assert constraint.accepts(text) == expected, f"seed {seed}, {text!r}:\n{grammar}"
            counts[f"{expected}"] += 1
    assert counts["True"] > 0.05 * counts["False"]


def tokens_for(rng: Random) -> list[bytes]:
    letters = [each.encode() for each in "abcAB,;.é"] + [b"\xc3", b"\xa9"]
    made = {b"".join(rng.choices(letters, k=rng.randint(2, 4))) for _ in range(400)}
    return [*(bytes([byte]) for byte in range(256)), *sorted(made), b""]


def walked(constraint: constrain.Constraint, budget: int | None, seed: int) -> list[bytes]:
    """The masks of a random text, and how many tokens each place needs to finish."""
    rng, matcher, found = Random(seed), constraint.matcher(budget), []
    for _ in range(8):
        row = constraint.allocate_bitmask()[0]
        matcher.fill_bitmask(row)
        found.append(row.tobytes() + bytes([matcher.min_tokens_left % 256]))
        allowed = [bit for bit in range(constraint.vocabulary.n_vocab) if row[bit // 32] >> (bit % 32) & 1]
        token = rng.choice(allowed)
        assert matcher.accept(token)
        if matcher.is_finished:
            break
    return found


@pytest.mark.slow
def test_masks_taken_from_another_grammar_are_those_that_are_computed() -> None:
    tokens = tokens_for(Random(5))
    end = [len(tokens) - 1]
    shared = constrain.Vocabulary.from_tokens(tokens, eos=end)
    for seed, case, _ in islice(cases(), GRAMMARS):
        alone = constrain.compile(Lark(case.text), constrain.Vocabulary.from_tokens(tokens, eos=end), cache=False)
        for budget in (None, alone.report.min_tokens + 2):
            expected = walked(alone, budget, seed)
            for lines in range(1, 3):  # the second one finds what the first one left in the vocabulary
                beside = constrain.compile(Lark(case.text + "\n" * lines), shared, cache=False)
                assert beside is not alone
                assert walked(beside, budget, seed) == expected, case.text


def reader(text: str) -> lark.Lark | None:
    """Lark's parser; None for a grammar that Lark refuses: terminals that may be empty."""
    try:
        return lark.Lark(text, parser="earley", lexer="dynamic_complete")
    except lark.exceptions.LarkError:
        return None
