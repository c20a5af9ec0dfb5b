"""Messages about ``schema=`` arguments that are no schema: what was given, and what to write instead."""

from __future__ import annotations

import os
import re
from dataclasses import is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from constrain.errors import GrammarError, SchemaError
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

_JSON_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}

_FILE = re.compile(r"\S+\.(?:json|lark|gbnf|ebnf|txt|toml|ya?ml|py)")

_GENERIC = re.compile(r"(?:[A-Z]\w*|dict|frozenset|list|set|tuple)\[[\w\[\], .|]*\]")

_LONGEST_EXAMPLE = 60


def refuse_instance(schema: object) -> None:
    """Raises ``SchemaError`` for an instance of a dataclass, on which Pydantic fails with an unrelated error."""
    if is_dataclass(schema) and not isinstance(schema, type):
        raise SchemaError(_about_value(schema))


def describe_no_type(schema: object, error: Exception) -> str:
    """Returns the message about an object that Pydantic cannot make a JSON Schema of.

    >>> describe_no_type(["red", "blue"], ValueError("Unable to generate pydantic-core schema for ['red', 'blue']."))
    "no JSON Schema can be made of a list; for one of its values write typing.Literal['red', 'blue']"
    """
    why = str(error).split("\n\n", 1)[0]  # the rest is advice on declaring types
    if not why.startswith(f"Unable to generate pydantic-core schema for {schema!r}"):
        return f"no JSON Schema can be made of {schema!r:.200}: {why}"
    if isinstance(schema, type):
        name = schema.__name__
        return (
            f"no JSON Schema can be made of {name}: Pydantic does not know the fields of a plain class; write "
            "@dataclass above it, or derive it from pydantic.BaseModel"
        )
    return _about_value(schema)


def _about_value(schema: object) -> str:
    if isinstance(schema, re.Pattern):
        cure = f"write constrain.Regex({schema.pattern!r:.{_LONGEST_EXAMPLE}}, dialect='python')"
    elif isinstance(schema, os.PathLike):
        cure = "pass the text of the file: schema=path.read_text()"
    elif isinstance(schema, list | tuple | set | frozenset):
        items = list(schema)
        if items and all(isinstance(item, type) for item in items):
            cure = f"write list[{' | '.join(item.__name__ for item in items)}]"
        elif not items or not all(isinstance(item, str | int | Enum | None) for item in items):
            cure = "a schema is a dict, a class, a type such as list[int], or a text"
        else:
            listed = ", ".join(map(repr, items))
            cure = f"for one of its values write typing.Literal[{listed if len(listed) <= _LONGEST_EXAMPLE else '...'}]"
        return f"no JSON Schema can be made of a {type(schema).__name__}; {cure}"
    elif _is_annotation(schema):
        cure = f"it says more about a type: write Annotated[str, {type(schema).__name__}(...)]"
    elif callable(schema):
        cure = "a schema is a dict, a class, a type such as list[int], or a text"
    else:
        cure = f"pass the class, not an instance: schema={type(schema).__name__}"
    return f"no JSON Schema can be made of {schema!r:.80}; {cure}"


def _is_annotation(schema: object) -> bool:
    """Returns whether an object belongs into ``Annotated``; a model has the schema itself, too."""
    has_schema = hasattr(schema, "__get_pydantic_json_schema__") and not hasattr(schema, "model_json_schema")
    return has_schema or type(schema).__module__ == "annotated_types"


def refuse_value(value: object) -> Any:
    """Raises ``SchemaError`` for a value inside a schema that JSON cannot express: ``default`` of ``json.dumps``."""
    if isinstance(value, type):
        name = _JSON_NAMES.get(value)
        instead = f'{{"type": "{name}"}}' if name else "its JSON Schema"
        raise SchemaError(
            f"the schema contains the Python type {value.__name__}, a value that JSON cannot express; write {instead}, "
            "or pass a class with these fields, or a text such as 'name str, age int'"
        )
    raise SchemaError(f"the schema contains {value!r:.80} ({type(value).__name__}), a value that JSON cannot express")


def describe_no_type_name(name: object, known: Collection[str]) -> str:
    """Returns what to write in place of a ``type`` that JSON Schema does not have.

    >>> describe_no_type_name("float", ["number", "string"])
    ' (did you mean number?)'
    """
    if name in ("json_schema", "json_object"):
        return "; this is a response_format, whose member json_schema.schema has the schema"
    meant = next((other for kind, other in _JSON_NAMES.items() if kind.__name__ == name), None)
    close = did_you_mean(meant or name, known) if isinstance(name, str) else ""
    return close or f"; the types are {', '.join(known)}"


def refuse_file_name(text: str) -> None:
    """Raises ``GrammarError`` for the name of a file, or of a ready grammar, in place of the text of a grammar."""
    if _FILE.fullmatch(text.strip()):
        raise GrammarError("this is the name of a file: pass its text", line=1, column=1)
    if (name := text.strip()).isidentifier():
        cure = f"this is a name: pass the text of a grammar, or a ready one: grammars.load({name!r:.80})"
        raise GrammarError(cure, line=1, column=1)


def describe_no_json(text: str) -> str:
    """Returns what to write in place of a text that is neither JSON nor keys with types; empty if it may be JSON.

    >>> describe_no_json("[a-z]+")
    '; a regular expression is Regex(...) in Python and --regex on the command line'
    """
    given = text.strip()
    if _FILE.fullmatch(given):
        return "; this is the name of a file: pass its text"
    if _GENERIC.fullmatch(given):
        return "; a type of Python goes without quotation marks in Python, and is MODULE:CLASS on the command line"
    if given.startswith(("{'", "{ '")):
        return '; JSON has double quotes ("), and true, false and null'
    if given.startswith(("{", '"', "[{", '["')) or re.search(r"[\\^$*+()\[\]|]", given) is None:
        return ""
    return "; a regular expression is Regex(...) in Python and --regex on the command line"
