"""The options for sampling: one table with the default, the range and the value without effect of each.

Their readers, for requests, lines of a batch and Python, take names and ranges from ``OPTIONS``. This module does not
import llama.cpp, which takes long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.llama.decoding.ranges import SEEDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
"""Steps of the sampler chain, in llama.cpp's order."""

_OTHER_NAMES = {"typical_p": "typ_p", "temp": "temperature"}
_NOT_HERE = ("adaptive_p", "tfs_z")
"""Steps of other versions of llama.cpp, left out of lists: requests cannot turn them on."""

_LETTERS = dict(zip("edskypmxtaf", SAMPLERS + _NOT_HERE, strict=True))


class SamplingOption(NamedTuple):
    """A numeric option for sampling.

    Attributes:
        default: value where none is given.
        least, most: range; ``None`` for no limit.
        neutral: value that leaves the model's own distribution unchanged; ``None`` for a detail of another option.
        above: whether ``least`` itself is out of range.
        is_whole: whether it is a whole number.
    """

    default: float | None
    least: float | None
    most: float | None
    neutral: float | None
    above: bool
    is_whole: bool

    @property
    def range(self) -> tuple[float | None, float | None]:
        """The least and the greatest value, for readers of requests."""
        return self.least, self.most

    def holds(self, value: float) -> bool:
        """Returns whether a value is in range."""
        low = self.least is None or (value > self.least if self.above else value >= self.least)
        return low and (self.most is None or value <= self.most) and math.isfinite(value)

    def describe(self) -> str:
        """Returns the range in words."""
        if self.least is not None and self.most is not None:
            return f"between {self.least} and {self.most}"
        return f"a finite number{f' above {self.least}' if self.above else f', {self.least} or more'}"


def _number(
    default: float | None,
    least: float | None,
    most: float | None = 1000.0,
    neutral: float | None = None,
    *,
    above: bool = False,
    is_whole: bool = False,
) -> Any:
    option = SamplingOption(default, least, most, neutral, above, is_whole)
    return field(default=default, metadata={"option": option})


def _count(default: int | None, least: int, most: int = 2**31 - 1, neutral: int | None = None) -> Any:
    return _number(default, least, most, neutral, is_whole=True)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample; the defaults are llama.cpp's, and so are the samplers.

    ``constrain.generation.options`` has the meaning of each. Raises ``ValueError`` for a value out of range.
    """

    temperature: float = _number(0.8, 0, None, 1.0)
    top_k: int = _count(40, 0, neutral=0)
    top_p: float = _number(0.95, 0, 1, 1.0)
    min_p: float = _number(0.05, 0, 1, 0.0)
    seed: int | None = _count(None, 0, SEEDS - 1)
    repeat_penalty: float = _number(1.0, 0, None, 1.0, above=True)
    presence_penalty: float = _number(0.0, -2, 2, 0.0)
    frequency_penalty: float = _number(0.0, -2, 2, 0.0)
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
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    samplers: tuple[str, ...] = SAMPLERS
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if value is not None and not option.holds(value):
                raise ValueError(f"{name} is {value!r}; it must be {option.describe()}")
        for token, bias in self.logit_bias.items():
            if math.isnan(bias):
                raise ValueError(f"logit_bias[{token}] is {bias!r}; it must be a number")
        given: Any = self.dry_sequence_breakers  # a list, or one text, where a caller gives it
        object.__setattr__(self, "dry_sequence_breakers", (given,) if isinstance(given, str) else tuple(given))
        check_breakers(self.dry_sequence_breakers)
        object.__setattr__(self, "samplers", sampler_names(self.samplers))


OPTIONS: dict[str, SamplingOption] = {
    each.name: each.metadata["option"] for each in fields(Sampling) if "option" in each.metadata
}
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
