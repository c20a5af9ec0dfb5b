"""Guessed tokens change no answer: every place is chosen with the logits after the tokens before it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.answer_matcher import AnswerMatcher
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.loading import Llama
from constrain.llama.speculation.gain import Gain, Kind
from constrain.llama.speculation.guesses import Lookup, Speculation
from tests.support import LONG
from tests.support.llama.alone import Alone

TOKENS = [bytes([97 + number]) for number in range(20)] + [b""]
EOS = 20
VOCABULARY = constrain.Vocabulary.from_tokens(TOKENS, eos=[EOS], encode=lambda text: [byte - 97 for byte in text])
CHEAP = {1: 1.0, 8: 1.5}
"""Costs with which all guesses are worth it."""


class Evaluator(Alone):
    """A model whose logits are a function of the last two tokens, and which likes to repeat itself."""

    leaves_a_core = False
    one_state = False

    def __init__(self) -> None:
        super().__init__(len(TOKENS))
        self.rows: list[int] = []  # number of tokens before each row of logits
        self.evaluations = 0

    def prefill(self, tokens: Sequence[int], deadline: float | None = None, **_: Any) -> int:
        assert deadline is None
        self.evaluated = []
        self.decode_with(tokens, [])
        return 0

    def decode(self, tokens: Sequence[int], read: object = None) -> None:
        assert read is None
        self.decode_with(tokens, [])

    def decode_with(self, tokens: Sequence[int], guesses: Sequence[int]) -> None:
        begin = len(self.evaluated)
        self.evaluated += [*tokens, *guesses]
        self.rows = [begin + number + 1 for number in range(len(tokens) + len(guesses))]
        self.evaluations += 1

    def remove(self, count: int) -> None:
        assert 0 < count < len(self.evaluated)
        del self.evaluated[-count:]

    def logits(self, row: int = -1) -> np.ndarray[Any, np.dtype[np.float32]]:
        before = self.evaluated[: self.rows[row]]
        logits = np.random.default_rng(before[-2:]).normal(0, 3, len(TOKENS)).astype(np.float32)
        logits[EOS] -= 2
        return logits


class Wild:
    """Guesses at random, right and wrong: up to five tokens."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tokens: list[int] = []
        self.learned: list[tuple[int, int]] = []

    def extend(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens

    def restart(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)

    def guess(self, n_tokens: int, room: int, matcher: AnswerMatcher | None) -> list[int]:
        assert n_tokens > 0
        del matcher
        evaluator, found = Evaluator(), list(self.tokens)
        evaluator.evaluated = found
        for _ in range(min(room, self.random.randrange(6))):
            evaluator.rows = [len(found)]
            right = int(evaluator.logits().argmax())
            found.append(right if self.random.random() < 0.8 else self.random.randrange(EOS))
        return found[len(self.tokens) :]

    def learn(self, n_guessed: int, n_right: int) -> None:
        assert 0 <= n_right <= n_guessed
        self.learned.append((n_guessed, n_right))


def decode(pattern: str | None, seed: int, temperature: float, guesser: Wild | Speculation | None) -> Decoding:
    prompt = [1, 2, 3]
    answer = Answer(
        prompt,
        Chain(Sampling(temperature=temperature, seed=seed), len(TOKENS), 400),
        None if pattern is None else constrain.compile(constrain.Regex(pattern), VOCABULARY).matcher,
        eos=VOCABULARY.eos,
        encode=VOCABULARY.encode,
        token_bytes=VOCABULARY.token_bytes,
        max_tokens=60,
    )
    if isinstance(guesser, Wild):
        guesser.extend(prompt)
    decoding = Decoding(Evaluator(), answer, speculation=guesser)
    taken = list(decoding.steps())
    assert taken == answer.tokens
    return decoding


@pytest.mark.slow(but=("0.7",))
@pytest.mark.parametrize("pattern", [None, "[a-t]{5,60}", "(abc|[d-t]{3}){1,15}", "([a-j]+klm){2,9}"])
@pytest.mark.parametrize("temperature", [0, 0.7, 3])
def test_guesses_change_no_answer(pattern: str | None, temperature: float) -> None:
    right = wrong = saved = 0
    for seed in range(40 if LONG else 8):
        plain = decode(pattern, seed, temperature, None)
        guessed = decode(pattern, seed, temperature, Wild(seed))
        assert guessed.answer.tokens == plain.answer.tokens
        assert guessed.answer.finish_reason == plain.answer.finish_reason
        right += guessed.n_right
        wrong += guessed.n_guessed - guessed.n_right
        assert isinstance(plain.evaluator, Evaluator)
        assert isinstance(guessed.evaluator, Evaluator)
        saved += plain.evaluator.evaluations - guessed.evaluator.evaluations
    assert wrong > 4
    assert right > 1
    assert saved > 0


def test_a_lookup_finds_what_followed_the_last_occurrence() -> None:
    lookup = Lookup([1, 2, 3, 4, 5, 9, 1, 2, 3, 7])
    assert lookup.find(3) == (0, [])
    lookup.extend([2, 3])
    assert lookup.find(3) == (2, [7, 2, 3])
    lookup.extend([1, 2, 3])
    assert lookup.find(2) == (3, [7, 2])
    assert lookup.find(99) == (3, [7, 2, 3, 1, 2, 3])
    assert [Lookup([5] * count).find(4) for count in range(4)] == [(0, [])] * 3 + [(2, [5])]


@pytest.mark.parametrize(
    ("every", "guesses"),
    [
        ({1: 1.0, 8: 1.0}, 7),  # several cost what one costs
        ({1: 1.0, 8: 8.0}, 0),  # in proportion: a guess can save no more than it costs
        ({1: 1.0, 4: 1.5, 8: 8.0}, 3),  # four together, not more
    ],
)
def test_as_many_guesses_as_pay(every: dict[int, float], guesses: int) -> None:
    assert Gain(every).best([Kind.FOUND_AFTER_THREE] * 7, 1) == guesses


def test_guesses_that_do_not_come_true_end() -> None:
    gain, kinds = Gain({1: 1.0, 8: 3.0}), [Kind.FOUND_AFTER_THREE] * 7
    assert gain.best(kinds, 1) > 0
    for _ in range(20):
        gain.record(kinds[:4], 0)
    assert gain.best(kinds, 1) == 0
    assert gain.best([Kind.FOUND_AFTER_TWO] * 7, 1) > 0  # each kind has its own record
    for _ in range(40):
        gain.record(kinds[:4], 4)
    assert gain.best(kinds, 1) > 0


def test_guesses_behind_a_wrong_one_are_not_counted() -> None:
    gain = Gain(CHEAP)
    before = gain.probability(Kind.FOUND_AFTER_THREE), gain.probability(Kind.FOUND_AFTER_TWO)
    gain.record([Kind.FOUND_AFTER_TWO, Kind.FOUND_AFTER_THREE, Kind.FOUND_AFTER_TWO], 1)
    after = gain.probability(Kind.FOUND_AFTER_THREE), gain.probability(Kind.FOUND_AFTER_TWO)
    assert after[0] < before[0]
    assert after[1] == pytest.approx((5 * 0.5 + 1) / 6)


@pytest.mark.parametrize(("every", "can"), [(CHEAP, True), ({1: 1.0, 8: 8.0}, False), ({1: 1.0}, False)])
def test_where_no_guess_can_pay_none_are_made(every: dict[int, float], *, can: bool) -> None:
    assert Gain(every).can_pay is can


def test_only_allowed_tokens_are_guessed() -> None:
    speculation = Speculation([0, 1, 2, 3, 4, 0], CHEAP)
    matcher = constrain.compile(constrain.Regex("abcd[x-z]?"), VOCABULARY).matcher(10)
    assert matcher.accept(1 - 1)
    speculation.extend([1])
    assert speculation.guess(1, 9, matcher) == []  # bc: not after "ab" of the prompt, as only "a" was taken here
    assert matcher.accept(1)
    assert speculation.guess(1, 9, matcher) == [2, 3]  # e may not follow
    assert matcher.completion_tokens()  # the matcher is where it was
    assert speculation.guess(1, 1, matcher) == [2]


def test_nothing_is_guessed_from_the_end_of_an_answer_on() -> None:
    assert Speculation([0, 1, 2, 3, EOS, 5, 0, 1, 2], CHEAP, {EOS}).guess(1, 9, None) == [3]
    assert Speculation([0, 1, 2, EOS, 4, 5, 0, 1, 2], CHEAP, {EOS}).guess(1, 9, None) == []


def test_no_more_tokens_are_evaluated_than_were_measured() -> None:
    speculation = Speculation([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2], CHEAP)
    assert [len(speculation.guess(n_tokens, 99, None)) for n_tokens in (1, 5, 8, 30)] == [7, 3, 0, 0]


@pytest.mark.slow
def test_a_small_batch_has_room_for_the_guesses(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llama = Llama(str(tiny), n_ctx=512, n_batch=4, n_threads=1, flash_attn=True, verbose=False)
    model = constrain.Model(llama, speculate=True, keep_prompts=False)
    answer = constrain.complete(model, REPEATED, schema=NAMES, temperature=0, max_tokens=60)
    assert isinstance(answer.value, list)
    assert model._every is not None
    assert max(model._every) == 4
    monkeypatch.setattr(model, "_every", {1: 1.0, 4: 1.1})
    decoding = watch(monkeypatch)
    again = constrain.complete(model, REPEATED, schema=NAMES, temperature=0, max_tokens=60)
    assert again.text == answer.text
    assert decoding[-1].n_guessed > 0
    model.close()
    llama.close()


def watch(monkeypatch: pytest.MonkeyPatch) -> list[Decoding]:
    """The decodings from here on."""
    seen: list[Decoding] = []
    steps = Decoding.steps

    def watched(decoding: Decoding) -> Any:
        seen.append(decoding)
        return steps(decoding)

    monkeypatch.setattr(Decoding, "steps", watched)
    return seen


@pytest.fixture(scope="module")
def flash(tiny: Path) -> Iterator[constrain.Model]:
    """A model whose evaluations of one and of several tokens are rounded alike."""
    with constrain.Model(tiny, n_ctx=1024, n_threads=1, speculate=True) as model:
        yield model


REPEATED = "Alexandria Montgomery, Alexandria Montgomery, Alexandria Montgomery, Alexandria Montgomery"
COPY = (
    "Repeat the list as JSON. The list: Alexandria Montgomery, Bartholomew Fitzgerald, Alexandria Montgomery, "
    "Bartholomew Fitzgerald, Alexandria Montgomery, Bartholomew Fitzgerald."
)
NAMES = {
    "type": "array",
    "items": {"type": "string", "pattern": "^(Alexandria Montgomery|Bartholomew Fitzgerald|[A-Z][a-z]+)$"},
    "minItems": 4,
    "maxItems": 6,
}


def test_what_evaluations_cost_is_measured_before_the_first_guess(tiny: Path) -> None:
    with constrain.Model(tiny, n_ctx=512, n_threads=1, speculate=True, keep_prompts=False) as model:
        constrain.complete(model, COPY, schema=NAMES, temperature=0, max_tokens=60)
        assert model._every is not None
        assert set(model._every) >= {1, 2, 4, 8}


def test_answers_with_log_probabilities_have_no_guesses(
    flash: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "_every", CHEAP)
    seen = watch(monkeypatch)
    assert constrain.complete(flash, COPY, schema=NAMES, logprobs=True, max_tokens=60).logprobs
    assert seen[-1].speculation is None
    constrain.complete(flash, COPY, schema=NAMES, max_tokens=60)
    assert seen[-1].speculation is not None


def test_rules_that_limit_tokens_have_no_guesses(flash: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash, "_every", CHEAP)
    seen = watch(monkeypatch)
    grammar = constrain.Lark('start: "names: " names\nnames[max_tokens=30]: %json {"type": "array", "maxItems": 3}')
    assert constrain.compile(grammar, flash.vocabulary).has_limited_rules
    constrain.complete(flash, COPY, schema=grammar, max_tokens=60)
    assert seen[-1].speculation is None


@pytest.mark.slow
def test_an_abandoned_stream_leaves_no_guesses_behind(flash: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"schema": NAMES, "temperature": 0, "max_tokens": 60}
    expected = constrain.complete(flash, COPY, **options).text
    monkeypatch.setattr(flash, "_every", CHEAP)
    for number in range(6):
        stream = constrain.stream(flash, COPY, **options)
        for _ in range(number):
            next(stream)
        stream.close()
        assert constrain.complete(flash, COPY, **options).text == expected


@pytest.mark.slow  # a measurement that takes longer than the answer may
def test_measuring_takes_no_time_of_an_answer(flash: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash, "_every", None)
    measured = flash._measured_alone

    def slow(*arguments: Any) -> Any:
        time.sleep(2.5)
        return measured(*arguments)

    monkeypatch.setattr(flash, "_measured_alone", slow)
    assert constrain.complete(flash, "Yes?", schema=bool, timeout=2).finish_reason == "stop"
