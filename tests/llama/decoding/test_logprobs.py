"""Log-probabilities: of every token, from the model's own logits before it, however the token came about."""

from __future__ import annotations

import time
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.generation.observers.logprobs import Logprobs
from constrain.generation.options import split_options
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.distribution import Distribution, largest
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.scheduling.request import Request
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.regex.parsing.parser import parse_pattern
from tests.support import each_row, for_each
from tests.support.llama.alone import Alone, Inserting
from tests.support.llama.prompts import prompt_tokens
from tests.support.llama.scripted import EOS, N_VOCAB, TOKENS, Scripted, following

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Row = np.ndarray[Any, np.dtype[np.float32]]

VOCABULARY = constrain.Vocabulary.from_tokens(
    TOKENS, eos=[EOS], encode=lambda text: [TOKENS.index(bytes([byte])) for byte in text]
)
PROMPT = [3, 1, 4, 1, 5]


def logits_after(tokens: Sequence[int]) -> Row:
    """What the scripted model of the scheduler's tests says."""
    logits = -np.arange(N_VOCAB, dtype=np.float32)
    logits[following(tokens)] = 10
    return logits


def log_softmax(logits: Row) -> np.ndarray[Any, np.dtype[np.float64]]:
    exact = logits.astype(np.float64)
    shifted: np.ndarray[Any, np.dtype[np.float64]] = exact - exact.max()
    return shifted - np.log(np.exp(shifted).sum())


class Single(Alone):
    """The same model for one sequence."""

    leaves_a_core = False

    def __init__(self) -> None:
        super().__init__(N_VOCAB)

    def prefill(self, tokens: Sequence[int], deadline: float | None = None, **options: Any) -> int:
        if deadline is not None and time.monotonic() > deadline:
            self.evaluated = list(tokens[:1])
            return 0
        return super().prefill(tokens, **options)

    def next_logits(self) -> Row:
        return logits_after(self.evaluated)


class _Asked:
    """An answer, and how many of its tokens were scored each time that some were handed on."""

    def __init__(self, pattern: str | None, *, prompt: Sequence[int] = PROMPT, top: int = 3, **options: Any) -> None:
        start = None
        if pattern is not None:
            builder = constrain.grammars.GrammarBuilder()
            builder.define(builder.rule("start"), [[builder.terminal("text", parse_pattern(pattern, "rust"))]])
            start = constrain.compile(builder.build(), VOCABULARY).matcher
        self.logprobs = Logprobs(top, lambda token: (TOKENS[token].decode(), TOKENS[token]))
        self.prompt = list(prompt)
        self.handed_on: list[int] = []
        options["insert"] = Inserting(options.pop("insert", {}))
        self.deadline = options.pop("deadline", None)
        self.answer = Answer(
            self.prompt,
            Chain(Sampling(temperature=0, **options.pop("sampling", {})), N_VOCAB, 400),
            start,
            eos={EOS},
            encode=VOCABULARY.encode,
            token_bytes=VOCABULARY.token_bytes,
            **{"max_tokens": 20, "observers": [self.logprobs], **options},
        )
        self.answer.deadline = self.deadline

    def receive(self, tokens: tuple[int, ...]) -> None:
        self.handed_on += tokens
        assert len(self.handed_on) <= len(self.logprobs.tokens)


def alone(*asked: _Asked) -> None:
    for one in asked:
        for token in Decoding(Single(), one.answer).steps():
            one.receive((token,))


def recurrent(*asked: _Asked) -> None:
    together(*asked, one_state=True)


def together(*asked: _Asked, one_state: bool = False) -> None:
    scheduler = Scheduler(Scripted(count=3, n_batch=16, one_state=one_state))
    requests = [Request(one.answer, one.receive) for one in asked]
    for request in requests:
        scheduler.submit(request)
    for request in requests:
        assert request.done.result(60) is None
    scheduler.close()


def require_exact(one: _Asked) -> None:
    """What the model says before each token, worked out from the tokens before it."""
    known, tokens = one.logprobs.tokens, one.answer.tokens
    assert one.handed_on == tokens
    assert [each.token for each in known] == tokens
    for place, each in enumerate(known):
        wanted = log_softmax(logits_after([*chain.from_iterable(one.answer.evaluated(place))]))
        assert each.logprob == pytest.approx(wanted[each.token], abs=1e-5)
        likeliest = sorted(range(N_VOCAB), key=lambda token, wanted=wanted: (-wanted[token], token))[:3]  # type: ignore[misc]
        assert [other.token for other in each.top] == likeliest
        assert [other.logprob for other in each.top] == pytest.approx([wanted[token] for token in likeliest], abs=1e-5)
        assert (each.text, each.bytes) == (TOKENS[each.token].decode(), TOKENS[each.token])


CASES = [
    (None, {}),  # anything
    ("[A-Z]{12}", {}),  # sampled under a mask
    ("HELLO", {}),  # all of it forced
    ("H", {}),  # one token, forced
    ("HELLO[A-Z]", {}),  # forced in the beginning
    ("[A-Z]{2}HELLO", {}),  # forced in the end
    ("([A-C]HELLO[D-F]WORLD){3}", {"max_tokens": 60}),  # forced in between
    ("[A-Z]{3,9}", {"max_tokens": 4}),  # closed by the budget
    ("[A-Z]{12}", {"insert": {2: [1, 2, 3], 6: [9] * 70}}),  # behind tokens that are no part of it
    ("HELLO[A-Z]{2}HELLO[A-Z]", {"insert": {5: [2] * 20, 12: [3]}}),  # these behind forced ones
    ("[A-Z]{12}", {"wants_stop": lambda token: token % 2 == 0}),  # closed at a stop text
    (None, {"wants_stop": lambda token: token % 2 == 0}),  # ended at a stop text
    ("[A-Z]{12}", {"deadline": 0.0}),  # closed late
    ("HELLO[A-Z]{12}", {"deadline": 0.0}),  # closed late behind forced tokens
    (None, {"deadline": 0.0}),  # ended late
    ("[A-Z]{12}", {"sampling": {"logit_bias": {4: 50.0}, "frequency_penalty": 2.0}}),
]


@for_each("run", [alone, together, recurrent])
@for_each("pattern, options", CASES)
def test_every_token_is_reported_as_likely_as_the_model_made_it(
    run: Callable[..., None], pattern: str | None, options: dict[str, Any]
) -> None:
    asked = _Asked(pattern, **options)
    run(asked)
    assert asked.answer.is_complete
    assert asked.answer.tokens or "deadline" in options
    assert dict(asked.answer.inserted) == {place: tuple(tokens) for place, tokens in options.get("insert", {}).items()}
    require_exact(asked)


@pytest.mark.parametrize("run", [together, recurrent])
def test_tokens_of_an_earlier_answer_are_evaluated_again_where_their_logits_are_wanted(
    run: Callable[..., None],
) -> None:
    asked = [_Asked("HELLO[A-Z]{2}WORLD", prompt=[*PROMPT] * 5) for _ in range(7)]
    run(*asked)
    for one in asked:
        require_exact(one)


@for_each("n_batch", [16, 128])
@for_each("one_state", [False, True])
@for_each("forced", ["HELLO", "HELLO" * 9, "HELLO" * 15])
def test_the_same_tokens_are_evaluated_together_where_nobody_asks(
    forced: str, one_state: bool, n_batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A choice that outlasts a step of the scheduler has its forced tokens divided otherwise, in a step of their own.
    monkeypatch.setattr("constrain.llama.scheduling.scheduler._PATIENCE", 60)
    pattern, evaluated = f"{forced}([A-C]{forced}[D-F]){{2}}{forced}[A-C]{{2}}", []
    for is_asked in (True, False):
        model = Scripted(count=1, n_batch=n_batch, one_state=one_state)
        scheduler = Scheduler(model, clock=lambda: 0.0)
        watched: dict[str, Any] = {} if is_asked else {"observers": ()}
        asked = _Asked(pattern, prompt=PROMPT * 8, max_tokens=380, **watched)
        request = Request(asked.answer)
        scheduler.submit(request)
        assert request.done.result(60) is None
        scheduler.close()
        evaluated.append((model.batches, asked.answer.tokens))
        assert asked.answer.finish_reason == "stop"
        if is_asked:
            asked.handed_on = asked.answer.tokens
            require_exact(asked)
    assert evaluated[0] == evaluated[1]


@each_row(
    "options, message",
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs is 21; it must be 0 to 20"),
    ({"logprobs": True, "top_logprobs": -1}, "top_logprobs is -1"),
    ({"top_logprobs": 3}, "needs logprobs=True"),
)
def test_options_out_of_range_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_options(options)


def test_no_more_tokens_are_reported_than_there_are() -> None:
    logprobs = Logprobs(20, lambda token: (str(token), b""))
    answer: Any = SimpleNamespace(tokens=[0])
    logprobs.on_token(answer, 0, Distribution(np.array([0.0, -np.inf], np.float32)))
    [told] = logprobs.tokens
    assert [(other.token, other.logprob) for other in told.top] == [(0, 0.0), (1, -np.inf)]


BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 12}, "pages": {"type": "integer", "maximum": 999}},
    "required": ["title", "pages"],
}


def rows_of_groups(model: constrain.Model, groups: Sequence[Sequence[int]]) -> list[Row]:
    """llama.cpp's logits after each token, where it evaluates the tokens of a group together."""
    llama = model.llama
    llama.reset()
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(llama.ctx), True)
    rows = []
    for group in groups:
        batch = llama_cpp.llama_batch_init(len(group), 0, 1)
        for index, token in enumerate(group):
            batch.token[index], batch.pos[index], batch.logits[index] = token, llama.n_tokens + index, 1
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
        batch.n_tokens = len(group)
        assert llama_cpp.llama_decode(llama.ctx, batch) == 0
        for index in range(len(group)):
            pointer = llama_cpp.llama_get_logits_ith(llama.ctx, index)
            rows.append(np.ctypeslib.as_array(pointer, shape=(model.vocabulary.n_vocab,)).copy())
        llama_cpp.llama_batch_free(batch)
        llama.n_tokens += len(group)
    llama.reset()
    return rows


class Recorded:
    """A model's context, and the groups of tokens that it evaluates together."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.evaluated: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def prefill(self, tokens: Sequence[int], *details: Any, **options: Any) -> int:
        self.evaluated.append(list(tokens))
        return int(self._context.prefill(tokens, *details, **options))

    def decode(self, tokens: Sequence[int], *details: Any) -> None:
        self.evaluated.append(list(tokens))
        self._context.decode(tokens, *details)


@pytest.mark.slow
def test_sequences_do_not_see_one_another_without_batch_invariance(model: constrain.Model, tiny: Path) -> None:
    """Sums are rounded otherwise in company, but what is said of a token is nearly what is said of it alone."""
    asked: dict[str, Any] = {"schema": BOOK, "temperature": 0.8, "seed": 7, "show_schema": False, "logprobs": True}
    prompts = [f"A book about {what}." for what in ("a cat", "the sea", "two kings", "mathematics")]
    with constrain.Model(tiny, n_ctx=512, n_threads=1, parallel=4, batch_invariant=False) as together:
        completions = constrain.complete_batch(together, prompts, **asked)
    for prompt, completion in zip(prompts, completions, strict=True):
        assert completion.logprobs is not None
        tokens = [*prompt_tokens(model, prompt, constrained=True), *completion.tokens]
        rows = rows_of_groups(model, [[token] for token in tokens[:-1]])[-len(completion.tokens) :]
        alone = [log_softmax(row)[token] for row, token in zip(rows, completion.tokens, strict=True)]
        assert [each.logprob for each in completion.logprobs] == pytest.approx(alone, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("schema", [BOOK, None])
def test_a_real_model_is_reported_as_llama_cpp_computes_it(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch, schema: Any
) -> None:
    asked: dict[str, Any] = {"schema": schema, "temperature": 0, "max_tokens": 40, "show_schema": False}
    plain, groups = Recorded(model.context), Recorded(model.context)
    monkeypatch.setattr(model, "context", plain)
    unasked = constrain.complete(model, "A book by Jane Austen.", **asked)
    monkeypatch.setattr(model, "context", groups)
    asked |= {"logprobs": True, "top_logprobs": 5}
    single = constrain.complete(model, "A book by Jane Austen.", **asked)
    assert single.tokens == unasked.tokens
    assert groups.evaluated == plain.evaluated
    assert schema is None or any(len(group) > 1 for group in groups.evaluated[1:])
    [batched] = constrain.complete_batch(model, ["A book by Jane Austen."], **asked)
    prompt = prompt_tokens(model, "A book by Jane Austen.", constrained=schema is not None)
    for completion in (single, batched):
        assert completion.logprobs is not None
        assert tuple(each.token for each in completion.logprobs) == completion.tokens
        assert b"".join(each.bytes for each in completion.logprobs).decode("utf-8", "replace") == completion.text
        assert completion.text_logprobs == completion.logprobs
        rows = rows_of_groups(model, groups.evaluated)[len(prompt) - 1 :][: len(completion.logprobs)]
        for row, each in zip(rows, completion.logprobs, strict=True):
            wanted = log_softmax(row)
            assert each.logprob == pytest.approx(wanted[each.token], abs=1e-3)
            assert [other.logprob for other in each.top] == pytest.approx(np.sort(wanted)[:-6:-1], abs=1e-3)


@for_each("size", [1, 5, 63, 64, 65, 640, 1000, 50_000])
@for_each("count", [0, 1, 3, 10, 20])
def test_the_largest_logits_are_found_in_order(size: int, count: int) -> None:
    rng = np.random.default_rng(size + count)
    rows = (
        rng.normal(size=size).astype(np.float32),
        rng.integers(0, 5, size=size).astype(np.float32),  # many are equal
        np.where(np.arange(size) == size // 2, 1, -np.inf).astype(np.float32),
    )
    for row in rows:
        assert largest(row, count) == np.argsort(-row, kind="stable")[:count].tolist()
