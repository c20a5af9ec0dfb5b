"""Fields of other servers that say what an answer is: vLLM's, SGLang's, llama-server's and TGI's.

At most one of them, or ``response_format`` (``text.format`` of responses), says it. ``guided_json``, ``guided_regex``,
``guided_choice``, ``guided_grammar``, ``structural_tag`` and ``structured_outputs`` are vLLM's; ``regex``, ``ebnf`` and
``json_schema`` are SGLang's; ``grammar`` and ``json_schema`` are llama-server's, and ``grammar`` as an object is TGI's.
The field says which dialect a grammar has: ``grammar`` is GBNF, and the others are XGrammar's EBNF, or Lark, which vLLM
reads there, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.composition.source import choice
from constrain.fields.values import FieldError, array, boolean, kind_of, mapping
from constrain.gbnf.dialects import has_rules
from constrain.gbnf.source import Gbnf
from constrain.lark.source import Lark
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
    require_flat,
    text_of,
)
from constrain.server.requests.limits import RANGES
from constrain.server.requests.places import Place
from constrain.server.requests.refusals import asks_for_nothing, unsupported
from constrain.server.requests.structural import read_structural_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OPTIONS = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")
"""Members of ``structured_outputs`` that change the language of a JSON Schema and are not read."""


def read_content(body: Mapping[str, Any], given: Format | None, field: str) -> Format | None:
    """Returns what the content is: as ``given`` in OpenAI's field, or as the one field of another server says.

    ``field``: name of OpenAI's field. Raises ``ApiError`` or ``FieldError``, also for two fields that say it.
    """
    found = [] if given is None else [(field, given)]
    for name, read in PEERS.items():
        if _is_given(body, name) and body[name] != "" and (name, body[name]) != ("structured_outputs", {}):
            found.append((name, read(body[name], name)))
    if len(found) > 1:
        (first, _), (second, _), *_ = found
        raise FieldError(
            f"Invalid request: '{first}' and '{second}' cannot be used together: each says what the answer is.",
            param=second,
            code="invalid_value",
        )
    return found[0][1] if found else None


def _is_given(members: Mapping[str, Any], name: str) -> bool:
    """Returns whether a member is there: an empty schema is any JSON, and not nothing."""
    return members.get(name) is not None


def _read_json(given: object, where: str) -> Format:
    """Reads a JSON Schema: an object, or its JSON text."""
    place = Place(where, "invalid_json_schema", f"schema in '{where}'")
    if isinstance(given, str):
        return format_of(given, place)
    require_flat(mapping(given, where), place)
    return format_of(mapping(given, where), place)


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


def _read_structured(given: object, where: str) -> Format:
    """Reads vLLM's ``structured_outputs``: an object with one of several members."""
    members = mapping(given, where)
    for name in _OPTIONS:
        if not asks_for_nothing(name, members.get(name)):
            raise unsupported(f"{where}.{name}", "Write what it means into the schema or grammar.")
    found = [name for name in _MEMBERS if _is_given(members, name) and members[name] is not False]
    if len(found) != 1:
        listed = ", ".join(f"'{name}'" for name in _MEMBERS)
        raise FieldError(
            f"Invalid '{where}': it needs exactly one of {listed}, but has {len(found)}.",
            param=where,
            code="invalid_value",
        )
    return _MEMBERS[found[0]](members[found[0]], f"{where}.{found[0]}")


def _read_tag(given: object, where: str) -> Format:
    """Reads a structural tag: an object, or its JSON text."""
    if isinstance(given, str):
        return Format(*read_structural_tag(given, where))
    document = mapping(given, where)
    require_flat(document, Place(where, "invalid_grammar", f"structural tag in '{where}'"))
    return Format(*read_structural_tag(document, where))


def _read_object(given: object, where: str) -> Format:
    boolean({where: given}, where)
    return format_of(ANY_OBJECT, Place(where, "invalid_json_schema", f"schema in '{where}'"))


_MEMBERS: dict[str, Callable[[object, str], Format]] = {
    "json": _read_json,
    "regex": read_regex,
    "choice": _read_choice,
    "grammar": _read_ebnf,
    "json_object": _read_object,
    "structural_tag": _read_tag,
}
PEERS: dict[str, Callable[[object, str], Format]] = {
    "guided_json": _read_json,
    "guided_regex": read_regex,
    "guided_choice": _read_choice,
    "guided_grammar": _read_ebnf,
    "structural_tag": _read_tag,
    "structured_outputs": _read_structured,
    "json_schema": _read_json,
    "regex": read_regex,
    "ebnf": _read_ebnf,
    "grammar": _read_grammar,
}
"""The fields, each with its reader, which receives the value and its place."""
