"""The options for sampling: the meaning, the default, the range and the value without effect of each.

Their readers, for requests, lines of a batch and Python, take names and ranges from ``OPTIONS``. This module does not
import llama.cpp, which takes long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.arguments import Flag, option, options_of
from constrain.llama.decoding.ranges import SEEDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
"""Steps of the sampler chain, in llama.cpp's order."""

_OTHER_NAMES = {"typical_p": "typ_p", "temp": "temperature"}
_NOT_HERE = ("adaptive_p", "tfs_z")
"""Steps of other versions of llama.cpp, left out of lists: requests cannot turn them on."""

_LETTERS = dict(zip("edskypmxtaf", SAMPLERS + _NOT_HERE, strict=True))


def _number(
    default: Any, least: Any, most: Any = 1000.0, neutral: Any = None, *flags: Flag, above: bool = False
) -> Any:
    return option(default, *flags, least=least, most=most, neutral=neutral, above=above)


def _count(default: Any, least: int, most: int = 2**31 - 1, neutral: Any = None, *flags: Flag) -> Any:
    return _number(default, least, most, neutral, *flags)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample; the defaults are llama.cpp's, and so are the samplers.

    Raises ``ValueError`` for a value out of range.

    Attributes:
        temperature: divisor of the logits; 0 or more. At 0 the most likely allowed token is taken, and ``top_p``,
            ``top_k``, ``min_p`` and ``seed`` have no effect. By default, it is 0 for one answer to a schema or with
            tools that it may call, as it is right most often then. It is 0.8 for free text, several answers to a
            prompt (``n``), reasoning and drafts, and with ``top_p``, ``top_k`` or ``min_p``.
        top_k: samples from this number of most likely tokens (40); 0 for all tokens.
        top_p: samples from the most likely tokens whose probabilities add up to this value (0.95); 0 to 1, 1 for all
            tokens.
        min_p: samples from tokens at least this many times as likely as the most likely one (0.05); 0 to 1, 0 for all
            tokens.
        seed: seed of the random numbers, for reproducible answers; 0 to 2**32 - 2. ``None`` (the default) draws a new
            seed for each answer.
        repeat_penalty: divisor of the logits of tokens that are among the last ``repeat_last_n`` of the answer; above
            0, 1 (the default) for none.
        presence_penalty: number that is subtracted from the logit of each token that the answer already has; -2 to 2,
            0 (the default) for none.
        frequency_penalty: number that is subtracted from the logit of a token once for each time that the answer
            already has it; -2 to 2, 0 (the default) for none.
        repeat_last_n: number of last tokens of the answer to which ``repeat_penalty`` and, if it is given, the two
            penalties above apply; -1 for all. ``None`` (the default) is 64 for ``repeat_penalty``, all for the others.
        repetition_penalty: divisor of the logits of tokens that the prompt or the answer has, as vLLM and transformers
            count them; above 0, 1 (the default) for none.
        typical_p: samples from the tokens whose surprise is nearest to what is expected, with this total probability;
            0 to 1, 1 (the default) for all tokens.
        top_n_sigma: samples from tokens whose logit is at most this number of standard deviations below the greatest
            one; 0 (the default) or less for all tokens.
        xtc_probability: probability that all tokens but the least likely one are left out of those that reach
            ``xtc_threshold``, for surprising answers; 0 to 1, 0 (the default) for never.
        xtc_threshold: least probability of the tokens that ``xtc_probability`` is about (0.1); none reaches more than
            0.5 together with another.
        dynatemp_range: how far the temperature rises and falls with the model's uncertainty; 0 (the default) for not
            at all.
        dynatemp_exponent: exponent of the uncertainty in the temperature of ``dynatemp_range`` (1).
        mirostat: version of Mirostat, 1 or 2, which keeps the surprise of the answer near ``mirostat_tau``; 0 (the
            default) for none. All other samplers that leave tokens out then have no effect, as in llama.cpp.
        mirostat_tau: surprise in bits that ``mirostat`` aims at (5).
        mirostat_eta: how quickly ``mirostat`` learns (0.1).
        dry_multiplier: strength of the penalty for tokens that would continue a repetition of earlier text, of the
            prompt or the answer (DRY); 0 (the default) for none.
        dry_base: base of the penalty of DRY, whose exponent is the length of the repetition (1.75); below 1 for none.
        dry_allowed_length: tokens of a repetition that DRY does not penalize (2).
        dry_penalty_last_n: number of last tokens in which DRY looks for repetitions; -1 (the default) for all, 0 for
            none.
        logit_bias: numbers that are added to the logits of tokens, by token id; ``float("-inf")`` forbids a token
            unless the schema allows no other.
        dry_sequence_breakers: texts at which repetitions end for DRY; by default line ends, colons, quotation marks and
            asterisks.
        samplers: steps of the choice, in their order: those of ``penalties``, ``dry``, ``top_n_sigma``, ``top_k``,
            ``typ_p``, ``top_p``, ``min_p``, ``xtc`` and ``temperature`` that shall have an effect; by default all, in
            this order, which is llama.cpp's. A text has a letter for each, as llama.cpp's ``--sampling-seq``.
    """

    temperature: float = _number(
        0.8, 0, None, 1.0, Flag("Randomness; 0 takes the most likely token.", default="0 or 0.8")
    )
    top_k: int = _count(40, 0, 2**31 - 1, 0, Flag("Sample from this many of the likeliest tokens; 0 for all."))
    top_p: float = _number(0.95, 0, 1, 1.0, Flag("Sample from the likeliest tokens with this total probability."))
    min_p: float = _number(
        0.05, 0, 1, 0.0, Flag("Sample from tokens with at least this share of the greatest probability.")
    )
    seed: int | None = _count(None, 0, SEEDS - 1)
    repeat_penalty: float = _number(1.0, 0, None, 1.0, Flag("Divides the logits of recent tokens."), above=True)
    presence_penalty: float = _number(
        0.0, -2, 2, 0.0, Flag("Subtracted from the logits of tokens already in the answer.")
    )
    frequency_penalty: float = _number(
        0.0, -2, 2, 0.0, Flag("Subtracted from the logit of a token for each time it occurs in the answer.")
    )
    repeat_last_n: int | None = _count(None, -1)
    repetition_penalty: float = _number(1.0, 0, 1000.0, 1.0, above=True)
    typical_p: float = _number(1.0, 0, 1, 1.0)
    top_n_sigma: float = _number(0.0, -1000.0, 1000.0, 0.0)
    xtc_probability: float = _number(0.0, 0, 1, 0.0)
    xtc_threshold: float = _number(0.1, 0, 1)
    dynatemp_range: float = _number(0.0, 0, 1000.0, 0.0)
    dynatemp_exponent: float = _number(1.0, 0)
    mirostat: int = _count(0, 0, 2, 0)
    mirostat_tau: float = _number(5.0, 0)
    mirostat_eta: float = _number(0.1, 0)
    dry_multiplier: float = _number(0.0, 0, 1000.0, 0.0)
    dry_base: float = _number(1.75, 0)
    dry_allowed_length: int = _count(2, 0)
    dry_penalty_last_n: int = _count(-1, -1)
    logit_bias: Mapping[int, float] = option({})
    dry_sequence_breakers: tuple[str, ...] = option(("\n", ":", '"', "*"))
    samplers: tuple[str, ...] = option(SAMPLERS)

    def __post_init__(self) -> None:
        for name, declared in OPTIONS.items():
            value = getattr(self, name)
            if value is not None and not declared.holds(value):
                raise ValueError(f"{name} is {value!r}; it must be {declared.describe()}")
        for token, bias in self.logit_bias.items():
            if math.isnan(bias):
                raise ValueError(f"logit_bias[{token}] is {bias!r}; it must be a number")
        given: Any = self.dry_sequence_breakers  # a list, or one text, where a caller gives it
        object.__setattr__(self, "dry_sequence_breakers", (given,) if isinstance(given, str) else tuple(given))
        check_breakers(self.dry_sequence_breakers)
        object.__setattr__(self, "samplers", sampler_names(self.samplers))


OPTIONS = {name: declared for name, declared in options_of(Sampling).items() if declared.is_number}
"""The numeric options for sampling, by name."""

LISTS = {"dry_sequence_breakers": 16, "samplers": 32}
"""The options for sampling that are lists of texts, with the most texts of each."""

NEUTRAL: dict[str, Any] = {name: each.neutral for name, each in OPTIONS.items() if each.neutral is not None}
"""Values that leave the model's own distribution unchanged, by option."""


def is_neutral(name: str, value: float) -> bool:
    """Returns whether an option with this value changes nothing."""
    return value == NEUTRAL[name] or (name == "top_n_sigma" and value < 0)


def check_breakers(breakers: tuple[str, ...]) -> None:
    """Raises ``ValueError`` for too many texts that end repetitions, and for one that is too long.

    llama.cpp compares each text with all tokens, which takes about a second for 160 bytes; it cuts texts after 40.
    """
    if len(breakers) > (most := LISTS["dry_sequence_breakers"]):
        raise ValueError(f"dry_sequence_breakers has {len(breakers)} texts; it may have {most}")
    if sum(len(each.encode()) for each in breakers if isinstance(each, str)) > 160:
        raise ValueError("dry_sequence_breakers has more than 160 bytes together; give shorter texts")
    for each in breakers:
        if not isinstance(each, str) or "\0" in each or len(each.encode()) > 40:
            raise ValueError(f"dry_sequence_breakers has {each!r:.80}; each must be a text of at most 40 bytes")


def sampler_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the steps of the chain that a list of names, or llama.cpp's text with a letter for each, stands for.

    Raises ``ValueError``.
    """
    names = [_LETTERS.get(each, each) if isinstance(given, str) else _OTHER_NAMES.get(each, each) for each in given]
    if len(names) > (most := LISTS["samplers"]):
        raise ValueError(f"samplers has {len(names)} names; it may have {most}")
    for each in names:
        if each not in SAMPLERS + _NOT_HERE:
            raise ValueError(f"samplers has {each!r:.80}; it may have {', '.join(SAMPLERS)}")
    return tuple(each for each in names if each in SAMPLERS)
