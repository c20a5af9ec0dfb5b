"""Reads the JSON of a structural tag: its formats, and errors with the place of each mistake.

Members and their meaning are those that XGrammar documents, from its first form (``structures`` and ``triggers``) to
``format``. Unknown members are errors, because each of them could change the language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.errors import ConstrainError, LimitError
from constrain.gbnf.dialects import has_rules
from constrain.gbnf.source import Gbnf
from constrain.json_schema.spelling.punctuation import MAX_INDENTATION
from constrain.lark.source import Lark
from constrain.regex.source import Regex
from constrain.structural.formats import (
    AnyText,
    Constant,
    InOrder,
    Json,
    Language,
    Mark,
    OneOf,
    OneToken,
    Repeated,
    Tag,
    Trigger,
    Triggered,
)
from constrain.structural.members import (
    MAX_FORMATS,
    Members,
    error_at,
    read_array,
    read_boolean,
    read_mark,
    read_members,
    read_number,
    read_of_text,
    read_parsed,
    read_required,
    read_schema,
    read_text,
    read_texts,
    read_token,
    read_tokens,
    refuse_others,
    shown,
)
from constrain.structural.styles import STYLES
from constrain.suggestions import did_you_mean
from constrain.work import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from constrain.language.tree import Expression

MAX_TRIGGERS = 64
"""Triggers or patterns of one format in a structural tag. Beyond: LimitError."""


def read_tag(document: object) -> Expression:
    """Returns the format of a whole structural tag. Raises GrammarError and LimitError with a JSON Pointer."""
    return _Reader().document(document)


class _Reader:
    """The number of formats read so far."""

    def __init__(self) -> None:
        self._count = 0

    def document(self, document: object) -> Expression:
        members = read_members(document, "", "a structural tag")
        if members.get("type", "structural_tag") != "structural_tag":
            raise error_at("/type", f'type must be "structural_tag", not {shown(members["type"])}')
        if "format" in members:
            refuse_others(members, ("type", "format"), "", "a structural tag")
            return self.format(members["format"], "/format", 1)
        if "structures" in members or "triggers" in members:
            return self.first_form(members)
        raise error_at("", "a structural tag needs the member format (or, in its first form, structures and triggers)")

    def first_form(self, members: Members) -> Expression:
        """Reads ``{"structures": [{"begin", "schema", "end"}], "triggers": [...]}``."""
        refuse_others(members, ("type", "structures", "triggers"), "", "a structural tag")
        tags = []
        for index, given in enumerate(read_array(members, "structures", "")):
            place = f"/structures/{index}"
            tag = read_members(given, place, "a structure")
            refuse_others(tag, ("begin", "schema", "end"), place, "a structure")
            schema = read_required(tag, "schema", place)
            if isinstance(schema, str):
                schema = read_parsed(schema, f"{place}/schema")
            content = Json(
                read_schema(schema, f"{place}/schema"),
                "json",
                any_order=False,
                compact=False,
                line_breaks=True,
                place=f"{place}/schema",
            )
            tags.append(Tag(read_text(tag, "begin", place), content, (read_text(tag, "end", place),), place))
        return self.triggered_tags(members, "", tags, "structures")

    def format(self, given: object, place: str, level: int) -> Expression:
        """Reads one format; ``level`` is 1 for the outermost one."""
        self.count(place)
        if level > MAX_NESTING:
            message = f"formats are nested more than {MAX_NESTING} deep (MAX_NESTING)"
            raise LimitError(f"{message}; make them flatter, or write a grammar", pointer=place)
        members = read_members(given, place, "a format")
        kind = members.get("type", "tag" if "begin" in members else None)
        if not isinstance(kind, str):
            raise error_at(place, f"a format needs a type: one of {', '.join(_KINDS)}")
        if kind not in _KINDS:
            known = did_you_mean(kind, _KINDS)
            raise error_at(f"{place}/type", f"there is no format {kind!r:.80}{known}; there are {', '.join(_KINDS)}")
        names, read = _KINDS[kind]
        refuse_others(members, ("type", *names), place, f"the format {kind}")
        return read(self, members, place, level)

    def count(self, place: str) -> None:
        self._count += 1
        if self._count > MAX_FORMATS:
            message = f"a structural tag has more than {MAX_FORMATS} formats (MAX_FORMATS)"
            raise LimitError(f"{message}; use fewer, or write a grammar", pointer=place)

    def constant(self, members: Members, place: str, _: int) -> Expression:
        return Constant(read_text(members, "value", place), place)

    def token(self, members: Members, place: str, _: int) -> Expression:
        return Constant(read_token(read_required(members, "token", place), f"{place}/token"), place)

    def json(self, members: Members, place: str, _: int) -> Expression:
        where = f"{place}/json_schema"
        schema = read_schema(read_required(members, "json_schema", place), where)
        style = members.get("style", "qwen_xml" if members.get("type") == "qwen_xml_parameter" else "json")
        if not isinstance(style, str) or style not in STYLES:
            message = f"there is no style {shown(style)}; there are {', '.join(STYLES)}"
            raise error_at(f"{place}/style", f"{message}. Write another one as a sequence of tags, or as a grammar")
        if members.get("excludes", []) != []:
            message = "excludes is not supported for JSON; write a pattern with negative lookahead into the schema"
            raise error_at(f"{place}/excludes", message)
        spaces = None
        if members.get("max_whitespace_cnt") is not None:
            spaces = read_number(members, "max_whitespace_cnt", place)
        any_order = read_boolean(members, "any_order", place)
        compact = spaces is not None and spaces <= MAX_INDENTATION
        return Json(schema, style, any_order, compact, line_breaks=spaces != 0, place=place)

    def grammar(self, members: Members, place: str, _: int) -> Expression:
        text = read_text(members, "grammar", place)
        return self.language(
            lambda: Gbnf(text, dialect="xgrammar") if has_rules(text) else Lark(text), f"{place}/grammar"
        )

    def regex(self, members: Members, place: str, _: int) -> Expression:
        pattern = read_text(members, "pattern", place)
        return self.language(lambda: Regex(pattern), f"{place}/pattern")

    def language(self, make: Callable[[], Gbnf | Lark | Regex], place: str) -> Expression:
        try:
            return Language(make(), place)
        except ConstrainError as error:
            error.pointer = place
            raise

    def any_text(self, members: Members, place: str, _: int) -> Expression:
        most_chars, most_tokens = _limit(members, "max_chars", place), _limit(members, "max_tokens", place)
        return AnyText(read_texts(members, "excludes", place), most_chars, most_tokens, of_tokens=False, place=place)

    def any_tokens(self, members: Members, place: str, _: int) -> Expression:
        most = _limit(members, "max_tokens", place)
        return AnyText(read_tokens(members, "exclude_tokens", place), None, most, of_tokens=True, place=place)

    def exclude_token(self, members: Members, place: str, _: int) -> Expression:
        return OneToken(read_tokens(members, "exclude_tokens", place), place)

    def sequence(self, members: Members, place: str, level: int) -> Expression:
        return InOrder(self.elements(members, place, level), place)

    def one_of(self, members: Members, place: str, level: int) -> Expression:
        return OneOf(self.elements(members, place, level), place)

    def elements(self, members: Members, place: str, level: int) -> tuple[Expression, ...]:
        given = read_array(members, "elements", place)
        return tuple(self.format(each, f"{place}/elements/{index}", level + 1) for index, each in enumerate(given))

    def optional(self, members: Members, place: str, level: int) -> Expression:
        return self.repeated(members, place, level, 0, 1)

    def star(self, members: Members, place: str, level: int) -> Expression:
        return self.repeated(members, place, level, 0, None)

    def plus(self, members: Members, place: str, level: int) -> Expression:
        return self.repeated(members, place, level, 1, None)

    def repeat(self, members: Members, place: str, level: int) -> Expression:
        least, most = read_number(members, "min", place), None
        if read_required(members, "max", place) != -1:
            most = read_number(members, "max", place)
            if most < least:
                raise error_at(f"{place}/max", f"max is {most}, which is less than min ({least})")
        return self.repeated(members, place, level, least, most)

    def repeated(self, members: Members, place: str, level: int, least: int, most: int | None) -> Expression:
        part = self.format(read_required(members, "content", place), f"{place}/content", level + 1)
        return Repeated(part, least, most, "", place)

    def tag(self, members: Members, place: str, level: int) -> Tag:
        begin, ends = read_mark(members, "begin", place), read_required(members, "end", place)
        content = self.format(read_required(members, "content", place), f"{place}/content", level + 1)
        if isinstance(ends, list):
            if not ends:
                raise error_at(f"{place}/end", "the list of ends is empty; name at least one")
            read: tuple[Mark, ...] = read_texts(members, "end", place, may_be_empty=True)
        else:
            read = (read_mark(members, "end", place),)
        if all(end == "" for end in read) and _is_endless(content):
            raise error_at(
                f"{place}/end", "the content is free text, so its end must not be empty; name a text or token"
            )
        return Tag(begin, content, read, place)

    def tags(self, members: Members, place: str, level: int) -> list[Tag]:
        found = []
        for index, given in enumerate(read_array(members, "tags", place)):
            where = f"{place}/tags/{index}"
            members_of = read_members(given, where, "a tag")
            tag = self.format({"type": "tag", **members_of}, where, level + 1)
            if not isinstance(tag, Tag):
                raise error_at(
                    f"{where}/type", f'tags holds formats of type "tag" only, not {shown(members_of["type"])}'
                )
            found.append(tag)
        return found

    def triggered(self, members: Members, place: str, level: int) -> Expression:
        return self.triggered_tags(members, place, self.tags(members, place, level), "tags")

    def triggered_tags(self, members: Members, place: str, tags: list[Tag], name: str) -> Expression:
        triggers = read_array(members, "triggers", place)
        texts = read_texts(members, "triggers", place)
        _refuse_inside(texts, [f"{place}/triggers/{index}" for index in range(len(triggers))], "trigger")
        groups: list[list[Tag]] = [[] for _ in texts]
        for index, tag in enumerate(tags):
            begin = tag.begin
            if not isinstance(begin, str):
                message = "a tag of triggered_tags begins with a text; use token_triggered_tags for tokens"
                raise error_at(f"{place}/{name}/{index}/begin", message)
            fitting = [number for number, trigger in enumerate(texts) if begin.startswith(trigger)]
            if not fitting:
                listed = ", ".join(map(shown, texts))
                message = f"{shown(begin)} begins with no trigger ({listed}); add a trigger, or change the begin"
                raise error_at(f"{place}/{name}/{index}/begin", message)
            groups[fitting[0]].append(tag)
        return _triggered(members, place, tags, list(zip(texts, groups, strict=True)), of_tokens=False)

    def token_triggered(self, members: Members, place: str, level: int) -> Expression:
        tags = self.tags(members, place, level)
        triggers = read_tokens(members, "trigger_tokens", place, least=1)
        for index, tag in enumerate(tags):
            if tag.begin not in triggers:
                message = "a tag of token_triggered_tags begins with one of trigger_tokens, written in the same way"
                raise error_at(f"{place}/tags/{index}/begin", message)
        groups = [(trigger, [tag for tag in tags if tag.begin == trigger]) for trigger in triggers]
        return _triggered(members, place, tags, groups, of_tokens=True)

    def separated(self, members: Members, place: str, level: int) -> Expression:
        tags = self.tags(members, place, level)
        any_tag = OneOf(tuple(tags), place)
        least = int(read_boolean(members, "at_least_one", place))
        most = 1 if read_boolean(members, "stop_after_first", place) else None
        return Repeated(any_tag, least, most, read_text(members, "separator", place), place)

    def dispatch(self, members: Members, place: str, level: int) -> Expression:
        rules = self.rules(members, place, level, lambda given, where: read_of_text(given, where, may_be_empty=False))
        rules = _joined(rules)
        patterns = [rule.mark for rule in rules if isinstance(rule.mark, str)]
        _refuse_inside(patterns, [f"{rule.place}/0" for rule in rules], "pattern")
        excludes = read_texts(members, "excludes", place)
        return Triggered(
            rules, excludes, read_boolean(members, "loop", place, default=True), of_tokens=False, place=place
        )

    def token_dispatch(self, members: Members, place: str, level: int) -> Expression:
        rules = _joined(self.rules(members, place, level, read_token))
        excludes = read_tokens(members, "exclude_tokens", place)
        return Triggered(
            rules, excludes, read_boolean(members, "loop", place, default=True), of_tokens=True, place=place
        )

    def rules(
        self, members: Members, place: str, level: int, read: Callable[[object, str], Mark]
    ) -> tuple[Trigger, ...]:
        found = []
        for index, given in enumerate(read_array(members, "rules", place)):
            where = f"{place}/rules/{index}"
            if not isinstance(given, list) or len(given) != 2:
                raise error_at(where, f"a rule is a list of two: a pattern and a format; this is {shown(given)}")
            found.append(
                Trigger(read(given[0], f"{where}/0"), (self.format(given[1], f"{where}/1", level + 1),), where)
            )
        return tuple(found)


def _limit(members: Members, name: str, place: str) -> int | None:
    return None if members.get(name) is None else read_number(members, name, place)


def _triggered(
    members: Members, place: str, tags: list[Tag], groups: Sequence[tuple[Mark, list[Tag]]], *, of_tokens: bool
) -> Expression:
    """Returns free text with tags, by trigger; the triggers are part of the tags' begins."""
    name = "trigger_tokens" if of_tokens else "triggers"
    excludes: tuple[Mark, ...]
    excludes = read_tokens(members, "exclude_tokens", place) if of_tokens else read_texts(members, "excludes", place)
    rules = []
    for index, (trigger, group) in enumerate(groups):
        if not group:
            message = f"no tag begins with the trigger {shown(trigger)}; remove the trigger, or add a tag"
            raise error_at(f"{place}/{name}/{index}", message)
        ways = [replace(each, begin=_rest(each.begin, trigger)) for each in group]
        rules.append(Trigger(trigger, tuple(ways), f"{place}/{name}/{index}"))
    is_last = read_boolean(members, "stop_after_first", place)
    text = Triggered(tuple(rules), excludes, not is_last, of_tokens, place)
    if not read_boolean(members, "at_least_one", place):
        return text
    first = OneOf(tuple(tags), place)
    return first if is_last else InOrder((first, text), place)


def _rest(begin: Mark, trigger: Mark) -> str:
    """Returns the text of a tag's begin behind the trigger."""
    return begin[len(trigger) :] if isinstance(begin, str) and isinstance(trigger, str) else ""


def _is_endless(node: Expression) -> bool:
    """Returns whether a format may end in free text of which nothing is excluded."""
    match node:
        case AnyText(excludes, most_chars, most_tokens):
            return not excludes and most_chars is None and most_tokens is None
        case Triggered():
            return not node.excludes
        case InOrder(parts):
            return _is_endless(parts[-1])
        case OneOf(parts):
            return any(map(_is_endless, parts))
        case Repeated(part):
            return _is_endless(part)
    return False


def _joined(rules: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    """Returns the rules with one for each mark, which may be followed by any of its formats."""
    found: dict[Mark, Trigger] = {}
    for rule in rules:
        known = found.get(rule.mark)
        found[rule.mark] = rule if known is None else replace(known, parts=known.parts + rule.parts)
    return tuple(found.values())


def _refuse_inside(texts: Sequence[str], places: list[str], what: str) -> None:
    """Raises GrammarError for a text in which another one ends earlier, so that it would never be found whole."""
    if len(texts) > MAX_TRIGGERS:
        message = f"there are {len(texts)} of them, and at most {MAX_TRIGGERS} are allowed (MAX_TRIGGERS)"
        raise LimitError(f"{message}; use a shorter {what} that several tags begin with", pointer=places[MAX_TRIGGERS])
    for index, text in enumerate(texts):
        for number, other in enumerate(texts):
            if number < index and text == other:
                raise error_at(places[index], f"the {what} {shown(text)} is there twice; remove one of them")
            if number != index and text.find(other) not in (-1, len(text) - len(other)):
                message = f"the {what} {shown(text)} contains the {what} {shown(other)}, which would be found first"
                raise error_at(places[index], f"{message}; remove one of them")


_KINDS: Mapping[str, tuple[tuple[str, ...], Callable[[_Reader, Members, str, int], Expression]]] = {
    "const_string": (("value",), _Reader.constant),
    "json_schema": (("json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"), _Reader.json),
    "grammar": (("grammar",), _Reader.grammar),
    "regex": (("pattern",), _Reader.regex),
    "any_text": (("excludes", "max_tokens", "max_chars"), _Reader.any_text),
    "sequence": (("elements",), _Reader.sequence),
    "or": (("elements",), _Reader.one_of),
    "optional": (("content",), _Reader.optional),
    "plus": (("content",), _Reader.plus),
    "star": (("content",), _Reader.star),
    "repeat": (("min", "max", "content"), _Reader.repeat),
    "tag": (("begin", "content", "end"), _Reader.tag),
    "triggered_tags": (("triggers", "tags", "at_least_one", "stop_after_first", "excludes"), _Reader.triggered),
    "tags_with_separator": (("tags", "separator", "at_least_one", "stop_after_first"), _Reader.separated),
    "dispatch": (("rules", "loop", "excludes"), _Reader.dispatch),
    "token": (("token",), _Reader.token),
    "exclude_token": (("exclude_tokens",), _Reader.exclude_token),
    "any_tokens": (("exclude_tokens", "max_tokens"), _Reader.any_tokens),
    "token_triggered_tags": (
        ("trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"),
        _Reader.token_triggered,
    ),
    "token_dispatch": (("rules", "loop", "exclude_tokens"), _Reader.token_dispatch),
    "qwen_xml_parameter": (("json_schema",), _Reader.json),
}
"""The types of formats: their members, and their readers."""
