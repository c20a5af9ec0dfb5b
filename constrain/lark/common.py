"""The terminals of Lark's library ``common``, as patterns in the syntax of the ``regex`` crate.

Lark writes some of them with lazy quantifiers and lookbehind, which stop a search. Here patterns describe whole texts:
a string contains only escaped quotes, a comment ends where it is first closed.
"""

from __future__ import annotations

_INT = "[0-9]+"
_DECIMAL = rf"(?:{_INT}\.[0-9]*|\.{_INT})"
_EXP = rf"[eE][+-]?{_INT}"
_FLOAT = rf"(?:{_INT}{_EXP}|{_DECIMAL}(?:{_EXP})?)"
_NUMBER = rf"(?:{_FLOAT}|{_INT})"

PATTERNS = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9A-Fa-f]",
    "INT": _INT,
    "SIGNED_INT": f"[+-]?{_INT}",
    "DECIMAL": _DECIMAL,
    "_EXP": _EXP,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": f"[+-]?{_FLOAT}",
    "NUMBER": _NUMBER,
    "SIGNED_NUMBER": f"[+-]?{_NUMBER}",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\.)*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[A-Za-z_][0-9A-Za-z_]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/",
    "SQL_COMMENT": r"--[^\n]*",
}

LAZY = ("_STRING_INNER", "_STRING_ESC_INNER")
"""Parts of ESCAPED_STRING that have a meaning only with their lazy quantifiers."""
