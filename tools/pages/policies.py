"""Writes docs/reference/policies.md: what each policy allows, with texts that are tried while the page is written."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import constrain
from constrain.language.policies import ABOUT, CHOICES, GENERATION, POLICY_DEFAULTS
from tools.pages.markdown import NOTE, byte_vocabulary, code, sentence, table

MEANINGS = {
    "whitespace": {
        "flexible": "what `json.dumps` and pretty printers write.",
        "compact": "none. Small models then make more mistakes.",
        "any": "all that RFC 8259 allows.",
    },
    "property_order": {
        "schema": "keys as `properties` lists them, then other named keys, then all others.",
        "any": "keys in every order.",
    },
    "formats": {
        "assert": "known formats are enforced, in every draft; unknown ones cause a warning.",
        "annotation": "no format is enforced.",
        "strict": "known formats are enforced; unknown and inexact ones raise `UnsupportedSchemaError`.",
    },
    "inexact": {
        "narrow": "a part of the format is written, and a warning says what is [left out](keywords.md#formats).",
        "refuse": "the format raises `UnsupportedSchemaError`.",
    },
    "numbers": {
        "canonical": "one spelling for each number: no exponent, no `-0`, no zeros at the end of a fraction, and no "
        "`1.0` for an integer or a constant `1`. Where a number may have a fraction, a whole one is `1` or `1.0`.",
        "any": "every spelling, by value: also `1.0`, `1e2` and `-0`.",
    },
    "precision": {
        "double": "numbers are valid as exact decimals and as the IEEE doubles that most readers make of them.",
        "decimal": "numbers are valid as exact decimals only.",
    },
    "escapes": {
        "canonical": "one spelling for each character.",
        "any": "all of JSON's spellings: `\\u0061` is an a.",
    },
    "years": {
        "any": "the years 0001 to 9999.",
        "1000-2999": "the years 1000 to 2999. If the schema excludes the year 0001, all earlier years that it allows, "
        "too; if it excludes 9999, all later ones. Small models write any year.",
    },
    "integers": {
        "any": "integers of any size.",
        "64-bit": "-2^63 to 2^63 - 1, on each side for which the schema has no bound; all integers that the schema "
        "allows if it has a bound or a divisor above 2^42. Small models write digits without end.",
    },
}
"""The meaning of each value of each policy."""


class _Example(NamedTuple):
    """A schema and texts that the values of a policy tell apart."""

    schema: Any
    texts: tuple[str, ...]


_TWO = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}

_EXAMPLES = {
    "whitespace": (
        _Example({"type": "array", "items": {"type": "integer"}}, ("[1,2]", "[1, 2]", "[\n  1,\n  2\n]", "[1 ,  2]")),
    ),
    "property_order": (_Example(_TWO, ('{"a": true, "b": true}', '{"b": true, "a": true}')),),
    "formats": (
        _Example({"format": "ipv4"}, ('"127.0.0.1"', '"somewhere"')),
        _Example({"format": "colour"}, ('"red"',)),
    ),
    "inexact": (_Example({"type": "string", "format": "regex"}, ('"a*"', '"(a)\\\\1"', '"(a"')),),
    "numbers": (
        _Example({"type": "integer"}, ("100", "1e2", "100.0", "-0")),
        _Example({"type": "number"}, ("100", "100.0", "1.5", "1.50", "-0")),
    ),
    "precision": (_Example({"exclusiveMaximum": 1}, ("0.5", "0.99999999999999999999")),),
    "escapes": (_Example({"const": "a\n"}, ('"a\\n"', '"\\u0061\\n"', '"a\\u000a"')),),
    "years": (
        _Example({"format": "date"}, ('"1815-06-18"', '"0476-09-04"', '"5301-06-18"')),
        _Example({"format": "date", "pattern": "^(0[1-9]|1|2)"}, ('"0476-09-04"',)),
    ),
    "integers": (
        _Example({"type": "integer"}, ("12", "-9223372036854775808", "9223372036854775808")),
        _Example({"type": "integer", "maximum": 1e20}, ("9223372036854775808",)),
    ),
}

_HEADER = f"""# Policies

JSON Schema says which values are valid. It does not say how a value is written, in which order the keys of an object
come, or whether `format` counts. Nine policies decide that. Their defaults narrow the language on purpose: a model
writes better JSON if it has one way to write it. `years` and `integers` narrow it only where answers are written, by
`generate`, its relatives and the server; `compile` keeps to what the schema says.

Pass a policy to [`compile`](python.md), to `generate` and its relatives ([options](options.md#the-schema)), or on the
[command line](command-line.md): `--property-order any`. `Constraint.report.policies` lists the policies in force. Under
the widest values (`property_order="any"`, `formats="annotation"`, `numbers="any"`), a text is accepted exactly if a
validator of JSON Schema accepts its value.

In the tables, yes means that the text is accepted, and refused that the schema is; `\\n` is a line end or, within a
string, its escape.

{NOTE}"""


def page() -> str:
    """Returns the text of the page."""
    parts = [_HEADER]
    for policy, values in CHOICES.items():
        parts.append(f"\n## {policy}\n\n{ABOUT[policy]}\n\n")
        listed = [(code(f'"{value}"') + _default(policy, value), sentence(MEANINGS[policy][value])) for value in values]
        parts.append(table(("value", "meaning"), listed))
        for example in _EXAMPLES[policy]:
            head = ("text", *(code(f'"{value}"') for value in values))
            rows = [
                (
                    code(text.replace("\n", "\\n")),
                    *(_verdict(example, text, {policy: value}) for value in values),
                )
                for text in example.texts
            ]
            parts.append(f"\nFor {code(json.dumps(example.schema))}:\n\n{table(head, rows, 'l' + 'c' * len(values))}")
    return "".join(parts)


def _default(policy: str, value: str) -> str:
    """Returns a note about a value that is a default."""
    if policy not in GENERATION:
        return " (default)" if value == POLICY_DEFAULTS[policy] else ""
    return " (default of `generate`)" if value == GENERATION[policy] else " (default of `compile`)"


def _verdict(example: _Example, text: str, policy: dict[str, Any]) -> str:
    try:
        constraint = constrain.compile(example.schema, byte_vocabulary(), **policy)
    except constrain.UnsupportedSchemaError:
        return "refused"
    return "yes" if constraint.accepts(text) else "no"
