"""Sources of answers as JSON: schemas, patterns, grammars, compositions, and answers with tools.

A JSON Schema is ``{"kind": "json_schema", "text": ..., ...}``. Every other source is an object of dataclasses: each is
``{"kind": NAME, FIELD: ...}``. A ``Grammar`` made by hand, and a source of another package, have no text that could be
read again: each is ``{"kind": "grammar"}``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

from constrain.chat.answers.choices import Calls, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import ArgumentStyle, Element, Section, Switch, Thinking, ToolFormat
from constrain.composition.nodes import InSequence, OneOf, Repeated
from constrain.composition.parts import FreeText, Given, Schema
from constrain.composition.source import Composition
from constrain.engine.compiling import JSON_SCHEMA, grammar_of_description
from constrain.errors import deep_enough
from constrain.gbnf.source import Gbnf
from constrain.language.grammar import Grammar
from constrain.language.policies import POLICY_DEFAULTS, Policies
from constrain.language.source import Source
from constrain.lark.named import NamedGrammar, NamedGrammars
from constrain.lark.source import Lark
from constrain.regex.source import Regex
from constrain.structural.source import StructuralTag
from constrain.work import compilation

GRAMMAR = "grammar"
"""The kind of a ``Grammar`` made by hand, or by a front end of another package. Its rules are the member ``grammar`` of
the certificate."""

ANSWER = "answer"
"""The kind of an answer with tools, refusals or reasoning."""

_KINDS: dict[str, type[Any]] = {
    ANSWER: AnswerLanguage,
    "argument_style": ArgumentStyle,
    "calls": Calls,
    "composition": Composition,
    "custom_calls": CustomCalls,
    "free_text": FreeText,
    "element": Element,
    "function_calls": FunctionCalls,
    "gbnf": Gbnf,
    "given": Given,
    "lark": Lark,
    "named_grammar": NamedGrammar,
    "one_of": OneOf,
    "policies": Policies,
    "reasoning": Reasoning,
    "regex": Regex,
    "repeated": Repeated,
    "schema": Schema,
    "section": Section,
    "sequence": InSequence,
    "structural_tag": StructuralTag,
    "switch": Switch,
    "thinking": Thinking,
    "tool_format": ToolFormat,
    "value": Value,
}
_NAMES = {of: name for name, of in _KINDS.items()}


def source_to_json(source: dict[str, Any] | Grammar | Source) -> dict[str, Any]:
    """Returns a source as JSON; ``source``: the result of ``describe_source``."""
    if isinstance(source, dict):
        return source
    with deep_enough():
        found: dict[str, Any] = _encode(source)
        return found


def grammar_of_source(written: Mapping[str, Any], text: bytes = b"") -> Grammar:
    """Returns the grammar of a source that was written as JSON. ``text``: see ``grammar_of_description``.

    Raises the errors of schemas and grammars, and ValueError for a source that JSON does not have as a whole.
    """
    if written.get("kind") == JSON_SCHEMA:
        if written["has_registry"]:
            raise ValueError("the schema refers to a registry, which certificates do not have")
        return grammar_of_description(written, text)
    if written.get("kind") == GRAMMAR:
        raise ValueError("the source is a Grammar made by hand: the grammar in the certificate is all there is")
    source = decode_source(written)
    with compilation(), deep_enough():
        return source.grammar()


def decode_source(written: Mapping[str, Any]) -> Source:
    """Returns a source that was written as JSON and is no JSON Schema. Raises ValueError and LimitError."""
    with deep_enough():
        source = _decode({name: member for name, member in written.items() if name != "sha256"})
    if not isinstance(source, Source):
        raise ValueError(  # noqa: TRY004 - what is wrong is the JSON
            f"the source is of the kind {written.get('kind')!r:.80}, which is no language"
        )
    return source


def _encode(value: Any) -> Any:
    of = type(value)
    if value is None or of in (bool, int, float, str):
        return value
    if of in (tuple, list):
        return [_encode(each) for each in value]
    if of is bytes:
        return {"kind": "bytes", "hex": value.hex()}
    if of in _NAMES:
        return {"kind": _NAMES[of], **_members(value)}
    if isinstance(value, Grammar | Source):
        return {"kind": GRAMMAR}
    if isinstance(value, Mapping):
        return {"kind": "mapping", "members": [[name, _encode(each)] for name, each in value.items()]}
    raise TypeError(f"a {of.__name__} has no form in JSON")


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, Enum):
        return {"value": value.value}
    if dataclasses.is_dataclass(value):
        fields = [each.name for each in dataclasses.fields(value) if each.compare or each.name == "given"]
        return {name: _encode(getattr(value, name)) for name in fields}
    return {name: _encode(each) for name, each in value._asdict().items()}


def _decode(written: Any) -> Any:
    if isinstance(written, list):
        return tuple(map(_decode, written))
    if not isinstance(written, Mapping):
        return written
    kind = written.get("kind")
    if kind == "bytes":
        return bytes.fromhex(written["hex"])
    if kind == "mapping":
        made = {name: _decode(each) for name, each in written["members"]}
        return NamedGrammars(made) if all(isinstance(each, NamedGrammar) for each in made.values()) else made
    if kind == GRAMMAR:
        raise ValueError("a part of the source is a Grammar made by hand, which certificates do not have")
    if kind not in _KINDS:
        raise ValueError(f"the source has a part of the unknown kind {kind!r:.80}")
    of = _KINDS[kind]
    members = {name: _decode(each) for name, each in written.items() if name != "kind"}
    if of is Policies:  # later policies have the value that changes nothing
        members = POLICY_DEFAULTS | members
    if not dataclasses.is_dataclass(of):
        return of(**members)
    given = {each.name for each in dataclasses.fields(of) if each.init}
    value = of(**{name: member for name, member in members.items() if name in given})
    for name in members.keys() - given:
        if name not in of.__dataclass_fields__:
            raise ValueError(f"the source has a part of the kind {kind!r} with an unknown member {name!r:.80}")
        object.__setattr__(value, name, members[name])
    return value
