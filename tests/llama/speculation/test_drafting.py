"""A draft model guesses what the model allows, follows what was taken, and changes no answer."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import constrain
from constrain.llama.decoding.decode import Decoding
from constrain.llama.loading import load
from constrain.llama.speculation.drafting import DraftModel, require_same_tokens
from constrain.llama.speculation.guesses import Speculation
from tests.support import demo_model
from tests.support.llama.recurrent import write_mamba
from tests.support.llama.transformer import write_transformer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from constrain.llama.decoding.answer_matcher import AnswerMatcher

CHEAP = {1: 1.0, 16: 1.5}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer", "maximum": 130}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PROMPT = "Describe a person."


@pytest.fixture(scope="module")
def drafter() -> Iterator[DraftModel]:
    llama = load(demo_model(), 512, 0, 1, verbose=False, flash_attn=True)
    yield DraftModel(llama, llama.n_vocab())
    llama.close()


def after(drafter: DraftModel, tokens: list[int], matcher: AnswerMatcher | None = None) -> tuple[int, float]:
    """The guess after some tokens."""
    assert drafter.follow(tokens, None)
    return drafter.likeliest(matcher)


@pytest.fixture(scope="module")
def model() -> Iterator[constrain.Model]:
    """The demo model, with itself as its draft model: nearly all guesses are right."""
    model = constrain.Model(n_ctx=512, n_threads=1, draft_model=demo_model(), keep_prompts=False)
    yield model
    model.close()


def test_the_likeliest_token_is_guessed_whatever_was_guessed_before(drafter: DraftModel) -> None:
    prompts = [[1, 504, 1057], [1, 504, 1057, 30], [1, 504, 99, 98, 97], [1, 504, 99, 98], [7], [1, 504, 1057]]
    fresh = []
    for prompt in prompts:
        drafter.context.clear()
        drafter._known = []
        fresh.append(after(drafter, prompt))
    again = [after(drafter, prompt) for prompt in prompts]
    assert [token for token, _ in again] == [token for token, _ in fresh]
    assert [probability for _, probability in again] == pytest.approx(
        [probability for _, probability in fresh], abs=0.02
    )
    assert all(0 < probability <= 1 for _, probability in fresh)


def test_only_what_is_allowed_is_guessed(drafter: DraftModel, model: constrain.Model) -> None:
    constraint = constrain.compile(constrain.Regex("(yes|no)"), model.vocabulary)
    matcher = constraint.matcher(10)
    token, probability = after(drafter, [1, 504, 1057], matcher)
    assert model.vocabulary.token_bytes(token) in (b"y", b"ye", b"yes", b"n", b"no")
    assert 0.2 < probability <= 1
    assert matcher.accept(token)


def test_an_evaluation_that_failed_is_forgotten(drafter: DraftModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = after(drafter, [1, 504, 1057, 30, 31])
    with monkeypatch.context() as patch:
        patch.setattr(drafter.context.threads, "decode", lambda _: -1)
        with pytest.raises(constrain.ModelError):
            drafter.follow([1, 504, 1057, 30, 31, 32], None)
    assert after(drafter, [1, 504, 1057, 30, 31])[0] == expected[0]


def test_a_token_whose_evaluation_failed_is_forgotten(drafter: DraftModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = after(drafter, [1, 504, 1057, 31])
    assert drafter.follow([1, 504, 1057], None)
    with monkeypatch.context() as patch:
        patch.setattr(drafter.context.threads, "decode", lambda _: -1)
        with pytest.raises(constrain.ModelError):
            drafter.extend(30, None)
    assert after(drafter, [1, 504, 1057, 31])[0] == expected[0]


def test_one_token_more_is_the_same_as_all_of_them(drafter: DraftModel) -> None:
    assert drafter.follow([1, 504, 1057], None)
    assert drafter.extend(30, None)
    extended = drafter.likeliest(None)
    drafter.context.clear()
    drafter._known = []
    assert after(drafter, [1, 504, 1057, 30])[0] == extended[0]


def test_nothing_is_read_after_the_deadline(drafter: DraftModel) -> None:
    known = list(drafter._known)
    assert not drafter.extend(5, time.monotonic() - 1)
    assert drafter._known == known


def test_a_prompt_is_read_in_few_evaluations(drafter: DraftModel, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    decode = drafter.context.threads.decode

    def watched(batch: Any) -> int:
        sizes.append(batch.n_tokens)
        return decode(batch)

    monkeypatch.setattr(drafter.context.threads, "decode", watched)
    assert drafter.follow([*range(100, 500)], None)
    assert len(sizes) <= 2


class Fixed:
    """Guesses the tokens of a text, one after the other, with the same probability."""

    n_vocab = 100

    def __init__(self, text: Sequence[int], probability: float) -> None:
        self.text, self.probability, self.asked = list(text), probability, 0
        self.seconds, self.place = 0.1, 0

    def follow(self, tokens: Sequence[int], deadline: float | None) -> bool:
        assert deadline is None
        self.place = len(tokens)
        return True

    def extend(self, token: int, deadline: float | None) -> bool:
        assert deadline is None
        assert token == self.text[self.place]
        self.place += 1
        return True

    def likeliest(self, matcher: AnswerMatcher | None) -> tuple[int, float]:
        del matcher
        self.asked += 1
        return self.text[self.place], self.probability


def test_it_is_asked_where_nothing_is_found() -> None:
    drafter = Fixed(range(50), 0.99)
    speculation = Speculation([0, 1, 2], CHEAP, (), drafter)
    guesses = speculation.guess(1, 9, None)
    assert guesses == [*range(3, 3 + len(guesses))]
    assert len(guesses) > 3
    repeated = Speculation([0, 1, 2, 3, 4, 0, 1, 2], CHEAP, (), drafter)
    asked = drafter.asked
    assert repeated.guess(1, 2, None) == [3, 4]
    assert drafter.asked == asked


def test_tokens_that_it_does_not_have_end_its_use() -> None:
    drafter = Fixed(range(50), 0.99)
    assert Speculation([0, 100], CHEAP, (), drafter).guess(1, 9, None) == []
    speculation = Speculation([0, 1], CHEAP, (), drafter)
    assert speculation.guess(1, 9, None)
    speculation.extend([100])
    assert speculation.guess(1, 9, None) == []
    speculation.restart([0, 1])
    assert speculation.guess(1, 9, None)


def test_guesses_without_probability_are_none() -> None:
    assert Speculation([0], CHEAP, (), Fixed(range(50), 0.0)).guess(1, 9, None) == []


def test_unsure_guesses_end_a_draft() -> None:
    lengths = [len(Speculation([0], CHEAP, (), Fixed(range(50), p)).guess(1, 15, None)) for p in (0.2, 0.7, 0.99)]
    assert lengths[0] < lengths[1] < lengths[2]


def test_a_slow_one_is_not_asked() -> None:
    drafter = Fixed(range(50), 0.99)
    drafter.seconds = 1.0
    assert Speculation([0], CHEAP, (), drafter).guess(1, 15, None) == []
    assert drafter.asked == 0


def test_a_draft_ends_where_the_time_does() -> None:
    class Late(Fixed):
        reads = 3

        def follow(self, tokens: Sequence[int], deadline: float | None) -> bool:
            assert deadline == 7.0
            self.place, self.reads = len(tokens), self.reads - 1
            return self.reads >= 0

        def extend(self, token: int, deadline: float | None) -> bool:
            assert deadline == 7.0
            assert token == self.text[self.place]
            self.place, self.reads = self.place + 1, self.reads - 1
            return self.reads >= 0

    drafter = Late(range(50), 0.99)
    assert Speculation([0], CHEAP, (), drafter).guess(1, 15, None, 7.0) == [1, 2, 3]
    assert Speculation([0], CHEAP, (), drafter).guess(1, 15, None, 7.0) == []
    assert drafter.asked == 3


def test_no_token_is_evaluated_that_none_follows() -> None:
    class Counting(Fixed):
        evaluated = 0

        def extend(self, token: int, deadline: float | None) -> bool:
            self.evaluated += 1
            return super().extend(token, deadline)

    for probability in (0.2, 0.7, 0.99):
        drafter = Counting(range(50), probability)
        Speculation([0], CHEAP, (), drafter).guess(1, 15, None)
        assert drafter.evaluated == drafter.asked - 1


def test_drafts_stop_where_the_grammar_does() -> None:
    tokens = [b"a", b"b", b"c", b""]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[3], encode=lambda text: [byte - 97 for byte in text])
    matcher = constrain.compile(constrain.Regex("ab"), vocabulary).matcher(10)
    assert Speculation([2], CHEAP, {3}, Fixed([2, 0, 1, 1, 1], 0.99)).guess(1, 9, matcher) == [0, 1]
    assert Speculation([2], CHEAP, {3}, Fixed([2, 1, 1, 3, 1], 0.99)).guess(1, 9, matcher) == []
    assert matcher.completion_tokens() == [0, 1]  # the matcher is where it was
    longer = constrain.compile(constrain.Regex("ab*"), vocabulary).matcher(10)
    assert Speculation([2], CHEAP, {3}, Fixed([2, 0, 1, 3, 1], 0.99)).guess(1, 9, longer) == [0, 1]  # not the end
    assert longer.completion_tokens() == [0]


@pytest.mark.long
@pytest.mark.parametrize("temperature", [0, 0.9])
@pytest.mark.parametrize("schema", [PERSON, {"type": "string", "minLength": 60, "maxLength": 90}, None])
def test_answers_are_the_same_with_and_without(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch, schema: Any, temperature: float
) -> None:
    seen: list[Decoding] = []
    steps = Decoding.steps

    def watched(decoding: Decoding) -> Any:
        seen.append(decoding)
        return steps(decoding)

    monkeypatch.setattr(Decoding, "steps", watched)
    monkeypatch.setattr(model, "_every", CHEAP)
    monkeypatch.setattr(model._draft, "evaluation_seconds", 0.01)
    shape = {} if schema is None else {"schema": schema}
    for seed in range(3):
        tokens = []
        for speculates in (False, True):
            monkeypatch.setattr(model, "_speculates", speculates)
            constrain.complete(model, PROMPT, **shape, temperature=temperature, seed=seed, max_tokens=80)
            tokens.append(seen[-1].answer.tokens)
        assert tokens[0] == tokens[1]
        if temperature == 0:
            assert seen[-1].n_right > 0.6 * seen[-1].n_guessed > 0


def test_what_a_draft_costs_is_measured(model: constrain.Model) -> None:
    constrain.complete(model, PROMPT, schema=PERSON, temperature=0, max_tokens=60)
    assert model._every is not None
    assert model._draft is not None
    assert 0.2 < model._draft.seconds / model._every[1] < 5  # the same file


def test_models_with_other_tokens_are_refused(tmp_path: Path) -> None:
    tiny = write_transformer(tmp_path / "tiny.gguf")
    with pytest.raises(constrain.ModelError, match=r"have the tokens of the model, but token 0 is b'.*<s>.*' there"):
        constrain.Model(n_ctx=128, n_threads=1, draft_model=tiny)


def test_recurrent_models_are_refused(tmp_path: Path) -> None:
    tiny, recurrent = write_transformer(tmp_path / "tiny.gguf"), tmp_path / "mamba.gguf"
    write_mamba(recurrent)
    with pytest.raises(constrain.ModelError, match=r"mamba.gguf: a draft model must be able to remove tokens"):
        constrain.Model(tiny, n_ctx=128, n_threads=1, draft_model=recurrent)
    with pytest.raises(constrain.ModelError, match=r"mamba.gguf: this model cannot take back guesses"):
        constrain.Model(recurrent, n_ctx=128, n_threads=1, draft_model=tiny)


def test_a_draft_model_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(constrain.ModelError, match=r"nothing\.gguf"):
        constrain.Model(n_ctx=128, n_threads=1, draft_model=tmp_path / "nothing.gguf")


def test_paddings_may_differ() -> None:
    def of(*names: bytes) -> constrain.Vocabulary:
        return constrain.Vocabulary.from_tokens([b"", *names], eos=[0])

    require_same_tokens(of(b"a", b"b", b"c"), of(b"a", b"b"), "small.gguf")
    require_same_tokens(of(b"a", b"b"), of(b"a", b"b", b"c"), "small.gguf")
    with pytest.raises(constrain.ModelError, match=r"small.gguf: .*token 2 is b'x' there and b'b' here"):
        require_same_tokens(of(b"a", b"x"), of(b"a", b"b"), "small.gguf")


def test_a_token_that_the_draft_model_lacks_has_no_probability(drafter: DraftModel) -> None:
    wide = DraftModel(drafter.llama, drafter.llama.n_vocab() + 8)

    class Beyond:
        is_finished = False

        def fill_candidates(self, logits: Any, out: Any) -> int:
            out["id"][0], out["logit"][0] = len(logits) - 1, logits[-1]
            return 1

    token, probability = after(wide, [1, 2, 3], Beyond())  # type: ignore[arg-type]
    assert token == drafter.llama.n_vocab() + 7
    assert probability == 0
    assert not math.isnan(probability)
    assert np.isneginf(wide._logits[-1])
    drafter._known = []
