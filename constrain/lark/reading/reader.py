"""Reading of grammar text into ``Syntax``; the grammar of these texts is dialect.lark.

The parser only reads the text: this module decides which constructs are supported, and keeps the place of each. Before
parsing, ``%json {...}``, ``%regex {...}``, ``%lark {...}`` and special tokens (``<|name|>``) are replaced by names of
the same length. A grammar after ``%lark`` is read in the same way, with places in the whole text.
"""

from __future__ import annotations

import string
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.arguments import lone_surrogate
from constrain.errors import GrammarError
from constrain.language.special import token_set
from constrain.language.tree import EMPTY_TEXT, Alternation, Concatenation, Expression, Repetition
from constrain.lark.reading.calls import read_condition, read_value
from constrain.lark.reading.failures import Words, first_place, parse
from constrain.lark.reading.parser import parser
from constrain.lark.reading.places import error_at
from constrain.lark.reading.rule_options import read_options
from constrain.lark.reading.scanning import BEYOND_LARK, MAX_NESTED_GRAMMARS, check_nesting, inside_braces
from constrain.lark.reading.settings import read_settings
from constrain.lark.reading.syntax import (
    Alias,
    Both,
    Definition,
    Embedded,
    Guarded,
    Import,
    Nested,
    Not,
    Parametric,
    Quoted,
    Range,
    Reference,
    Settings,
    Special,
    Substring,
    Symbol,
    Syntax,
    beginning,
)
from constrain.work import MAX_COUNTER, MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Token, Tree

    from constrain.lark.reading.syntax import GrammarText

    _Placed = Embedded | Nested | Substring | Special

_LONGEST_NAMES = 3
"""Letters and digits after the first letter of a replacement name; underscores fill the rest."""

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
    "SELF": "_",
    "DECIMAL": "a number",
}
_OPERATORS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_UNCLOSED = {
    '"': 'the string that begins here has no closing " on its line',
    "/": "the pattern that begins here has no closing /",
    "'": 'strings stand in double quotes: "',
}
_REMEDIES = {"{": "a count is written {m,n}, {m,}, {,n} or {n}"}
_WORDS = Words(_EXPECTED, _UNCLOSED, ("_NEWLINE", "$END"), "the end of the line", _REMEDIES)
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
    return _Reader(source.text, 0, len(source.text)).read()


class _Reader:
    """The state of one run: the text, the place of the grammar in it, and the parts read so far.

    ``around``: the reader of the grammar around this one; ``levels``: the number of grammars around it. ``counted``:
    the places of all grammars inside the outermost one.
    """

    def __init__(self, text: str, begin: int, end: int, around: _Reader | None = None) -> None:
        self.text = text
        self.begin = begin
        self.content = text[begin:end]
        self.levels: int = 0 if around is None else around.levels + 1
        self.counted: list[int] = [] if around is None else around.counted
        self.embedded: dict[str, _Placed] = {}
        self.unused: dict[int, Iterator[str]] = {}  # names for replaced texts, by their lengths
        self.rules: dict[str, Definition] = {}
        self.terminals: dict[str, Definition | Import] = {}
        self.ignored: list[Definition] = []
        self.settings = Settings()

    def read(self) -> Syntax:
        statements: list[Any] = self._parse(self._without_extensions()).children
        for statement in statements:
            self._statement(statement)
        return Syntax(self.text, self.rules, self.terminals, tuple(self.ignored), self.settings, self.begin)

    # From text to Lark's tree

    def _without_extensions(self) -> str:
        """Returns the grammar with a terminal's name for each part that the parser does not know."""
        parts, done, end = [], self.begin, self.begin + len(self.content)
        while found := BEYOND_LARK.search(self.text, done, end):
            start, after = found.span()
            if found["special"]:
                start = len(self.text[done:start].rstrip(" \t")) + done
            parts.append(self.text[done:start])
            if found["special"]:
                parts.append(self._named(self._special(found["special"], found.start("special")), after - start))
            elif found["directive"]:
                brace, after = inside_braces(self.text, found["directive"], start, after)
                parts.append(self._replaced(found["directive"], start, brace, after))
            else:
                parts.append(found[0])
            done = after
        return "".join(parts) + self.text[done:end]

    def _replaced(self, directive: str, at: int, brace: int, after: int) -> str:
        """Returns what the parser sees of a directive with braces; settings are read here."""
        if directive == "%llguidance":
            self.settings = read_settings(self.text, brace, after, self.settings)
            return directive.ljust(after - at)
        if directive != "%lark":
            made = Embedded if directive == "%json" else Substring
            return self._named(made(self.text[brace:after], at), after - at)
        check_nesting(self.text, at, self.levels)
        self.counted.append(at)
        if len(self.counted) > MAX_NESTED_GRAMMARS:
            message = f"there are more than {MAX_NESTED_GRAMMARS} grammars inside this grammar (MAX_NESTED_GRAMMARS)"
            raise error_at(self.text, at, f"{message}; write a rule for what is repeated")
        syntax = _Reader(self.text, brace + 1, after - 1, self).read()
        return self._named(Nested(syntax, at), after - at)

    def _named(self, node: _Placed, length: int) -> str:
        """Returns a name for a node, with a space on both sides, as long as the text it replaces."""
        for name in self.unused.setdefault(length, _names(length - 2)):
            if name not in self.embedded and name not in self.content:
                self.embedded[name] = node
                return f" {name} "
        raise error_at(self.text, node.at, "no short name is left for this token; put spaces around it")

    def _special(self, written: str, at: int) -> Special:
        try:
            token_set(written)
        except GrammarError as error:
            raise error_at(self.text, at, error.message) from error
        return Special(written, at)

    def _parse(self, text: str) -> Tree[Token]:
        end = self.begin + len(self.content)
        tree: Tree[Token] = parse(
            parser(), text + "\n", text=self.text, words=_WORDS, shown=self._shown, begin=self.begin, end=end
        )
        if self.begin:
            _move(tree, self.begin)
        return tree

    def _shown(self, word: str) -> str:
        """Returns an unexpected token as messages show it; for a replacement name, the original text."""
        return repr(word) if (node := self.embedded.get(word)) is None else beginning(node)

    # From Lark's tree to ours

    def _statement(self, tree: Tree[Token]) -> None:
        match tree.data:
            case "rule":
                self._rule(tree)
            case "terminal":
                self._terminal(*tree.children)
            case "ignore":
                self._ignore(tree.children[0])
            case "import":
                self._import(tree)
            case "settings":
                pass  # read with their JSON
            case directive:
                self._refuse(tree, _UNSUPPORTED[directive])

    def _rule(self, tree: Any) -> None:
        _modifiers, name, parameter, templates, priority, options, body = tree.children
        if templates.children[0] is not None:
            self._refuse(templates, f"templates are not supported; write a rule for each use of {name}")
        if priority.children[0] is not None:
            self._refuse(priority, "priorities are not supported: all readings of a text count")
        self._define(self.rules, name, body, parametric=parameter is not None)
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

    def _define(self, definitions: dict[str, Any], name: Token, body: Tree[Token], *, parametric: bool = False) -> None:
        at = name.start_pos or 0
        self._check_new(str(name), at)
        definitions[str(name)] = Definition(self._node(body, 0), at, parametric)

    def _check_new(self, name: str, at: int) -> None:
        if name in self.rules or name in self.terminals or name in self.embedded:
            raise error_at(self.text, at, f"{name} is defined more than once")

    def _ignore(self, body: Any) -> None:
        node = self._node(body, 0)
        self.ignored.append(Definition(node, first_place(body)))

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

    def _node(self, tree: Any, depth: int) -> Expression:
        if depth > 6 * MAX_NESTING:  # each pair of parentheses takes at most so many nodes
            self._refuse(tree, f"this is nested more than {MAX_NESTING} deep (MAX_NESTING)")
        children = tree.children
        match tree.data:
            case "choice" | "sequence" | "both":
                parts = tuple(self._node(child, depth + 1) for child in children)
                if len(parts) == 1:
                    return parts[0]
                if tree.data == "both":
                    return self._both(tree, parts)
                return Alternation(parts) if tree.data == "choice" else Concatenation(parts) if parts else EMPTY_TEXT
            case "alias" | "maybe" | "repeat" | "times" | "bounds" | "complement" | "guarded":
                return self._around(tree, self._node(children[0], depth + 1), *children[1:])
            case "literal":
                return self._literal(children[0])
            case "range":
                return Range(self._literal(children[0]), self._literal(children[1]))
            case "parametric":
                return Parametric(str(children[0]), read_value(self.text, children[1]), first_place(tree))
            case "reference":
                return Reference(str(children[0])[1:], first_place(tree))
            case "template_usage":
                self._refuse(tree, "templates are not supported; write a rule for each use")
        assert tree.data == "symbol", tree.data
        name = str(children[0])
        return self.embedded.get(name) or Symbol(name, children[0].start_pos)

    def _both(self, tree: Any, parts: tuple[Expression, ...]) -> Both:
        if EMPTY_TEXT in parts:
            self._refuse(tree, 'there is nothing on one side of &; write what both sides match, "" for the empty text')
        return Both(parts, first_place(tree))

    def _around(self, tree: Any, part: Expression, *others: Any) -> Expression:
        """Returns a node with one part, given the words of the tree behind the part."""
        match tree.data:
            case "alias":
                return Alias(part, first_place(others[0]))
            case "maybe":
                return Repetition(part, 0, 1)
            case "repeat":
                return Repetition(part, *_OPERATORS[str(others[0])])
            case "times":
                return self._counted(part, others[0], others[1] or others[0])
            case "bounds":
                return self._bounds(tree, part, *others)
            case "guarded":
                return self._guarded(part, *others)
        assert tree.data == "complement", tree.data
        return Not(part, first_place(tree))

    def _guarded(self, part: Expression, directive: Any, condition: Any) -> Guarded:
        if condition is None:
            message = "%if is followed by a condition such as bit_clear(0) or lt([0:3], 5)"
            raise error_at(self.text, directive.start_pos, message)
        return Guarded(part, read_condition(self.text, condition), directive.start_pos)

    def _bounds(self, tree: Any, part: Expression, minimum: Any, comma: Any, maximum: Any) -> Repetition:
        """Returns ``part{m,n}``, whose counts may be missing: none below is 0, none above is no limit."""
        if minimum is None and maximum is None:
            self._refuse(tree, "there is no count in these braces; write {m,n}, {m,}, {,n} or {n}")
        if comma is None:
            return self._counted(part, minimum, minimum)
        if maximum is None:
            return Repetition(part, self._count(minimum), None)
        return self._counted(part, minimum, maximum)

    def _counted(self, part: Expression, minimum: Any, maximum: Any) -> Repetition:
        least = 0 if minimum is None else self._count(minimum)
        if (most := self._count(maximum)) < least:
            raise error_at(self.text, maximum.start_pos, f"counts go up: {most} is less than {least}; exchange them")
        return Repetition(part, least, most)

    def _count(self, token: Any) -> int:
        if not 0 <= (count := int(token[:20])) <= MAX_COUNTER:
            raise error_at(self.text, token.start_pos, f"a count is from 0 to {MAX_COUNTER} (MAX_COUNTER)")
        return count

    def _literal(self, token: Any) -> Quoted:
        return Quoted(str(token), token.start_pos)

    def _refuse(self, tree: Any, message: str) -> NoReturn:
        raise error_at(self.text, first_place(tree), message)


def _names(length: int) -> Iterator[str]:
    """Yields names of terminals."""
    first, *others = [string.ascii_uppercase, *[string.ascii_uppercase + string.digits] * (length - 1)]
    for letters in product(first, *others[-_LONGEST_NAMES:]):
        yield "".join(letters).ljust(length, "_")


def _move(tree: Any, offset: int) -> None:
    """Adds an offset to the places of all words of a tree."""
    for part in tree.iter_subtrees():
        for word in part.children:
            if isinstance(word, str):
                word.start_pos += offset  # type: ignore[attr-defined]
