"""``response_format`` and ``text.format``: the schema of the content, and strict mode's rules for schemas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from constrain.chat.tools.checks import TOOL_NAME, is_checked
from constrain.errors import ConstrainError, LimitError, SchemaError, describe_pointer
from constrain.fields.values import (
    FieldError,
    boolean,
    invalid,
    is_nested_deeper,
    kind_of,
    mapping,
    missing,
    one_of,
    optional_text,
    required_text,
    wrong_type,
)
from constrain.gbnf.source import Gbnf
from constrain.given import without_given
from constrain.json_schema.documents.dialects import DRAFT_2020
from constrain.json_schema.documents.subschemas import subschemas_of_draft
from constrain.json_schema.keywords.assertions import TYPE_BITS
from constrain.json_schema.keywords.table import KEYWORDS  # noqa: F401  (its tables, for subschemas_of_draft)
from constrain.json_schema.strict.subset import check_strict
from constrain.language.schema_text import parse_schema, schema_text
from constrain.lark.source import Lark
from constrain.regex.parsing.scanner import Dialect
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import SCHEMA_NESTING
from constrain.server.requests.places import Place, report_place
from constrain.server.requests.refusals import refuse_members
from constrain.structural.source import StructuralTag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.language.source import Source
    from constrain.server.config import StrictSubset

_OBJECTS = ("json_object", "json")
"""Types of a format for any object, or for the schema next to the type; the second is TGI's."""

_KINDS = ("json_schema", *_OBJECTS, "text", "structural_tag", "regex", "grammar")

_VALUES = ("schema", "value")
"""Members with the schema next to the type: llama-server's, and TGI's."""

ANY_OBJECT = '{"type": "object"}'

_JSON_SCHEMA = "invalid_json_schema"
"""Code of errors in a schema of content."""

_SCHEMA_SIGNS = frozenset(("$defs", "$ref", "allOf", "anyOf", "const", "enum", "items", "oneOf", "properties"))
"""Members that a JSON Schema has and no format, even without a ``type``."""

_MAY_BE_NULL = ("const", "default", "example")
"""Keywords whose value may be null."""

_GRAMMAR = "invalid_grammar"
"""Code of errors in a grammar of content."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spelling of a format at an endpoint.

    Attributes:
        field: name of the field.
        inner: member that has the name and the schema; ``""`` if they are members of the field itself.
        schema: place that errors in the schema name.
    """

    field: str
    inner: str
    schema: str

    def members(self, kind: str) -> tuple[str, ...]:
        """Returns the members, besides ``type``, that a format of a type may have."""
        return {
            "text": (),
            **dict.fromkeys(_OBJECTS, _VALUES),
            "json_schema": (*_VALUES, "strict", *([self.inner] if self.inner else [])),
            "structural_tag": ("format", "structures", "triggers"),
            "regex": ("pattern", "regex", "value"),
            "grammar": ("grammar", "value"),
        }[kind]


RESPONSE_FORMAT = Spelling("response_format", "json_schema", "response_format")
"""The format of chat completions and of text completions."""

TEXT_FORMAT = Spelling("text.format", "", "text.format.schema")
"""The format of responses."""


@dataclass(frozen=True, slots=True)
class Format:
    """The required form of the content: a JSON Schema as text or another language, and its place in the request."""

    schema: str | Source
    place: Place


def read_format(given: object, spelling: Spelling, subset: StrictSubset) -> Format | None:
    """Reads the format of the content; None for any text. Raises ``ApiError`` or ``FieldError``.

    Besides OpenAI's types, it reads those of other servers: ``json_object`` or ``json`` with a schema next to it,
    ``regex``, and ``grammar`` (GBNF).
    """
    if given is None:
        return None
    document = mapping(given, spelling.field)
    refuse_bare_schema(document, spelling)
    kind = kind_of(document, _KINDS, spelling.field)
    refuse_members(document, spelling.field, kind, spelling.members(kind))
    if kind == "text":
        return None
    if kind == "structural_tag":
        return read_structural_tag(document, spelling.field)
    if kind in _OBJECTS:
        return _read_object(document, spelling)
    if kind != "json_schema":
        where, value = _only_member(document, spelling.members(kind), spelling.field)
        return read_regex(value, where) if kind == "regex" else read_gbnf(value, where)
    return _read_json_schema(document, spelling, subset)


def refuse_bare_schema(document: Mapping[str, Any], spelling: Spelling) -> None:
    """Raises ``FieldError`` for a JSON Schema in place of a format that has one."""
    kind = document.get("type")
    is_type = isinstance(kind, list) or (isinstance(kind, str) and kind in TYPE_BITS)
    if is_type or (kind is None and not _SCHEMA_SIGNS.isdisjoint(document)):
        inner = '"schema": {...}'
        wrapped = f'"{spelling.inner}": {{"name": "answer", {inner}}}' if spelling.inner else inner
        whole = f'{{"type": "json_schema", {wrapped}}}'
        raise invalid(spelling.field, f"it is a JSON Schema; a format with one is {whole}.")


def _only_member(document: Mapping[str, Any], names: tuple[str, ...], place: str) -> tuple[str, Any]:
    """Returns the place and the value of the one of several members that an object has.

    Raises ``FieldError`` if it has none or several.
    """
    found = [name for name in names if document.get(name) is not None]
    if not found:
        raise missing(f"{place}.{names[0]}")
    if len(found) > 1:
        raise FieldError(
            f"Invalid '{place}': '{found[0]}' and '{found[1]}' cannot be used together: each says what the answer is.",
            param=f"{place}.{found[1]}",
        )
    return f"{place}.{found[0]}", document[found[0]]


def _read_object(document: Mapping[str, Any], spelling: Spelling) -> Format:
    """Returns the format for any object, or the schema next to the type."""
    place = Place(spelling.schema, _JSON_SCHEMA, "schema for response_format")
    if all(document.get(name) is None for name in _VALUES):
        return Format(ANY_OBJECT, place)
    where, schema = _only_member(document, _VALUES, spelling.field)
    return format_of({"type": "object", **mapping(schema, where)}, place)


def find_schema(document: Mapping[str, Any], spelling: Spelling) -> tuple[Mapping[str, Any], str, dict[str, Any]]:
    """Returns the object with the name of a ``json_schema``, and the place and the value of the schema.

    OpenAI's form has both in one object. Other servers take the schema next to the type, or TGI's ``value``, which is
    the schema or such an object. Raises ``FieldError``.
    """
    names = (spelling.inner, *_VALUES) if spelling.inner else _VALUES
    where, value = _only_member(document, names, spelling.field)
    inner = mapping(value, where)
    if where == f"{spelling.field}.schema" or (
        where == f"{spelling.field}.value" and not isinstance(inner.get("schema"), dict)
    ):
        return document, where, inner
    if inner.get("schema") is None:
        raise missing(f"{where}.schema")
    return inner, f"{where}.schema", mapping(inner["schema"], f"{where}.schema")


def _read_json_schema(document: Mapping[str, Any], spelling: Spelling, subset: StrictSubset) -> Format:
    inner, where, schema = find_schema(document, spelling)
    where = where.rpartition(".")[0]
    # LM Studio's documentation has texts; its server checks no rules of strict mode.
    is_strict = inner.get("strict") not in ("true", "false") and boolean(inner, "strict", f"{where}.")
    name = required_text(inner, "name", f"{where}.") if is_strict else optional_text(inner, "name", f"{where}.")
    if is_strict and not TOOL_NAME.fullmatch(name or ""):
        wanted = f"Expected a string that matches the pattern '^{TOOL_NAME.pattern}$'."
        raise invalid(f"{where}.name", f"string does not match pattern. {wanted}")
    optional_text(inner, "description", f"{where}.")
    place = Place(spelling.schema, _JSON_SCHEMA, "schema for response_format" + (f" '{name:.64}'" if name else ""))
    found = format_of(schema, place)
    if is_strict:
        report_place(place)
        assert isinstance(found.schema, str)
        require_strict(found.schema, name or "", "response_format", subset, place)
    return found


def format_of(schema: dict[str, Any] | str, place: Place) -> Format:
    """Returns the format of a JSON Schema, or of its text. Raises ``ApiError``."""
    require_flat(schema, place)
    try:
        text = text_of_schema(schema)
        parse_schema(text)
    except ConstrainError as error:  # a number too large for Python, which reads it as infinite; a wrong short schema
        raise ApiError(f"Invalid {place.name}: {error}", param=place.param, code=place.code) from error
    return Format(text, place)


def text_of_schema(schema: dict[str, Any] | str) -> str:
    """Returns a schema as JSON text, without keywords that are null and that no draft lets be null.

    Other servers ignore those: programs in Go write ``"required": null`` where nothing is required.
    """
    text = schema_text(schema)
    if isinstance(schema, str) or ": null" not in text:
        return text
    found = json.loads(text)
    waiting = [found]
    while waiting:
        inner = waiting.pop()
        for name in [name for name, value in inner.items() if value is None and name not in _MAY_BE_NULL]:
            del inner[name]
        waiting.extend(each for _, each in subschemas_of_draft(inner, DRAFT_2020))
    return json.dumps(found)


def read_regex(given: object, where: str) -> Format:
    """Returns the format of a pattern: a text in Rust's syntax, or an object with ``pattern`` and ``dialect``.

    Raises ``ApiError`` or ``FieldError``.
    """
    if not isinstance(given, dict):
        return format_of_source(lambda: Regex(text_of(given, where)), where, "pattern")
    dialect: Any = one_of(given.get("dialect", "rust"), get_args(Dialect), f"{where}.dialect")
    return format_of_source(lambda: Regex(required_text(given, "pattern", f"{where}."), dialect), where, "pattern")


def read_gbnf(given: object, where: str) -> Format:
    """Returns the format of a grammar of llama.cpp, which takes llguidance's Lark behind ``%llguidance``, too.

    Raises ``ApiError`` or ``FieldError``.
    """
    text = text_of(given, where)
    return format_of_source(lambda: Lark(text) if is_marked_lark(text) else Gbnf(text), where, "grammar")


def read_structural_tag(given: object, where: str) -> Format:
    """Returns the format of a structural tag of XGrammar, given as an object or as its text. Raises ``ApiError``."""
    place = Place(where, _GRAMMAR, f"structural tag in '{where}'")
    report_place(place)
    if not isinstance(given, str):
        require_flat(mapping(given, where), place)
    text = given if isinstance(given, str) else json.dumps(given)
    try:
        return Format(StructuralTag(text), place)
    except ConstrainError as error:
        raise tag_error(text, place, error) from error


def tag_error(text: object, place: Place, error: ConstrainError) -> ApiError:
    """Returns the error for a structural tag, with its place within the tag, whose JSON text is given."""
    if error.pointer is None:
        return ApiError(f"Invalid {place.name}: {error}", param=place.param, code=place.code)
    param = place.param + _members_of(text, error.pointer)
    return ApiError(f"Invalid {place.name}: at {param}: {error.message}", param=param, code=place.code)


def _members_of(text: object, pointer: str) -> str:
    """Returns the place of a JSON Pointer in a tag as requests name members: ``.format.tags[0].begin``.

    The place ends where the tag has no such member. A pointer into an answer begins with its part for the content.
    """
    try:
        found: Any = parse_schema(str(text))
    except SchemaError:
        return ""
    written = ""
    for part in pointer.removeprefix("/content/").removeprefix("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found, written = found[int(name)], f"{written}[{name}]"
        elif isinstance(found, dict) and name in found:
            found, written = found[name], f"{written}.{name}"
        else:
            break
    return written


def is_marked_lark(text: str) -> bool:
    """Returns whether a grammar says that it is Lark: by ``%`` at its beginning, or as llguidance's JSON with several.

    No other grammar begins so.
    """
    return text.lstrip()[:1] in ("%", "{")


def text_of(given: object, where: str) -> str:
    """Returns a value that is a string. Raises ``FieldError``."""
    if not isinstance(given, str):
        raise wrong_type(where, "a string", given)
    return given


def format_of_source(make: Callable[[], Source], where: str, what: str) -> Format:
    """Returns the format of a grammar, pattern or choice (``what``) that ``make`` returns. Raises ``ApiError``."""
    place = Place(where, _GRAMMAR, f"{what} in '{where}'")
    report_place(place)
    try:
        return Format(make(), place)
    except ConstrainError as error:
        raise ApiError(f"Invalid {place.name}: {error}", param=where, code=_GRAMMAR) from error


def require_flat(schema: object, place: Place) -> None:
    """Raises ``ApiError`` for a schema with too many levels, before any recursive function reads it."""
    if is_nested_deeper(schema, SCHEMA_NESTING):
        raise ApiError(
            f"Invalid {place.name}: objects and arrays stand within each other more than {SCHEMA_NESTING} levels "
            "deep. Move inner schemas to $defs and refer to them with $ref.",
            param=place.param,
            code=place.code,
        )


def require_strict(schema: str, name: str, kind: Any, subset: StrictSubset, place: Place) -> None:
    """Raises ``ApiError`` with all violations of strict mode, one per line, in OpenAI's words."""
    if subset == "off" or is_checked():
        return
    try:
        violations = check_strict(schema, name=name, kind=kind, subset=subset)
        complaint = "\n".join(map(str, violations))
    except ConstrainError as error:
        complaint = f"Invalid schema for {kind} '{name}': {error}"
    if complaint:
        raise ApiError(complaint, param=place.param, code=place.code)


def describe_refusals(schema: str | Source, error: ConstrainError) -> str:
    """Returns all parts of a schema that cannot be enforced, one per line; ``error`` is the error of its compilation.

    Grammars, and schemas over a limit, are not searched further: every search would take as long.
    """
    if isinstance(error, LimitError) or not isinstance(schema, str):
        return str(error)
    from constrain.json_schema.lint.linter import lint_schema

    try:
        refused = lint_schema(without_given(parse_schema(schema))).refused
    except (ConstrainError, RecursionError):  # the search found no more than ``error`` says
        refused = ()
    lines = [f"at {describe_pointer(finding.pointer)}: {finding.message}" for finding in refused]
    return "\n".join(lines or [str(error)])
