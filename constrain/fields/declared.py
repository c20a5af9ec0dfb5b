"""Objects whose fields are declared once, as Pydantic models: reading, ranges, errors and descriptions come from them.

A field that is null counts as left out, and fields that are not declared are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from constrain.fields.values import (
    FieldError,
    invalid,
    mapping,
    missing,
    not_finite,
    one_of,
    out_of_range,
    too_long,
    wrong_type,
    wrong_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import ErrorDetails
    from typing_extensions import Self

Schema: TypeAlias = dict[str, Any]

_TYPES = {
    "bool_type": "a boolean",
    "dict_type": "an object",
    "float_type": "a decimal",
    "int_type": "an integer",
    "list_type": "an array",
    "string_type": "a string",
}
"""The expected types of Pydantic's errors, in OpenAI's words."""

_SIGNS = {"greater_than_equal": (">=", "ge"), "less_than_equal": ("<=", "le")}

_NULL: Schema = {"type": "null"}


class Fields(BaseModel):
    """An object with declared fields; those without a default are required."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads an object. Raises ``FieldError`` for the first wrong field, in the order of their declarations.

        ``place``: place of the object.
        """
        known = {name: value for name in cls.model_fields if (value := given.get(name)) is not None}
        try:
            return cls.model_validate(known)
        except ValidationError as error:
            raise _convert(cls, error.errors(include_url=False)[0], place, given) from None

    @classmethod
    def describe(cls) -> Schema:
        """Returns the JSON Schema of the object, complete in itself. Members that are not required may be null."""
        document = cls.model_json_schema()
        plain: Schema = _plain(document, document.get("$defs", {}), declared=True)
        return plain

    def given(self, *names: str) -> dict[str, Any]:
        """Returns the named fields that are neither left out nor null."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Reads:
    """Has a function read the value of a field.

    Attributes:
        function: receives the value, which is not null, and the name of the field. Raises ``FieldError``.
        shown: JSON Schema of the field, or a type that stands for it; ``None`` for the declared type.
    """

    function: Callable[[Any, str], Any]
    shown: Any = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        name = handler.field_name or ""

        def read(value: Any) -> Any:
            try:
                return self.function(value, name)
            except FieldError as error:  # Pydantic makes a text of each ValueError; the value may hold half a pair
                raise PydanticCustomError("field", "", {"error": error}) from error

        reader = core_schema.no_info_plain_validator_function(read)
        if isinstance(self.shown, dict):
            return reader
        shown = handler.generate_schema(self.shown) if self.shown else handler(source)
        return core_schema.json_or_python_schema(shown, reader)

    def __get_pydantic_json_schema__(self, read: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return self.shown if isinstance(self.shown, dict) else handler(read)


Flag: TypeAlias = bool | None

Text: TypeAlias = str | None


def within(limits: tuple[Any, Any]) -> Any:
    """Returns the declaration that a number is in a range; ``None`` for no limit."""
    return Field(ge=limits[0], le=limits[1])


def one_among(names: Iterable[str]) -> Reads:
    """Returns the declaration that a text is one of several."""
    supported = tuple(names)
    return Reads(lambda given, name: one_of(given, supported, name), {"enum": [*supported]})


def inside(model: type[Fields]) -> Reads:
    """Returns the declaration of an object that has fields itself."""
    return Reads(lambda given, name: model.read(mapping(given, name), f"{name}."), model)


def _convert(model: type[Fields], found: ErrorDetails, outer: str, given: Mapping[str, Any]) -> FieldError:
    """Returns the error in OpenAI's words that Pydantic has found in an object, whose place is ``outer``."""
    kind, value, context = found["type"], found["input"], found.get("ctx", {})
    name, *inner = found["loc"]
    place = f"{outer}{name}" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inner)
    if kind == "field":
        error: FieldError = context["error"]
        if not outer:
            return error
        message = error.message.replace(f"'{error.param}'", f"'{outer}{error.param}'", 1)
        return FieldError(message, param=f"{outer}{error.param}", code=error.code)
    if kind == "string_unicode":
        return invalid(place, "it holds half of a surrogate pair.")
    if kind == "missing":
        field = model.model_fields[str(name)]
        is_null = name in given and field.annotation is str and not field.metadata
        return wrong_type(place, "a string", None) if is_null else missing(place)
    if kind == "finite_number" or (kind == "float_type" and isinstance(value, int) and not isinstance(value, bool)):
        return not_finite(place, value)
    if kind == "literal_error":
        return wrong_value(place, value, context["expected"].replace(" or ", ", ").strip("'").split("', '"))
    if kind == "too_long":
        return too_long(place, context["max_length"], context["actual_length"])
    if kind in _SIGNS:
        sign, limit = _SIGNS[kind]
        number = "decimal" if isinstance(context[limit], float) else "integer"
        declared = [getattr(each, limit, None) for each in model.model_fields[str(name)].metadata]
        exact = next((each for each in declared if each is not None), context[limit])
        return out_of_range(place, number, sign, exact, value)
    return wrong_type(place, _TYPES[kind], value)


def _plain(schema: Any, definitions: Schema, *, declared: bool = False) -> Any:
    """Returns a schema of Pydantic's without titles, defaults and references. ``declared``: that of ``Fields``."""
    if isinstance(schema, list):
        return [_plain(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions, declared=True)
    left_out = ("$defs", "default", "description", "title")
    found = {key: _plain(each, definitions) for key, each in schema.items() if key not in left_out and each is not None}
    if declared:
        needed = schema.get("required", ())
        members = {name: _plain(each, definitions) for name, each in schema["properties"].items()}
        found["properties"] = {name: each if name in needed else _or_null(each) for name, each in members.items()}
    return found


def _or_null(schema: Schema) -> Schema:
    """Returns a schema that null matches, too; one without any type stays as it is."""
    alternatives = [each for each in schema.get("anyOf", [schema]) if each != _NULL]
    if len(alternatives) == 1:
        [schema] = alternatives
        kinds = schema.get("type")
        if kinds is not None and "enum" not in schema:
            return {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
        if "enum" not in schema:
            return schema
    return {"anyOf": [*alternatives, _NULL]}
