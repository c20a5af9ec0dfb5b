"""The expressions of ``python.lark``, the grammar of Python that comes with the ``lark`` package, as a grammar for us.

Its text is rewritten by program; each step leaves the language of expressions as it is:

- Only definitions that expressions reach are kept. Statements, and with them the indentation that is declared but not
  defined, are none of these.
- A template is written out once for each argument that it is used with: that is what a template means.
- Priorities are left out. They choose among parses, and do not decide whether there is one.
- Three terminals get other patterns, since ours have no lookaround and no lazy quantifiers. Those of strings match what
  the first match of Lark's reads as a whole: it ends at the first closing quote that no backslash escapes. Lark's look
  beyond a lexeme twice. A string that begins with three quotes is no short one: the longest match reads a long one
  there, too. No digit from 1 to 9 follows a zero: no rule has one number right after another.
"""

from __future__ import annotations

import re
from importlib.resources import files

START = "testlist"


def _strings(form: str) -> str:
    """A pattern of strings in both kinds of quotes, Q in the form."""
    return rf"/([UuBbFf]?[Rr]?|[Rr][UuBbFf])({form.replace('Q', chr(34))}|{form.replace('Q', chr(39))})/"


REPLACED = {
    "STRING": _strings(r"Q([^Q\\\n]|\\[^\n])*Q"),
    "LONG_STRING": _strings(r"QQQ(Q?Q?([^Q\\]|\\[\s\S]))*QQQ"),
    "DEC_NUMBER": '"1".."9" ("_"? "0".."9")* | "0" ("_"? "0")*',
}
"""The terminals whose patterns we do not have, with their definitions here."""

_DEFINITION = re.compile(
    r"^[?!]?(?P<name>\w+)(?:\{(?P<parameter>\w+)\})?(?:\.\d+)?\s*:(?P<body>.*\n(?:[ \t]*\|.*\n)*)", re.MULTILINE
)
_PARTS = re.compile(
    r'(?P<literal>"(?:\\.|[^"\\\n])*"i?|/(?!/)(?:\\.|[^/\\\n])*/\w*)|//.*|->\s*\w+|(?P<use>\w+)(?:\{(?P<argument>\w+)\})?'
)


def original() -> str:
    return files("lark").joinpath("grammars", "python.lark").read_text(encoding="utf-8")


def expressions() -> str:
    """The grammar of expressions; its start is ``testlist``."""
    text = original()
    definitions = {found["name"]: found for found in _DEFINITION.finditer(text)}
    written: dict[str, str] = {}
    ignored = re.findall(r"^%ignore .*$", text, re.MULTILINE)
    waiting = [(START, "")]

    def use(found: re.Match[str], parameter: str | None, value: str) -> str:
        if found["literal"]:
            return found[0]
        if not found["use"]:  # a comment or an alias
            return ""
        if found["use"].isdigit():
            return found[0]
        name = value if found["use"] == parameter else found["use"]
        argument = value if found["argument"] == parameter else found["argument"]
        waiting.append((name, argument or ""))
        return _written(name, argument or "")

    for line in ignored:
        _PARTS.sub(lambda found: use(found, None, ""), line.removeprefix("%ignore"))
    while waiting:
        name, argument = waiting.pop()
        if _written(name, argument) in written:
            continue
        definition = definitions[name]
        body = REPLACED.get(name, definition["body"])
        parameter = definition["parameter"]
        body = _PARTS.sub(lambda found, of=parameter, to=argument: use(found, of, to), body)
        written[_written(name, argument)] = body.strip()
    rules = [f"{name}: {body}" for name, body in written.items()]
    return "\n".join([*rules, *(re.sub(r"\s+//.*", "", line) for line in ignored)]) + "\n"


def _written(name: str, argument: str) -> str:
    return f"{name}_of_{argument}" if argument else name
