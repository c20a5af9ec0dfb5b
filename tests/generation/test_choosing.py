"""``choose``: probabilities of options, against one evaluation for each option."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.llama.trees import make_tree
from tests.support import for_each
from tests.support.llama.babbler import babbler
from tests.support.llama.prompts import prompt_tokens


def brute_force(model: constrain.Model, prompt: Sequence[int], option: str) -> float:
    """The logarithm of the probability of an option and the end behind it, token by token."""
    llama = model.llama
    assert model.vocabulary.encode is not None
    llama.reset()
    llama.eval(prompt)
    logprob = 0.0
    for token in model.vocabulary.encode(option.encode()):
        logprob += row_of(model)[token]
        llama.eval([token])
    return logprob + float(np.logaddexp.reduce(row_of(model)[sorted(model.vocabulary.eos)]))


def row_of(model: constrain.Model) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    pointer = llama_cpp.llama_get_logits_ith(model.llama.ctx, -1)
    logits = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (model.vocabulary.n_vocab,))
    wide = logits.astype(np.float64)
    return np.asarray(wide - np.logaddexp.reduce(wide))


COLOURS = ["red", "green", "greenish", "a reddish blue", "blue", "é", "grey 🎩"]


def test_probabilities_equal_those_of_each_option_alone(model: constrain.Model) -> None:
    prompt = "What is the colour of grass?"
    chosen = constrain.choose(model, prompt, COLOURS, show_options=False)
    tokens = prompt_tokens(model, prompt, constrained=True)
    logprobs = np.array([brute_force(model, tokens, option) for option in COLOURS])
    expected = np.exp(logprobs - np.logaddexp.reduce(logprobs))
    assert list(chosen.probabilities) == COLOURS
    assert sum(chosen.probabilities.values()) == pytest.approx(1, abs=1e-9)
    assert list(chosen.probabilities.values()) == pytest.approx(expected, abs=1e-4)
    assert chosen.value == COLOURS[int(np.argmax(expected))]
    assert chosen.probability == max(chosen.probabilities.values())
    assert chosen.logprob == pytest.approx(logprobs.max(), abs=1e-3)
    assert chosen.mass == pytest.approx(np.exp(logprobs).sum(), rel=1e-3)


def test_results_depend_neither_on_the_order_nor_on_earlier_calls(model: constrain.Model) -> None:
    first = constrain.choose(model, "Is water wet?", ["yes", "no", "maybe"], show_options=False)
    constrain.choose(model, "Is water dry, or is it not?", ["left", "right"], show_options=False)
    second = constrain.choose(model, "Is water wet?", ["maybe", "yes", "no"], show_options=False)
    assert second.value == first.value
    for option, probability in first.probabilities.items():
        assert second.probabilities[option] == pytest.approx(probability, abs=1e-4)


def test_many_options_are_evaluated_in_groups(model: constrain.Model) -> None:
    numbers = [str(number) for number in range(100)]
    chosen = constrain.choose(model, "How many days has a week?", numbers)
    assert list(chosen.probabilities) == numbers
    assert sum(chosen.probabilities.values()) == pytest.approx(1)
    few = constrain.choose(model, "How many days has a week?", numbers, show_options=False)
    alone = constrain.choose(model, "How many days has a week?", numbers[40:72], show_options=False)
    for option, probability in alone.probabilities.items():
        share = sum(few.probabilities[each] for each in alone.probabilities)
        assert few.probabilities[option] / share == pytest.approx(probability, abs=1e-4)


def test_batches_answer_each_prompt(model: constrain.Model) -> None:
    prompts = ["I love it!", "I hate it!"]
    batch = constrain.choose_batch(model, prompts, ["positive", "negative"])
    for prompt, chosen in zip(prompts, batch, strict=True):
        assert chosen.value == constrain.choose(model, prompt, ["positive", "negative"]).value


def test_a_tree_shares_beginnings() -> None:
    root = make_tree([[1, 2, 3], [1, 2], [4], [1, 2, 5]])
    assert root.branches == [0, 1, 2, 3]
    assert list(root.following) == [1, 4]
    two = root.following[1].following[2]
    assert (two.branches, two.ends, two.depth) == ([0, 1, 3], [1], 2)
    assert list(two.following) == [3, 5]


@for_each(
    "options, error, said",
    ([], ValueError, "there are 0 options"),
    (["a", "b", "a"], ValueError, "'a' occurs twice"),
    (["a", ""], ValueError, r"options\[1\] is empty"),
    (["a", 1], TypeError, r"options\[1\] is 1"),
    ("ab", TypeError, "a list of texts"),
    (["\ud800"], ValueError, "lone surrogate"),
    ([str(number) for number in range(1001)], ValueError, "1 to 1000"),
    (["long " * 2000, "short"], constrain.ModelError, "larger n_ctx"),
)
def test_wrong_options_are_refused(
    model: constrain.Model, options: list[str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        constrain.choose(model, "Which?", options)


def test_a_closed_model_is_told() -> None:
    with babbler(n_ctx=256) as model:
        constrain.choose(model, "Which?", ["a", "b"], show_options=False)
    with pytest.raises(constrain.ModelError, match="closed"):
        constrain.choose(model, "Which?", ["a", "b"], show_options=False)
