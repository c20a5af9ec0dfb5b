"""A function's signature as a Pydantic model of its arguments, and a call of the function from a value of the model.

Each parameter is one property, under its alias or its name:

- ``*args: T`` is an array of ``T`` under the parameter's name, ``**kwargs: T`` an object of ``T``; both are optional.
  Keyword arguments need an object of their own, since their keys could equal other properties: ``f(1, a=2)`` is a valid
  call of ``f(a, /, **kwargs)``. Keys that the call needs for other parameters are excluded.
- ``**kwargs: Unpack[D]`` is an object of the ``TypedDict`` D.
- Parameters with a value from ``functools.partial``, and the context, are not properties.

Other properties are refused. So the shown schema, the compiled schema and the possible calls agree.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import Doc

from constrain.chat.tools.arguments import Arguments
from constrain.chat.tools.parameters import callers_parameters, keyword_names, resolve_annotation
from constrain.chat.tools.variadic import collect_values, hide_names
from constrain.errors import ConstrainError, ToolError
from constrain.language.result import ResultType
from constrain.types.schema import type_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

_NO_TYPE_ERRORS = (
    PydanticUserError,
    pydantic_core.SchemaError,
    ConstrainError,
    AttributeError,
    NameError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""Errors of evaluating an annotation, or of making a model or a schema from it."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """A parameter of the function, and the model's field that holds its value."""

    parameter: Parameter
    field: str


@dataclass(frozen=True, slots=True)
class CallSignature:
    """The arguments that a function accepts.

    Attributes:
        model: reader of the arguments.
        takes_context: whether the first parameter is the context.
        document: JSON Schema of the model for the prompt.
        tightened: JSON Schema of the model for compilation.
        result: the model, as the type of an answer.
    """

    model: type[BaseModel]
    takes_context: bool
    document: dict[str, Any]
    tightened: dict[str, Any]
    result: ResultType
    _arguments: tuple[_Argument, ...]

    def read(self, text: str) -> Arguments:
        """Reads the call in a JSON text. Raises ``OutputValidationError``."""
        fields = vars(self.result.parse(text))
        values: dict[str, Any] = {}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for argument in self._arguments:
            name, kind, value = argument.parameter.name, argument.parameter.kind, fields[argument.field]
            values[name] = value
            if kind is Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif kind is Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif kind is Parameter.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return Arguments(text, values, tuple(args), kwargs)


def read_signature(
    function: Callable[..., Any],
    tool: str,
    *,
    documented: Mapping[str, str],
    overrides: Mapping[str, str],
    names: Mapping[str, Any],
    is_method: bool = False,
) -> CallSignature:
    """Reads a function's signature. Raises ``ToolError``.

    Args:
        function: function that a call runs.
        tool: name of the tool, for messages.
        documented: descriptions of parameters from the docstring; ``Annotated`` descriptions win over them.
        overrides: descriptions that win over all others.
        names: names that annotations may use in addition to the globals of the function's module.
        is_method: whether the first parameter is the object or class that the function will be bound to.
    """
    parameters, takes_context = callers_parameters(function, tool, names, is_method=is_method)
    if unknown := [name for name in overrides if name not in {one.name for one in parameters}]:
        raise ToolError(
            f"tool {tool!r}: there is a description of {unknown[0]!r}, but the model fills in no such parameter"
        )
    reserved = keyword_names(function)
    described = {**documented, **overrides}
    definitions = {
        one.name: _define_field(one, tool, function, names, described.get(one.name), reserved) for one in parameters
    }
    fields = _field_names([one.name for one in parameters])
    model, adapter, document, tightened = _make_model(tool, fields, definitions)
    keys = _keys(tool, model, fields)
    for one in parameters:
        if one.kind is Parameter.VAR_KEYWORD:
            hide_names(document["properties"][keys[one.name]], frozenset(keys))
    arguments = tuple(_Argument(one, field) for one, field in zip(parameters, fields, strict=True))
    return CallSignature(model, takes_context, document, tightened, ResultType(document, adapter), arguments)


def _define_field(
    parameter: Parameter,
    tool: str,
    function: Callable[..., Any],
    names: Mapping[str, Any],
    description: str | None,
    reserved: frozenset[str],
) -> tuple[Any, FieldInfo]:
    """Returns annotation and ``Field(...)`` of a parameter; settings in the field win over the annotation's."""
    annotation = resolve_annotation(parameter, tool, function, names)
    more: dict[str, Any] = {}
    if description is None:
        description = _marked_description(annotation)
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        annotation, more = collect_values(parameter, tool, annotation, reserved)
    elif isinstance(parameter.default, FieldInfo):
        annotation = Annotated[annotation, parameter.default]
    elif parameter.default is not Parameter.empty:
        more = _default(parameter.default)
    if description:
        more["description"] = description
    marks = getattr(annotation, "__metadata__", ())
    if all(getattr(mark, "validation_alias", None) is None for mark in marks):
        more.setdefault("validation_alias", parameter.name)
    field: FieldInfo = Field(**more)
    return annotation, field


def _marked_description(annotation: Any) -> str | None:
    """Returns the description in ``Annotated[T, "description"]`` or ``Annotated[T, Doc("description")]``."""
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, str):
            return mark
        if isinstance(mark, Doc):
            return mark.documentation
    return None


def _default(value: Any) -> dict[str, Any]:
    """Returns the settings of a field with a default: shown in the schema, or hidden if it is not JSON."""
    try:
        shown = value is not Ellipsis and _is_json(pydantic_core.to_jsonable_python(value))
    except pydantic_core.PydanticSerializationError:
        shown = False
    return {"default": value} if shown else {"default_factory": lambda: value}


class _Arguments(BaseModel):
    """The arguments of a call; other properties are refused.

    Setting ``extra="forbid"`` here would also apply to dataclasses and TypedDicts in the fields, and not every version
    of Pydantic writes their rule into the JSON Schema. So the rule is set on the arguments alone.
    """

    model_config = ConfigDict(protected_namespaces=())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the model's own core schema, without other fields."""
        schema = handler(source)
        fields: Any = handler.resolve_ref_schema(schema)
        while fields["type"] != "model-fields":
            fields = fields["schema"]
        fields["extra_behavior"] = "forbid"
        return schema

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Returns the model's own JSON Schema, without other properties."""
        document = handler(schema)
        handler.resolve_ref_schema(document)["additionalProperties"] = False
        return document


class _Shown(GenerateJsonSchema):
    """Pydantic's schema generator without generated titles and without defaults that are not JSON."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as Pydantic has it

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Returns False: only titles that the user wrote are kept."""
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Returns the schema of the type with its default."""
        result: dict[str, Any] = super().default_schema(schema)
        if not _is_json(result.get("default")):
            del result["default"]
        return result


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _field_names(names: list[str]) -> dict[str, str]:
    """Returns parameter names by field name. They differ if the model has an attribute of that name, or hides it."""
    fields: dict[str, str] = {}
    for index, name in enumerate(names):
        field = name
        if name.startswith("_") or hasattr(BaseModel, name):
            field = f"argument_{index}"
            while field in names:
                field += "_"
        fields[field] = name
    return fields


def _make_model(
    tool: str, fields: Mapping[str, str], definitions: Mapping[str, tuple[Any, FieldInfo]]
) -> tuple[type[BaseModel], TypeAdapter[BaseModel], dict[str, Any], dict[str, Any]]:
    """Returns a model with the fields, its reader, and its schemas to show and to compile. Raises ``ToolError``."""
    members: dict[str, Any] = {field: definitions[name] for field, name in fields.items()}
    try:
        model: type[BaseModel] = create_model(f"{tool}_arguments", __base__=_Arguments, **members)
        adapter = TypeAdapter(model)
        document = adapter.json_schema(schema_generator=_Shown)
        tightened = type_schema(adapter)
    except _NO_TYPE_ERRORS as error:
        if len(fields) > 1:  # tries the fields one by one to name the wrong one
            for field, name in fields.items():
                _make_model(tool, {field: name}, definitions)
        names = ", ".join(map(repr, fields.values()))
        why = str(error).partition("\n")[0].partition(". ")[0]  # the rest of Pydantic's message is advice for models
        raise ToolError(
            f"tool {tool!r}: no JSON Schema can be made of the type of parameter {names} ({why}); annotate it with "
            f"what Pydantic can read from JSON, or have it given as the context"
        ) from error
    document.pop("title", None)
    return model, adapter, document, tightened


def _keys(tool: str, model: type[BaseModel], fields: Mapping[str, str]) -> dict[str, str]:
    """Returns the property of each parameter. Raises ``ToolError`` if two have the same."""
    keys: dict[str, str] = {}
    for field, info in model.model_fields.items():
        name, key = fields[field], info.validation_alias
        if not isinstance(key, str):
            raise ToolError(
                f"tool {tool!r}: the alias of parameter {name!r} is {key!r}; a property has one name, so give a string"
            )
        if same := next((other for other, known in keys.items() if known == key), None):
            raise ToolError(f"tool {tool!r}: parameters {same!r} and {name!r} would both be the property {key!r}")
        keys[name] = key
    return keys
