"""OpenAI's strict subset of JSON Schema: ``strict_schema`` converts to it, ``check_strict`` lists violations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from constrain.errors import LimitError, SchemaError
from constrain.json_schema.documents.dialects import MAX_SCHEMA_DEPTH
from constrain.language.schema_text import parse_schema, plain_schema, schema_text
from constrain.work import compilation

if TYPE_CHECKING:
    from constrain.json_schema.strict.checks import Violation


def strict_schema(schema: object) -> dict[str, Any]:
    """Converts a schema to the structure that OpenAI's strict mode demands, as OpenAI's clients do.

    - Objects are closed (``additionalProperties: false``) and require all their properties; a schema with
      ``properties`` and no ``type`` is an object. ``{}`` becomes an empty closed object.
    - ``oneOf`` becomes ``anyOf``. Its branches are assumed to exclude each other, like those of a discriminated union.
    - ``allOf`` is merged into its schema. Keywords next to a ``$ref`` are merged with the schema that it names; in a
      recursion the reference stays, as ``{"anyOf": [{"$ref": ...}], ...}``. A ``$ref`` without other keywords stays.
    - ``default: null`` is dropped; other defaults stay.

    Objects are narrowed to their declared properties; no other meaning changes. Schemas whose meaning would change
    otherwise raise ``SchemaError``: objects with arbitrary keys (``additionalProperties`` other than ``false``,
    ``required`` keys that are not declared), ``allOf`` and ``anyOf`` of objects with different properties that cannot
    become one, ``oneOf`` next to ``anyOf`` or of branches that differ in their required properties, and references that
    the conversion would break. Keywords that strict mode does not have stay; ``check_strict`` lists them.

    Args:
        schema: a JSON Schema as ``dict`` or JSON text, or a type for ``pydantic.TypeAdapter``. It is not changed.

    Returns a new ``dict`` that shares nothing with the argument. Raises ``SchemaError`` with the JSON Pointer of the
    place, ``LimitError`` if inlining would make the schema too large.

    >>> strict_schema({"properties": {"size": {"type": "integer", "default": None}}})
    {'properties': {'size': {'type': 'integer'}}, 'type': 'object', 'required': ['size'], 'additionalProperties': False}
    """
    from constrain.json_schema.strict.conversion import Conversion

    document = plain_schema(parse_schema(schema_text(schema)))
    if not isinstance(document, dict):
        raise SchemaError(f"a strict schema is an object, not {document!r:.80}", pointer="")
    if not document:
        return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    _check_depth(document)
    try:
        with compilation():
            converted: dict[str, Any] = json.loads(json.dumps(Conversion(document).result()))
    except RecursionError as error:
        raise SchemaError("the schema is nested too deeply after inlining its references") from error
    return converted


def check_strict(
    schema: object,
    *,
    name: str = "response",
    kind: Literal["response_format", "function"] = "response_format",
    subset: Literal["openai", "structural"] = "openai",
) -> list[Violation]:
    """Returns every violation of OpenAI's strict mode in a schema, in OpenAI's words.

    Args:
        schema: a JSON Schema as ``dict`` or JSON text, or a type for ``pydantic.TypeAdapter``.
        name: name of the response format or function, for the messages.
        kind: use of the schema, for the messages.
        subset: ``"openai"`` checks all rules: structure, keywords, formats and limits. ``"structural"`` checks only
            structure: the root is an object without ``anyOf``; every object is closed and requires all its properties
            and no others; every array has ``items``; references within the document resolve; types, patterns and
            formats are valid.

    Returns a ``Violation`` for each, in the order of the document, limits of the whole schema last; an empty list if
    there is none. ``str()`` of a violation is OpenAI's message. Nesting is counted through references, each recursion
    once. Raises ``SchemaError`` for text that is not JSON.

    >>> for violation in check_strict({"type": "object", "properties": {"url": {"type": "string", "format": "uri"}}}):
    ...     print(violation)
    Invalid schema for response_format 'response': In context=(), 'additionalProperties' is required to be supplied \
and to be false.
    Invalid schema for response_format 'response': In context=(), 'required' is required to be supplied and to be an \
array including every key in properties. Missing 'url'.
    Invalid schema for response_format 'response': In context=('properties', 'url'), 'uri' is not a valid format.
    """
    from constrain.json_schema.strict.checks import check

    if kind not in ("response_format", "function"):
        raise ValueError(f"kind is {kind!r}; it must be 'response_format' or 'function'")
    if subset not in ("openai", "structural"):
        raise ValueError(f"subset is {subset!r}; it must be 'openai' or 'structural'")
    document = parse_schema(schema_text(schema))
    _check_depth(document)
    return check(document, f"{kind} {name!r}", full=subset == "openai")


def require_strict(document: object) -> None:
    """Raises one ``SchemaError`` with all structural rules that a parsed schema breaks."""
    from constrain.json_schema.strict.checks import check

    _check_depth(document)
    violations = check(document, "", full=False)
    if violations:
        rules = "a rule" if len(violations) == 1 else f"{len(violations)} rules"
        listed = "".join(f"\n- {violation.complaint}" for violation in violations)
        pointer = violations[0].pointer if len(violations) == 1 else None  # each of several has its own context
        raise SchemaError(f"the schema breaks {rules} of strict mode:{listed}", pointer=pointer)


def _check_depth(document: object) -> None:
    """Raises LimitError for deep schemas: pointers grow with the depth, and Python writes values recursively."""
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > 2 * MAX_SCHEMA_DEPTH:  # a subschema takes two levels of JSON
            message = f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}"
            raise LimitError(message, pointer="")  # the pointer is as long as it is deep
        inner: list[object] = []
        for node in level:
            inner += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        level = inner
