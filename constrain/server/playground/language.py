"""The schema or grammar of a request of the playground: a text in one of five notations, and policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError
from constrain.fields.values import FieldError, mapping, one_of, required_text
from constrain.gbnf.source import Gbnf
from constrain.language.policies import CHOICES
from constrain.language.short_schema import is_short, read_short
from constrain.lark.source import Lark
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import Format, format_of
from constrain.server.requests.places import Place, report_place

if TYPE_CHECKING:
    from constrain.language.policies import CompileOptions

FIELD = "language"

JSON_KINDS = ("json_schema", "short")
"""Notations of JSON Schemas: JSON, and keys with types such as ``name, age int``."""

KINDS = (*JSON_KINDS, "lark", "gbnf", "regex")

_SOURCES = {"lark": Lark, "gbnf": Gbnf, "regex": Regex}


@dataclass(frozen=True, slots=True)
class LanguageText:
    """A schema or grammar as its author writes it. Can be pickled.

    Attributes:
        kind: one of ``KINDS``.
        text: the text.
        policies: options for compiling; only for JSON Schemas.
    """

    kind: str
    text: str
    policies: CompileOptions

    @property
    def is_json(self) -> bool:
        """Whether the language is that of a JSON Schema."""
        return self.kind in JSON_KINDS

    def schema(self) -> Any:
        """Returns the schema as an object, JSON text or a source. Raises ``ConstrainError``."""
        if self.kind == "short":
            return read_short(self.text)
        return self.text if self.kind == "json_schema" else _SOURCES[self.kind](self.text)

    def format(self) -> Format:
        """Returns the format of the answer's content. Raises ``ApiError``."""
        code = "invalid_json_schema" if self.is_json else "invalid_grammar"
        place = Place(FIELD, code, f"schema in '{FIELD}'" if self.is_json else f"grammar in '{FIELD}'")
        report_place(place)
        try:
            schema = self.schema()
        except ConstrainError as error:
            raise ApiError(f"Invalid {place.name}: {error}", param=FIELD, code=code) from error
        return format_of(schema, place) if self.is_json else Format(schema, place)


LANGUAGE = {
    "type": "object",
    "properties": {
        "kind": {"enum": [*KINDS]},
        "text": {"type": "string"},
        "policies": {
            "type": ["object", "null"],
            "properties": {name: {"enum": [*choices]} for name, choices in CHOICES.items()},
            "additionalProperties": False,
        },
    },
    "required": ["kind", "text"],
}
"""The JSON Schema of the field ``language``."""


def wrong_language(why: object) -> FieldError:
    """Returns the error for a schema or grammar that cannot be used."""
    return FieldError(f"Invalid {FIELD}: {why}", param=FIELD)


def read_language(given: object, _: str = FIELD) -> LanguageText:
    """Reads the field ``language``. Raises ``FieldError``."""
    document = mapping(given, FIELD)
    kind = one_of(document.get("kind"), KINDS, f"{FIELD}.kind")
    text = required_text(document, "text", f"{FIELD}.")
    if kind == "json_schema" and is_short(text):
        kind = "short"
    policies = _read_policies(document.get("policies"))
    return LanguageText(kind, text, policies if kind in JSON_KINDS else {})  # a page keeps those of its last schema


def _read_policies(given: object) -> CompileOptions:
    """Reads the policies. Raises ``FieldError``."""
    found: dict[str, str] = {}
    for name, value in ({} if given is None else mapping(given, f"{FIELD}.policies")).items():
        one_of(name, tuple(CHOICES), f"{FIELD}.policies")
        found[name] = one_of(value, CHOICES[name], f"{FIELD}.policies.{name}")
    policies: CompileOptions = found  # type: ignore[assignment]
    return policies
