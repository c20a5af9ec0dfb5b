"""Reading of grammar text into ``Syntax``; the grammar of these texts is dialect.lark.

The parser only reads the text: this module decides which constructs are supported, and keeps the place of each. Before
parsing, ``%json {...}``, ``%regex {...}`` and special tokens (``<|name|>``) are replaced by names of the same length.
"""

from __future__ import annotations

import json
import re
import string
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.arguments import lone_surrogate
from constrain.lark.reading.parser import parser
from constrain.lark.reading.places import error_at
from constrain.lark.reading.rule_options import read_options
from constrain.lark.reading.syntax import (
    Alias,
    Both,
    Choice,
    Complement,
    Definition,
    Embedded,
    Import,
    Literal,
    Node,
    Range,
    Repeat,
    Sequence,
    Special,
    Substring,
    Symbol,
    Syntax,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    from constrain.lark.reading.syntax import GrammarText

MAX_NESTING = 50
"""Levels of parentheses and brackets inside one another in a Lark grammar. Beyond: GrammarError."""

MAX_COUNT = 2**31 - 1
"""A count after ``~`` in a Lark grammar; the limit is that of a signed 32-bit counter. Beyond: GrammarError."""

_LONGEST_NAMES = 3
"""Letters and digits after the first letter of a replacement name; underscores fill the rest."""

_BEYOND_LARK = re.compile(
    r"""
    "(?:\\"|\\\\|[^"\n])*?" | /(?!/)(?:\\/|\\\\|[^/])*?/ | //[^\n]* | \#[^\n]*  # strings, patterns, comments
    | (?P<directive>%(?!ignore|import|declare|override|extend)[a-z]*) | [ \t]*(?P<special><[^\s<>"]+>)[ \t]*
    """,
    re.VERBOSE,
)
_EXPECTED = {
    "_NEWLINE": "the end of the line",
    "_OR": "|",
    "COLON": ":",
    "EQUAL": "=",
    "LSQB": "[",
    "RPAR": ")",
    "RSQB": "]",
    "RBRACE": "}",
    "RULE": "a rule",
    "TERMINAL": "a terminal",
    "STRING": "a string",
    "PATTERN": "a pattern",
    "NUMBER": "a number",
    "DECIMAL": "a number",
}
_OPERATORS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_UNCLOSED = {
    '"': 'the string that begins here has no closing " on its line',
    "/": "the pattern that begins here has no closing /",
    "'": 'strings stand in double quotes: "',
}
_BEFORE_JSON = {"%json": "a JSON Schema", "%regex": "a JSON object"}
_UNSUPPORTED = {
    "declare": "%declare is not supported: it names a terminal without its texts",
    "override": "%override is not supported; write one definition",
    "extend": "%extend is not supported; write one definition with all alternatives",
}


def read(source: GrammarText) -> Syntax:
    """Returns the content of a grammar text. Raises GrammarError with the place of wrong or unsupported text."""
    if surrogate := lone_surrogate(source.text):
        at, half = surrogate
        raise error_at(source.text, at, f"{half} is no character")
    return _Reader(source.text).read()


class _Reader:
    """The state of one run: the text, and the parts read so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.embedded: dict[str, Embedded | Substring | Special] = {}
        self.rules: dict[str, Definition] = {}
        self.terminals: dict[str, Definition | Import] = {}
        self.ignored: list[Definition] = []

    def read(self) -> Syntax:
        statements: list[Any] = self._parse(self._without_extensions()).children
        for statement in statements:
            self._statement(statement)
        return Syntax(self.text, self.rules, self.terminals, tuple(self.ignored))

    # From text to Lark's tree

    def _without_extensions(self) -> str:
        """Returns the text with a terminal's name for each ``%json {...}``, ``%regex {...}`` and special token."""
        parts, done = [], 0
        while found := _BEYOND_LARK.search(self.text, done):
            start, end = found.span()
            parts.append(self.text[done:start])
            if found["special"]:
                parts.append(self._named(Special(found["special"], found.start("special")), end - start))
            elif found["directive"]:
                json_start, end = end, self._json_end(found["directive"], start, end)
                made = Embedded if found["directive"] == "%json" else Substring
                parts.append(self._named(made(self.text[json_start:end], start), end - start))
            else:
                parts.append(found[0])
            done = end
        return "".join(parts) + self.text[done:]

    def _named(self, node: Embedded | Substring | Special, length: int) -> str:
        """Returns a name for a node, with a space on both sides, as long as the text it replaces."""
        first, *others = [string.ascii_uppercase, *[string.ascii_uppercase + string.digits] * (length - 3)]
        others = others[-_LONGEST_NAMES:]
        for letters in product(first, *others):
            name = "".join(letters).ljust(length - 2, "_")
            if name not in self.embedded and name not in self.text:
                self.embedded[name] = node
                return f" {name} "
        raise error_at(self.text, node.at, "no short name is left for this token; put spaces around it")

    def _json_end(self, directive: str, start: int, end: int) -> int:
        if directive not in _BEFORE_JSON:
            raise error_at(self.text, start, f"{directive} is unknown: there are %ignore, %import, %json and %regex")
        brace = re.compile(r"\s*").match(self.text, end)
        assert brace
        if self.text[brace.end() : brace.end() + 1] != "{":
            raise error_at(self.text, start, f"{directive} is followed by {_BEFORE_JSON[directive]} in braces")
        try:
            return json.JSONDecoder().raw_decode(self.text, brace.end())[1]
        except json.JSONDecodeError as error:
            raise error_at(self.text, error.pos, f"not JSON: {error.msg}") from error
        except (RecursionError, ValueError) as error:
            raise error_at(self.text, start, f"this JSON cannot be read: {error}") from error

    def _parse(self, text: str) -> Tree[Token]:
        from lark import UnexpectedCharacters, UnexpectedToken

        try:
            tree: Tree[Token] = parser().parse(text + "\n")
        except UnexpectedCharacters as error:
            at = error.pos_in_stream or 0
            message = _UNCLOSED.get(self.text[at], f"unexpected {self.text[at]!r}")
            raise error_at(self.text, at, message) from error
        except UnexpectedToken as error:
            at = len(self.text) if error.token.start_pos is None else min(error.token.start_pos, len(self.text))
            names = dict.fromkeys(_EXPECTED[name] for name in sorted(error.expected) if name in _EXPECTED)
            embedded = self.embedded.get(str(error.token))
            found = repr(str(error.token)) if embedded is None else _shown(embedded)
            if error.token.type in ("_NEWLINE", "$END"):
                found = "the end of the line"
            expected = f"; expected {', '.join(names)}" if names else ""
            raise error_at(self.text, at, f"unexpected {found}{expected}") from error
        return tree

    # From Lark's tree to ours

    def _statement(self, tree: Tree[Token]) -> None:
        match tree.data:
            case "rule":
                self._rule(*tree.children)
            case "terminal":
                self._terminal(*tree.children)
            case "ignore":
                self._ignore(tree.children[0])
            case "import":
                self._import(tree)
            case directive:
                self._refuse(tree, _UNSUPPORTED[directive])

    def _rule(self, _modifiers: Any, name: Any, templates: Any, priority: Any, options: Any, body: Any) -> None:
        if templates.children[0] is not None:
            self._refuse(templates, f"templates are not supported; write a rule for each use of {name}")
        if priority.children[0] is not None:
            self._refuse(priority, "priorities are not supported: all readings of a text count")
        self._define(self.rules, name, body)
        if options.children:
            defined = self.rules[str(name)]
            given = read_options(self.text, str(name), options, defined.body, lambda value: self._node(value, 0))
            self.rules[str(name)] = replace(defined, options=given)

    def _terminal(self, name: Any, priority: Any, options: Any, body: Any) -> None:
        if priority.children[0] is not None:
            self._refuse(
                priority, "priorities of terminals are not supported: the longest match decides, and all that match"
            )
        if options.children != [None]:
            self._refuse(options, f"options are for rules: write the name {name} in small letters")
        self._define(self.terminals, name, body)

    def _define(self, definitions: dict[str, Any], name: Token, body: Tree[Token]) -> None:
        at = name.start_pos or 0
        self._check_new(str(name), at)
        definitions[str(name)] = Definition(self._node(body, 0), at)

    def _check_new(self, name: str, at: int) -> None:
        if name in self.rules or name in self.terminals or name in self.embedded:
            raise error_at(self.text, at, f"{name} is defined more than once")

    def _ignore(self, body: Any) -> None:
        node = self._node(body, 0)
        self.ignored.append(Definition(node, _first_place(body)))

    def _import(self, tree: Tree[Token]) -> None:
        path: Any = tree.children[0]
        dot, *names = path.children
        if dot is not None or str(names[0]) != "common":
            self._refuse(tree, "only %import common is supported; copy what you need into this grammar")
        renamed: Any = tree.children[1]
        if renamed is not None and not isinstance(renamed, str):  # a list of names
            if len(names) > 1:
                self._refuse(tree, "after %import common.NAME no list can follow")
            pairs = [(name, name) for name in renamed.children]
        elif len(names) == 2:
            pairs = [(names[1], renamed or names[1])]
        else:
            self._refuse(tree, "write %import common.NAME or %import common (NAME, ...)")
        for original, name in pairs:
            self._import_terminal(original, name)

    def _import_terminal(self, original: Any, name: Any) -> None:
        if name.type != "TERMINAL":
            raise error_at(self.text, name.start_pos, f"{original} is a terminal: its name must be in capitals")
        imported = Import(str(original), original.start_pos)
        known = self.terminals.get(str(name))
        if isinstance(known, Import) and known.original == imported.original:
            return
        self._check_new(str(name), name.start_pos)
        self.terminals[str(name)] = imported

    def _node(self, tree: Any, depth: int) -> Node:
        if depth > 6 * MAX_NESTING:  # each pair of parentheses takes at most so many nodes
            self._refuse(tree, f"this is nested more than {MAX_NESTING} deep (MAX_NESTING)")
        children = tree.children
        match tree.data:
            case "choice" | "sequence" | "both":
                parts = tuple(self._node(child, depth + 1) for child in children)
                if len(parts) == 1:
                    return parts[0]
                if tree.data == "both":
                    return Both(parts, _first_place(tree))
                return Choice(parts) if tree.data == "choice" else Sequence(parts)
            case "alias":
                return Alias(self._node(children[0], depth + 1), _first_place(children[1]))
            case "maybe":
                return Repeat(self._node(children[0], depth + 1), 0, 1)
            case "repeat":
                return Repeat(self._node(children[0], depth + 1), *_OPERATORS[str(children[1])])
            case "times":
                return self._counted(self._node(children[0], depth + 1), children[1], children[2] or children[1])
            case "bounds":
                return self._bounds(tree, self._node(children[0], depth + 1), *children[1:])
            case "complement":
                return Complement(self._node(children[0], depth + 1), _first_place(tree))
            case "literal":
                return self._literal(children[0])
            case "range":
                return Range(self._literal(children[0]), self._literal(children[1]))
            case "template_usage":
                self._refuse(tree, "templates are not supported; write a rule for each use")
        assert tree.data == "symbol", tree.data
        name = str(children[0])
        return self.embedded.get(name) or Symbol(name, children[0].start_pos)

    def _bounds(self, tree: Any, part: Node, minimum: Any, comma: Any, maximum: Any) -> Repeat:
        """Returns ``part{m,n}``, whose counts may be missing: none below is 0, none above is no limit."""
        if minimum is None and maximum is None:
            self._refuse(tree, "there is no count in these braces; write {m,n}, {m,}, {,n} or {n}")
        if comma is None:
            return self._counted(part, minimum, minimum)
        if maximum is None:
            return Repeat(part, self._count(minimum), None)
        return self._counted(part, minimum, maximum)

    def _counted(self, part: Node, minimum: Any, maximum: Any) -> Repeat:
        least = 0 if minimum is None else self._count(minimum)
        if (most := self._count(maximum)) < least:
            raise error_at(self.text, maximum.start_pos, f"counts go up: {most} is less than {least}")
        return Repeat(part, least, most)

    def _count(self, token: Any) -> int:
        if not 0 <= (count := int(token[:20])) <= MAX_COUNT:
            raise error_at(self.text, token.start_pos, f"a count is from 0 to {MAX_COUNT} (MAX_COUNT)")
        return count

    def _literal(self, token: Any) -> Literal:
        return Literal(str(token), token.start_pos)

    def _refuse(self, tree: Any, message: str) -> NoReturn:
        raise error_at(self.text, _first_place(tree), message)


def _shown(node: Embedded | Substring | Special) -> str:
    """Returns the original text behind a replacement name."""
    match node:
        case Special(name, _):
            return name
        case Embedded():
            return "%json"
    return "%regex"


def _first_place(tree: Any) -> int:
    """Returns the place of the first word of a tree; the beginning of the text for an empty tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            return int(node.start_pos)  # type: ignore[attr-defined]
        waiting.extend(child for child in reversed(node.children) if child is not None)
    return 0
