"""Values of a type while their JSON text is written: what is complete is validated by Pydantic, and nothing changes.

A value that is not complete is an instance of its type without what has not been written: fields that have not begun
are None. Only what is certain is shown: of a union, nothing as long as several of its types fit, and nothing of a type
whose own validators read the whole value, until it is complete. A text that grows is shown if every type of a union
that may take it reads it as it is written: ``date | str`` may still read a date.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import SchemaValidator, core_schema, to_json

from constrain.types.exact_decimals import ExactValidator, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel, TypeAdapter

    from constrain.partial.scanner import Step
    from constrain.partial.written import Written

Schema = dict[str, Any]
"""A core schema of Pydantic, or a part of one."""

_NEVER_TEXT = frozenset(("int", "float", "bool", "none"))
"""Types whose values are not written as JSON strings."""

_ARRAYS = frozenset(("list", "set", "frozenset", "tuple"))
_OBJECTS = frozenset(("model", "dataclass", "typed-dict", "dict"))
_REWRITING = ("to_lower", "to_upper", "strip_whitespace")
"""Members of a schema of texts with which its values are other texts than the written ones."""

_ROOT_OF = "constrain:root_of"
"""The entry of a core schema that names the ``RootModel`` whose root it is."""

_UNKNOWN, _INVALID = object(), object()
"""In place of a value that only the end tells, and of one that a type refuses."""


class UncertainError(Exception):
    """Nothing certain can be said of a value yet."""


class _Part(NamedTuple):
    """What a key of an object stands for: a name in the type, and a schema; None if only the end tells the value."""

    name: str
    schema: Schema | None


class PartialType:
    """A type, for values that are not complete.

    ``closed``: whether objects have only keys that their types declare, unless these take others explicitly. Otherwise
    a key that a type ignores does not tell that an object is of another type.
    """

    def __init__(self, adapter: TypeAdapter[Any], *, closed: bool) -> None:
        self._closed = closed
        root: Any = adapter.core_schema
        self._definitions: list[Any] = []
        if root["type"] == "definitions":
            self._definitions, root = root["definitions"], root["schema"]
        self.root: Schema = root
        self._by_ref = {each["ref"]: each for each in (*self._definitions, *_with_ref(root))}
        self._exact = any(part.get("type") == "decimal" for part in parts_of(adapter.core_schema))
        self._validators: dict[int, SchemaValidator | ExactValidator] = {}
        self._fields: dict[int, dict[str, _Part]] = {}
        self._configs: dict[int, Any] = {}  # of the type around a part, by the id of the part's schema
        self._concrete_of: dict[int, list[Schema]] = {}

    def complete(self, schema: Schema, text: str) -> Any:
        """Returns the value of a complete JSON text. Raises ``pydantic.ValidationError``."""
        validator = self._validators.get(id(schema))
        if validator is None:
            whole: Any = core_schema.definitions_schema(schema, self._definitions) if self._definitions else schema
            config = self._configs.get(id(schema))
            validator = ExactValidator(whole, config) if self._exact else SchemaValidator(whole, config)
            self._validators[id(schema)] = validator
        return validator.validate_json(text)

    def value(self, schema: Schema, written: Written) -> Any:
        """Returns the value of a schema so far. Raises ``UncertainError``."""
        fitting = self.fitting(schema, written)
        if written.kind == "string":
            fitting = self._reading_as_written(fitting)
        if len(fitting) != 1 or written.kind in ("other", "unseen"):
            raise UncertainError
        value = written.text if written.kind == "string" else self._build(fitting[0], written)
        root = fitting[0].get(_ROOT_OF)
        return value if root is None else _make_model(root, {"root": value})

    def fitting(self, schema: Schema, written: Written) -> list[Schema]:
        """Returns the schemas, without unions, that what is written so far can belong to."""
        return [each for each in self._concrete(schema) if self._fits(each, written)]

    def part(self, schema: Schema, step: Step) -> Schema | None:
        """Returns the schema of a part; None if the type has no such part, or cannot tell it before its end."""
        part = self._find_part(schema, step)
        if part is not None:
            self._configs.setdefault(id(part), self._config_inside(schema))
        return part

    def _find_part(self, schema: Schema, step: Step) -> Schema | None:
        kind = schema["type"]
        if kind in ("model", "dataclass", "typed-dict"):
            if (found := self._fields_of(schema).get(str(step))) is not None:
                return found.schema
            return _schema_of_others(schema) if _beside(schema) == "allow" else None
        if kind == "dict":
            values: Schema | None = schema.get("values_schema")
            return _ANY if values is None else values
        if kind == "tuple":
            return _tuple_item(schema, int(step))
        items: Schema | None = schema.get("items_schema")
        return items if items is not None else _ANY

    # What fits

    def _concrete(self, schema: Schema) -> list[Schema]:
        known = self._concrete_of.get(id(schema))
        if known is None:
            known = self._concrete_of[id(schema)] = list(self._expand(schema, set()))
            for each in known:
                self._configs.setdefault(id(each), self._configs.get(id(schema)))
        return known

    def _expand(self, schema: Schema, seen: set[str]) -> Iterator[Schema]:
        """Yields the alternatives of a schema, without references, unions and what wraps them."""
        kind = schema["type"]
        if kind == "definition-ref":
            if (ref := schema["schema_ref"]) not in seen:
                yield from self._expand(self._by_ref[ref], seen | {ref})
        elif kind == "model" and schema.get("root_model"):
            for each in self._expand(schema["schema"], seen):
                yield _OPAQUE if _ROOT_OF in each else {**each, _ROOT_OF: schema["cls"]}
        elif kind in ("model", "dataclass") and _inner_fields(schema) is None:
            yield _OPAQUE
        elif (inner := _alternatives(schema)) is not None:
            for each in inner:
                yield from self._expand(each, seen)
        else:
            yield schema

    def _fits(self, schema: Schema, written: Written) -> bool:
        kind = schema["type"]
        if written.kind == "unseen":
            return True
        if written.kind == "string":
            if kind == "literal":
                return any(isinstance(each, str) and each.startswith(written.text) for each in schema["expected"])
            return kind not in _ARRAYS and kind not in _OBJECTS and kind not in _NEVER_TEXT
        if written.kind == "other":
            return kind not in _ARRAYS and kind not in _OBJECTS and (kind != "str" or self._reads_numbers(schema))
        if kind not in (_OBJECTS if written.kind == "object" else _ARRAYS):
            return (
                kind not in _OBJECTS
                and kind not in _ARRAYS
                and kind not in _NEVER_TEXT
                and kind not in ("str", "literal", "complex")
            )
        for number, each in enumerate(written.complete):
            if self._value_of_part(schema, written, number, each.step, each.text) is _INVALID:
                return False
        if written.part is None or written.step is None:
            return True
        if not self._has_part(schema, written.step):
            return False
        part = self.part(schema, written.step)
        return part is None or bool(self.fitting(part, written.part))

    def _reading_as_written(self, fitting: list[Schema]) -> list[Schema]:
        """Returns one schema of texts, if every text that begins as written is the value; otherwise none."""
        if not all(map(self._keeps_text, fitting)) or len({each.get(_ROOT_OF) for each in fitting}) > 1:
            return []
        return [each for each in fitting if each["type"] != "literal"][:1]  # a part of a literal is not of its type

    def _keeps_text(self, schema: Schema) -> bool:
        """Returns whether the value of each text that a schema reads is the text as it is written."""
        if schema["type"] == "literal":
            return not any(isinstance(each, Enum) for each in schema["expected"])
        config = self._configs.get(id(schema)) or {}
        return schema["type"] == "any" or (
            schema["type"] == "str" and not any(schema.get(name, config.get(f"str_{name}")) for name in _REWRITING)
        )

    def _reads_numbers(self, schema: Schema) -> bool:
        """Returns whether a type of texts takes numbers, too."""
        name = "coerce_numbers_to_str"
        return bool(schema.get(name, (self._configs.get(id(schema)) or {}).get(name)))

    def _config_inside(self, schema: Schema) -> Any:
        """Returns the configuration of the parts of a schema."""
        inner: Schema = schema
        while inner["type"] in ("model", "dataclass", "typed-dict", "function-after"):
            if "config" in inner:
                return inner["config"]
            if "schema" not in inner:
                break
            inner = inner["schema"]
        return self._configs.get(id(schema))

    def _has_part(self, schema: Schema, step: Step) -> bool:
        if schema["type"] in ("model", "dataclass", "typed-dict"):
            return str(step) in self._fields_of(schema) or self._takes_others(schema)
        if schema["type"] == "dict":
            return self._is_key(schema, str(step))
        return schema["type"] != "tuple" or _tuple_item(schema, int(step)) is not None

    def _is_key(self, schema: Schema, key: str) -> bool:
        try:
            self._name(schema, key)
        except ValidationError:
            return False
        return True

    def _takes_others(self, schema: Schema) -> bool:
        """Returns whether an object may have keys that are no fields."""
        return _beside(schema) in (("allow",) if self._closed else ("allow", "ignore"))

    def _value_of_part(self, schema: Schema, written: Written, number: int, step: Step, text: str) -> Any:
        """Returns the value of a complete part; ``_INVALID``, or ``_UNKNOWN`` if only the end tells it."""
        key = (id(schema), number)
        if key not in written.values:
            written.values[key] = self._find_value(schema, step, text)
        return written.values[key]

    def _find_value(self, schema: Schema, step: Step, text: str) -> Any:
        if not self._has_part(schema, step):
            return _INVALID
        part = self.part(schema, step)
        if part is None:
            return _UNKNOWN
        try:
            return self.complete(part, text)
        except ValidationError:
            return _INVALID

    # Values

    def _build(self, schema: Schema, written: Written) -> Any:
        kind = schema["type"]
        if kind == "any":
            return written.plain()
        if kind in _ARRAYS:
            return self._array(schema, written)
        if kind not in _OBJECTS:
            raise UncertainError
        values: dict[Any, Any] = {}
        for number, each in enumerate(written.complete):
            value = self._value_of_part(schema, written, number, each.step, each.text)
            if value is not _UNKNOWN:
                values[self._name(schema, each.step)] = value
        if written.part is not None and written.step is not None:
            part = self.part(schema, written.step)
            try:
                if part is not None:
                    values[self._name(schema, written.step)] = self.value(part, written.part)
            except UncertainError:
                pass  # the field is shown once it is certain
        return values if kind in ("dict", "typed-dict") else _instance(schema, values)

    def _array(self, schema: Schema, written: Written) -> Any:
        values = [
            self._value_of_part(schema, written, number, each.step, each.text)
            for number, each in enumerate(written.complete)
        ]
        kinds = {"list": list, "set": set, "frozenset": frozenset, "tuple": tuple}
        return kinds[schema["type"]](values)

    def _name(self, schema: Schema, step: Step) -> Any:
        """Returns the name of a field, or the key of a mapping as its type has it."""
        if schema["type"] == "dict":
            keys = schema.get("keys_schema")
            if keys is None:
                return step
            self._configs.setdefault(id(keys), self._config_inside(schema))
            return self.complete(keys, to_json(step).decode())
        found = self._fields_of(schema).get(str(step))
        return step if found is None else found.name

    def _fields_of(self, schema: Schema) -> dict[str, _Part]:
        """Returns the fields of a model, dataclass or typed dictionary by their keys in JSON."""
        known = self._fields.get(id(schema))
        if known is None:
            known = self._fields[id(schema)] = dict(_list_fields(schema))
        return known


_ANY: Schema = core_schema.any_schema()  # type: ignore[assignment]
_OPAQUE: Schema = {"type": "opaque"}
"""A value of which nothing is known until it is complete."""


_NONE: Schema = core_schema.none_schema()  # type: ignore[assignment]


def _alternatives(schema: Schema) -> list[Schema] | None:
    """Returns the schemas that a schema chooses from, or the one that it wraps; None if it stands for itself."""
    kind = schema["type"]
    if kind in ("default", "definitions") or (kind == "function-after" and _of_models(schema)):
        return [schema["schema"]]
    if kind == "nullable":
        return [_NONE, schema["schema"]]
    if kind in ("lax-or-strict", "json-or-python"):
        return [schema["lax_schema" if kind == "lax-or-strict" else "json_schema"]]
    if kind == "tagged-union":
        return list(schema["choices"].values())
    if kind == "union":
        if schema.get("mode") == "left_to_right":
            return [_OPAQUE]  # the first type that reads the whole value takes it
        return [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
    return None


def _with_ref(schema: Any) -> Iterator[Schema]:
    """Yields all core schemas within one that have a name."""
    for part in parts_of(schema):
        if "ref" in part and isinstance(part["ref"], str):
            yield part  # type: ignore[misc]


def _of_models(schema: Schema) -> bool:
    """Returns whether a validator reads a model or dataclass, after its fields."""
    inner: Schema = schema
    while inner["type"] == "function-after":
        inner = inner["schema"]
    return inner["type"] in ("model", "dataclass")


def _inner_fields(schema: Schema) -> Schema | None:
    """Returns the schema with the fields; None if validators read the object before its fields do."""
    inner: Schema = schema
    while inner["type"] in ("model", "dataclass", "function-after"):
        if inner.get("custom_init"):
            return None
        inner = inner["schema"]
    return inner if inner["type"] in ("model-fields", "dataclass-args", "typed-dict") else None


def _beside(schema: Schema) -> str:
    """Returns what becomes of keys that are no fields: "allow", "ignore" or "forbid"."""
    inner: Schema = schema
    while True:
        behavior = inner.get("extra_behavior") or inner.get("config", {}).get("extra_fields_behavior")
        if behavior is not None:
            return str(behavior)
        if inner["type"] in ("model-fields", "dataclass-args", "typed-dict"):
            return "ignore"
        inner = inner["schema"]


def _schema_of_others(schema: Schema) -> Schema:
    """Returns the schema of keys that are no fields."""
    inner: Schema = _inner_fields(schema) or {}
    others: Schema | None = inner.get("extras_schema")
    return _ANY if others is None else others


def _list_fields(schema: Schema) -> Iterator[tuple[str, _Part]]:
    inner = _inner_fields(schema)
    if inner is None:
        return
    fields = inner["fields"]
    named = fields.items() if isinstance(fields, dict) else ((each["name"], each) for each in fields)
    for name, one in named:
        part = None if _needs_others(one["schema"]) else one["schema"]
        for key in _keys(name, one):
            yield key, _Part(name, part)


def _keys(name: str, field: Mapping[str, Any]) -> Iterator[str]:
    """Yields the keys in JSON that a field is read from."""
    alias = field.get("validation_alias")
    if alias is None or isinstance(alias, str):
        yield alias or name
        return
    for path in alias if isinstance(alias[0], list) else [alias]:
        if len(path) == 1:
            yield path[0]


def _needs_others(schema: Schema) -> bool:
    """Returns whether a validator of a field is given the fields before it."""
    return any(
        isinstance(function := part.get("function"), dict) and function.get("type") == "with-info"
        for part in parts_of(schema)
    )


def _tuple_item(schema: Schema, position: int) -> Schema | None:
    """Returns the schema of an item of a tuple; None beyond its end."""
    items: list[Schema] = schema["items_schema"]
    variadic = schema.get("variadic_item_index")
    if variadic is not None and position >= variadic:
        return items[variadic]
    return items[position] if position < len(items) else None


def _instance(schema: Schema, values: dict[str, Any]) -> Any:
    """Returns an instance of a model or dataclass with some of its fields; the others are None."""
    if schema["type"] == "dataclass":
        made = object.__new__(schema["cls"])
        for field in dataclasses.fields(schema["cls"]):
            object.__setattr__(made, field.name, values.get(field.name))
        return made
    return _make_model(schema["cls"], values)


def _make_model(model: type[BaseModel], values: dict[str, Any]) -> Any:
    """Returns an instance of a model as ``model_construct`` does, but without defaults and without running its code."""
    own = model.model_fields
    made = object.__new__(model)
    extra = {name: value for name, value in values.items() if name not in own}
    object.__setattr__(made, "__dict__", {name: values.get(name) for name in own})
    object.__setattr__(made, "__pydantic_fields_set__", set(values))
    object.__setattr__(made, "__pydantic_extra__", extra if model.model_config.get("extra") == "allow" else None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made
