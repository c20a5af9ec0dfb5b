"""A draft before an answer: its end, its tokens, and what is evaluated between it and the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.generation.observers.logprobs import Logprobs
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.draft import DRAFT_TOKENS, Draft
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.vocabulary.vocabulary import Vocabulary
from tests.support import for_each
from tests.support.llama.alone import Alone

EOS, SPECIAL = 256, 257
VOCABULARY = Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"", b""], eos=[EOS], special={EOS: "<end>", SPECIAL: "<turn>"}
)
N_VOCAB = VOCABULARY.n_vocab
PROMPT = [SPECIAL, *b"Why?"]
REQUEST = [SPECIAL, *b"So?"]
ANSWER = b'{"a":1}'
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["a"],
    "additionalProperties": False,
}
ANY_TEXT = constrain.compile(constrain.Regex("(?s).*"), VOCABULARY)
CONSTRAINT = constrain.compile(SCHEMA, VOCABULARY, whitespace="compact")


class Scripted(Alone):
    """A model that likes the tokens of ``wishes`` best, one after the other."""

    def __init__(self, wishes: Sequence[int], n_ctx: int = 200) -> None:
        super().__init__(N_VOCAB, n_ctx)
        self.wishes = wishes

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        logits = np.zeros(N_VOCAB, np.float32)
        written = len(self.evaluated) - len(PROMPT)
        if written < len(self.wishes):
            logits[self.wishes[written]] = 10
        return logits


def begin(most: int | None, *, constraint: constrain.Constraint = CONSTRAINT, **options: Any) -> tuple[Answer, Draft]:
    draft = Draft(ANY_TEXT.matcher, chain(), REQUEST, lambda _: None, most)
    answer = Answer(
        PROMPT,
        chain(),
        constraint.matcher,
        eos=VOCABULARY.eos,
        encode=list,
        token_bytes=VOCABULARY.token_bytes,
        draft=draft,
        **options,
    )
    return answer, draft


def chain() -> Chain:
    return Chain(Sampling(temperature=0), N_VOCAB, 200)


def run(
    wishes: Sequence[int], most: int | None, *, after_step: Callable[[Answer], None] | None = None, **options: Any
) -> tuple[Answer, Draft, Scripted]:
    model = Scripted(wishes)
    answer, draft = begin(most, **options)
    for _ in Decoding(model, answer).steps():
        if after_step is not None:
            after_step(answer)
    return answer, draft, model


def test_a_draft_ends_where_the_model_ends_it_and_the_answer_follows_the_request() -> None:
    answer, draft, model = run([*b"One.", EOS], 20)
    assert bytes(draft.tokens) == b"One."
    assert bytes(answer.tokens)[:5] == ANSWER[:5]
    assert model.calls[0] == PROMPT
    assert model.evaluated[: len(PROMPT) + 4 + len(REQUEST)] == [*PROMPT, *b"One.", *REQUEST]
    assert answer.preceding == [*PROMPT, *b"One.", *REQUEST]
    assert answer.finish_reason == "stop"


def test_a_draft_has_whole_characters_and_no_special_token() -> None:
    # The model wants a special token first, and at the limit stands inside a character of three bytes.
    _, draft, _ = run([SPECIAL, *"a€€"[1:].encode()], 5)
    text = bytes(draft.tokens).decode()
    assert SPECIAL not in draft.tokens
    assert text
    assert len(draft.tokens) <= 5


@for_each("most", [None, 1, 3, 10])
def test_draft_and_answer_fit_into_every_limit(most: int | None) -> None:
    shortest = len(ANSWER)
    with pytest.raises(constrain.BudgetError) as caught:
        begin(most, max_tokens=shortest)[0].begin(200)
    assert caught.value.needed == shortest + (most or 1)
    for limit in range(caught.value.needed, 40):
        answer, draft, _ = run([*b"I think that it could be anything at all, really"], most, max_tokens=limit)
        assert CONSTRAINT.accepts(bytes(answer.tokens))
        assert len(draft.tokens) + len(answer.tokens) <= limit
        assert len(draft.tokens) == (most or max(1, min(limit // 2, limit - shortest)))


def test_without_a_limit_a_draft_has_the_default_number_of_tokens_but_leaves_half() -> None:
    endless = [*b"x"] * 1000
    for n_ctx, expected in ((2000, DRAFT_TOKENS), (len(PROMPT) + len(REQUEST) + 50, 25)):
        model = Scripted(endless, n_ctx=n_ctx)
        answer, draft = begin(None)
        list(Decoding(model, answer).steps())
        assert len(draft.tokens) == expected
        assert CONSTRAINT.accepts(bytes(answer.tokens))


def test_the_request_takes_room_in_the_context() -> None:
    length = len(PROMPT) + len(REQUEST)
    answer, _ = begin(4)
    with pytest.raises(constrain.ModelError, match=f"the prompt has {length} tokens, but the context holds {length}"):
        answer.begin(length)
    with pytest.raises(constrain.BudgetError) as caught:
        begin(4)[0].begin(length + 4)
    assert str(caught.value) == (
        f"the prompt of {length} tokens leaves room for 4 in the context, but a draft of 4 tokens and the shortest "
        f"answer take {4 + len(ANSWER)} tokens"
    )


def test_a_draft_leaves_half_of_the_time_to_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def pass_a_second(_: Answer) -> None:
        now[0] += 1

    answer, draft, _ = run([*b"x"] * 100, 50, deadline=110.0, after_step=pass_a_second)
    assert len(draft.tokens) == 6  # one at once, and one in each of five seconds
    assert CONSTRAINT.accepts(bytes(answer.tokens))


def test_a_late_answer_needs_no_evaluation() -> None:
    answer, draft, model = run([*b"x"] * 100, 50, deadline=time.monotonic() - 1)
    assert draft.tokens == []
    assert model.evaluated == PROMPT
    assert answer.finish_reason == "timeout"
    assert CONSTRAINT.accepts(bytes(answer.tokens))


@pytest.mark.parametrize("late", [False, True])
def test_log_probabilities_are_those_of_the_answer(*, late: bool) -> None:
    logprobs = Logprobs(0, lambda token: (chr(token), bytes([token])))
    deadline = {"deadline": time.monotonic() - 1} if late else {}
    answer, draft, model = run([*b"One.", EOS], 20, observers=[logprobs], **deadline)
    assert [each.token for each in logprobs.tokens] == answer.tokens
    before = [*PROMPT, *draft.tokens, *REQUEST]
    assert model.evaluated[: len(before)] == before
    assert bool(draft.tokens) is not late
