"""Validators of JSON Schema by others: jsonschema, with two readings of numbers, and jsonschema-rs, where installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple


class Verdicts(NamedTuple):
    """The errors that validators find in one text, by the validator's name; ``""`` stands for no error."""

    errors: Mapping[str, str]

    @property
    def are_valid(self) -> bool:
        """Whether all validators take the text."""
        return not any(self.errors.values())

    @property
    def are_invalid(self) -> bool:
        """Whether no validator takes the text."""
        return all(self.errors.values())


class Validators:
    """All validators that are installed, for one schema.

    Attributes:
        names: names of the validators. Without any, nothing can be judged.
        missing: packages that are not installed, or that refuse the schema, with the reason.
    """

    def __init__(self, schema: str, *, formats: bool) -> None:
        self.missing: dict[str, str] = {}
        self._judges: dict[str, Callable[[str], str]] = {}
        makers = {"jsonschema": _jsonschema, "jsonschema_rs": _jsonschema_rs}
        for package, make in makers.items():
            if find_spec(package) is None:
                self.missing[package] = "not installed"
                continue
            try:
                self._judges.update(make(schema, formats=formats))
            except ValueError as error:
                self.missing[package] = str(error)
        self.names = tuple(self._judges)

    def judge(self, text: str) -> Verdicts:
        """Returns the errors that each validator finds in a JSON text."""
        return Verdicts({name: judge(text) for name, judge in self._judges.items()})


def _jsonschema(schema: str, *, formats: bool) -> dict[str, Callable[[str], str]]:
    """Returns judges by jsonschema: numbers are read as floats, and as exact decimals."""
    package: Any = import_module("jsonschema")
    referencing: Any = import_module("referencing.exceptions")
    registry: Any = import_module("jsonschema_specifications").REGISTRY
    found = {}
    for name, reading in (("jsonschema", float), ("jsonschema, decimals", Decimal)):
        read = json.loads(schema, parse_float=reading)
        kind = package.validators.validator_for(read, default=package.Draft202012Validator)
        try:
            kind.check_schema(read)
        except package.SchemaError as error:
            raise ValueError(f"it refuses the schema: {error.message}") from error
        checker = kind.TYPE_CHECKER
        if reading is Decimal:
            checker = checker.redefine("number", _is_decimal_number)
            if kind is not package.Draft4Validator and kind is not package.Draft3Validator:
                checker = checker.redefine("integer", _is_decimal_integer)
        kind = package.validators.extend(kind, type_checker=checker)
        validator = kind(read, format_checker=kind.FORMAT_CHECKER if formats else None, registry=registry)
        found[name] = _judge_by_jsonschema(validator, reading, referencing.Unresolvable)
    return found


def _judge_by_jsonschema(validator: Any, reading: Any, unresolvable: type[Exception]) -> Callable[[str], str]:
    def judge(text: str) -> str:
        value = json.loads(text, parse_float=reading)
        try:
            error = next(validator.iter_errors(value), None)
        except unresolvable as failure:
            raise ValueError(f"jsonschema cannot resolve a reference of the schema: {failure}") from failure
        return "" if error is None else f"{error.json_path}: {error.message}"

    return judge


def _is_decimal_number(_: object, value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_decimal_integer(_: object, value: object) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool)


def _jsonschema_rs(schema: str, *, formats: bool) -> dict[str, Callable[[str], str]]:
    """Returns a judge by jsonschema-rs."""
    package: Any = import_module("jsonschema_rs")
    try:
        validator = package.validator_for(json.loads(schema), validate_formats=formats)
    except (ValueError, package.ReferencingError) as error:
        raise ValueError(f"it refuses the schema: {error}") from error

    def judge(text: str) -> str:
        error = next(validator.iter_errors(json.loads(text)), None)
        if error is None:
            return ""
        return f"{'$' + ''.join(f'[{part!r}]' for part in error.instance_path)}: {error.message}"

    return {"jsonschema_rs": judge}
