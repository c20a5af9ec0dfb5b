"""Loops of mlx-lm with a constraint: every answer is valid, and every mask is ours, bit by bit."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.integrations.mlx import SequenceLogitsProcessor, logits_processor
from tests.support.small_transformers import make_tokenizer

mx = pytest.importorskip("mlx.core")
generate = pytest.importorskip("mlx_lm.generate")
llama = pytest.importorskip("mlx_lm.models.llama")

pytestmark = pytest.mark.slow  # imports mlx and transformers

LOGITS_BEYOND = 77
"""Logits of the model beyond the tokenizer."""

TOKENS = 60

SCHEMAS: list[dict[str, Any]] = [
    {"type": "boolean"},
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 9}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    {"enum": ["red", "green", "grey"]},
    {"type": "array", "items": {"type": "number"}, "maxItems": 4},
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer("left")


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Any) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_transformers(tokenizer)


@pytest.fixture(scope="module")
def constraints(vocabulary: constrain.Vocabulary) -> list[constrain.Constraint]:
    return [constrain.compile(schema, vocabulary, cache=False) for schema in SCHEMAS]


def make_model(n_vocab: int, seed: int = 0) -> Any:
    mx.random.seed(seed)
    arguments = llama.ModelArgs(
        model_type="llama",
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=64,
        num_attention_heads=4,
        rms_norm_eps=1e-6,
        vocab_size=n_vocab,
    )
    return llama.Model(arguments)


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return make_model(len(tokenizer) + LOGITS_BEYOND)


class Spy:
    """A processor that notes what another is given, and what it returns."""

    def __init__(self, processor: SequenceLogitsProcessor) -> None:
        self.processor = processor
        self.calls: list[tuple[list[int], Any, Any]] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        masked = self.processor(tokens, logits)
        self.calls.append((tokens.tolist(), np.array(logits), np.array(masked)))
        return masked


def require_own_masks(spy: Spy, constraint: constrain.Constraint) -> None:
    """Compares each mask, bit by bit, with that of a new matcher."""
    prompt = len(spy.calls[0][0])
    eos = constraint.vocabulary.eos
    for tokens, logits, masked in spy.calls:
        answer = tokens[prompt:]
        ended = next((place for place, token in enumerate(answer) if token in eos), None)
        matcher = constraint.matcher(TOKENS)
        assert matcher.accept_many(answer[:ended]) == len(answer[:ended])
        row = constraint.allocate_bitmask()[0]
        matcher.fill_bitmask(row)
        width = masked.shape[-1]
        known = np.unpackbits(row.view(np.uint8), bitorder="little")[: constraint.vocabulary.n_vocab].astype(bool)
        allowed = np.zeros(width, bool)
        allowed[: len(known)] = known
        if ended is not None:
            allowed[:] = False
            allowed[list(eos)] = True
        assert np.array_equal(~np.isneginf(masked[0]), allowed)
        assert np.array_equal(masked[0][allowed], logits[0][allowed])


def prompt_of(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text)["input_ids"])


def sampler(logprobs: Any) -> Any:
    return mx.random.categorical(logprobs)


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
@pytest.mark.parametrize("sampling", [False, True])
def test_one_sequence(
    number: int, sampling: bool, model: Any, tokenizer: Any, constraints: list[constrain.Constraint]
) -> None:
    mx.random.seed(number)
    spy = Spy(logits_processor(constraints[number], max_tokens=TOKENS))
    tokens: list[int] = []
    options = {"sampler": sampler} if sampling else {}
    prompt = mx.array(prompt_of(tokenizer, "the quick brown fox"))
    for token, _ in generate.generate_step(prompt, model, max_tokens=TOKENS, logits_processors=[spy], **options):
        if token in constraints[number].vocabulary.eos:
            break
        tokens.append(token)
    jsonschema.validate(json.loads(tokenizer.decode(tokens)), SCHEMAS[number])
    require_own_masks(spy, constraints[number])


def test_a_batch_with_a_schema_for_each_sequence(
    model: Any, tokenizer: Any, constraints: list[constrain.Constraint]
) -> None:
    mx.random.seed(1)
    spies = [Spy(logits_processor(each, max_tokens=TOKENS)) for each in constraints]
    prompts = [prompt_of(tokenizer, text) for text in ("hello", "a", "the quick brown fox", "b c d e f")]
    stops = [[token] for token in constraints[0].vocabulary.eos]
    batch = generate.BatchGenerator(model, stop_tokens=stops, sampler=sampler)
    names = batch.insert(prompts, [TOKENS] * len(prompts), logits_processors=[[spy] for spy in spies])
    answers: dict[Any, list[int]] = {name: [] for name in names}
    while responses := batch.next_generated():
        for response in responses:
            if response.finish_reason != "stop":
                answers[response.uid].append(response.token)
    batch.close()
    for name, schema, spy, constraint in zip(names, SCHEMAS, spies, constraints, strict=True):
        jsonschema.validate(json.loads(tokenizer.decode(answers[name])), schema)
        require_own_masks(spy, constraint)


def test_half_floats_keep_their_type(vocabulary: constrain.Vocabulary, constraints: list[constrain.Constraint]) -> None:
    for kind in (mx.float16, mx.bfloat16):
        logits = mx.zeros((1, vocabulary.n_vocab + 5), kind)
        masked = logits_processor(constraints[0])(mx.array([1, 2]), logits)
        assert masked.dtype == kind
        assert masked.shape == logits.shape
        assert np.isneginf(np.array(masked.astype(mx.float32)))[0, vocabulary.n_vocab :].all()


def test_wrong_use_is_told(vocabulary: constrain.Vocabulary, constraints: list[constrain.Constraint]) -> None:
    with pytest.raises(TypeError, match="a Constraint"):
        logits_processor(SCHEMAS[0])  # type: ignore[arg-type]
    with pytest.raises(constrain.BudgetError):
        logits_processor(constraints[1], max_tokens=1)
    one = logits_processor(constraints[0])
    logits = mx.zeros((1, vocabulary.n_vocab))
    with pytest.raises(ValueError, match="one processor for each sequence"):
        one(mx.array([1]), mx.zeros((2, vocabulary.n_vocab)))
    with pytest.raises(ValueError, match="at least"):
        one(mx.array([1]), mx.zeros((1, 5)))
    one(mx.array([1, 2]), logits)
    with pytest.raises(constrain.ConstrainError, match="follows one sequence"):
        one(mx.array([1]), logits)
    with pytest.raises(constrain.ConstrainError, match="left the language"):
        one(mx.array([1, 2, 3]), logits)
