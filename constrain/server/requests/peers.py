"""Fields of other servers that say what an answer is: vLLM's, SGLang's and llama-server's.

At most one of them, or ``response_format`` (``text.format`` of responses), says it. ``guided_json``, ``guided_regex``,
``guided_choice``, ``guided_grammar``, ``structural_tag`` and ``structured_outputs`` are vLLM's; ``regex``, ``ebnf`` and
``json_schema`` are SGLang's; ``grammar`` and ``json_schema`` are llama-server's. A grammar with ``::=`` is GBNF, any
other is Lark, and so is one that begins with ``%``, or with a brace: llguidance's JSON with a list of grammars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from constrain.composition.source import choice
from constrain.errors import ConstrainError
from constrain.fields.values import FieldError, array, boolean, mapping, one_of, required_text, wrong_type
from constrain.gbnf.source import Gbnf
from constrain.lark.source import Lark
from constrain.regex.parsing.scanner import Dialect
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import ANY_OBJECT, Format, format_of, require_flat
from constrain.server.requests.places import Place, report_place
from constrain.server.requests.refusals import asks_for_nothing, unsupported
from constrain.server.requests.structural import read_structural_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_CHOICES_OF_TEXT = 10_000
"""Texts of ``guided_choice`` or ``structured_outputs.choice``. Beyond: status 400."""

_GRAMMAR = "invalid_grammar"

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


def _read_regex(given: object, where: str) -> Format:
    """Reads a pattern: a text in Rust's syntax, or an object with a ``pattern`` and its ``dialect``."""
    if not isinstance(given, dict):
        return _source(lambda: Regex(_text(given, where)), where, "pattern")
    dialect: Any = one_of(given.get("dialect", "rust"), get_args(Dialect), f"{where}.dialect")
    return _source(lambda: Regex(required_text(given, "pattern", f"{where}."), dialect), where, "pattern")


def _read_choice(given: object, where: str) -> Format:
    texts = [_text(text, f"{where}[{index}]") for index, text in enumerate(array(given, where, MAX_CHOICES_OF_TEXT))]
    if not texts:
        raise FieldError(f"Invalid '{where}': there is no text to choose.", param=where, code="empty_array")
    return _source(lambda: choice(*texts), where, "choice")


def _read_grammar(given: object, where: str) -> Format:
    text = _text(given, where)
    is_gbnf = "::=" in text and text.lstrip()[:1] not in ("%", "{")
    return _source(lambda: Gbnf(text) if is_gbnf else Lark(text), where, "grammar")


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
    require_flat(document, Place(where, _GRAMMAR, f"structural tag in '{where}'"))
    return Format(*read_structural_tag(document, where))


def _read_object(given: object, where: str) -> Format:
    boolean({where: given}, where)
    return format_of(ANY_OBJECT, Place(where, "invalid_json_schema", f"schema in '{where}'"))


def _text(given: object, where: str) -> str:
    if not isinstance(given, str):
        raise wrong_type(where, "a string", given)
    return given


def _source(make: Callable[[], Any], where: str, what: str) -> Format:
    place = Place(where, _GRAMMAR, f"{what} in '{where}'")
    report_place(place)
    try:
        return Format(make(), place)
    except ConstrainError as error:
        raise ApiError(f"Invalid {place.name}: {error}", param=where, code=_GRAMMAR) from error


_MEMBERS: dict[str, Callable[[object, str], Format]] = {
    "json": _read_json,
    "regex": _read_regex,
    "choice": _read_choice,
    "grammar": _read_grammar,
    "json_object": _read_object,
    "structural_tag": _read_tag,
}
PEERS: dict[str, Callable[[object, str], Format]] = {
    "guided_json": _read_json,
    "guided_regex": _read_regex,
    "guided_choice": _read_choice,
    "guided_grammar": _read_grammar,
    "structural_tag": _read_tag,
    "structured_outputs": _read_structured,
    "json_schema": _read_json,
    "regex": _read_regex,
    "ebnf": _read_grammar,
    "grammar": _read_grammar,
}
"""The fields, each with its reader, which receives the value and its place."""
