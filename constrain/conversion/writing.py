"""The text of a Lark grammar: a header, then the rules with comments and blank lines where they stood."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from constrain.conversion.names import START
from constrain.conversion.parts import leaves
from constrain.conversion.spelling import operator
from constrain.lark.reading.syntax import Both, Choice, Complement, Literal, Repeat, Sequence, Special, Symbol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.conversion.parts import Comment, Original
    from constrain.conversion.plan import Plan

WIDTH = 100
"""Characters of a line up to which a rule with alternatives stands on one line."""

_CHOICE, _BOTH, _SEQUENCE, _ITEM, _FACTOR = range(5)


def write(plan: Plan) -> str:
    """Returns the text of the planned grammar."""
    original = plan.original
    definitions = plan.definitions()
    places = _Places(original)
    start = plan.name_of(original.start)
    lines = [*_header(plan), *([f"{START}: {start}"] if start != START else []), ""]
    for name in original.rules:
        lines += _blank_and_comments(original, places.before.get(name, []), original.rules[name].at)
        lines += _rule(plan.name_of(name), definitions[name].body, places, name)
        lines += [f"{part}: {spelled(body.body)}" for part, (around, body) in plan.parts.items() if around == name]
    lines += _blank_and_comments(original, places.last, None)
    return "\n".join(_without_double_blanks(lines)).rstrip("\n") + "\n"


def _without_double_blanks(lines: list[str]) -> Iterator[str]:
    return (line for before, line in pairwise(["", *lines]) if line or before)


def _header(plan: Plan) -> Iterator[str]:
    original = plan.original
    rules = "1 rule" if len(original.rules) == 1 else f"{len(original.rules)} rules"
    begin = "" if original.start == START else f"; {original.start} is the start"
    yield f"// Converted from {original.syntax} by constrain: {rules}{begin}."
    if plan.terminals or plan.parts:
        yield "// Names in capitals are terminals, each read as long as possible; this loses no text."
    if plan.demoted:
        yield from _listed("No terminals, as a longest match would lose texts", map(plan.name_of, plan.demoted))
    renamed = [name for name in original.rules if plan.names[name] != name.replace(" ", "_")]
    if renamed:
        yield from _listed("Names in Lark's form", (f"{name} is {plan.name_of(name)}" for name in renamed))


def _listed(about: str, parts: Iterable[str]) -> Iterator[str]:
    lines = textwrap.wrap(f"{about}: {', '.join(parts)}.", WIDTH - 5, break_long_words=False, break_on_hyphens=False)
    yield from (f"//   {line}" if index else f"// {line}" for index, line in enumerate(lines))


def _blank_and_comments(original: Original, comments: list[Comment], at: int | None) -> Iterator[str]:
    """Yields the comments above a rule, and blank lines where the original has some."""
    for comment in comments:
        if _is_after_blank_line(original.text, comment.at):
            yield ""
        yield from (f"// {line}".rstrip() for line in comment.lines)
    if at is not None and _is_after_blank_line(original.text, at):
        yield ""


def _is_after_blank_line(text: str, at: int) -> bool:
    begin = at
    while begin and text[begin - 1].isspace():
        begin -= 1
    return text.count("\n", begin, at) > 1


def _rule(name: str, body: Any, places: _Places, rule: str) -> Iterator[str]:
    alternatives = body.parts if isinstance(body, Choice) else (body,)
    written = [spelled(each, _BOTH) for each in alternatives]
    behind, above = places.behind.get(rule, {}), places.above.get(rule, {})
    whole = " | ".join(written)
    is_plain = rule not in places.several_lines and not above and set(behind) <= {len(written) - 1}
    if is_plain and len(name) + 2 + len(whole) <= WIDTH:
        yield f"{name}: {whole}{_behind(behind.get(len(written) - 1, []))}"
        return
    indent = " " * len(name)
    for index, each in enumerate(written):
        yield from (f"{indent}  // {line}".rstrip() for comment in above.get(index, []) for line in comment.lines)
        lead = f"{name}:" if not index else f"{indent}|"
        yield f"{lead} {each}{_behind(behind.get(index, []))}"


def _behind(comments: list[Comment]) -> str:
    return "".join(f"  // {' '.join(comment.lines)}".rstrip() for comment in comments)


class _Places:
    """The comments of a grammar by their places.

    Attributes:
        before: comments above each rule.
        behind: comments behind alternatives of rules, by rule and number of the alternative.
        above: comments on lines of their own above alternatives of rules.
        last: comments below the last rule.
        several_lines: rules whose alternatives stand on several lines.
    """

    def __init__(self, original: Original) -> None:
        self.before: dict[str, list[Comment]] = {}
        self.behind: dict[str, dict[int, list[Comment]]] = {}
        self.above: dict[str, dict[int, list[Comment]]] = {}
        self.last: list[Comment] = []
        self._original = original
        self._lines = _line_starts(original)
        self._alternatives = {name: _alternatives(rule.body, rule.at) for name, rule in original.rules.items()}
        self.several_lines = {
            name
            for name, found in self._alternatives.items()
            if any("\n" in original.text[left[-1] : right[0]] for left, right in pairwise(found))
        }
        names = list(original.rules)
        following = 0  # number of the first rule behind a comment
        for comment in original.comments:
            while following < len(names) and original.rules[names[following]].at < comment.at:
                following += 1
            self._put(comment, names[following - 1] if following else None, names[following : following + 1])

    def _put(self, comment: Comment, rule: str | None, after: list[str]) -> None:
        is_alone = comment.at in self._lines
        if rule is not None and (comment.at < self._alternatives[rule][-1][-1] or not is_alone):
            self._put_inside(comment, rule, is_alone=is_alone)
        elif after:
            self.before.setdefault(after[0], []).append(comment)
        else:
            self.last.append(comment)

    def _put_inside(self, comment: Comment, rule: str, *, is_alone: bool) -> None:
        alternatives = self._alternatives[rule]
        index = max((number for number, found in enumerate(alternatives) if found[0] < comment.at), default=0)
        target = self.behind
        if comment.at > alternatives[index][-1] and index + 1 < len(alternatives):
            if any(alternatives[index][-1] < bar < comment.at for bar in self._original.bars):
                index += 1
            elif is_alone:
                index, target = index + 1, self.above
        target.setdefault(rule, {}).setdefault(index, []).append(comment)


def _line_starts(original: Original) -> set[int]:
    """Returns the places of the comments with nothing but blanks before them on their lines."""
    text = original.text
    return {
        comment.at
        for comment in original.comments
        if not text[text.rfind("\n", 0, comment.at) + 1 : comment.at].strip()
    }


def _alternatives(body: Any, at: int) -> list[list[int]]:
    """Returns the places of the words of each alternative; ``at``: the place of the rule's name."""
    found: list[list[int]] = []
    for part in body.parts if isinstance(body, Choice) else (body,):
        words = [leaf.at for leaf in leaves(part) if leaf.at]
        found.append(words or [found[-1][-1] if found else at])
    return found


def spelled(node: Any, level: int = _CHOICE) -> str:
    """Returns a node as Lark writes it, in parentheses if it binds less than ``level``."""
    written, own = _spelled(node)
    return f"({written})" if own < level else written


def _spelled(node: Any) -> tuple[str, int]:
    """Returns a node as Lark writes it, and how tight it binds."""
    match node:
        case Choice(parts):
            return " | ".join(spelled(part, _BOTH) for part in parts), _CHOICE
        case Both(parts, _):
            return " & ".join(spelled(part, _SEQUENCE) for part in parts), _BOTH
        case Sequence((part,)):
            return _spelled(part)
        case Sequence(parts):
            return " ".join(spelled(part, _ITEM) for part in parts) or '""', _SEQUENCE if parts else _FACTOR
        case Repeat(part, 1, 1):
            return _spelled(part)
        case Repeat(part, minimum, maximum):
            return spelled(part, _FACTOR) + operator(minimum, maximum), _ITEM
        case Complement(part, _):
            return "~" + spelled(part, _FACTOR), _FACTOR
        case Symbol(name, _) | Special(name, _):
            return name, _FACTOR
    assert isinstance(node, Literal), node
    return node.written, _FACTOR
