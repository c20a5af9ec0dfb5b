"""``generate`` of transformers with a constraint for each prompt: every answer is valid, and every mask is ours."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.integrations.transformers import BatchLogitsProcessor, logits_processor
from tests.support.small_transformers import make_model, make_tokenizer
from tests.support.tokenizers_made import byte_level, unigram

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow  # imports torch and transformers

LOGITS_BEYOND = 77  # more than a word of the mask
"""Logits of the model beyond the tokenizer."""

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
    {"type": "string", "format": "date"},
    {"type": "null"},
    {"type": "integer", "minimum": 10},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
]

PROMPTS = ["hello", "the quick brown fox", "a", "b c d e f", "日本語", "x", "hello hello", "{"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer("left")


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Any) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_transformers(tokenizer)


@pytest.fixture(scope="module")
def constraints(vocabulary: constrain.Vocabulary) -> list[constrain.Constraint]:
    return [constrain.compile(schema, vocabulary, cache=False) for schema in SCHEMAS]


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return make_model(len(tokenizer) + LOGITS_BEYOND)


class Spy:
    """A processor that notes what another is given, and what it returns."""

    def __init__(self, processor: BatchLogitsProcessor) -> None:
        self.processor = processor
        self.calls: list[tuple[Any, Any, Any]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        masked = self.processor(input_ids, scores)
        self.calls.append((input_ids.clone(), scores.clone(), masked.clone()))
        return masked


def require_own_masks(
    spy: Spy, constraints: list[constrain.Constraint], *, max_tokens: int | None, beams: bool = False
) -> int:
    """Compares each mask, bit by bit, with that of a new matcher; returns the number of masks compared."""
    prompt = spy.calls[0][0].shape[1]
    compared = 0
    for input_ids, scores, masked in spy.calls:
        for row, tokens in enumerate(input_ids[:, prompt:].tolist()):
            constraint = constraints[row * len(constraints) // len(input_ids)]
            matcher = constraint.matcher(max_tokens)
            ends = [place for place, token in enumerate(tokens) if token in constraint.vocabulary.eos]
            text = tokens[: ends[0]] if ends else tokens
            taken = matcher.accept_many(text)
            if beams and taken < len(text):
                continue  # a beam of the score minus infinity
            assert taken == len(text)
            width = masked.shape[-1]
            expected = np.zeros(-(-width // 32), np.uint32)
            matcher.fill_bitmask(expected[: -(-constraint.vocabulary.n_vocab // 32)])
            allowed = torch.from_numpy(np.unpackbits(expected.view(np.uint8), count=width, bitorder="little")).bool()
            if ends:
                allowed = torch.arange(width).eq(constraint.vocabulary.eos[0])
            assert torch.equal(masked[row] > -torch.inf, allowed)
            assert torch.equal(masked[row][allowed], scores[row][allowed])
            compared += 1
    return compared


def answers(tokenizer: Any, inputs: Any, sequences: Any) -> list[str]:
    return [
        tokenizer.decode(sequence[inputs["input_ids"].shape[1] :], skip_special_tokens=True) for sequence in sequences
    ]


def require_valid(texts: list[str]) -> None:
    assert len(texts) % len(SCHEMAS) == 0
    for place, text in enumerate(texts):
        jsonschema.validate(
            json.loads(text), SCHEMAS[place * len(SCHEMAS) // len(texts)], format_checker=jsonschema.FormatChecker()
        )


WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True},
    "several answers": {"do_sample": True, "num_return_sequences": 3, "top_k": 5, "top_p": 0.9},
    "beams": {"num_beams": 3},
    "several beams": {"num_beams": 3, "num_return_sequences": 2},
    "sampled beams": {"num_beams": 2, "do_sample": True},
}


@pytest.mark.parametrize(("way", "padding"), [*((way, "left") for way in WAYS), ("greedy", "right")])
def test_a_batch_with_a_schema_for_each_prompt(
    model: Any, constraints: list[constrain.Constraint], way: str, padding: str
) -> None:
    tokenizer = make_tokenizer(padding)
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    beams = WAYS[way].get("num_beams", 1)
    spy = Spy(logits_processor(constraints, max_new_tokens=40, num_beams=beams))
    torch.manual_seed(1)
    found = model.generate(**inputs, max_new_tokens=40, logits_processor=[spy], **WAYS[way])
    require_valid(answers(tokenizer, inputs, found))
    assert require_own_masks(spy, constraints, max_tokens=40, beams=beams > 1) > 40


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_models_of_half_precision(
    model: Any, tokenizer: Any, constraints: list[constrain.Constraint], dtype: str
) -> None:
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    half = transformers.LlamaForCausalLM(model.config).to(getattr(torch, dtype)).eval()
    processor = logits_processor(constraints, max_new_tokens=40)
    found = half.generate(**inputs, max_new_tokens=40, logits_processor=[processor])
    require_valid(answers(tokenizer, inputs, found))
    scores = torch.randn(len(PROMPTS), model.config.vocab_size).to(getattr(torch, dtype))
    assert logits_processor(constraints)(inputs["input_ids"], scores).dtype == scores.dtype


def test_one_constraint_for_all_and_prompts_without_one(
    model: Any, tokenizer: Any, constraints: list[constrain.Constraint]
) -> None:
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    options = {"max_new_tokens": 12, "do_sample": True}
    found = model.generate(**inputs, **options, logits_processor=[logits_processor(constraints[2])])
    assert {json.loads(text) for text in answers(tokenizer, inputs, found)} <= {"red", "green", "grey"}

    one_of_two = [constraints[2], None] * 4
    processor = logits_processor(one_of_two)
    scores = torch.randn(8, model.config.vocab_size)
    masked = processor(inputs["input_ids"], scores)
    assert torch.equal(masked[1::2], scores[1::2])
    assert all(torch.isneginf(row).any() for row in masked[::2])
    found = model.generate(**inputs, **options, logits_processor=[logits_processor(one_of_two)])
    assert {json.loads(text) for text in answers(tokenizer, inputs, found)[::2]} <= {"red", "green", "grey"}


@pytest.mark.parametrize("limit", [26, 50])
def test_every_answer_is_complete_within_max_new_tokens(
    model: Any, tokenizer: Any, constraints: list[constrain.Constraint], limit: int
) -> None:
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    for seed in range(2):
        torch.manual_seed(seed)
        processor = logits_processor(constraints, max_new_tokens=limit)
        found = model.generate(**inputs, max_new_tokens=limit, do_sample=True, logits_processor=[processor])
        assert found.shape[1] - inputs["input_ids"].shape[1] <= limit
        require_valid(answers(tokenizer, inputs, found))


def test_a_limit_that_is_too_small_is_named_before_the_first_token(constraints: list[constrain.Constraint]) -> None:
    with pytest.raises(constrain.BudgetError):
        logits_processor(constraints, max_new_tokens=2)


def test_fewer_answers_than_beams(model: Any, tokenizer: Any, vocabulary: constrain.Vocabulary) -> None:
    """The beams without an answer have the score minus infinity, or that of transformers for beams not begun."""
    yes = constrain.compile(constrain.Regex("a|b"), vocabulary, cache=False)
    inputs = tokenizer(["hello", "x"], return_tensors="pt", padding=True)
    found = model.generate(
        **inputs,
        max_new_tokens=8,
        num_beams=4,
        num_return_sequences=4,
        logits_processor=[logits_processor(yes, num_beams=4)],
        return_dict_in_generate=True,
        output_scores=True,
    )
    texts = answers(tokenizer, inputs, found.sequences)
    real = [text for text, score in zip(texts, found.sequences_scores.tolist(), strict=True) if score > -1e6]
    assert sorted(real) == ["a", "a", "b", "b"]


def test_guesses_from_the_prompt_are_taken_back(model: Any, tokenizer: Any, constraints: Any) -> None:
    inputs = tokenizer('[5555555, 5555, {"a": 12, "b": ""} 12 12', return_tensors="pt")
    for place in (1, 3):
        torch.manual_seed(0)
        plain = Spy(logits_processor(constraints[place], max_new_tokens=40))
        expected = model.generate(**inputs, max_new_tokens=40, do_sample=False, logits_processor=[plain])
        spy = Spy(logits_processor(constraints[place], max_new_tokens=40))
        found = model.generate(
            **inputs, max_new_tokens=40, do_sample=False, logits_processor=[spy], prompt_lookup_num_tokens=3
        )
        assert torch.equal(found, expected)


def start(constraint: constrain.Constraint, rows: int = 2, **options: Any) -> tuple[BatchLogitsProcessor, Any, Any]:
    """A processor after its first call, with prompts of one token and scores."""
    processor = logits_processor(constraint, **options)
    prompts, scores = torch.full((rows, 1), 5), torch.zeros(rows, constraint.vocabulary.n_vocab)
    processor(prompts, scores)
    return processor, prompts, scores


def after(prompts: Any, *tokens: int) -> Any:
    return torch.cat([prompts, torch.tensor([tokens] * len(prompts))], 1)


@pytest.fixture(scope="module")
def letter(vocabulary: constrain.Vocabulary) -> constrain.Constraint:
    return constrain.compile(constrain.Regex("[ab]"), vocabulary, cache=False)


def test_a_token_that_was_not_allowed_is_named_with_its_row(letter: constrain.Constraint) -> None:
    processor, prompts, scores = start(letter)
    with pytest.raises(constrain.ConstrainError, match=r"row 0: the generation left the language: token 0 .*num_beams"):
        processor(after(prompts, 0), scores)


def test_other_prompts_are_a_second_generation(letter: constrain.Constraint) -> None:
    processor, prompts, scores = start(letter)
    with pytest.raises(constrain.ConstrainError, match="follows one call of generate, so make a new one"):
        processor(prompts + 1, scores)


def test_a_loop_that_does_not_stop_is_told_where_to(letter: constrain.Constraint) -> None:
    processor, prompts, scores = start(letter)
    assert letter.vocabulary.encode is not None
    (a,) = letter.vocabulary.encode(b"a")
    masked = processor(after(prompts, a), scores)
    assert torch.isfinite(masked).nonzero().tolist() == [[0, 1], [1, 1]]
    masked = processor(after(prompts, a, 1), scores)  # as for a guess that ends with the end
    assert torch.isfinite(masked).nonzero().tolist() == [[0, 1], [1, 1]]
    with pytest.raises(constrain.ConstrainError, match=r"all answers have ended.* tokens \[1\], too \(eos_token_id\)"):
        processor(after(prompts, a, 1, 1), scores)


def test_tokens_that_others_have_removed_are_missed(letter: constrain.Constraint) -> None:
    processor, prompts, scores = start(letter)
    assert letter.vocabulary.encode is not None
    (a,) = letter.vocabulary.encode(b"a")
    scores[1, letter.vocabulary.eos[0]] = -torch.inf
    with pytest.raises(constrain.ConstrainError, match=r"row 1: no token is left: .*min_new_tokens"):
        processor(after(prompts, a), scores)


def test_rows_must_fit_the_constraints(letter: constrain.Constraint) -> None:
    scores = torch.zeros(5, letter.vocabulary.n_vocab)
    with pytest.raises(ValueError, match="5 rows, which do not fit 2 constraints"):
        logits_processor([letter, letter])(torch.zeros(5, 1, dtype=torch.int64), scores)
    with pytest.raises(ValueError, match="there are 2 constraints for more prompts in 4 rows"):
        logits_processor([letter, letter])(torch.arange(4).reshape(4, 1), scores[:4])
    with pytest.raises(ValueError, match="5 rows, which do not fit 1 constraints of 2 beams each"):
        logits_processor(letter, num_beams=2)(torch.zeros(5, 1, dtype=torch.int64), scores)


def test_shapes_and_types_are_named(letter: constrain.Constraint) -> None:
    prompts, width = torch.zeros(2, 1, dtype=torch.int64), letter.vocabulary.n_vocab
    with pytest.raises(ValueError, match="logits, but the vocabulary of the constraint has"):
        logits_processor(letter)(prompts, torch.zeros(2, width - 1))
    with pytest.raises(ValueError, match=r"must be \(rows, tokens\) and \(rows, logits\)"):
        logits_processor(letter)(prompts, torch.zeros(3, width))
    with pytest.raises(TypeError, match="scores must be a torch tensor, not ndarray"):
        logits_processor(letter)(prompts.numpy(), np.zeros((2, width)))
    with pytest.raises(TypeError, match="must be floats"):
        logits_processor(letter)(prompts, torch.zeros(2, width, dtype=torch.int64))


def test_arguments_are_checked(letter: constrain.Constraint) -> None:
    with pytest.raises(TypeError, match="constraints must be a Constraint or a list of them, not dict"):
        logits_processor({"type": "null"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="each of the constraints must be a Constraint or None, not dict"):
        logits_processor([letter, {}])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="there is no constraint"):
        logits_processor([None])
    with pytest.raises(ValueError, match="num_beams is 0"):
        logits_processor(letter, num_beams=0)
    other = constrain.Vocabulary.from_tokens([b"a", b""], eos=[1])
    with pytest.raises(ValueError, match="different vocabularies"):
        logits_processor([letter, constrain.compile(constrain.Regex("a"), other, cache=False)])


def test_the_vocabulary_is_that_of_the_tokenizer(tokenizer: Any) -> None:
    plain = constrain.Vocabulary.from_tokenizers(tokenizer.backend_tokenizer)
    vocabulary = constrain.Vocabulary.from_transformers(tokenizer)
    assert vocabulary.fingerprint == plain.fingerprint
    assert constrain.Vocabulary.from_transformers(tokenizer, eos="<s>", n_vocab=512).eos == (0,)


def test_tokenizers_that_are_not_exact_are_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a transformers\.PreTrainedTokenizerBase, not Tokenizer"):
        constrain.Vocabulary.from_transformers(byte_level())
    with pytest.raises(constrain.ModelError, match="ByT5Tokenizer: it is not built on the library tokenizers"):
        constrain.Vocabulary.from_transformers(transformers.ByT5Tokenizer())
    without_end = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level())
    with pytest.raises(constrain.ModelError, match=r"no end-of-generation token \(eos_token\)"):
        constrain.Vocabulary.from_transformers(without_end)


def test_a_tokenizer_that_cleans_texts_up_is_refused() -> None:
    cleaning = transformers.PreTrainedTokenizerFast(
        tokenizer_object=unigram(), eos_token="</s>", unk_token="<unk>", clean_up_tokenization_spaces=True
    )
    with pytest.raises(constrain.ModelError, match="clean_up_tokenization_spaces = False"):
        constrain.Vocabulary.from_transformers(cleaning)
    cleaning.clean_up_tokenization_spaces = False
    assert constrain.Vocabulary.from_transformers(cleaning).eos == (1,)
