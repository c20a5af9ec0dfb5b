"""Structural tags with texts that they accept and reject: at least one for every format."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.structural.styles import WRITERS, written

Format = dict[str, Any]


class Case(NamedTuple):
    """A format, and texts."""

    format: Format
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]


ANY: Format = {"type": "any_text"}
CITY: Format = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


OF_ALL_TYPES: Format = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "at": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["x"],
            "additionalProperties": False,
        },
        "when": {"type": ["string", "integer", "null"]},
    },
    "required": ["name"],
    "additionalProperties": False,
}
VALUES: list[dict[str, Any]] = [
    {"name": "a\n<b>"},
    {"name": "", "at": {"x": 1.5}, "when": None},
    {"name": "a", "at": {"x": 0, "tags": ["b", ""]}, "when": "now"},
]


def const(value: str) -> Format:
    return {"type": "const_string", "value": value}


def json(schema: object = CITY, **options: object) -> Format:
    return {"type": "json_schema", "json_schema": schema, **options}


def tag(begin: object, content: Format, end: object) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def either(*elements: Format) -> Format:
    return {"type": "or", "elements": list(elements)}


def triggered(triggers: list[str], tags: list[Format], **options: object) -> Format:
    return {"type": "triggered_tags", "triggers": triggers, "tags": tags, **options}


def separated(tags: list[Format], separator: str, **options: object) -> Format:
    return {"type": "tags_with_separator", "tags": tags, "separator": separator, **options}


def dispatch(*rules: list[object], **options: object) -> Format:
    return {"type": "dispatch", "rules": list(rules), **options}


WEATHER = tag("<function=weather>", json(), "</function>")
TIME = tag("<function=time>", json({"enum": ["now", "later"]}), "</function>")
CALL = '<function=weather>{"city": "Bonn"}</function>'
NOW = '<function=time>"now"</function>'
X = tag("bc", const("x"), "y")

CASES = {
    "const_string": Case(const("yes"), ("yes",), ("", "ye", "yess")),
    "an empty const_string": Case(sequence(const(""), const("a")), ("a",), ("",)),
    "json_schema": Case(
        json(), ('{"city":"Bonn"}', '{"city": "Bonn", "days": 3}'), ("{}", '{"city":1}', '{"days":3,"city":"Bonn"}')
    ),
    "json_schema in any order": Case(
        json(any_order=True), ('{"days":3,"city":"Bonn"}', '{"city":"Bonn"}'), ("{}", '{"days":3}')
    ),
    "json_schema without white space": Case(
        json(max_whitespace_cnt=0), ('{"city":"Bonn"}',), ('{"city": "Bonn"}', '{ "city":"Bonn"}')
    ),
    "json_schema of true": Case(json(True), ("1", "[true]", '{"a":{}}'), ("", "a")),
    "json_schema in qwen_xml": Case(
        json(style="qwen_xml"),
        (
            "<parameter=city>Bonn</parameter>",
            "<parameter=city>\nBonn\n</parameter>\n<parameter=days>\n3\n</parameter>",
            '<parameter=city>"</parameter><parameter=days>3</parameter>',
        ),
        ("", "<parameter=days>3</parameter>", "<parameter=city>Bonn</parameter><parameter=days>x</parameter>"),
    ),
    "qwen_xml_parameter": Case(
        {"type": "qwen_xml_parameter", "json_schema": CITY}, ("<parameter=city>a</parameter>",), ("a", "{}")
    ),
    "json_schema in minimax_xml": Case(
        json(style="minimax_xml"), ('<parameter name="city">Bonn</parameter>',), ("<parameter=city>Bonn</parameter>",)
    ),
    "json_schema in glm_xml": Case(
        json(style="glm_xml"),
        (
            "<arg_key>city</arg_key><arg_value>Bonn</arg_value>",
            "<arg_key>city</arg_key><arg_value>Bonn</arg_value>\n<arg_key>days</arg_key><arg_value>3</arg_value>",
        ),
        ("<arg_key>town</arg_key><arg_value>Bonn</arg_value>", "Bonn"),
    ),
    **{
        f"all types in {style}": Case(
            tag("<call>\n", json(OF_ALL_TYPES, style=style), "\n</call>"),
            tuple(
                f"<call>\n{written(style, values, between)}{between}\n</call>"
                for values in VALUES
                for between in ("", "\n")
            ),
            ("<call>\n\n</call>", f"<call>\n{written(style, VALUES[0])}{written(style, VALUES[0])}\n</call>"),
        )
        for style in WRITERS
    },
    **{
        f"undeclared arguments in {style}": Case(
            json({"type": "object", "additionalProperties": {"type": ["string", "boolean"]}}, style=style),
            ("", written(style, {"a": "b"}, "\n"), written(style, {"a b": True, "c": " d"}, "\n")),
            (written(style, {"a": 1.5}, "\n"), written(style, {"a": True}) * 2),
        )
        for style in WRITERS
        if style != "minimax_m3_xml"
    },
    "grammar in GBNF": Case(
        {"type": "grammar", "grammar": 'root ::= "(" root ")" | "x"'}, ("x", "((x))"), ("", "(x", "x)")
    ),
    "grammar in Lark": Case({"type": "grammar", "grammar": 'start: "a" start | "b"'}, ("b", "aab"), ("a", "")),
    "regex": Case({"type": "regex", "pattern": "[A-Z]{2}-[0-9]+"}, ("AB-1",), ("ab-1", "AB-")),
    "any_text": Case(ANY, ("", "a\n<b>", "é\0"), ()),
    "any_text with excludes": Case(
        {"type": "any_text", "excludes": ["ab", "</"]}, ("", "a", "a<b/"), ("ab", "x</", "aab")
    ),
    "any_text with max_chars": Case({"type": "any_text", "max_chars": 2}, ("", "éé"), ("abc", "ééé")),
    "sequence": Case(sequence(const("a"), ANY, const("b")), ("ab", "axxb", "abb"), ("a", "b", "abx")),
    "or": Case(either(const("yes"), json({"const": 1})), ("yes", "1"), ("", "yes1")),
    "optional": Case({"type": "optional", "content": const("ab")}, ("", "ab"), ("a", "abab")),
    "optional of a schema": Case({"type": "optional", "content": json({"const": 1})}, ("", "1"), ("11",)),
    "plus": Case({"type": "plus", "content": const("ab")}, ("ab", "abab"), ("", "aba")),
    "plus of a schema": Case({"type": "plus", "content": json({"enum": [[1]]})}, ("[1]", "[1][1]"), ("", "[1")),
    "star": Case({"type": "star", "content": const("ab")}, ("", "abab"), ("a",)),
    "star of a schema": Case({"type": "star", "content": json({"enum": [[1]]})}, ("", "[1][1]"), ("[",)),
    "repeat": Case({"type": "repeat", "min": 1, "max": 2, "content": const("x")}, ("x", "xx"), ("", "xxx")),
    "repeat without an end": Case(
        {"type": "repeat", "min": 2, "max": -1, "content": const("x")}, ("xx", "xxxx"), ("x",)
    ),
    "repeat of a schema": Case(
        {"type": "repeat", "min": 1, "max": 2, "content": json({"enum": [[1]]})}, ("[1]", "[1][1]"), ("", "[1][1][1]")
    ),
    "repeat of a schema, counted": Case(
        {"type": "repeat", "min": 70, "max": 71, "content": json({"enum": [[1]]})},
        ("[1]" * 70, "[1]" * 71),
        ("[1]" * 69, "[1]" * 72),
    ),
    "repeat of a schema, counted and without an end": Case(
        {"type": "repeat", "min": 70, "max": -1, "content": json({"enum": [[1]]})},
        ("[1]" * 70, "[1]" * 99),
        ("[1]" * 69,),
    ),
    "repeat never": Case({"type": "repeat", "min": 0, "max": 0, "content": json()}, ("",), ("{}",)),
    "tag": Case(tag("<r>", json(), "</r>"), ('<r>{"city":"a"}</r>',), ('<r>{"city":"a"}', '{"city":"a"}', "<r></r>")),
    "tag of free text": Case(tag("<t>", ANY, "</t>"), ("<t></t>", "<t>a</b></t>"), ("<t>", "<t></t>x", "<t></t></t>")),
    "tag with several ends": Case(tag("[", ANY, ["]", ")"]), ("[a]", "[a)", "[]"), ("[a", "[a)]")),
    "tag with an empty end": Case(tag("[", json({"const": 1}), ["", "]"]), ("[1", "[1]"), ("[", "[1]]")),
    "an end that overlaps itself": Case(tag("<", ANY, "aa"), ("<aa", "<aaa", "<baa"), ("<a", "<aaaa")),
    "free text inside a sequence, up to the end around it": Case(
        tag("[", sequence(ANY, const("x")), "]"), ("[x]", "[ax]", "[xx]"), ("[]x]", "[]")
    ),
    "triggered_tags": Case(
        triggered(["<function="], [WEATHER, TIME]),
        ("", "Hi. <func", CALL, f"So: {CALL} and {NOW}.", CALL + NOW),
        ("<function=", "<function=fly>", '<function=time>"never"</function>', f"{CALL}<function=weather>"),
    ),
    "triggered_tags with at_least_one": Case(
        triggered(["<function="], [WEATHER, TIME], at_least_one=True), (CALL, f"{NOW} then {CALL}"), ("", f" {CALL}")
    ),
    "triggered_tags with stop_after_first": Case(
        triggered(["<function="], [WEATHER, TIME], stop_after_first=True),
        ("", "text", f"text {CALL}", NOW),
        (f"{CALL} ", CALL + NOW),
    ),
    "triggered_tags with both": Case(
        triggered(["<function="], [WEATHER, TIME], at_least_one=True, stop_after_first=True),
        (CALL, NOW),
        ("", f" {CALL}", f"{CALL} ", CALL + NOW),
    ),
    "triggered_tags with excludes": Case(
        triggered(["b"], [X], excludes=["oh"]), ("o", "bcxy", "abcxyo"), ("oh", "bcxyoh")
    ),
    "an excluded text in a trigger": Case(
        triggered(["<x"], [tag("<x>", ANY, "y")], excludes=["x"]), ("ab<",), ("<x>y", "x")
    ),
    "a trigger that overlaps itself": Case(
        triggered(["aa"], [tag("aab", const("x"), "y")]), ("aabxy", "a", "ba"), ("aaabxy", "aa")
    ),
    "a trigger that ends in another one": Case(
        triggered(["b", "ab"], [X, tag("abd", const("x"), "y")]), ("bcxy", "abdxy", "a"), ("abcxy", "ab")
    ),
    "triggers that are whole begins": Case(triggered(["b"], [tag("b", const(""), "")]), ("b", "bb", "a"), ()),
    "tags of the same begin": Case(triggered(["b"], [X, tag("bc", const("z"), "y")]), ("bcxy", "bczy"), ("bcy",)),
    "begins of which one begins another": Case(
        triggered(["<"], [tag("<a", json({"const": 1}), ">"), tag("<a1", json({"const": 1}), ">")]),
        ("<a1>", "<a11>"),
        ("<a>",),
    ),
    "triggered_tags inside a tag": Case(
        tag("[", triggered(["b"], [X]), "]"), ("[]", "[a]", "[bcxy]", "[abcxya]"), ("[", "[b]", "[a]a", "[bcxy]]")
    ),
    "free text in a tag inside a tag": Case(
        tag("[", triggered(["b"], [tag("bc", ANY, "y")]), "]"), ("[bc]y]", "[bcyay]"), ("[bc]", "[a]]")
    ),
    "many tags": Case(
        triggered(["<f"], [tag(f"<f{index}>", json({"const": index}), ">") for index in range(60)]),
        ("<f0>0>", "a<f59>59>b<f1>1>"),
        ("<f60>60>", "<f1>2>"),
    ),
    "tags_with_separator": Case(
        separated([tag("(", json({"const": 1}), ")")], ","), ("", "(1)", "(1),(1)"), ("(1)(1)", "(1),", ",")
    ),
    "tags_with_separator, regular": Case(
        separated([tag("(", const("x"), ")")], ","), ("", "(x)", "(x),(x),(x)"), ("(x)(x)", "(x),", ",")
    ),
    "tags_with_separator with at_least_one": Case(
        separated([tag("(", json({"const": 1}), ")")], "", at_least_one=True), ("(1)", "(1)(1)"), ("",)
    ),
    "tags_with_separator with stop_after_first": Case(
        separated([tag("(", json({"const": 1}), ")")], ",", stop_after_first=True), ("", "(1)"), ("(1),(1)",)
    ),
    "dispatch": Case(
        dispatch(["<a>", const("1")], ["<b>", json({"const": 2})]),
        ("", "x", "<a>1", "x<b>2y<a>1"),
        ("<a>", "<a>2", "<b>1"),
    ),
    "dispatch with two ways behind one pattern": Case(
        dispatch(["<a>", const("1")], ["<b>", const("2")], ["<a>", const("3")]),
        ("<a>1", "<a>3<b>2<a>1"),
        ("<a>", "<a>2", "<b>1", "<b>3"),
    ),
    "dispatch without loop": Case(
        dispatch(["<a>", const("1")], loop=False), ("", "x", "<a>1", "x<a>1"), ("<a>1x", "<a>1<a>1")
    ),
    "dispatch with excludes": Case(
        sequence(dispatch(["<a>", const("1")], excludes=["</"]), const("</x>")), ("</x>", "a<a>1</x>"), ("</y>", "a")
    ),
    "reasoning, then calls": Case(
        sequence(tag("<think>", ANY, "</think>"), triggered(["<function="], [WEATHER])),
        ("<think></think>", f"<think>Where?</think>{CALL}", "<think>\n</think>hello"),
        (CALL, "<think>", f"<think>{CALL}"),
    ),
}
"""Cases by name. All texts were also put to XGrammar 0.2.8, which agrees apart from white space and order in JSON."""
