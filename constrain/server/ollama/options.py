"""``options`` of a request: how answers are sampled, and how Ollama would load the model."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.sampling import read_max_tokens, read_sampling
from constrain.fields.values import FieldError, boolean, integer, mapping
from constrain.llama.decoding.sampling import LISTS, OPTIONS
from constrain.server.requests.limits import RANGES
from constrain.server.requests.refusals import asks_for_nothing, unsupported
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.generation.options import ChatOptions

NUM_PREDICT = "options.num_predict"
"""Name of the limit on tokens in errors."""

_FIELD = "options"

MAX_OLLAMA_STOPS = 32
"""Texts of ``options.stop``. Beyond: status 400."""

OPTION_RANGES = {**RANGES, "temperature": (0, None), "stop": (0, MAX_OLLAMA_STOPS)}
"""Ranges of the options for sampling. Ollama has no upper limit on the temperature."""

_SAMPLING = (*OPTIONS, *LISTS, "stop")

_RANDOM_SEED = -1
"""Value of ``seed`` for a fresh seed."""

_UNLIMITED = (-1, -2)
"""Values of ``num_predict`` for no limit, and for as much as the context holds: here the same."""

_LOADING = (
    "num_keep",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "low_vram",
    "f16_kv",
    "logits_all",
    "numa",
    "use_mmap",
    "use_mlock",
    "num_thread",
)
"""Options that change no answer here: they say how a model is loaded."""

_REFUSED: dict[str, tuple[float, str]] = {
    "tfs_z": (1, "Use 'top_p' or 'min_p'."),
    "vocab_only": (0, "A model without weights writes nothing."),
    "embedding_only": (0, "The served models write text, too."),
}
"""Options that are refused, each with its value without effect and the alternative."""

_KNOWN = (*_SAMPLING, *_LOADING, *_REFUSED, "num_predict", "num_ctx", "penalize_newline")


@dataclass(frozen=True, slots=True)
class OllamaOptions:
    """The checked ``options`` of a request.

    Attributes:
        generation: options for the generation.
        num_ctx: tokens that the context must have; ``None`` for any number.
    """

    generation: ChatOptions
    num_ctx: int | None


def read_options(body: Mapping[str, Any]) -> OllamaOptions:
    """Reads ``options``. Raises ``FieldError``, also for unknown options, since any option may change the answer."""
    given = body.get(_FIELD)
    members = {} if given is None else mapping(given, _FIELD)
    _refuse(members)
    named = {name: members[name] for name in _SAMPLING if members.get(name) is not None}
    with _name_place():
        if integer(named, "seed") == _RANDOM_SEED:
            del named["seed"]
        found: ChatOptions = {**read_sampling(named, OPTION_RANGES)}
        if integer(members, "num_predict") not in _UNLIMITED:
            found |= read_max_tokens(members, "num_predict", least=1)[0]
        _check_penalties(members, found)
        return OllamaOptions(found, integer(members, "num_ctx", 1))


def _refuse(members: Mapping[str, Any]) -> None:
    """Raises ``FieldError`` for options that this server does not have."""
    for name, value in members.items():
        if name not in _KNOWN:
            raise unsupported(
                f"{_FIELD}.{name:.64}",
                f"This server has no such option{did_you_mean(name[:64], _KNOWN)}; leave it out.",
            )
        if name in _REFUSED:
            neutral, advice = _REFUSED[name]
            if not asks_for_nothing(name, value) and (isinstance(value, bool) or value != neutral):
                raise unsupported(f"{_FIELD}.{name}", advice)


def _check_penalties(members: Mapping[str, Any], found: ChatOptions) -> None:
    """Raises ``FieldError``, with the option as its place, for penalties that this server does not have."""
    of_newlines = boolean(members, "penalize_newline")
    neutral = {"repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    if all(found.get(name, value) == value for name, value in neutral.items()):
        return
    if of_newlines is False:
        raise unsupported("penalize_newline", "Penalties count line ends, too; leave it out.")


@contextlib.contextmanager
def _name_place() -> Iterator[None]:
    """Adds ``options`` to the place in each ``FieldError`` of the block."""
    try:
        yield
    except FieldError as error:
        place = f"{_FIELD}.{error.param}"
        message = error.message.replace(f"'{error.param}'", f"'{place}'", 1)
        raise FieldError(message, param=place, code=error.code) from error
