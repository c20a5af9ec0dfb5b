"""``*args`` and ``**kwargs`` as one property each: an array, and an object of keys that no other parameter uses."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import core_schema
from typing_extensions import Unpack, is_typeddict

from constrain.errors import ToolError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

_OF_ALL_VALUES = ("alias", "validation_alias", "title", "description", "examples", "json_schema_extra")
"""Settings of ``Field`` that apply to the property; other settings apply to each value."""


@dataclass(frozen=True, slots=True)
class _KeysExcept:
    """A dictionary without certain keys."""

    names: frozenset[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "propertyNames": {"not": {"enum": sorted(self.names)}}}

    def _check(self, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(self.names & set(value)):
            raise ValueError(f"the key {taken[0]!r} is a parameter itself")
        return value


def collect_values(
    parameter: Parameter, tool: str, annotation: Any, reserved: frozenset[str]
) -> tuple[Any, dict[str, Any]]:
    """Returns the type of all values of a variadic parameter, and the settings of its field. Raises ``ToolError``.

    ``annotation``: evaluated annotation; ``reserved``: names of parameters, which cannot be keys.
    """
    if get_origin(annotation) is Unpack or getattr(annotation, "__unpacked__", False):
        return _unpack(parameter, tool, annotation, reserved)
    info = FieldInfo.from_annotation(annotation)
    if not info.is_required():
        raise ToolError(f"tool {tool!r}: parameter {parameter.name!r} stands for many values and can have no default")
    kept = [*info.metadata] + ([Field(discriminator=info.discriminator)] if info.discriminator else [])
    item: Any = info.annotation
    for mark in kept:
        item = Annotated[item, mark]
    more = {name: value for name in _OF_ALL_VALUES if (value := getattr(info, name)) is not None}
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return list[item], {**more, "default_factory": list}
    kind = dict[str, item]
    return Annotated[kind, _KeysExcept(reserved)] if reserved else kind, {**more, "default_factory": dict}


def _unpack(parameter: Parameter, tool: str, annotation: Any, reserved: frozenset[str]) -> tuple[Any, dict[str, Any]]:
    """Returns the type and settings of ``**kwargs: Unpack[D]``. Raises ``ToolError``."""
    kind: Any = get_args(annotation)[0] if get_origin(annotation) is Unpack else None
    if parameter.kind is Parameter.VAR_POSITIONAL or not is_typeddict(kind):
        raise ToolError(
            f"tool {tool!r}: parameter {parameter.name!r} unpacks a type other than a TypedDict of keyword arguments; "
            f"annotate it with the type of one value, or take one parameter of a tuple type"
        )
    if taken := sorted(reserved & (kind.__required_keys__ | kind.__optional_keys__)):
        raise ToolError(
            f"tool {tool!r}: {taken[0]!r} is a key of {parameter.name!r} and also a parameter; rename one of the two"
        )
    try:
        TypeAdapter(kind).validate_python({})
    except ValidationError:  # some keys are required
        return kind, {}
    return kind, {"default_factory": dict}


def hide_names(document: dict[str, Any], shown: frozenset[str]) -> None:
    """Removes names of hidden parameters, such as the context's, from the shown schema of ``**kwargs``.

    They are still refused as keys: by the model of the arguments and by the compiled schema.
    """
    if "propertyNames" in document:
        forbidden = document["propertyNames"]["not"]
        forbidden["enum"] = [name for name in forbidden["enum"] if name in shown]
        if not forbidden["enum"]:
            del document["propertyNames"]
