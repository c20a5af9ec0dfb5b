"""The option ``max_tokens`` of rules around grammars, JSON Schemas, tokens and other rules."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import pytest

import constrain
from constrain import Lark, engine, kernel
from tests.support import LONG, allowed, byte_vocabulary, for_each, small_vocabulary
from tests.support.matching import require_protocol
from tests.support.oracles.lark.generator import make_case

SEEDS = range(240 if LONG else 40)
OPEN, THINK, CLOSE, WORD = 257, 258, 259, 260


def vocabulary_with_names() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokens(
        [*(bytes([byte]) for byte in range(256)), b"", b"", b"", b"", b"the"],
        eos=[256],
        special={256: "<|end|>", OPEN: "<|call|>", THINK: "<think>", CLOSE: "</think>"},
    )


def compiled(text: str, vocabulary: constrain.Vocabulary | None = None, **grammars: object) -> constrain.Constraint:
    return constrain.compile(Lark(text, grammars=grammars), vocabulary or byte_vocabulary(), cache=False)


ARRAY = '%json {"type": "array", "items": {"type": "integer"}}'


@for_each(
    "grammar, text, taken",
    [
        (f'start: "x" a "y"\na[max_tokens=5]: {ARRAY}', b"x[1,2]y", 7),
        (f'start: "x" a "y"\na[max_tokens=5]: {ARRAY}', b"x[1,23]y", 5),
        ('start: "x" a "y"\na[max_tokens=4]: %lark {\n start: W ("," W)*\n W: /[a-z]+/\n}', b"xab,cdy", 5),
        ('start: "x" a "y"\na[max_tokens=4]: %lark {\n start: W+\n W: /[a-z];/\n %ignore " "\n}', b"xa; b;y", 3),
        ('start: "x" a "y"\na[max_tokens=5]: "(" a ")" | "z"', b"x((z))y", 7),
        ('start: "x" a "y"\na[max_tokens=5]: "(" a ")" | "z"', b"x(((", 3),
        ('start: "x" a "y"\na[max_tokens=3]: b\nb: b "," C | C\nC: /[a-z]/', b"xa,b,c", 4),
        ('start: "x" a "y"\na[max_tokens=3]: B ("," B)*\nB: /[a-z]/', b"xa,b,c", 4),
        ('start: a "," a\na[max_tokens=2]: b?\nb: /[a-z]+/', b"ab,cd", 5),
        ('start: a "," a\na[max_tokens=2]: b?\nb: /[a-z]+/', b",abc", 3),
        ("start: a b\na[max_tokens=2]: b\nb: /[a-z]/+", b"abcdefgh", 8),
    ],
)
def test_a_rule_is_complete_within_its_tokens(grammar: str, text: bytes, taken: int) -> None:
    matcher = compiled(grammar).matcher()
    assert matcher.accept_many(text) == taken
    assert compiled(grammar.replace("max_tokens=", "max_tokens=99")).matcher().accept_many(text) == len(text)


def test_named_grammars_and_llguidances_lists_are_limited() -> None:
    text = 'start: "x" a b\na[max_tokens=4]: @list\nb: @list'
    matcher = compiled(text, list={"type": "array"}).matcher()
    assert matcher.accept_many(b'x[{"a":1}]') == 3  # a key takes more tokens than are left
    assert matcher.accept_many(b'}]["a",{"a":[]},1,1,1,1]') == 24
    listed = {"grammars": [{"lark_grammar": text}, {"name": "list", "json_schema": {"type": "array"}}]}
    assert compiled(json.dumps(listed)).matcher().accept_many(b'x["a"') == 3


def test_open_objects_and_values_of_any_depth_are_limited() -> None:
    matcher = compiled('start: "x" a "y"\na[max_tokens=12]: %json {"type": "object", "required": ["k"]}').matcher()
    assert matcher.accept_many(b'x{"k":[{}],') == 10
    assert matcher.accept_many(b"}y") == 2
    assert matcher.is_finished


@for_each(
    "body, tokens, taken",
    [
        ("<think> /[a-z ]+/ </think>", [THINK, *b"abcdef"], 4),
        ("<think> /[a-z ]+/ </think>", [THINK, *b"abc", CLOSE, *b"1"], 6),
        ("<[*]>*", [WORD, THINK, CLOSE, WORD, OPEN, *b"1"], 6),
        ("<[*]>*", [WORD, THINK, CLOSE, WORD, OPEN, WORD], 5),
        ("(<[260]> <[258]>)*", [WORD, THINK, WORD, THINK, WORD], 4),
        ("(<think> /[a-z]*/)+ </think>", [THINK, *b"ab", THINK, CLOSE, *b"1"], 6),
        ("(<think> /[a-z]*/)+ </think>", [THINK, *b"ab", THINK, *b"a"], 4),
        ("<[260]>+ /[a-z]*/", [WORD, *b"the", WORD, *b"1"], 6),
    ],
)
def test_tokens_that_a_rule_names_count(body: str, tokens: list[int], taken: int) -> None:
    matcher = compiled(f"start: t /[0-9]/\nt[max_tokens=5]: {body}", vocabulary_with_names()).matcher()
    assert matcher.accept_many(tokens) == taken


def test_texts_without_the_option_are_texts_with_it() -> None:
    constraint = compiled(f'start: "x" a "y"\na[max_tokens=5]: {ARRAY}')
    assert constraint.accepts("x[1,2,3,4,5]y")
    assert not constraint.accepts("x[1,2,3,4,5y")


def test_tokens_do_not_cross_the_borders_of_a_limited_rule() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"", b"x[", b"[1", b"1]", b"]y", b"y."]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[256])
    matcher = compiled(f'start: "x" a "y" "."\na[max_tokens=5]: {ARRAY}', vocabulary).matcher()
    assert not matcher.fork().accept(257)
    assert not matcher.explain(257).endswith("is allowed")
    assert matcher.accept_many([ord("x"), 258]) == 2
    assert matcher.fork().accept(259)
    assert not matcher.fork().accept(260)
    assert matcher.accept_many([ord("]"), 261]) == 2
    assert matcher.is_finished


def test_a_matcher_of_a_limited_rule_goes_back_and_forks() -> None:
    matcher = compiled(f'start: ("x" a "y")*\na[max_tokens=6]: {ARRAY} | "z"').matcher()
    written = b"x[1,2]yxzyx[12,1"
    row = compiled("start: /x/").allocate_bitmask()[0]
    found = []
    for byte in written:
        found.append(set(allowed(matcher, row).tolist()))
        assert matcher.accept(byte)
    twin = matcher.fork()
    for back in (1, 3, 7):
        for _ in range(back):
            matcher.rollback(1)
            assert set(allowed(matcher, row).tolist()) == found[matcher.n_accepted]
    assert twin.n_accepted == len(written)
    assert twin.accept_many(b"]y") == 2
    matcher.reset()
    assert set(allowed(matcher, row).tolist()) == found[0]


GRAMMARS = {
    "json": '%json {"type": "object", "properties": {"a": {"type": "string"}}}',
    "any json": "%json {}",
    "list": '%lark {\n start: w ("," w)*\n w: /[a-z_]{2,}/ \n %ignore / +/\n}',
    "recursive": '%lark {\n start: "(" start* ")" | /[a-z]+/ ";"\n}',
}


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, 0, 1, 5, 40])
@pytest.mark.parametrize("name", GRAMMARS)
def test_walks_end_within_limits_and_budget(name: str, budget: int | None) -> None:
    """Random walks, on tokens of several bytes: each rule is complete within its tokens, and the text in its budget."""
    inner, most = GRAMMARS[name], 7
    vocabulary = small_vocabulary()
    text = f'start: item+ "."\nitem: "\\x01" a "\\x02"\na[max_tokens={most}]: {inner}'
    constraint, unlimited = compiled(text, vocabulary), compiled(text.replace(f"[max_tokens={most}]", ""), vocabulary)
    row, least = constraint.allocate_bitmask()[0], constraint.matcher().min_tokens_left
    assert constraint.report.min_tokens == least
    for seed in range(20 if LONG else 2):
        rng, tokens = Random(f"{name} {budget} {seed}"), list[int]()
        matcher = constraint.matcher(max_tokens=None if budget is None else least + budget)
        while not matcher.is_finished and len(tokens) < 60:
            choices = [int(token) for token in allowed(matcher, row) if token not in vocabulary.eos]
            if not choices:
                assert matcher.is_accepting
                break
            token = rng.choice(choices)
            assert matcher.accept(token), tokens
            tokens.append(token)
        ending = matcher.completion_tokens()
        assert len(ending) == matcher.min_tokens_left
        assert matcher.accept_many(ending) == len(ending)
        tokens += ending
        written = b"".join(map(vocabulary.token_bytes, tokens))
        assert unlimited.accepts(written), written
        assert constraint.accepts(written), written
        assert budget is None or len(tokens) <= least + budget
        inside = -1
        for token in tokens:
            piece = vocabulary.token_bytes(token)
            assert piece == b"\x01" or b"\x01" not in piece, "no token crosses a border"
            inside = 0 if piece.startswith(b"\x01") else -1 if piece.startswith(b"\x02") else inside + (inside >= 0)
            assert inside <= most, written


def with_limits(grammar: str, rng: Random, most: int) -> tuple[str, bool]:
    """The grammar with the same limit, and captures, for about half of its rules; and whether any has one.

    What a rule reads becomes a rule of its own: otherwise some of them would be one lexeme.
    """
    lines, any_limit = [], False
    for line in grammar.split("\n"):
        found = re.match(r"[?!]?(p|q|_r): ?", line)
        if found and rng.random() < 0.6:
            any_limit, name = True, found[1]
            lines.append(f'{name}[max_tokens={most}, capture="{name}"]: {name}_in')
            line = f"{name}_in: {line[found.end() :]}"  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines), any_limit


def masks_along(constraint: constrain.Constraint, other: constrain.Constraint, rng: Random, alphabet: bytes) -> int:
    """Random texts, byte by byte: both constraints have the same masks all the way. Returns how many were compared."""
    rows = constraint.allocate_bitmask()[0], other.allocate_bitmask()[0]
    compared = 0
    for _ in range(4):
        matcher, twin = constraint.matcher(), other.matcher()
        for _ in range(8):
            matcher.fill_bitmask(rows[0])
            twin.fill_bitmask(rows[1])
            assert (rows[0] == rows[1]).all(), matcher.n_accepted
            compared += 1
            choices = [byte for byte in allowed(matcher, rows[0]).tolist() if byte in set(alphabet)]
            if not choices:
                break
            byte = rng.choice(choices)
            assert matcher.accept(byte)
            assert twin.accept(byte)
    return compared


@pytest.mark.slow
def test_a_limit_that_is_never_met_changes_no_mask() -> None:
    """On bytes no token crosses a border, so a limit that is high enough leaves all masks as they are, bit by bit."""
    found = Counter[str]()
    for seed in SEEDS:
        case, rng = make_case(seed), Random(seed)
        text, is_limited = with_limits(case.text, rng, 1_000)
        try:
            plain = compiled(case.text)
            is_limited &= (
                kernel.lexing_conflict(plain.grammar, lossless=True) is None
            )  # other texts may have other lexemes
        except (constrain.GrammarError, constrain.LimitError):
            continue
        if is_limited:
            try:
                found["masks"] += masks_along(compiled(text), plain, rng, case.alphabet)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}\n{text}") from error
            found["grammars"] += 1
    assert found["grammars"] > 5, found
    assert found["masks"] > 10 * found["grammars"], found


@pytest.mark.slow
def test_random_rules_keep_low_limits() -> None:
    """Each captured text of a limited rule has at most as many bytes as the rule may have tokens."""
    found = Counter[str]()
    for seed in SEEDS:
        case, rng = make_case(seed), Random(seed)
        most = rng.randint(1, 4)
        text, is_limited = with_limits(case.text, rng, most)
        if not is_limited:
            continue
        try:
            constraint = compiled(text)
        except (constrain.GrammarError, constrain.LimitError) as error:
            found["too few" if "too few" in error.message else "refused"] += 1
            continue
        for budget in (None, 0, 3):
            least = constraint.report.min_tokens
            matcher, written = constraint.matcher(max_tokens=None if budget is None else least + budget), b""
            row = constraint.allocate_bitmask()[0]
            for _ in range(6):
                require_protocol(matcher, rng)
                choices = [byte for byte in allowed(matcher, row).tolist() if byte != 256]
                if not choices:
                    break
                byte = rng.choice(choices)
                assert matcher.accept(byte), (seed, written)
                written += bytes([byte])
            ending = matcher.completion_tokens()
            assert matcher.accept_many(ending) == len(ending), (seed, written, ending)
            written += bytes(token for token in ending if token != 256)
            assert budget is None or len(written) <= least + budget
            captures = constraint._captures_of_tokens(list(written))
            assert captures is not None, (seed, written)
            found["texts"] += 1
            found["captures"] += len(captures)
    assert found["texts"] > 5, found


def test_limits_and_tokens_by_id_are_read_together() -> None:
    text = 'start: a b\na[max_tokens=3, capture]: <[260]>* c\nc: /[a-z]*/ ";"\nb[capture]: <[^258]>*'
    constraint = compiled(text, vocabulary_with_names())
    matcher = constraint.matcher()
    assert matcher.accept_many([WORD, *b"t;", WORD, OPEN]) == 5
    matcher.reset()
    assert matcher.accept_many([WORD, *b"th"]) == 2
    found = constraint._captures_of_tokens([WORD, *b"t;", WORD, OPEN])
    assert found == {"a": "thet;", "b": "the"}


def test_no_walk_over_tokens_with_several_readings_strands_within_its_budget() -> None:
    text = """
        start: q start~0..3 p | A |
        q[max_tokens=6]: <[97,99]>* start | "." /[ab]*/
        p[max_tokens=6]: r
        r: | r <[99,259,100]>
        A: /[ab]+/
    """
    constraint = compiled(text, vocabulary_with_names())
    row = constraint.allocate_bitmask()[0]
    for budget, seed in product((0, 2, 8), range(4)):
        matcher, rng = constraint.matcher(max_tokens=budget), Random(seed)
        while choices := [token for token in allowed(matcher, row).tolist() if token != 256]:
            assert matcher.accept(rng.choice(choices))
        assert matcher.is_accepting, (budget, seed)
        assert matcher.n_accepted == budget


def test_parts_of_a_limited_rule_keep_their_options() -> None:
    text = """
        start: "<" a ">"
        a[max_tokens=8]: name "=" value
        name[max_tokens=2, temperature=0.5, capture]: /[a-z]+/
        value[capture="v"]: %json {"type": "integer"}
    """
    constraint = compiled(text)
    assert constraint.captures("<abc=12>") == {"name": "abc", "v": "12"}
    matcher = constraint.matcher()
    assert matcher.accept_many(b"<abc") == 3
    matcher.rollback(1)
    assert matcher.temperature == 0.5
    assert matcher.accept_many(b"b=12345678>") == 7


def test_limits_of_strings_hold_inside_a_limited_rule() -> None:
    constraint = compiled('start: "<" a ">"\na[max_tokens=60]: %json {"type": "string"}')
    matcher = constraint.matcher(max_string_tokens=3)
    taken = matcher.accept_many(b'<"abcdefghijklmnop')
    assert 4 <= taken < 17
    assert matcher.is_narrowed
    assert not matcher.is_narrowed_by_budget
    assert matcher.accept_many(b'">') == 2


def test_a_budget_that_is_lower_than_the_limit_is_told() -> None:
    constraint = compiled(f'start: "x" a "y"\na[max_tokens=50]: {ARRAY}')
    with pytest.raises(constrain.BudgetError) as caught:
        constraint.matcher(max_tokens=3)
    assert caught.value.needed == 4
    matcher = constraint.matcher(max_tokens=9)
    assert matcher.accept_many(b"x[1,2,34567") == 9 - 2
    assert matcher.is_narrowed_by_budget
    assert matcher.accept_many(b"]y") == 2


def test_a_kept_constraint_has_the_limits(tmp_path: Path) -> None:
    grammar = Lark('start: "x" a\na[max_tokens=3]: b\nb: /[a-z]/+')
    assert constrain.compile(grammar, byte_vocabulary(), cache=tmp_path).precompute().file is not None
    engine.remembered.remembered_constraints.forget(byte_vocabulary())
    kept = constrain.compile(grammar, byte_vocabulary(), cache=tmp_path)
    assert kept.matcher().accept_many(b"xabcd") == 4


def test_tokens_outside_a_limited_rule_are_explained() -> None:
    matcher = compiled(f'start: "x" a "y"\na[max_tokens=5]: {ARRAY}').matcher()
    assert "expected" in matcher.explain(ord("q"))
    assert matcher.accept_many(b"x[1,2") == 5
    assert "leaves too little of max_tokens" in matcher.explain(ord("3"))
    assert matcher.explain(ord("]")).endswith("is allowed")
    assert not matcher.explain(256).endswith("is allowed")


@for_each(
    "text, message, place",
    [
        (f"start: a\na[max_tokens=1]: {ARRAY}", "max_tokens=1 is too few: its shortest text takes 2 tokens", (2, 14)),
        ("start: a\na[max_tokens=0]: <[5]>", "max_tokens is a whole number from 1", (2, 3)),
        ('start: a\na[max_tokens=5]: b\nb[max_tokens=2]: c\nc: "x"', "b has a lower limit than the rule a", (3, 14)),
        ('start: a\na[max_tokens=5, lazy]: b\nb: "x"', "option lazy needs a rule of strings", (2, 17)),
        ('start: a\na[max_tokens=5, temperature=1]: b\nb: "x"', "option temperature needs a rule of", (2, 17)),
    ],
)
def test_limits_that_cannot_hold_are_refused_with_their_place(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(constrain.GrammarError, match=message) as caught:
        compiled(text)
    assert (caught.value.line, caught.value.column) == place


def test_a_higher_limit_inside_a_limited_rule_says_nothing() -> None:
    matcher = compiled('start: a "."\na[max_tokens=2]: b\nb[max_tokens=9]: c\nc: /[a-z]/+').matcher()
    assert matcher.accept_many(b"abc") == 2


def test_what_was_shortened_is_counted_once_around_rules_with_a_limit() -> None:
    text = 'start: b ";" a "," a "."\na[max_tokens=9]: "<" n ">"\nn: "x"\nb: %json {"type": "string"}'
    vocabulary = byte_vocabulary()
    matcher = constrain.compile(Lark(text), vocabulary, cache=False).matcher(max_string_tokens=4)
    for byte in b'"' + b"a" * 11:  # 8 of them beyond the limit
        assert matcher.accept(byte)
    matcher.fill_bitmask(matcher.constraint.allocate_bitmask()[0])
    written = bytes(matcher.shortest_completion())
    assert written == b'";<x>,<x>.'
    counts = []
    for byte in written:
        assert matcher.accept(byte)
        counts.append(matcher.n_shortened)
    assert counts[0] == counts[-1] == 1
