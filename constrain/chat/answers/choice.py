"""The tools that a model may call: ``tool_choice``, in this library's forms and in OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.answers.choices import Calls
from constrain.chat.tools.kinds import CustomTool, FunctionTool

if TYPE_CHECKING:
    from constrain.chat.tools.kinds import Tool

_MODES = {mode.value: mode for mode in Calls}


@dataclass(frozen=True, slots=True)
class Choice:
    """A checked ``tool_choice``. ``allowed``: names of callable tools, None for all; ``single``: at most one call."""

    calls: Calls
    allowed: tuple[str, ...] | None = None
    single: bool = False


def read_choice(given: Any, tools: Sequence[Tool], place: str = "tool_choice") -> Choice:
    """Reads ``tool_choice``. Raises ``ValueError`` with the place and the reason.

    Args:
        given: ``"auto"``, ``"required"`` or ``"none"``; a tool or its name, which is called once; a list of these, any
            of which may be called, and at least one is; or a JSON object as OpenAI defines it, for chat completions or
            responses.
        tools: the tools of the request.
        place: name of the option for error messages.
    """
    if given is None:
        return Choice(Calls.AUTO if tools else Calls.NONE)
    if isinstance(given, str) and given in _MODES:
        mode = _MODES[given]
        if mode is Calls.REQUIRED and not tools:
            raise ValueError(f'{place} is "required", but there are no tools')
        return Choice(mode if tools else Calls.NONE)
    if isinstance(given, Mapping):
        return _from_json(given, tools, place)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return Choice(Calls.REQUIRED, _names(given, tools, place))
    return Choice(Calls.REQUIRED, (_name(given, tools, place),), single=True)


def _from_json(given: Mapping[str, Any], tools: Sequence[Tool], place: str) -> Choice:
    kind = given.get("type")
    inner = given.get(kind, given) if isinstance(kind, str) else given
    if not isinstance(inner, Mapping):
        raise ValueError(  # noqa: TRY004 - of a JSON document
            f"{place}: {kind!r} is {inner!r:.80}; it must be an object"
        )
    if kind in ("function", "custom"):
        name = _name(inner.get("name"), tools, f"{place}.name")
        if any(tool.name == name and isinstance(tool, CustomTool) != (kind == "custom") for tool in tools):
            raise ValueError(f"{place}.type is {kind!r}, but {name!r} is a tool of another type")
        return Choice(Calls.REQUIRED, (name,), single=True)
    if kind != "allowed_tools":
        raise ValueError(f"{place}.type is {kind!r}; it must be 'function', 'custom' or 'allowed_tools'")
    mode, listed = inner.get("mode", "auto"), inner.get("tools")
    if mode not in ("auto", "required"):
        raise ValueError(f"{place}.mode is {mode!r}; it must be 'auto' or 'required'")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise ValueError(f"{place}.tools must be a list of tools")
    return Choice(_MODES[mode], _names([_listed_name(each) for each in listed], tools, f"{place}.tools"))


def _listed_name(each: Any) -> Any:
    """Returns the name in an entry of ``allowed_tools``, in either form of OpenAI's."""
    if not isinstance(each, Mapping):
        return each
    kind = each.get("type")
    nested = each.get(kind, each) if isinstance(kind, str) else each
    return nested.get("name") if isinstance(nested, Mapping) else nested


def _names(given: Sequence[Any], tools: Sequence[Tool], place: str) -> tuple[str, ...]:
    if not given:
        raise ValueError(f"{place} is empty; name at least one tool")
    return tuple(dict.fromkeys(_name(each, tools, f"{place}[{index}]") for index, each in enumerate(given)))


def _name(given: Any, tools: Sequence[Tool], place: str) -> str:
    name = given
    if isinstance(given, FunctionTool | CustomTool):
        name = given.name
    elif callable(given):
        name = next((tool.name for tool in tools if tool.function == given), getattr(given, "__name__", given))
    names = [tool.name for tool in tools]
    if name not in names:
        raise ValueError(f"{place} is {name!r}, which is none of the tools ({', '.join(names) or 'there are none'})")
    return str(name)
