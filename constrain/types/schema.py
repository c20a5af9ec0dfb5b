"""The JSON Schema to compile for a Python type: Pydantic's own, tightened to what the type's validators accept.

Pydantic's JSON Schema is wider than its validators if JSON Schema has no keyword for a constraint: the bounds of a
date, the version of a UUID, the schemes of a URL, the digits of a ``Decimal``; and if the validators read another place
or another text: paths of aliases, tags with a default, keys of dicts. This module adds patterns and bounds for
standard types. Some types are narrowed to their usual spelling: bounded ``datetime`` values are written in UTC and
whole seconds, bounded ``timedelta`` values in seconds, URLs with plain hosts. ``Json`` is refused, since a schema
cannot look into a string, and so are types that need files, imports, classes or checksums, and types of which Pydantic
reads some value from no JSON text, such as a ``Literal`` of a plain enum's member. Values that a model's own
validator functions reject are found when the answer is parsed (``OutputValidationError``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema, JsonRef, WithJsonSchema
from pydantic_core import SchemaValidator, core_schema, to_json, to_jsonable_python

from constrain.errors import UnsupportedSchemaError
from constrain.types import patterns
from constrain.types.exact_decimals import NO_SCHEMAS, reads_exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import TypeAdapter

_BYTES = "x-bytes"
"""A temporary mark of strings that Pydantic decodes to bytes, until the schema is finished."""

_MAX_SECONDS = 4_294_967_295
"""Seconds of a duration in Pydantic, a 32-bit number; longer durations are not written."""

_FIRST_MOMENT, _LAST_MOMENT = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001 - in UTC

_BYTE_SIZE = patterns.in_both_dialects(r"^\s*(\d*\.?\d+)\s*(\w+)?")
"""The pattern that identifies Pydantic's ByteSize, which also reads the unit."""

_USUAL_DIGITS = 28
"""Digits before the point, and after it, of a decimal in a text without limits: those of Python's arithmetic."""

_FLOAT_DIGITS = 15
"""Digits of a decimal number that a float always holds."""

_MAX_FLOAT_MULTIPLE = 1_000_000
"""Distance from 0 of the multiples of 0.1, 0.01 and other non-floats that are written: Pydantic divides floats with a
fixed tolerance, and from about ten times this distance on it rejects some multiples."""

_BOUNDS = ("gt", "ge", "lt", "le")
_READ_BOUNDS = ("date", "datetime", "time", "timedelta", "int")
"""Core schemas whose bounds may have another type than their values."""

_ASCII = r"[\u0000-\u007f]*"
_ALL_WHITESPACE = r"\s\u0085\u001c-\u001f"


def type_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Returns the JSON Schema of the texts that ``adapter`` reads. Raises the errors of ``TypeAdapter.json_schema``."""
    generator = _Generator if reads_exactly(adapter) else _GeneratorOfTexts
    try:
        schema = adapter.json_schema(schema_generator=generator)
    except _RefusedTypeError as error:
        field = _field_of(error.part, adapter.core_schema)
        raise UnsupportedSchemaError(f"the field {'.'.join(field)}: {error}" if field else str(error)) from None
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            _finish(node)
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return schema


def _text(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", **more, "pattern": patterns.whole(pattern)}


_FILE = "must name an existing file, which a schema cannot express; use Path, and check the file afterwards"
_REFUSED = {
    "PathType.validate_file": f"FilePath {_FILE}",
    "PathType.validate_directory": f"DirectoryPath {_FILE.replace('file', 'directory')}",
    "PathType.validate_socket": f"SocketPath {_FILE.replace('file', 'socket')}",
    "PathType.validate_new": "NewPath must name no existing file, which a schema cannot express; use Path",
    "import_string": "ImportString must be importable, which a schema cannot express; use a Literal of the names",
    "PaymentCardNumber.validate": "PaymentCardNumber has a checksum, beyond any schema; use str with a pattern",
}
"""Messages for refused types, whose validators check more than a schema can, by the validators' names in Pydantic."""


_FIELDS = ("model-field", "dataclass-field", "typed-dict-field")
_FUNCTIONS = ("function-before", "function-after", "function-plain", "function-wrap")


class _RefusedTypeError(UnsupportedSchemaError):
    """An error for a refused type; ``part`` is its core schema."""

    def __init__(self, message: str, part: Any) -> None:
        super().__init__(message)
        self.part = part


def _field_of(wanted: Any, part: Any, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """Returns class and field that contain a part of a core schema; ``None`` if none does."""
    if isinstance(part, Mapping) and part.get("type") == "dataclass-field":
        path = (*path[:1], part["name"])
    if part == wanted:
        return path
    if isinstance(part, Mapping):
        if part.get("type") in ("model", "dataclass", "typed-dict") and isinstance(part.get("cls"), type):
            path = (part["cls"].__name__,)
        fields = part.get("fields")
        for key, value in part.items():
            if key == "fields" and isinstance(fields, Mapping):
                found = next(
                    (one for name in fields if (one := _field_of(wanted, fields[name], (*path[:1], name)))), None
                )
            elif key in NO_SCHEMAS:
                continue
            else:
                found = _field_of(wanted, value, path)
            if found is not None:
                return found
    elif isinstance(part, list | tuple):
        return next((one for each in part if (one := _field_of(wanted, each, path)) is not None), None)
    return None


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, with further constraints of standard types and without defaults."""

    reads_numbers = True
    """Whether decimals are read from numbers with all their digits."""

    _functions = 0
    """Depth of the user's functions around the type that is being written, which read a value before it."""

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Returns the type without its default, which need not be JSON."""
        result: dict[str, Any] = self.generate_inner(schema["schema"])
        return result

    def float_schema(self, schema: Any) -> dict[str, Any]:
        """Returns numbers; multiples of a divisor that is no float stay near 0, where Pydantic accepts them."""
        result: dict[str, Any] = super().float_schema(schema)
        step = schema.get("multiple_of")
        if step is None or Fraction(repr(float(step))) == Fraction(step):
            return result
        bounds = {name: schema[name] for name in _BOUNDS if name in schema}
        low = max([-_MAX_FLOAT_MULTIPLE, *(bounds[name] for name in ("gt", "ge") if name in bounds)])
        high = min([_MAX_FLOAT_MULTIPLE, *(bounds[name] for name in ("lt", "le") if name in bounds)])
        if not _has_multiple(Fraction(repr(float(step))), bounds, low, high):
            return result
        return result | {
            name: limit
            for name, limit, own in (
                ("minimum", -_MAX_FLOAT_MULTIPLE, low),
                ("maximum", _MAX_FLOAT_MULTIPLE, high),
            )
            if own == limit
        }

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """Returns numbers, or texts of decimals as Pydantic writes them; multiples are always numbers."""
        digits, places = _digits(schema)
        bounds = {name: Decimal(schema[name]) for name in _BOUNDS if name in schema}
        multiple = schema.get("multiple_of")
        number = _decimal_number(digits, places, bounds, multiple, exact=self.reads_numbers)
        if multiple is not None:
            return number
        text = _decimal_text(digits, places, bounds)
        return {"anyOf": [number, text]} if self.reads_numbers else text

    def date_schema(self, schema: Any) -> dict[str, Any]:
        """Returns days within the bounds."""
        result: dict[str, Any] = super().date_schema(schema)
        low, high = _limits(schema, timedelta(days=1), date.min, date.max)
        today = datetime.now(timezone.utc).date()
        if schema.get("now_op") == "past":  # at least one day from today in every time zone
            high = min(high, today - timedelta(days=2))
        elif schema.get("now_op") == "future":
            low = max(low, today + timedelta(days=2))
        if (low, high) != (date.min, date.max) and low <= high:
            result["pattern"] = patterns.whole(patterns.between(low.isoformat(), high.isoformat()))
        return result

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        """Returns moments: with an offset unless they must be naive; within bounds in UTC and whole seconds."""
        result: dict[str, Any] = super().datetime_schema(schema)
        naive = schema.get("tz_constraint") == "naive"
        now = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        first, last = _FIRST_MOMENT, _LAST_MOMENT
        low, high = _limits(schema, timedelta(seconds=1), first, last)
        if schema.get("now_op") == "past":
            high = min(high, now - timedelta(days=1))
        elif schema.get("now_op") == "future":
            low = max(low, now + timedelta(days=2))
        if (low, high) != (first, last) and low <= high:
            bounded = patterns.between(low.isoformat(), high.isoformat())
            if naive:
                return {"allOf": [_text(bounded), _text(patterns.NAIVE_DATETIME)]}
            result["pattern"] = patterns.whole(bounded + "Z")
        elif naive:
            return _text(patterns.NAIVE_DATETIME)
        return result

    def time_schema(self, schema: Any) -> dict[str, Any]:
        """Returns times of day; within bounds without an offset and in whole seconds."""
        if not any(name in schema for name in _BOUNDS):
            return super().time_schema(schema)
        day = datetime(2000, 1, 1)  # noqa: DTZ001 - any day, to reckon with
        moments = {name: datetime.combine(day, schema[name]) for name in _BOUNDS if name in schema}
        low, high = _limits(moments, timedelta(seconds=1), day, day + timedelta(days=1, seconds=-1))
        if low > high:
            return super().time_schema(schema)
        inside = patterns.between(low.time().isoformat(), high.time().isoformat())
        return {"allOf": [_text(inside), _text(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")]}

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        """Returns durations; within bounds in whole seconds."""
        result: dict[str, Any] = super().timedelta_schema(schema)
        if result.get("type") != "string":  # durations as numbers: Pydantic also reads texts
            result = {"type": "string", "format": "duration"}
        if any(name in schema for name in _BOUNDS):
            low, high = _limits(schema, timedelta(seconds=1), timedelta(0), timedelta(seconds=_MAX_SECONDS))
            first, last = int(low.total_seconds()), int(high.total_seconds())
            if 0 <= first <= last <= _MAX_SECONDS:
                return _text(f"PT(?:{patterns.whole_numbers(first, last)})S")
        return result

    def uuid_schema(self, schema: Any) -> dict[str, Any]:
        """Returns UUIDs of the version."""
        result: dict[str, Any] = super().uuid_schema(schema)
        return _text(patterns.uuid(schema["version"])) if "version" in schema else result

    def url_schema(self, schema: Any) -> dict[str, Any]:
        """Returns URLs with one of the schemes."""
        result: dict[str, Any] = super().url_schema(schema)
        return result | _text(patterns.url(schema.get("allowed_schemes")))

    def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
        """Returns URLs with one of the schemes and one or more hosts."""
        result: dict[str, Any] = super().multi_host_url_schema(schema)
        return result | _text(patterns.multi_host_url(schema.get("allowed_schemes")))

    def complex_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ARG002
        """Returns complex numbers."""
        return _text(patterns.COMPLEX)

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        """Returns the schema of a type. Raises ``_RefusedTypeError``, unless the caller gave the type a schema."""
        _refuse_function(schema)
        if schema["type"] in _FIELDS:
            self._require_key(schema)
        is_own = schema["type"] in ("function-before", "function-wrap")
        self._functions += is_own
        try:
            result: dict[str, Any] = super().generate_inner(_with_read_bounds(schema))
        finally:
            self._functions -= is_own
        return result

    def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
        """Raises ``_RefusedTypeError`` for a class."""
        name = getattr(schema.get("cls"), "__name__", "...")
        raise _RefusedTypeError(f"type[{name}] is a class, which has no JSON value; use a Literal of the names", schema)

    def json_schema(self, schema: Any) -> dict[str, Any]:
        """Raises ``_RefusedTypeError`` for JSON inside a string."""
        raise _RefusedTypeError(
            "Json[...] is JSON text inside a string, which cannot be enforced; use the type in the brackets instead",
            schema,
        )

    def str_schema(self, schema: Any) -> dict[str, Any]:
        """Returns strings; if the type strips white space, without any at the ends, to keep lengths and patterns."""
        result: dict[str, Any] = super().str_schema(schema)
        if isinstance(result.get("pattern"), str):
            result["pattern"] = patterns.in_both_dialects(result["pattern"])
        if schema.get("strip_whitespace") and ("pattern" in result or "minLength" in result):
            kept = f"[^{_ALL_WHITESPACE}]"
            result["allOf"] = [_text(rf"(?:{kept}(?:[^]*{kept})?)?")]
        if schema.get("ascii_only"):
            result.setdefault("allOf", []).append(_text(_ASCII))
        return result

    def bytes_schema(self, schema: Any) -> dict[str, Any]:
        """Returns bytes as strings. Length limits count characters, which equal bytes for ASCII."""
        result: dict[str, Any] = super().bytes_schema(schema)
        encoding = getattr(self._config, "val_json_bytes", "utf8")  # since Pydantic 2.9
        if encoding == "hex":
            low, high = schema.get("min_length", 0), schema.get("max_length", "")
            return _text(f"(?:[0-9a-f]{{2}}){{{low},{high}}}")
        if encoding == "base64":
            return _text(_url_safe(patterns.base64(schema.get("min_length", 0), schema.get("max_length"))))
        if "minLength" in result or "maxLength" in result:
            result["pattern"] = patterns.whole(_ASCII)
        return {**result, _BYTES: True}

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        """Returns the values of a Literal. Raises ``_RefusedTypeError`` if Pydantic reads one of them from no text."""
        self._require_readable(schema, schema["expected"])
        result: dict[str, Any] = super().literal_schema(schema)
        return result

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        """Returns the values of an enum. Raises ``_RefusedTypeError`` if Pydantic reads one of them from no text."""
        self._require_readable(schema, schema["members"])
        result: dict[str, Any] = super().enum_schema(schema)
        return result

    def _require_key(self, field: Any) -> None:
        alias = field.get("validation_alias")
        if not isinstance(alias, list) or any(isinstance(path, list) and len(path) == 1 for path in alias):
            return
        if getattr(self._config, "populate_by_name", False) or getattr(self._config, "validate_by_name", False):
            return
        self._refuse(
            "AliasPath reads the field from inside another value, which no JSON Schema can say; give the field an "
            "alias, or AliasChoices with one, or write the other value as a model",
            field,
        )

    def _require_readable(self, schema: Any, values: list[Any]) -> None:
        """Refuses a Literal or an enum with a value that Pydantic reads from no JSON text."""
        for value in _unread(schema, values)[:1]:
            cure = "use str, int or float"
            if isinstance(value, Enum) and schema["type"] == "literal":
                cure = "use a Literal of the value, or derive the enum from str or int, too: class Size(str, Enum)"
            self._refuse(f"Pydantic reads the value {value!r} from no JSON text; {cure}", schema)

    def _refuse(self, why: str, part: Any) -> None:
        """Raises ``_RefusedTypeError``, unless a function of the caller's changes what is read there."""
        if not self._functions:
            raise _RefusedTypeError(why, part)

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        """Returns the choices, with the tag, which Pydantic reads even if its field has a default."""
        result: dict[str, Any] = super().tagged_union_schema(schema)
        if "discriminator" in result:
            result["required"] = [result["discriminator"]["propertyName"]]
        elif not callable(schema["discriminator"]):
            result["anyOf"] = [{"required": path} for path in schema["discriminator"] if len(path) == 1]
        return result

    def _require_hashable(self, schema: Any) -> None:
        if not self._is_hashable(schema.get("items_schema", {"type": "any"})):
            self._refuse("the items of a set must be hashable; use a list, or frozen models", schema)

    def _is_hashable(self, schema: Any) -> bool:
        """Returns whether a set can hold the values of a type."""
        match schema["type"]:
            case "list" | "set" | "dict" | "typed-dict" | "any":
                return False
            case "definition-ref":
                return True
            case "union":
                parts = [each[0] if isinstance(each, tuple) else each for each in schema["choices"]]
            case "tagged-union":
                parts = list(schema["choices"].values())
            case "tuple":
                parts = schema["items_schema"]
            case "model-fields" | "dataclass-args":
                fields = schema["fields"]
                parts = [each["schema"] for each in (fields.values() if isinstance(fields, dict) else fields)]
            case "function-after" | "function-wrap" | "function-plain" | "function-before":
                return True
            case _:
                parts = [schema["schema"]] if "schema" in schema else []
        return getattr(schema.get("cls"), "__hash__", True) is not None and all(map(self._is_hashable, parts))

    def set_schema(self, schema: Any) -> dict[str, Any]:
        """Returns arrays of distinct items. Raises ``_RefusedTypeError`` for items that a set cannot hold."""
        self._require_hashable(schema)
        result: dict[str, Any] = super().set_schema(schema)
        return result

    def frozenset_schema(self, schema: Any) -> dict[str, Any]:
        """Returns arrays of distinct items. Raises ``_RefusedTypeError`` for items that a set cannot hold."""
        self._require_hashable(schema)
        result: dict[str, Any] = super().frozenset_schema(schema)
        return result

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """Returns dictionaries; keys of other types are written as the strings that Pydantic reads them from."""
        result: dict[str, Any] = super().dict_schema(schema)
        if "patternProperties" in result:
            result.setdefault("additionalProperties", False)
        elif "keys_schema" in schema and (names := self._names(schema["keys_schema"])) is not None:
            if names.keys() == {"type", "pattern"}:
                values = result.pop("additionalProperties", True)
                result["patternProperties"] = {names["pattern"]: values}
                result["additionalProperties"] = False
            else:
                result["propertyNames"] = names
        return result

    def _names(self, keys: Any) -> dict[str, Any] | None:
        """Returns the strings that keys are read from; ``None`` if Pydantic's schema of the keys says it."""
        kind = keys["type"]
        if kind in patterns.KEYS and "multiple_of" not in keys:
            bounds = {name: Decimal(str(keys[name])) for name in _BOUNDS if name in keys}
            if kind == "decimal":
                return _decimal_text(*_digits(keys), bounds)
            return _text(patterns.KEYS[kind], **_text_bounds(bounds))
        if kind in ("literal", "enum"):
            return self._listed_names(keys, keys["expected" if kind == "literal" else "members"])
        if kind in ("nullable", "default", "function-after"):
            return self._names(keys["schema"])
        if kind == "union":
            choices = [each[0] if isinstance(each, tuple) else each for each in keys["choices"]]
            return {"anyOf": [self._names(each) or self.generate_inner(each) for each in choices]}
        own: dict[str, Any] | None = self.generate_inner(keys)
        if own and "$ref" in own:
            own = self.get_schema_from_definitions(JsonRef(own["$ref"]))
        if own != {} and (own is None or own.get("type") != "string"):
            limit = "multiple_of" if kind in patterns.KEYS else f"all of this type ({kind})"
            self._refuse(f"keys in JSON are strings, which cannot express {limit}; use list[tuple[K, V]]", keys)
        return None

    def _listed_names(self, keys: Any, values: list[Any]) -> dict[str, Any]:
        plain = map(to_jsonable_python, values)
        names = [value if isinstance(value, str) else json.dumps(value) for value in plain]
        for name in _unread(core_schema.dict_schema(keys), [{name: None} for name in names])[:1]:
            self._refuse(f"keys in JSON are strings, and Pydantic does not read {[*name]} as one; use str", keys)
        return {"enum": list(dict.fromkeys(names))}


def _unread(schema: Any, values: list[Any]) -> list[Any]:
    """Returns the values that the validator of a core schema does not read from their JSON texts."""
    if not values:
        return []  # Pydantic makes no validator of an empty enum
    validator = SchemaValidator(schema)

    def reads(value: object) -> bool:
        try:
            validator.validate_json(to_json(value, inf_nan_mode="constants"))
        except ValueError:  # that of Pydantic's validator or serializer
            return False
        return True

    return [value for value in values if not reads(value)]


def _refuse_function(schema: Any) -> None:
    """Raises ``_RefusedTypeError`` if one of Pydantic's functions reads a refused type."""
    function = schema["function"]["function"] if schema["type"] in _FUNCTIONS else None
    if str(getattr(function, "__module__", "")).partition(".")[0] != "pydantic":
        return
    why = _REFUSED.get(getattr(function, "__qualname__", ""))
    own = schema.get("metadata", {}).get("pydantic_js_annotation_functions", ())
    if why is not None and not any(isinstance(getattr(one, "__self__", None), WithJsonSchema) for one in own):
        raise _RefusedTypeError(why, schema)


class _GeneratorOfTexts(_Generator):
    """A generator for types that read decimals exactly from texts only."""

    reads_numbers = False


_KEYWORDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def _digits(schema: Any) -> tuple[int | None, int | None]:
    """Returns the greatest number of digits of a decimal, and of digits after the point; zeros count."""
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    return digits, places if digits is None or places is None else min(digits, places)


def _decimal_number(
    digits: int | None, places: int | None, bounds: dict[str, Decimal], multiple: Any, *, exact: bool
) -> dict[str, Any]:
    """Returns JSON numbers within bounds, with at most ``digits`` digits, ``places`` of them after the point.

    ``exact``: all digits are read; otherwise numbers have at most as many digits as floats hold.
    """
    parts: list[dict[str, Any]] = [{"type": "number"}]
    parts[0] |= {_KEYWORDS[name]: _inward(name, bound) for name, bound in bounds.items() if not _is_void(name, bound)}
    step = Decimal(multiple) if multiple is not None else None
    if digits is not None and places is None:
        places = 0
    if digits is not None and digits == places:
        parts.append({"not": {"const": 0}})  # Pydantic counts it as a digit before the point
    if not exact:
        scale = max(places or 0, 0 if step is None else -int(step.as_tuple().exponent))
        digits = min(_FLOAT_DIGITS if digits is None else digits, _FLOAT_DIGITS) - (scale - (places or 0))
    if places is not None:
        parts.append({"multipleOf": float(Decimal(1).scaleb(-places)) if places else 1})
    if step is not None:
        parts.append({"multipleOf": int(step) if step == step.to_integral_value() else float(step)})
        beyond = step.scaleb(_USUAL_DIGITS)  # beyond this, quotients exceed the precision of Python's arithmetic
        parts.append({"exclusiveMinimum": _inward("gt", -beyond), "exclusiveMaximum": _inward("lt", beyond)})
    if digits is not None:
        most = Decimal(10) ** (digits - (places or 0)) - Decimal(1).scaleb(-(places or 0))
        parts.append({"minimum": _inward("ge", -most), "maximum": _inward("le", most)})
    return {"allOf": parts} if len(parts) > 1 else parts[0]


def _decimal_text(digits: int | None, places: int | None, bounds: dict[str, Decimal]) -> dict[str, Any]:
    """Returns texts of decimals within bounds, with at most ``digits`` digits, ``places`` of them after the point."""
    longest = max((max(0, bound.adjusted() + 1) for bound in bounds.values() if bound and bound.is_finite()), default=0)
    after = _USUAL_DIGITS if places is None else places
    if digits is None:
        forms = [_decimal_form(max(_USUAL_DIGITS, longest), after)]
    elif places is None:
        forms = [_decimal_form(digits - count, count) for count in range(digits + 1)]
    elif digits == places:
        # Without 0, which Pydantic counts as a digit before the point; every number has at least one digit.
        forms = [rf"-?0\.\d{{1,{places}}}" if places else "(?!)"]
    else:
        forms = [_decimal_form(digits - places, places)]
    return _text("|".join(forms), **_text_bounds(bounds))


def _text_bounds(bounds: dict[str, Decimal]) -> dict[str, Any]:
    """Returns the keyword that keeps numbers in texts within bounds, if there are any."""
    limits = [_text(patterns.decimal_bound(name, one)) for name, one in bounds.items() if not _is_void(name, one)]
    return {"allOf": limits} if limits else {}


def _decimal_form(whole: int, after: int) -> str:
    before = rf"(?:0|[1-9]\d{{0,{whole - 1}}})" if whole > 0 else "0"
    return rf"-?{before}" + (rf"(?:\.\d{{1,{after}}})?" if after > 0 else "")


def _has_multiple(step: Fraction, bounds: dict[str, float], low: float, high: float) -> bool:
    """Returns whether a multiple lies between two numbers and is not an exclusive bound."""
    if low > high:
        return False
    first, last = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
    first += first * step == bounds.get("gt")
    last -= last * step == bounds.get("lt")
    return first <= last


def _is_void(name: str, bound: Decimal) -> bool:
    """Returns whether every finite number is within a bound."""
    return bound.is_infinite() and bound.is_signed() == (name in ("gt", "ge"))


def _inward(name: str, bound: Decimal) -> int | float:
    """Returns a bound for a JSON Schema: itself, or the next float within it."""
    if bound.is_finite() and bound == bound.to_integral_value():
        return int(bound)
    nearest = float(bound)
    if name in ("gt", "ge"):
        return nearest if Decimal(repr(nearest)) >= bound else math.nextafter(nearest, math.inf)
    return nearest if Decimal(repr(nearest)) <= bound else math.nextafter(nearest, -math.inf)


def _with_read_bounds(schema: Any) -> Any:
    """Returns a core schema with bounds of its own type: Pydantic also takes strings, and a date for a datetime."""
    if schema["type"] not in _READ_BOUNDS:
        return schema
    read = SchemaValidator({"type": schema["type"]}).validate_python
    return schema | {name: read(schema[name]) for name in _BOUNDS if isinstance(schema.get(name), str | date)}


def _limits(schema: Any, step: timedelta, first: Any, last: Any) -> tuple[Any, Any]:
    """Returns the bounds of a core schema in whole steps, both inclusive; moments in UTC."""
    low, high = first, last
    down: Any
    for name in _BOUNDS:
        if name not in schema:
            continue
        bound = schema[name]
        if isinstance(bound, datetime):
            if bound.tzinfo is not None:
                bound = bound.astimezone(timezone.utc).replace(tzinfo=None)
            down = bound.replace(microsecond=0)
        elif isinstance(bound, timedelta):
            down = timedelta(seconds=bound // timedelta(seconds=1))
        else:
            down = bound
        exact = down == bound
        if name in ("gt", "ge"):
            low = max(low, down if exact and name == "ge" else down + step)
        else:
            high = min(high, down - step if exact and name == "lt" else down)
    return low, high


def _finish(node: dict[str, Any]) -> None:
    """Replaces formats of Pydantic's own by their patterns."""
    is_bytes = node.pop(_BYTES, False) is True
    name = node.get("format")
    if node.get("pattern") == _BYTE_SIZE and node.get("type") == "string":
        node["pattern"] = patterns.whole(patterns.BYTE_SIZE)
    if not isinstance(name, str) or node.get("type") != "string":
        return
    if name in ("base64", "base64url"):
        text = patterns.base64(0, None) if is_bytes else patterns.BASE64_OF_ASCII
        found: dict[str, Any] = {"pattern": patterns.whole(text if name == "base64" else _url_safe(text))}
    elif name in _FORMATS:
        found = _FORMATS[name]()
    else:
        return
    if name != "email":
        del node["format"]
    if "pattern" in node:
        node.setdefault("allOf", []).append(found)
    else:
        node.update(found)


def _url_safe(pattern: str) -> str:
    return pattern.replace("+/", "_-")


def _known(pattern: Callable[[], str]) -> Callable[[], dict[str, Any]]:
    return cache(lambda: {"pattern": patterns.whole(pattern())})


def _time_zone() -> dict[str, Any]:
    from zoneinfo import available_timezones

    return {"enum": sorted(available_timezones())}


# By format: types whose validators are functions, which Pydantic's core schema does not describe.
_FORMATS: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"uuid{version}": _known(lambda version=version: patterns.uuid(version)) for version in range(1, 9)},  # type: ignore[misc]
    "ipv4network": _known(patterns.ipv4_network),
    "ipv6network": _known(patterns.ipv6_network),
    "ipv4interface": _known(patterns.ipv4_interface),
    "ipv6interface": _known(patterns.ipv6_interface),
    "ipvanyaddress": lambda: {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    "ipvanynetwork": _known(lambda: f"{patterns.ipv4_network()}|{patterns.ipv6_network()}"),
    "ipvanyinterface": _known(lambda: f"{patterns.ipv4_interface()}|{patterns.ipv6_interface()}"),
    "email": _known(lambda: patterns.EMAIL),
    "name-email": _known(lambda: f"[A-Za-z]{{1,20}}(?: [A-Za-z]{{1,20}}){{0,3}} <{patterns.EMAIL}>"),
    "fraction": _known(lambda: patterns.FRACTION),
    "zoneinfo": _time_zone,
    "color": _known(lambda: "#[0-9a-f]{6}"),
}
