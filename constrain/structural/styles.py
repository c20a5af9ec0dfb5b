"""Notations of arguments that structural tags know besides JSON: an element with text for each argument."""

from __future__ import annotations

from constrain.json_schema.emission.arguments import ArgumentForm, Outermost


def _elements(before_key: str, after_key: str, behind_value: str) -> ArgumentForm:
    return ArgumentForm(Outermost(before_key, after_key, behind_value, raw_strings=True, line_breaks=True))


STYLES: dict[str, ArgumentForm | None] = {
    "json": None,
    "qwen_xml": _elements("<parameter=", ">", "</parameter>"),
    "minimax_xml": _elements('<parameter name="', '">', "</parameter>"),
    "glm_xml": _elements("<arg_key>", "</arg_key><arg_value>", "</arg_value>"),
}
"""The styles by name; ``None`` is JSON. In all others, strings are plain text and other values JSON;
a line break may stand between them and the marks."""
