"""A function's signature as a Pydantic model of its arguments, and back from a value of the model to the call.

Each parameter is one property, under its alias or its name:

- ``*args: T`` is an array of ``T`` under the parameter's name, ``**kwargs: T`` an object of ``T``; none need be given.
  An object of its own can hold what a call can, and more properties could not: ``f(1, a=2)`` is a call of
  ``f(a, /, **kwargs)``. Its keys are all but those that the call takes for other parameters.
- ``**kwargs: Unpack[D]`` is an object of the ``TypedDict`` D.
- Parameters that ``functools.partial`` gave a value, and the context, are no properties.

Other properties are refused: what the schema describes, what the model reads and what can be called is the same.
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
from constrain.chat.tools.parameters import callers_parameters, keyword_names, resolved
from constrain.chat.tools.variadic import collected, hide_names
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
"""What evaluating an annotation, or making a model or a schema of it, raises."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """A parameter of the function, and the field of the model that holds its value."""

    parameter: Parameter
    field: str


@dataclass(frozen=True, slots=True)
class CallSignature:
    """What a call of a function may be given.

    Attributes:
        model: reads the arguments.
        takes_context: whether the first parameter is the context.
        document: the model's JSON Schema to show; ``tightened``: the one to compile.
    """

    model: type[BaseModel]
    takes_context: bool
    document: dict[str, Any]
    tightened: dict[str, Any]
    _result: ResultType
    _arguments: tuple[_Argument, ...]

    def read(self, text: str) -> Arguments:
        """The call that a JSON text stands for. Raises ``OutputValidationError``."""
        fields = vars(self._result.parse(text))
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
        function: what is called.
        tool: the name, for messages.
        documented: descriptions of parameters by the docstring, which ``Annotated`` ones give way to.
        overrides: descriptions that all others give way to.
        names: what annotations may name beside the globals of the function's module.
        is_method: whether the first parameter is the object or class that the function is yet to be bound to.
    """
    parameters, takes_context = callers_parameters(function, tool, names, is_method=is_method)
    if unknown := [name for name in overrides if name not in {one.name for one in parameters}]:
        raise ToolError(
            f"tool {tool!r}: there is a description of {unknown[0]!r}, which is no parameter of the model's"
        )
    reserved = keyword_names(function)
    described = {**documented, **overrides}
    definitions = {
        one.name: _definition(one, tool, function, names, described.get(one.name), reserved) for one in parameters
    }
    fields = _field_names([one.name for one in parameters])
    model, adapter, document, tightened = _model(tool, fields, definitions)
    keys = _keys(tool, model, fields)
    for one in parameters:
        if one.kind is Parameter.VAR_KEYWORD:
            hide_names(document["properties"][keys[one.name]], frozenset(keys))
    arguments = tuple(_Argument(one, field) for one, field in zip(parameters, fields, strict=True))
    return CallSignature(model, takes_context, document, tightened, ResultType(document, adapter), arguments)


def _definition(
    parameter: Parameter,
    tool: str,
    function: Callable[..., Any],
    names: Mapping[str, Any],
    description: str | None,
    reserved: frozenset[str],
) -> tuple[Any, FieldInfo]:
    """Annotation and ``Field(...)`` of a parameter; what the latter says comes before what the former does."""
    annotation = resolved(parameter, tool, function, names)
    more: dict[str, Any] = {}
    if description is None:
        description = _marked_description(annotation)
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        annotation, more = collected(parameter, tool, annotation, reserved)
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
    """The description in ``Annotated[T, "description"]`` or ``Annotated[T, Doc("description")]``."""
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, str):
            return mark
        if isinstance(mark, Doc):
            return mark.documentation
    return None


def _default(value: Any) -> dict[str, Any]:
    """How a field has this default: shown, or kept to itself where it is no JSON."""
    try:
        shown = value is not Ellipsis and _is_json(pydantic_core.to_jsonable_python(value))
    except pydantic_core.PydanticSerializationError:
        shown = False
    return {"default": value} if shown else {"default_factory": lambda: value}


class _Arguments(BaseModel):
    """Arguments of a call, and no others.

    Dataclasses and TypedDicts take ``extra="forbid"`` over from the configuration of what they are fields of, and not
    in every version does their JSON Schema say so; here it holds for the arguments alone.
    """

    model_config = ConfigDict(protected_namespaces=())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The model's own, without other fields."""
        schema = handler(source)
        fields: Any = handler.resolve_ref_schema(schema)
        while fields["type"] != "model-fields":
            fields = fields["schema"]
        fields["extra_behavior"] = "forbid"
        return schema

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The model's own, without other properties."""
        document = handler(schema)
        handler.resolve_ref_schema(document)["additionalProperties"] = False
        return document


class _Shown(GenerateJsonSchema):
    """Pydantic's generator without the titles that it makes of names, and defaults that are no JSON."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as Pydantic has it

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never: titles of the user's own are kept all the same."""
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """The type with its default."""
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
    """By name of a field: the parameter's. They differ where a model has attributes of that name, or hides it."""
    fields: dict[str, str] = {}
    for index, name in enumerate(names):
        field = name
        if name.startswith("_") or hasattr(BaseModel, name):
            field = f"argument_{index}"
            while field in names:
                field += "_"
        fields[field] = name
    return fields


def _model(
    tool: str, fields: Mapping[str, str], definitions: Mapping[str, tuple[Any, FieldInfo]]
) -> tuple[type[BaseModel], TypeAdapter[BaseModel], dict[str, Any], dict[str, Any]]:
    """A model of such fields, what reads it, its schema to show and that to compile. Raises ``ToolError``."""
    members: dict[str, Any] = {field: definitions[name] for field, name in fields.items()}
    try:
        model: type[BaseModel] = create_model(f"{tool}_arguments", __base__=_Arguments, **members)
        adapter = TypeAdapter(model)
        document = adapter.json_schema(schema_generator=_Shown)
        tightened = type_schema(adapter)
    except _NO_TYPE_ERRORS as error:
        if len(fields) > 1:  # which one is it?
            for field, name in fields.items():
                _model(tool, {field: name}, definitions)
        names = ", ".join(map(repr, fields.values()))
        why = str(error).partition("\n")[0].partition(". ")[0]  # Pydantic goes on with advice for models
        raise ToolError(
            f"tool {tool!r}: no JSON Schema can be made of the type of parameter {names} ({why}); annotate it with "
            f"what Pydantic can read from JSON, or have it given as the context"
        ) from error
    document.pop("title", None)
    return model, adapter, document, tightened


def _keys(tool: str, model: type[BaseModel], fields: Mapping[str, str]) -> dict[str, str]:
    """The property of each parameter. Raises ``ToolError`` where two have the same."""
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
