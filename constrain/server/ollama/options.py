"""``options`` of a request: how answers are sampled, and how Ollama would load the model."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from constrain.fields.sampling import read_max_tokens, read_sampling
from constrain.fields.values import FieldError, boolean, integer, mapping
from constrain.llama.decoding.sampling import LISTS, OPTIONS
from constrain.server.http.account import MAX_KEPT_WARNINGS, warn
from constrain.server.ollama.fields import EVERYWHERE
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import PEERS
from constrain.server.requests.refusals import asks_for_nothing, unsupported
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.generation.options import ChatOptions

NUM_PREDICT = "options.num_predict"
"""Name of the limit on tokens in errors."""

_FIELD = "options"

OPTION_RANGES = {**RANGES, "temperature": (0, None), "stop": (0, 32)}
"""Ranges of the options for sampling. Ollama has no upper limit on the temperature."""

_SAMPLING = (*OPTIONS, *LISTS, "stop")

_RANDOM_SEED = -1
"""Value of ``seed`` for a fresh seed."""

_LOADING = (
    "num_ctx",
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

_OUTSIDE = ("format", *PEERS)
"""Fields outside of the options that say what an answer is."""

_KNOWN = (*_SAMPLING, *_LOADING, *_REFUSED, "num_predict", "penalize_newline")


def read_options(body: Mapping[str, Any]) -> ChatOptions:
    """Reads ``options`` for the generation. Unknown options are warnings. Raises ``FieldError``.

    A ``num_predict`` of 0 or less is no limit, as in Ollama.
    """
    members = _members(body)
    _refuse(members)
    named = {name: members[name] for name in _SAMPLING if members.get(name) is not None}
    with _name_place():
        if integer(named, "seed") == _RANDOM_SEED:
            del named["seed"]
        found: ChatOptions = {**read_sampling(named, OPTION_RANGES)}
        if (integer(members, "num_predict") or 0) > 0:
            found |= read_max_tokens(members, "num_predict", least=1)[0]
        _check_penalties(members, found)
        return found


def read_num_ctx(body: Mapping[str, Any]) -> int | None:
    """Reads ``options.num_ctx`` where it says how much of a text is read; ``None`` for the served context.

    Raises ``FieldError``.
    """
    with _name_place():
        given = integer(_members(body), "num_ctx")
    return given if given is not None and given > 0 else None


def _members(body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = body.get(_FIELD)
    return {} if given is None else mapping(given, _FIELD)


def _refuse(members: Mapping[str, Any]) -> None:
    """Raises ``FieldError`` for options that change an answer and are not done here; warns about unknown ones."""
    unknown: list[str] = []
    for name, value in members.items():
        if name not in _KNOWN:
            if (name in EVERYWHERE or name in _OUTSIDE) and not asks_for_nothing(name, value):
                raise unsupported(f"{_FIELD}.{name}", EVERYWHERE.get(name, "Send it outside of 'options'."))
            unknown.append(name)
        if name in _REFUSED:
            neutral, advice = _REFUSED[name]
            if not asks_for_nothing(name, value) and (isinstance(value, bool) or value != neutral):
                raise unsupported(f"{_FIELD}.{name}", advice)
    for name in unknown[:MAX_KEPT_WARNINGS]:
        warn(f"'{_FIELD}.{name:.64}' is no option{did_you_mean(name[:64], _KNOWN)}; it has no effect.")


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
