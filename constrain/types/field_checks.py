"""The validators of a type, one value at a time: does a field's own validator reject what was just written?

Values are read as Pydantic reads JSON. Fields in front of a field are read without their own validators, which have
accepted them already; so ``ValidationInfo.data`` has them.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.errors import RejectedFieldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator, ValidationError


Path = tuple[str | int, ...]
"""The steps from a whole value to a part of it: keys and positions."""

_FUNCTIONS = ("function-after", "function-before", "function-wrap", "function-plain")
_FIELDS = ("model-fields", "typed-dict", "dataclass-args")


class Verdict(NamedTuple):
    """Why a value is rejected, and the key of its part that is to be written again; ``None`` for the whole."""

    message: str
    field: str | None = None


class TypeChecks:
    """The validators of a type, by the paths of the values that they judge."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        core: Any = adapter.core_schema
        self._definitions: list[Any] = core.get("definitions", []) if core["type"] == "definitions" else []
        self._root = core["schema"] if core["type"] == "definitions" else core
        self._places: dict[Path, tuple[Any, Any, str] | None] = {}
        self._validators: dict[tuple[int, str], SchemaValidator] = {}

    @cached_property
    def _by_reference(self) -> dict[str, Any]:
        return {each["ref"]: each for each in self._definitions}

    def judges(self, path: Path) -> bool:
        """Returns whether a validator judges the value at a path by itself."""
        return self._place(path) is not None

    def judge(self, path: Path, text: str, before: Mapping[str, Any]) -> Verdict | None:
        """Returns why a value is rejected; ``None`` if it is not.

        Args:
            path: path of the value.
            text: its JSON text.
            before: the members of its object that stand before it, as parsed JSON.
        """
        from pydantic import ValidationError

        place = self._place(path)
        assert place is not None
        own, fields, name = place
        try:
            if fields is None:
                self._validator(own, "").validate_json(text)
            else:
                known = json.dumps(dict(before))[1:-1]
                member = f"{json.dumps(path[-1])}:{text}"
                self._validator(fields, name).validate_json("{" + (f"{known},{member}" if known else member) + "}")
        except ValidationError as error:
            return _verdict(error, None if fields is None else (name, path[-1]))
        return None

    def _place(self, path: Path) -> tuple[Any, Any, str] | None:
        """The schema of a value with validators, that of the fields around it, and its name there."""
        general: Path = tuple("" if isinstance(step, int) else step for step in path)
        if general not in self._places:
            self._places[general] = self._find(path)
        return self._places[general]

    def _find(self, path: Path) -> tuple[Any, Any, str] | None:
        own, fields, name = self._root, None, ""
        for step in path:
            inner = self._inside(own)
            fields, name = None, ""
            if inner is None:
                return None
            if inner["type"] in _FIELDS and isinstance(step, str):
                found = next((each for each in _fields(inner) if step in each[1]), None)
                if found is None:
                    return None
                name, _, own = found
                fields = inner
            elif isinstance(step, int) and inner["type"] in ("list", "set", "frozenset") and "items_schema" in inner:
                own = inner["items_schema"]
            elif isinstance(step, str) and inner["type"] == "dict" and "values_schema" in inner:
                own = inner["values_schema"]
            else:
                return None
        return (own, fields, name) if self._has_functions(own) else None

    def _has_functions(self, schema: Any) -> bool:
        return any(each["type"] in _FUNCTIONS for each in self._around(schema))

    def _around(self, schema: Any) -> Iterator[Any]:
        """Yields a schema and those inside it that judge the same value, from outside."""
        while schema is not None:
            yield schema
            if schema["type"] == "definition-ref":
                schema = self._by_reference.get(schema["schema_ref"])
            else:
                schema = schema.get("schema") if schema["type"] not in _FIELDS else None

    def _inside(self, schema: Any) -> Any:
        """The schema of the members or items of a value; ``None`` where it is not one (a union, for example)."""
        *_, last = self._around(schema)
        return last if last["type"] in (*_FIELDS, "list", "set", "frozenset", "dict") else None

    def _validator(self, schema: Any, name: str) -> SchemaValidator:
        """The validator of one value; with ``name``, of the field of this name and those before it."""
        from pydantic_core import SchemaValidator, core_schema

        key = (id(schema), name)
        if key not in self._validators:
            judged = schema
            if name:
                fields = {}
                for each, keys, own in _fields(schema):
                    kept = own if each == name else self._plain(own)
                    fields[each] = core_schema.typed_dict_field(kept, required=each == name, validation_alias=keys[0])
                    if each == name:
                        break
                judged = core_schema.typed_dict_schema(fields)
            self._validators[key] = SchemaValidator(core_schema.definitions_schema(judged, list(self._definitions)))
        return self._validators[key]

    def _plain(self, schema: Any) -> Any:
        """A schema without the validators of the value itself."""
        for each in self._around(schema):
            if each["type"] == "function-plain":
                return {"type": "any"}
            if each["type"] not in (*_FUNCTIONS, "default", "nullable"):
                return {"type": "nullable", "schema": each} if self._may_be_null(schema) else each
        return {"type": "any"}

    def _may_be_null(self, schema: Any) -> bool:
        return any(each["type"] == "nullable" for each in self._around(schema))


def _fields(schema: Any) -> list[tuple[str, list[str], Any]]:
    """The fields of a model or the like: name, keys in JSON, and schema of the value."""
    fields = schema["fields"]
    named = fields.items() if isinstance(fields, dict) else ((each["name"], each) for each in fields)
    found = []
    for name, each in named:
        alias = each.get("validation_alias")
        found.append((name, [alias, name] if isinstance(alias, str) else [name], each["schema"]))
    return found


def _verdict(error: ValidationError, names: tuple[object, ...] | None) -> Verdict | None:
    """Returns why the value itself is rejected; ``None`` if only other members of its object are (``names``)."""
    for each in error.errors(include_url=False, include_input=False):
        cause = each.get("ctx", {}).get("error")
        if names is None and isinstance(cause, RejectedFieldError) and not each["loc"]:
            return Verdict(each["msg"], cause.fields[0] if cause.fields else None)
        if names is None or (each["loc"] and each["loc"][0] in names):
            return Verdict(each["msg"])
    return None
