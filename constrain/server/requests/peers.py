"""Fields of other servers that say what an answer is: vLLM's, SGLang's, llama-server's and TGI's.

At most one of them, or ``response_format`` (``text.format`` of responses), says it. ``guided_json``, ``guided_regex``,
``guided_choice``, ``guided_grammar``, ``structural_tag`` and ``structured_outputs`` are vLLM's; ``regex``, ``ebnf`` and
``json_schema`` are SGLang's; ``grammar`` and ``json_schema`` are llama-server's, and ``grammar`` as an object is TGI's.
The field says which dialect a grammar has: ``grammar`` is GBNF, and the others are XGrammar's EBNF, or Lark, which vLLM
reads there, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

from constrain.composition.source import choice
from constrain.fields.declared import Fields, Reads, Schema
from constrain.fields.values import FieldError, array, boolean, invalid, kind_of, mapping
from constrain.gbnf.dialects import has_rules
from constrain.gbnf.source import Gbnf
from constrain.lark.source import Lark
from constrain.regex.parsing.scanner import Dialect
from constrain.server.requests.formats import (
    ANY_OBJECT,
    Format,
    Spelling,
    format_of,
    format_of_source,
    is_marked_lark,
    read_format,
    read_gbnf,
    read_regex,
    read_structural_tag,
    text_of,
)
from constrain.server.requests.limits import RANGES
from constrain.server.requests.places import Place
from constrain.server.requests.refusals import asks_for_nothing, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OPTIONS = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")
"""Members of ``structured_outputs`` that change the language of a JSON Schema and are not read."""


def _read_json(given: object, where: str) -> Format:
    """Reads a JSON Schema: an object, or its JSON text."""
    place = Place(where, "invalid_json_schema", f"schema in '{where}'")
    return format_of(given if isinstance(given, str) else mapping(given, where), place)


def _read_choice(given: object, where: str) -> Format:
    listed = array(given, where, RANGES["choice"][1])
    texts = [text_of(text, f"{where}[{index}]") for index, text in enumerate(listed)]
    if not texts:
        raise FieldError(f"Invalid '{where}': there is no text to choose.", param=where, code="empty_array")
    return format_of_source(lambda: choice(*texts), where, "choice")


def _read_ebnf(given: object, where: str) -> Format:
    """Reads XGrammar's EBNF, or Lark, as vLLM tells them apart: EBNF has rules with ``::=``."""
    text = text_of(given, where)
    is_lark = is_marked_lark(text) or not has_rules(text)
    return format_of_source(lambda: Lark(text) if is_lark else Gbnf(text, dialect="xgrammar"), where, "grammar")


def _read_grammar(given: object, where: str) -> Format:
    """Reads llama-server's ``grammar``, which is GBNF, or TGI's: an object with the type of the language."""
    if not isinstance(given, dict):
        return read_gbnf(given, where)
    kind_of(given, ("json", "json_schema", "regex"), where)
    found = read_format(given, Spelling(where, "", where), "structural")
    assert found is not None, "only a text has no format"
    return found


def _read_structured(given: object, where: str) -> Format | None:
    """Reads vLLM's ``structured_outputs``: an object with one of several members, or with none, for no format."""
    members = mapping(given, where)
    if not members:
        return None
    for name in _OPTIONS:
        if not asks_for_nothing(name, members.get(name)):
            raise unsupported(f"{where}.{name}", "Write what it means into the schema or grammar.")
    found = [name for name in _MEMBERS if members.get(name) is not None and members[name] is not False]
    if len(found) != 1:
        listed = ", ".join(f"'{name}'" for name in _MEMBERS)
        raise invalid(where, f"it needs exactly one of {listed}, but has {len(found)}.")
    return _MEMBERS[found[0]][0](members[found[0]], f"{where}.{found[0]}")


def _read_object(given: object, where: str) -> Format:
    boolean({where: given}, where)
    return format_of(ANY_OBJECT, Place(where, "invalid_json_schema", f"schema in '{where}'"))


_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": ["object", "string"]}
_DIALECTS: Schema = {"pattern": _TEXT, "dialect": {"enum": [*get_args(Dialect)]}}
_MEMBERS: dict[str, tuple[Callable[[object, str], Format], Schema]] = {
    "json": (_read_json, _OBJECT),
    "regex": (read_regex, {**_OBJECT, "properties": _DIALECTS, "required": ["pattern"]}),
    "choice": (_read_choice, {"type": "array", "items": _TEXT, "maxItems": RANGES["choice"][1]}),
    "grammar": (_read_ebnf, _TEXT),
    "json_object": (_read_object, {"type": "boolean"}),
    "structural_tag": (read_structural_tag, _OBJECT),
}
"""The members of ``structured_outputs``, each with its reader and its JSON Schema."""


def _unless_empty(read: Callable[[object, str], Format | None], shown: Schema) -> Reads:
    """Returns the declaration of a field with a reader and a JSON Schema; an empty text is no format."""
    return Reads(lambda given, name: None if given == "" else read(given, name), shown)


def _like(member: str) -> Reads:
    """Returns the declaration of a field that is read like a member of ``structured_outputs``."""
    return _unless_empty(*_MEMBERS[member])


_OR_NULL = {name: {"anyOf": [shown, {"type": "null"}]} for name, (_, shown) in _MEMBERS.items()}
_STRUCTURED: Schema = {"type": "object", "properties": _OR_NULL}


class ContentFields(Fields):
    """The fields."""

    guided_json: Annotated[Format | None, _like("json")] = None
    guided_regex: Annotated[Format | None, _like("regex")] = None
    guided_choice: Annotated[Format | None, _like("choice")] = None
    guided_grammar: Annotated[Format | None, _like("grammar")] = None
    structural_tag: Annotated[Format | None, _like("structural_tag")] = None
    structured_outputs: Annotated[Format | None, _unless_empty(_read_structured, _STRUCTURED)] = None
    json_schema: Annotated[Format | None, _like("json")] = None
    regex: Annotated[Format | None, _like("regex")] = None
    ebnf: Annotated[Format | None, _like("grammar")] = None
    grammar: Annotated[Format | None, _unless_empty(_read_grammar, _OBJECT)] = None

    def content(self, own: Mapping[str, Format | None]) -> Format | None:
        """Returns what the content is, as the one field that is given says. Raises ``FieldError`` for two.

        ``own``: the endpoint's own fields, by name.
        """
        fields = {**own, **{name: getattr(self, name) for name in PEERS}}
        found = [(name, each) for name, each in fields.items() if each is not None]
        if len(found) > 1:
            raise FieldError(
                f"Invalid request: '{found[0][0]}' and '{found[1][0]}' cannot be used together: each says what the "
                "answer is.",
                param=found[1][0],
            )
        return found[0][1] if found else None


PEERS = tuple(ContentFields.model_fields)
"""The names of the fields."""
