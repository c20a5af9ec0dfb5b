"""``choose``: which of some options a model would answer, with the probability of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from constrain.generation.planning import make_plan
from constrain.llama.lookup import as_model
from constrain.notebooks import one_line, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.chat.prompt.messages import Prompt
    from constrain.llama.lookup import AnyModel
    from constrain.llama.model import Model

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The option that a model finds most likely.

    Attributes:
        value: the option.
        probability: its probability among the options.
        probabilities: probability of each option, in the order of the options; they add up to 1.
        logprob: logarithm of the probability, in the model's own distribution, that the whole answer is this option.
        mass: probability, in the model's own distribution, that the answer is one of the options. Below 0.0001 the
            other numbers mean nothing: the model wanted to say something else. Show the options then, or ask for one
            of them in the prompt.
    """

    value: str
    probability: float
    probabilities: Mapping[str, float]
    logprob: float
    mass: float

    __repr__ = one_line

    def _repr_html_(self) -> str:
        """Returns a table of the options for notebooks, the likeliest first."""
        likeliest = sorted(self.probabilities.items(), key=lambda each: -each[1])
        return table(
            [*((option, f"{share:.4f}") for option, share in likeliest), ("mass", f"{self.mass:.4f}")],
            ("option", "probability"),
        )


def choose(model: AnyModel, prompt: Prompt, options: Sequence[str], *, show_options: bool | str = True) -> Chosen:
    """Returns which of some options a model would answer, with the probability of each.

    All options are evaluated together, as a tree of their tokens, so that one call classifies a text. The probability
    of an option is that of its tokens, as the tokenizer splits it, and of the end of the answer behind them.

    Args:
        model: as for ``complete``.
        prompt: as for ``complete``.
        options: different texts, at least one, none of them empty.
        show_options: whether the prompt shows the options, as ``show_schema`` does; a text with ``{schema}`` in it
            stands around them.

    Raises ``ValueError`` and ``TypeError`` for options that cannot be used, and ``ModelError`` if prompt and options do
    not fit into the context, or the model is recurrent.

    >>> choose(None, "Is the sky blue?", ["yes", "no"]).value in ("yes", "no")
    True
    """
    [chosen] = choose_batch(model, [prompt], options, show_options=show_options)
    return chosen


def choose_batch(
    model: AnyModel, prompts: Iterable[Prompt], options: Sequence[str], *, show_options: bool | str = True
) -> list[Chosen]:
    """Returns, for each prompt, which of some options a model would answer.

    Arguments and errors are those of ``choose``. Beginnings that one prompt has in common with the one before it are
    evaluated once.
    """
    if isinstance(prompts, str):
        raise TypeError("prompts is a single text; it must be a list of prompts")
    texts = _check_options(options)
    loaded = as_model(model)
    encode = loaded.vocabulary.encode
    assert encode is not None
    tokens = [encode(text.encode()) for text in texts]
    prepared = [_prompt_tokens(loaded, prompt, texts, show_options) for prompt in prompts]
    return [_choose(loaded, each, texts, tokens) for each in prepared]


def _check_options(options: Any) -> list[str]:
    if isinstance(options, str) or not isinstance(options, Sequence):
        raise TypeError(f"options is {options!r:.80}; it must be a list of texts")
    for index, option in enumerate(options):
        if not isinstance(option, str):
            raise TypeError(f"options[{index}] is {option!r:.80}; it must be a text")
        if not option:
            raise ValueError(f"options[{index}] is empty")
        try:
            option.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"options[{index}] has a lone surrogate, which cannot be encoded") from error
    if not 1 <= len(options) <= 1_000:
        raise ValueError(f"there are {len(options)} options; there must be 1 to 1000")
    if len(set(options)) < len(options):
        twice = next(option for option in options if options.count(option) > 1)
        raise ValueError(f"the option {twice!r:.80} occurs twice")
    return list(options)


def _prompt_tokens(model: Model, prompt: Prompt, texts: list[str], show_options: bool | str) -> list[int]:  # noqa: FBT001
    from constrain.composition import choice

    return make_plan(model, prompt, choice(*texts), {"show_schema": show_options}).tokens


def _choose(model: Model, prompt: list[int], texts: list[str], tokens: list[list[int]]) -> Chosen:
    logprobs = model.trees.logprobs(prompt, tokens, model.vocabulary.eos)
    highest = max(logprobs)
    weights = [math.exp(each - highest) for each in logprobs]
    total = math.fsum(weights)
    best = weights.index(1.0)
    return Chosen(
        value=texts[best],
        probability=weights[best] / total,
        probabilities={text: weight / total for text, weight in zip(texts, weights, strict=True)},
        logprob=logprobs[best],
        mass=min(1.0, math.exp(highest) * total),
    )
