"""``think``: whether a model reasons before its answer, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.chat.families.forms import detect_thinking
from constrain.fields.thinking import effort_options
from constrain.fields.values import one_of, wrong_type
from constrain.generation.reasoning import always_reasons
from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions
    from constrain.llama.model import Model

_FIELD = "think"

LEVELS = ("low", "medium", "high")
"""Amounts of reasoning; see ``fields.thinking.EFFORT_TOKENS``."""


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
        raise ApiError(f"'{name:.200}' does not support thinking; leave 'think' out.", param=_FIELD)
    if wanted is False and can and always_reasons(model, has_tools=has_tools):
        raise ApiError(f"'{name:.200}' thinks before every answer; leave 'think' out.", param=_FIELD)
