"""A slow judge of the styles of arguments: it writes values in a style, and knows nothing of grammars.

Each writer returns one text for a value, as the model family's documentation writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]

MARK = "]<]minimax[>["


def type_of(value: object) -> str:
    """The type of a value in JSON Schema; all numbers are ``number``."""
    if value is None:
        return "null"
    types = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return types[type(value)]


def plain(value: object) -> str:
    """A string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def qwen(name: str, value: object) -> str:
    return f"<parameter={name}>{plain(value)}</parameter>"


def minimax(name: str, value: object) -> str:
    return f'<parameter name="{name}">{plain(value)}</parameter>'


def glm(name: str, value: object) -> str:
    return f"<arg_key>{name}</arg_key><arg_value>{plain(value)}</arg_value>"


def deepseek(name: str, value: object, word: str = "parameter") -> str:
    is_string = "true" if isinstance(value, str) else "false"
    return f'<｜DSML｜{word} name="{name}" string="{is_string}">{plain(value)}</｜DSML｜{word}>'


def deepseek_4_1(name: str, value: object) -> str:
    return deepseek(name, value, " parameter")


def kimi(name: str, value: object) -> str:
    key = name.replace("&", "&amp;").replace('"', "&quot;")
    return f'<|open|>argument key="{key}" type="{type_of(value)}"<|sep|>{plain(value)}<|close|>argument<|sep|>'


def cohere(name: str | None, value: object) -> str:
    kind = {"string": "raw", "array": "list", "object": "dict"}.get(type_of(value), "json")
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    key = "" if name is None else f' name="{"".join(entities.get(char, char) for char in name)}"'
    inside = plain(value)
    if isinstance(value, dict):
        inside = "".join(cohere(key, each) for key, each in value.items())
    if isinstance(value, list):
        inside = "".join(cohere(None, each) for each in value)
    return f'<cofl:value{key} type="{kind}">{inside}</cofl:value>'


def minimax_m3(name: str, value: object) -> str:
    inside = plain(value)
    if isinstance(value, dict):
        inside = "".join(minimax_m3(key, each) for key, each in value.items())
    if isinstance(value, list):
        inside = "".join(minimax_m3("item", each) for each in value)
    return f"{MARK}<{name}>{inside}{MARK}</{name}>"


WRITERS: dict[str, Callable[[str, Any], str]] = {
    "qwen_xml": qwen,
    "minimax_xml": minimax,
    "glm_xml": glm,
    "deepseek_xml": deepseek,
    "deepseek_v4_1_xml": deepseek_4_1,
    "kimi_k3_xml": kimi,
    "cohere_xml": cohere,
    "minimax_m3_xml": minimax_m3,
}
TYPED = ("deepseek_xml", "deepseek_v4_1_xml", "kimi_k3_xml", "cohere_xml")
"""Styles whose marks tell the types of values."""
NESTED = ("cohere_xml", "minimax_m3_xml")
"""Styles whose inner objects and arrays are elements."""


def written(style: str, arguments: Arguments, between: str = "") -> str:
    """Arguments in a style, with the same text between every two of them."""
    return between.join(WRITERS[style](name, value) for name, value in arguments.items())
