"""Matchers that go on in another grammar: masks, budgets and rollbacks where values depend on others."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from constrain import Vocabulary
from constrain import compile as compile_schema
from constrain.engine.staged import Staged
from constrain.errors import LimitError
from constrain.language.grammar import GrammarBuilder, Kind
from constrain.language.tree import Literal, LiteralSet
from constrain.vocabulary.vocabulary import byte_vocabulary

if TYPE_CHECKING:
    from constrain.engine.constraint import Constraint
    from constrain.engine.staged import Staged
from constrain.language.grammar import Grammar


@dataclass(frozen=True)
class Toy:
    """``<n>,<m>,`` with two numbers below 100, where m is at least n (or, with ``equal``, n)."""

    equal: bool = False
    text: bytes = b""

    @property
    def key(self) -> bytes | None:
        return self.text.partition(b",")[0] if b"," in self.text else None

    @property
    def may_refuse(self) -> bool:
        return self.equal

    @property
    def repeats(self) -> bool:
        return self.equal and self.key is None

    @property
    def begun(self) -> int:
        return 1

    @property
    def is_partly_written(self) -> bool:
        return bool(self.text)

    def fixed(self, rest: bytes) -> None:
        """None: the shortest numbers all cost one token in either place."""

    def begin(self) -> Toy:
        return self

    def read(self, data: bytes) -> Toy:
        return Toy(self.equal, self.text + data)

    def emitted(self) -> Grammar:
        key = None if self.key is None else self.key.decode()
        number, least = list(map(str, range(100))), 99 if key is None else int(key)
        later = (number if key is None else [key]) if self.equal else number[least:]
        builder = GrammarBuilder()
        comma, start = builder.terminal("COMMA", Literal(b",")), builder.rule("start")
        first, second = (
            builder.terminal(name, LiteralSet(tuple(each.encode() for each in texts)), kind=Kind.NUMBER)
            for name, texts in (("FIRST", number), ("SECOND", later))
        )
        builder.define(start, [[first, comma, second, comma]])
        return builder.build()


def staged(toy: Toy, vocabulary: Vocabulary) -> Constraint:
    constraint = compile_schema(toy.emitted(), vocabulary, cache=False)
    constraint.staged = Staged(constraint, toy)
    return constraint


def is_right(toy: Toy, text: bytes) -> bool:
    first, second, rest = text.split(b",")
    return not rest and (first == second if toy.equal else int(first) <= int(second))


WIDE = Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"12", b"7,", b"7,7", b"7,9", b"7,3", b"5,55,", b"9,9", b",", b"8", b""],
    eos=[265],
)


@pytest.mark.parametrize("vocabulary", [byte_vocabulary(), WIDE], ids=["bytes", "wide"])
@pytest.mark.parametrize("toy", [Toy(), Toy(equal=True)], ids=["least", "equal"])
@pytest.mark.parametrize("spare", [None, 0, 1, 3])
def test_walks_end_in_right_texts(toy: Toy, vocabulary: Vocabulary, spare: int | None) -> None:
    constraint = staged(toy, vocabulary)
    most = None if spare is None else constraint.matcher().min_tokens_left + spare
    mask, seen = constraint.allocate_bitmask()[0], set()
    for seed in range(40):
        rng, matcher = random.Random(seed), constraint.matcher(most)
        text, tokens = b"", 0
        while not (matcher.is_accepting or matcher.is_finished):
            matcher.fill_bitmask(mask)
            allowed = [token for token in range(vocabulary.n_vocab) if mask[token // 32] >> (token % 32) & 1]
            token = rng.choice(allowed)
            assert matcher.accept(token), (text, token)
            text, tokens = text + vocabulary.token_bytes(token), tokens + 1
            if rng.random() < 0.3:  # takes some tokens back, and takes them again
                back = rng.randint(1, tokens)
                again = [token] if back == 1 else []
                matcher.rollback(1)
                assert matcher.accept_many(again or [token]) == 1
        assert is_right(toy, text), text
        assert constraint.accepts(text)
        assert most is None or tokens <= most
        seen.add(text)
    assert len(seen) > 1 or spare == 0


def test_mask_has_no_token_that_goes_on_in_a_way_which_the_next_grammar_refuses() -> None:
    matcher = staged(Toy(equal=True), WIDE).matcher()
    mask = matcher.constraint.allocate_bitmask()[0]
    matcher.fill_bitmask(mask)
    allowed = {WIDE.token_bytes(token) for token in range(WIDE.n_vocab) if mask[token // 32] >> (token % 32) & 1}
    assert {b"7,", b"7,7", b"9,9", b"5,55,"} & allowed == {b"7,", b"7,7", b"9,9"}
    assert b"7,9" not in allowed
    candidates = np.zeros(WIDE.n_vocab, dtype=np.dtype("i4,f4,f4"))
    count = matcher.fill_candidates(np.zeros(WIDE.n_vocab, dtype=np.float32), candidates)
    assert {WIDE.token_bytes(token) for token in candidates["f0"][:count].tolist()} == allowed


def test_stages_of_one_mask_share_a_limit_on_steps() -> None:
    texts = [*(bytes([byte]) for byte in range(256)), *(f'{letter}"'.encode() for letter in string.ascii_letters)]
    item = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    schema = {"type": "array", "items": item, "x-unique-by": "/id"}
    constraint = compile_schema(schema, Vocabulary.from_tokens([*texts, b""], eos=[len(texts)]), cache=False)
    assert constraint.staged is not None
    constraint.staged.most_steps = 1_000  # enough for each of them
    matcher, mask = constraint.matcher(), constraint.allocate_bitmask()[0]
    assert matcher.accept_many(list(b'[{"id":"1"},{"id":"')) == 19
    assert matcher.fork().accept(texts.index(b'a"'))
    with pytest.raises(LimitError, match="more steps than 20000"):
        matcher.fill_bitmask(mask)


def test_rollback_goes_back_to_the_grammar_that_was_in_force() -> None:
    matcher = staged(Toy(), WIDE).matcher(10)
    assert matcher.accept_many(list(b"17,")) == 3
    assert not matcher.accept(ord("0"))
    matcher.rollback(2)
    assert matcher.accept_many(list(b",1")) == 2
    assert matcher.fork().accept(ord(","))
    matcher.reset()
    assert matcher.accept_many(list(b"98,98,")) == 6
    assert matcher.is_accepting


def test_completion_fits_the_values_that_were_written() -> None:
    matcher = staged(Toy(equal=True), byte_vocabulary()).matcher(18)
    assert matcher.accept_many(list(b"48")) == 2
    assert bytes(matcher.completion_tokens()) == b",48,"
    assert matcher.accept_many(list(b",48,")) == 4
    assert not staged(Toy(), byte_vocabulary()).accepts(b"17,16,")
