"""Groups after an opening parenthesis: kinds, names, flags and comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.regex.parsing.scanner import Scanner

_LOOKAROUND = {"=": "lookahead", "!": "negative lookahead", "<=": "lookbehind", "<!": "negative lookbehind"}
_FLAG_FIELDS = {
    "i": "ignore_case",
    "s": "dot_all",
    "x": "verbose",
    "m": "multi_line",
    "a": "ascii",
    "R": "any_newline",
    "U": "lazy",
}
_FLAGS_KNOWN = {"ecma": "ims", "rust": "imsuxR", "python": "aimsux"}
_OTHER_GROUPS = {
    ">": "atomic groups are not supported",
    "(": "conditional groups are not supported",
    "P=": "backreferences are not supported",
    "P>": "recursion is not supported",
    "|": "branch reset groups are not supported",
    "U": "lazy quantifiers (flag U) are not supported",
}


def read_group(scanner: Scanner) -> bool:
    """Reads the beginning of a group, up to its content, and sets its flags.

    Returns False if there is no content: a comment, or flags for the rest of the enclosing group. ``scanner.look`` is
    the kind of a lookaround, the characters after its question mark.
    """
    text, start = scanner.text, scanner.position
    scanner.position += 1
    scanner.look = ""
    if scanner.flags.verbose and scanner.dialect == "rust":
        scanner.skip_white_space()
    if not text.startswith("?", scanner.position):
        return True
    rest = text[scanner.position + 1 : scanner.position + 3]
    for opening, name in _LOOKAROUND.items():
        if rest.startswith(opening):
            if scanner.dialect == "rust":
                scanner.fail(f"{name} is not supported; spell out the texts allowed there", start)
            scanner.look = opening
            scanner.position += 1 + len(opening)
            return True
    scanner.position += 1
    if rest[:1] == ":":
        scanner.position += 1
        return True
    if rest[:1] == "<" and scanner.dialect != "python":
        _read_name(scanner, start, 1)
        return True
    if rest == "P<" and scanner.dialect != "ecma":
        _read_name(scanner, start, 2)
        return True
    if rest[:1] == "#" and scanner.dialect == "python":
        return _read_comment(scanner, start)
    for opening, message in _OTHER_GROUPS.items():
        if rest.startswith(opening) and not (opening == "U" and scanner.all_rust):
            scanner.fail(message, start)
    return _read_flags(scanner, start)


def _read_name(scanner: Scanner, start: int, skipped: int) -> None:
    end = scanner.text.find(">", scanner.position)
    name = scanner.text[scanner.position + skipped : end]
    plain = name.replace("$", "_") if scanner.dialect == "ecma" else name
    if scanner.dialect == "rust":
        plain = plain.replace(".", "_").replace("[", "_").replace("]", "_")
    if end < 0 or not plain.isidentifier():
        scanner.fail("the name of this group is not a name, or has no closing >", start)
    if name in scanner.names:
        scanner.fail(f"two groups have the name {name}", start)
    scanner.names.add(name)
    scanner.position = end + 1


def _read_comment(scanner: Scanner, start: int) -> bool:
    end = scanner.text.find(")", scanner.position)
    if end < 0:
        scanner.fail("the comment that begins here has no closing )", start)
    scanner.position = end + 1
    return False


def _read_flags(scanner: Scanner, start: int) -> bool:
    r"""Reads ``flags-flags:`` or ``flags)``."""
    text, known = scanner.text, _FLAGS_KNOWN[scanner.dialect] + ("U" if scanner.all_rust else "")
    first = scanner.position
    changed: dict[str, bool] = {}
    value = True
    while True:
        char = text[scanner.position : scanner.position + 1]
        scanner.position += 1
        if char and char in ":)":
            break
        if char == "-" and value:
            value = False
        elif char and char in known and not (char in "au" and scanner.dialect == "python" and not value):
            if char in changed:
                scanner.fail(f"this group sets the flag {char} twice", start)
            changed[char] = value
        else:
            scanner.fail(f"unknown group (?{text[first : scanner.position]}; write (?: for a group", start)
    if not changed or text[scanner.position - 2] == "-":
        scanner.fail("this group sets no flag; write (?: for a group", start)
    if char == ")":
        if scanner.dialect == "ecma":
            scanner.fail("flags need a group of their own; write (?i:...)", start)
        if scanner.dialect == "python" and (start or not value):
            scanner.fail("global flags belong at the beginning of the pattern; write (?i:...)", start)
    if "u" in changed:
        if changed.get("a"):
            scanner.fail("the flags a and u exclude each other", start)
        changed["a"] = not changed.pop("u")
    scanner.flags = scanner.flags._replace(**{_FLAG_FIELDS[flag]: on for flag, on in changed.items()})
    return char == ":"
