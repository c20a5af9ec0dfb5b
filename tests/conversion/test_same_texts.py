"""A converted grammar has the texts of the original: by our reader of GBNF, and by a recogniser of its own for EBNF."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

import constrain
from constrain import Gbnf, grammars
from tests.conversion.plain_grammars import Recogniser, as_ebnf, as_gbnf, random_rules
from tests.gbnf.grammars import CASES, Case
from tests.support import LONG, byte_vocabulary
from tests.support.matching import mask_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAMMARS = 3_000 if LONG else 60
TEXTS = 100 if LONG else 12
LONGEST = 30
"""Characters of a text for the recogniser, which takes the cube of them."""

SUM = "sum = digit, { '+', digit } ; digit = '0' | '1' ;"


def compiled(source: constrain.Source) -> constrain.Constraint:
    return constrain.compile(source, byte_vocabulary(), cache=False)


def walked(constraint: constrain.Constraint, alphabet: bytes, rng: Random) -> str:
    """A text of the language: some allowed bytes of an alphabet, and a short end."""
    matcher, text = constraint.matcher(), b""
    for _ in range(rng.randint(1, 15)):
        mask = mask_of(matcher)
        allowed = [byte for byte in sorted(set(alphabet)) if mask[byte]]
        if not allowed:
            break
        byte = rng.choice(allowed)
        assert matcher.accept(byte)
        text += bytes([byte])
    return (text + matcher.shortest_completion()).decode()


def changed(text: str, letters: str, rng: Random) -> str:
    found = list(text)
    at = rng.randint(0, len(found))
    found[at : at + rng.randint(0, 1)] = rng.choices(letters, k=rng.randint(0, 2))
    return "".join(found)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cases_of_gbnf(case: Case) -> None:
    converted = compiled(grammars.convert(case.grammar, "gbnf"))
    assert [text for text in case.accepted if not converted.accepts(text)] == []
    assert [text for text in case.rejected if converted.accepts(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_changed_and_walked_texts_of_cases_of_gbnf(name: str) -> None:
    case, rng = CASES[name], Random(name)
    original, converted = compiled(Gbnf(case.grammar)), compiled(grammars.convert(case.grammar, "gbnf"))
    letters = "".join((*case.accepted, *case.rejected)) + "x"
    for _ in range(TEXTS):
        for text in (
            changed(rng.choice(case.accepted), letters, rng),
            walked(original, letters.encode(), rng),
            walked(converted, letters.encode(), rng),
        ):
            assert converted.accepts(text) == original.accepts(text), repr(text)


def texts(constraint: constrain.Constraint, rng: Random) -> Iterator[str]:
    letters = "abcé-"
    for _ in range(6):
        text = walked(constraint, letters.encode(), rng)
        yield from (text, changed(text, letters, rng), "".join(rng.choices(letters, k=rng.randint(0, 6))))


def differences(syntax: str, seed: int, seen: Counter[str]) -> Iterator[str]:
    """The texts of a random grammar about which the conversion differs from the recogniser, and from our GBNF."""
    rng = Random(seed)
    rules = random_rules(rng, ebnf=syntax == "ebnf")
    original = as_ebnf(rules) if syntax == "ebnf" else as_gbnf(rules)
    try:
        lark = grammars.convert(original, syntax)  # type: ignore[arg-type]
    except constrain.GrammarError as error:
        if "the language is empty" not in error.message and "this exception leaves nothing" not in error.message:
            raise
        seen["refused"] += 1
        return
    converted, judge = compiled(lark), Recogniser(rules)
    seen["with terminals"] += "Names in capitals are terminals" in lark.text
    seen["without some"] += "No terminals" in lark.text
    others = [compiled(Gbnf(original))] if syntax == "gbnf" else []
    for text in {*texts(converted, rng), *(text for other in others for text in texts(other, rng))}:
        if len(text) <= LONGEST:
            expected = judge.accepts(text)
            seen["accepted" if expected else "rejected"] += 1
            if any(each.accepts(text) != expected for each in (converted, *others)):
                yield f"{text!r} of\n{original}\nis {'' if expected else 'not '}accepted, other than by\n{lark.text}"


@pytest.mark.slow
@pytest.mark.parametrize("syntax", ["gbnf", "ebnf"])
def test_random_grammars(syntax: str) -> None:
    seen: Counter[str] = Counter()
    assert [each for seed in range(GRAMMARS) for each in differences(syntax, seed, seen)] == []
    assert seen["accepted"] > GRAMMARS
    assert seen["rejected"] > GRAMMARS
    assert seen["with terminals"] > GRAMMARS / 10
    assert seen["refused"] < GRAMMARS / 3


@pytest.mark.parametrize(
    ("rules", "accepted", "rejected"),
    [
        ({"s": ("rep", ("text", "ab"), 1, None)}, ["ab", "abab"], ["", "aba"]),
        ({"s": ("alt", (("seq", (("name", "s"), ("text", "a"))), ("seq", ())))}, ["", "a", "aaa"], ["b", "ab"]),
        ({"s": ("except", ("rep", ("text", "a"), 0, None), ("text", "aa"))}, ["", "a", "aaa"], ["aa", "b"]),
        ({"s": ("except", ("rep", ("text", "a"), 0, 1), None)}, ["a"], ["", "aa"]),
        (
            {
                "s": ("seq", (("name", "p"), ("class", "ab", True), ("name", "p"))),
                "p": ("rep", ("alt", (("text", "a"), ("seq", (("name", "p"), ("name", "p"))))), 0, 2),
            },
            ["c", "aca", "aaacaa"],
            ["a", "cc", "ab"],
        ),
    ],
)
def test_the_recogniser_itself(rules: dict[str, object], accepted: list[str], rejected: list[str]) -> None:
    judge = Recogniser(rules)
    assert [text for text in accepted if not judge.accepts(text)] == []
    assert [text for text in rejected if judge.accepts(text)] == []


def test_ebnf_as_people_write_it() -> None:
    converted = compiled(grammars.convert(SUM, "ebnf"))
    assert converted.accepts("0+1+1")
    assert not converted.accepts("0+")
