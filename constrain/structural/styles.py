"""Notations of arguments that structural tags know besides JSON: an element for each argument."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.json_schema.emission.arguments import ArgumentForm
from constrain.json_schema.emission.elements import Elements, with_special

if TYPE_CHECKING:
    from collections.abc import Iterable

_MINIMAX = "]<]minimax[>["
_JSON_TYPES = ("null", "boolean", "number", "array", "object")


def _deepseek(word: str) -> Elements:
    """Returns the notation of DeepSeek, whose attribute ``string`` tells plain text from JSON."""
    types = {"string": 'true">'} | dict.fromkeys(_JSON_TYPES, 'false">')
    return Elements(f'<｜DSML｜{word} name="', '" string="', f"</｜DSML｜{word}>", types)


_ELEMENTS = {
    "qwen_xml": Elements("<parameter=", ">", "</parameter>"),
    "minimax_xml": Elements('<parameter name="', '">', "</parameter>"),
    "glm_xml": Elements("<arg_key>", "</arg_key><arg_value>", "</arg_value>"),
    "deepseek_xml": _deepseek("parameter"),
    "deepseek_v4_1_xml": _deepseek(" parameter"),
    "kimi_k3_xml": Elements(
        '<|open|>argument key="',
        '" type="',
        "<|close|>argument<|sep|>",
        {name: f'{name}"<|sep|>' for name in ("string", *_JSON_TYPES)},
        entities={"&": "&amp;", '"': "&quot;"},
    ),
    "cohere_xml": Elements(
        '<cofl:value name="',
        '" type="',
        "</cofl:value>",
        {"string": 'raw">', "array": 'list">', "object": 'dict">'}
        | dict.fromkeys(("null", "boolean", "number"), 'json">'),
        item=('<cofl:value type="', "</cofl:value>"),
        entities={"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
    ),
    "minimax_m3_xml": Elements(
        f"{_MINIMAX}<",
        ">",
        f"{_MINIMAX}</",
        item=(f"{_MINIMAX}<item>", f"{_MINIMAX}</item>"),
        repeats_name=True,
        reserved=_MINIMAX,
    ),
}

STYLES = ("json", *_ELEMENTS)
"""The names of the styles. In all but ``json``, strings are plain text, and a line break may stand between elements and
around JSON values. Values are JSON; those of ``cohere_xml`` and ``minimax_m3_xml`` are elements, too, if they are
objects or arrays."""


def argument_form(style: str, *, line_breaks: bool, special: Iterable[str]) -> ArgumentForm | None:
    """Returns the form of arguments in a style, where these names are special tokens; ``None`` for JSON."""
    elements = _ELEMENTS.get(style)
    if elements is None:
        return None
    return ArgumentForm(elements=with_special(replace(elements, line_breaks=line_breaks), special))


def style_marks(style: str) -> tuple[str, ...]:
    """Returns the texts that the marks of a style consist of."""
    return _ELEMENTS[style].marks() if style in _ELEMENTS else ()
