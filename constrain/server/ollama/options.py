"""``options`` of a request: how answers are sampled, and how Ollama would load the model; and ``think``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.chat.families.forms import detect_thinking
from constrain.fields.declared import Flag, within
from constrain.fields.sampling import smallest_limit, stops
from constrain.fields.thinking import effort_options
from constrain.fields.values import one_of, wrong_type
from constrain.generation.reasoning import always_reasons
from constrain.llama.decoding.sampling import LISTS, OPTIONS
from constrain.server.http.account import MAX_KEPT_WARNINGS, warn
from constrain.server.http.errors import ApiError
from constrain.server.ollama.fields import EVERYWHERE
from constrain.server.requests.declared import SamplingFields
from constrain.server.requests.peers import PEERS
from constrain.server.requests.refusals import asks_for_nothing, unsupported
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from constrain.generation.options import ChatOptions
    from constrain.llama.model import Model

NUM_PREDICT = "options.num_predict"
"""Name of the limit on tokens in errors."""

_FIELD = "options"

_MOST_STOPS = 32
"""Texts of ``stop``. Ollama has no limit, and none on the temperature."""

_SAMPLING = (*OPTIONS, *LISTS, "stop")

_LOADING = (
    *("num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv", "logits_all", "numa"),
    *("use_mmap", "use_mlock", "num_thread"),
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


LEVELS = ("low", "medium", "high")
"""Amounts of reasoning; see ``fields.thinking.EFFORT_TOKENS``."""


class OllamaOptions(SamplingFields):
    """``options`` that change an answer. The server warns of unknown ones."""

    temperature: Annotated[float | None, within((0, None))] = None
    stop: Annotated[list[str] | None, stops(_MOST_STOPS)] = None
    num_ctx: Annotated[Any, WithJsonSchema({"type": "integer"})] = None
    num_predict: int | None = None
    penalize_newline: Flag = None

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads the options. Raises ``FieldError``, also for options that change an answer and are not done here."""
        _refuse(given)
        return super().read(given, place)

    def plain_options(self) -> ChatOptions:
        """Returns the options for the generation. A ``num_predict`` of 0 or less is no limit, as in Ollama.

        Raises ``FieldError`` for penalties that this server does not have.
        """
        found = super().plain_options()
        if self.num_predict is not None and self.num_predict > 0:
            found |= smallest_limit({"num_predict": self.num_predict})[0]
        neutral = {"repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
        if self.penalize_newline is False and any(found.get(name, value) != value for name, value in neutral.items()):
            raise unsupported(f"{_FIELD}.penalize_newline", "Penalties count line ends, too; leave it out.")
        return found


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


def read_think(given: object, name: str) -> bool | str | None:
    """Reads whether the model reasons, and how much. Raises ``FieldError``."""
    if isinstance(given, bool):
        return given
    if not isinstance(given, str):
        raise wrong_type(name, "a boolean or a string", given)
    return one_of(given, LEVELS, name)


def think_options(think: bool | str, max_tokens: int | None) -> ChatOptions:  # noqa: FBT001
    """Returns the options of ``think``. ``max_tokens``: limit on all tokens, of which reasoning takes at most half."""
    found: ChatOptions = {"thinking": think is not False}
    return found | effort_options(think, max_tokens) if isinstance(think, str) else found


def require_thinking(name: str, model: Model, options: ChatOptions) -> None:
    """Raises ``ApiError`` if a model cannot reason although the request asks for it, or cannot leave it."""
    wanted, has_tools = options.get("thinking"), bool(options.get("tools"))
    if wanted is None:
        return
    can = detect_thinking(model.tool_template if has_tools else model.chat_template) is not None
    if wanted is True and not can:
        raise ApiError(f"'{name:.200}' does not support thinking; leave 'think' out.", param="think")
    if wanted is False and can and always_reasons(model, has_tools=has_tools):
        raise ApiError(f"'{name:.200}' thinks before every answer; leave 'think' out.", param="think")
