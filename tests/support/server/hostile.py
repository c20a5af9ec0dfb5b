"""200 requests that are made to hurt a server, of twenty-four kinds, and what became of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

MODEL = "small"
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"


@dataclass(frozen=True, slots=True)
class Hostile:
    """A request. ``kind``: what it tries.

    ``is_chunked``: the body is sent without its length. ``pause``: seconds after each of ``pieces``, which are sent as
    they are in place of a body: the sender is slow, or what it sends is no HTTP.
    """

    kind: str
    number: int
    body: bytes = b""
    path: str = CHAT
    headers: dict[str, str] = field(default_factory=dict)
    is_chunked: bool = False
    pieces: tuple[bytes, ...] = ()
    pause: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number}"


def hostile_requests() -> Iterator[Hostile]:
    """All of them, each made when it is wanted: together they have 370 MB."""
    return (hostile(kind, number) for kind, (count, _) in (KINDS | PIECES).items() for number in range(count))


def hostile(kind: str, number: int) -> Hostile:
    return Hostile(kind, number, **(KINDS | PIECES)[kind][1](number))


# Schemas.


def _deep_text(number: int) -> str:
    depth = 2000 + 3000 * number
    begin, end = (
        ('{"type":"object","properties":{"a":', '},"required":["a"]}'),
        ('{"type":"array","items":', "}"),
        ('{"not":', "}"),
        ('{"anyOf":[{"type":"string"},', "]}"),
        ('{"allOf":[', "]}"),
    )[number % 5]
    return begin * depth + '{"type":"integer"}' + end * depth


def _giant_enum(number: int) -> Any:
    size = 30_000 + 5_000 * number
    if number % 2:
        return {"oneOf": [{"enum": [[j, {"a": [i % 50]}] for j in range(i, i + 40)]} for i in range(size // 10)]}
    return {"type": "array", "items": {"enum": [{"k": i, f"v{i}": i} for i in range(size)]}, "uniqueItems": True}


def _pattern(number: int) -> str:
    return (
        *("^(?=.*a.{12}b)(?=.*b.{13}a)(?=.*c.{14}a).*$", "^(([a-z]+)+\\1)$"),
        "^(?=.*a.{16}b)(?=.*b.{17}a)(?=.*c.{18}a)(?=.*d.{19}a).*$",
        *("^(?!(a|b)*a(a|b){18}$)(?!(a|b)*b(a|b){17}$)(?=.*\\2)[ab]*$", "(" * 5000 + "a" + ")" * 5000),
        *("^(a?){20000}a{20000}(b|a?){20000}$", "[" * 3000, "a{99999999999999}"),
        *("^(?=(.*x){300})(?=(.*y){310})(?=(.*z){290}).{2,900}$", "(?<!a*)b"),
    )[number % 10]


def _conjunction(number: int) -> Any:
    """Patterns that all count otherwise: what matches them all has very many states."""
    periods = (11, 13, 17, 19, 23, 29, 31, 37)
    return {"allOf": [{"type": "string", "pattern": f"^(.{{{period}}}a?){{{number + 2},}}$"} for period in periods]}


def _loop(number: int) -> Any:
    return (
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"type": "object"}]},
        {"not": {"$ref": "#"}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"if": {"$ref": "#"}, "then": False, "else": False},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
    )[number % 10]


def _combination(number: int) -> Any:
    """Branches that multiply."""

    def branch(name: str) -> Any:
        return {"properties": {name: {"type": "string"}}, "required": [name]}

    union = ("anyOf", "oneOf")[number % 2]
    return {"type": "object", "allOf": [{union: [branch(f"k{i}"), branch(f"j{i}")]} for i in range(16 + number)]}


def _tangle(number: int) -> Any:
    """Definitions that refer to each other, under negations."""
    size = 80 + 40 * number

    def definition(i: int) -> Any:
        others = [{"$ref": f"#/$defs/d{(i * 7 + j) % size}"} for j in range(1, 5)]
        refused = {"type": "object", "properties": {"x": {"$ref": f"#/$defs/d{(i + 1) % size}"}}, "required": ["x"]}
        return {"oneOf": [*others, {"type": "array", "maxItems": i}], "not": refused}

    definitions = {f"d{i}": definition(i) for i in range(size)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"], "$defs": definitions}


def _contradiction(number: int) -> Any:
    return (
        {"type": "string", "minLength": 10**9, "maxLength": 10**9 - 1},
        {"type": "integer", "multipleOf": 10**300 + 1},
        {"type": "number", "minimum": 5, "maximum": 4},
        {"type": "integer", "minimum": 10**4000, "multipleOf": 10**18 + 9},
        {"type": "number", "multipleOf": 0},
    )[number % 5]


# Grammars.


def _grammar(number: int) -> str:
    text = (
        "start: start",
        "start: a\na: b\nb: a",
        "start: A\nA: B\nB: A",
        'start: start start "a"\n' + "\n".join(f"r{i}: r{i + 1}" for i in range(9000)),
        "start: " + "(" * 6000 + '"a"' + ")" * 6000,
        "start: "
        + " ".join(f"T{i}" for i in range(300))
        + "".join(f"\nT{i}: /(a|b)*a(a|b){{{i}}}/" for i in range(300)),
        "start: A B\nA: /a*/\nB: /a{30000}/",
        'start: A "a"\nA: /(a|b)*a(a|b){13}/',
        "start: /(?=x)y/",
        'start: "x"~1000000000',
    )[number % 10]
    return f"{text}\n// {number}"


def _regex(number: int) -> str:
    pattern = (
        *("((?=a)a{1,1000}){1,1000}", "(a|b)*a(a|b){4000}(a|b)*b(a|b){4000}c", "(" * 9000 + "x", "(?=a)b"),
        *("\\p{Nonsense}", "(\\w{1,900}\\s{1,900}){9,2}", "(.*a){60}&&x(", "a{4294967296}", "(a*)*b\\1", "[z-a]"),
    )[number % 10]
    return pattern if number < 10 else f"(?:{number}){pattern}"


# Requests.


_CALLED: dict[str, Any] = {"tool_choice": "required", "max_output_tokens": 100}


def _body(**fields: Any) -> bytes:
    message = {"role": "user", "content": "Hi"}
    return json.dumps({"model": MODEL, "messages": [message], "max_tokens": 100, **fields}).encode()


def _with(text: str) -> bytes:
    """A body with a further member, as it is written here."""
    return _body()[:-1] + f", {text}}}".encode()


def _as_format(text: Callable[[int], str]) -> Callable[[int], dict[str, Any]]:
    """As the format of an answer, at both endpoints in turn."""

    def made(number: int) -> dict[str, Any]:
        schema = text(number)
        if number % 2:
            form = f'{{"format": {{"type": "json_schema", "name": "x", "schema": {schema}}}}}'
            body = f'{{"model": "{MODEL}", "input": "Hi", "max_output_tokens": 100, "text": {form}}}'
            return {"body": body.encode(), "path": RESPONSES}
        form = f'{{"type": "json_schema", "json_schema": {{"name": "x", "schema": {schema}}}}}'
        return {"body": _with(f'"response_format": {form}')}

    return made


def _as_schema(make: Callable[[int], Any]) -> Callable[[int], dict[str, Any]]:
    return _as_format(lambda number: json.dumps(make(number)))


def _as_tool(flat: dict[str, Any], nested: dict[str, Any], number: int) -> dict[str, Any]:
    """A tool that must be called, at both endpoints in turn."""
    if number % 2:
        body = {"model": MODEL, "input": "Hi", "tools": [flat], **_CALLED}
        return {"body": json.dumps(body).encode(), "path": RESPONSES}
    return {"body": _body(tools=[nested], tool_choice="required")}


def _string_pattern(number: int) -> Any:
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": _pattern(number)}}, "required": ["a"]}


_PARAMETERS = (_giant_enum, _string_pattern, _conjunction, _combination, _contradiction)


def _parameters(number: int) -> dict[str, Any]:
    schema = _PARAMETERS[number % 5](number // 5 + (number % 5 == 1) * 2)
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}, "required": ["a"]}}
    return _as_tool({"type": "function", **function}, {"type": "function", "function": function}, number)


def _as_input(syntax: str, make: Callable[[int], str]) -> Callable[[int], dict[str, Any]]:
    """As the input of a custom tool."""

    def made(number: int) -> dict[str, Any]:
        grammar = {"syntax": syntax, "definition": make(number)}
        tool = {"name": "f", "format": {"type": "grammar", **grammar}}
        nested = {"name": "f", "format": {"type": "grammar", "grammar": grammar}}
        return _as_tool({"type": "custom", **tool}, {"type": "custom", "custom": nested}, number)

    return made


def _of_user(*texts: bytes) -> Callable[[int], dict[str, Any]]:
    """Bytes in a text of the body."""
    return lambda number: {"body": _body(user="HERE").replace(b"HERE", texts[number % len(texts)])}


def _deep_json(number: int) -> dict[str, Any]:
    begin, end = (("[", "]"), ('{"a":', "}"))[number % 2]
    depth = 10_000 * (number + 1)
    return {"body": _with(f'"metadata": {begin * depth}1{end * depth}')}


def _many_values(number: int) -> dict[str, Any]:
    values = ("[]", "0", '{"a":0}', '""')[number % 4]
    return {"body": _with(f'"other": [{",".join([values] * 800_000)}]')}


def _long_prompt(number: int) -> dict[str, Any]:
    text = ("word ", " ", "<|im_start|>", "\u00e4\U0001f600")[number % 4]
    return {"body": _body(messages=[{"role": "user", "content": text * (4_000_000 // len(text.encode()))}])}


def _too_many(number: int) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    named = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(5000)]
    fields: tuple[dict[str, Any], ...] = (
        {"messages": [{"role": "user", "content": "a"}] * 20_000},
        {"tools": named},
        {"stop": [str(i) for i in range(100_000)]},
        {"logit_bias": {str(i): 1 for i in range(100_000)}},
        {"n": 129},
        {"tools": [tool] * 100},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 60_000}]},
        {"model": "\x00\n\x1b[2J" * 100_000},
    )
    return {"body": _body(**fields[number % 8])}


def _compressed(number: int) -> dict[str, Any]:
    encoding = ("gzip", "deflate", "br")[number % 3]
    return {"body": zlib.compress(b" " * (40 << 20)), "headers": {"Content-Encoding": encoding}}


_HEAD = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n".encode()
_NUMBERS = ("9" * 100_000, "1e999", "-1e999", "1" * 5000, "NaN", "-Infinity")
_SURROGATES = (rb"\ud800", rb"\udfff", rb"\udc00\ud800", rb"a\ud800b", rb"\ud800\ud800")
_BROKEN = (
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"),
    *(b"\xc0\xaf", b"\x80", b"\xfe\xff", b"\xf4\x90\x80\x80"),
)
_LONG = (b"X-A: " + b"a" * (1 << 20), b"\r\n".join(b"X-%d: a" % i for i in range(50_000)))
_NO_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
    b"GET /none HTTP/9.9\r\n\r\n",
    _HEAD + b"Content-Length: -5\r\n\r\n{}",
    _HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    _HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    b"POST  /v1/chat/completions\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
)


def _slow(number: int, whole: tuple[bytes, ...], cut: tuple[bytes, ...]) -> dict[str, Any]:
    return {"pieces": whole if number % 2 else cut, "pause": 0.2 + 0.1 * number}


def _slow_head(number: int) -> dict[str, Any]:
    return _slow(number, (_HEAD, *(f"X-{i}: a\r\n".encode() for i in range(40))), (_HEAD[:7],))


def _slow_body(number: int) -> dict[str, Any]:
    body = _body()
    head = _HEAD + f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return _slow(number, (head, *(body[at : at + 1] for at in range(len(body)))), (head, body[:9]))


KINDS: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
    "deep schema": (10, _as_format(_deep_text)),
    "giant enum": (8, _as_schema(_giant_enum)),
    "exploding pattern": (10, _as_schema(_string_pattern)),
    "conjunction": (8, _as_schema(_conjunction)),
    "recursive schema": (10, _as_schema(_loop)),
    "combination": (10, _as_schema(_combination)),
    "tangle": (8, _as_schema(_tangle)),
    "contradiction": (5, _as_schema(_contradiction)),
    "parameters": (20, _parameters),
    "recursive grammar": (20, _as_input("lark", _grammar)),
    "exploding regex": (20, _as_input("regex", _regex)),
    "long body": (8, lambda n: {"body": _body(user="x" * ((50, 9, 20, 60)[n % 4] << 20)), "is_chunked": n >= 4}),
    "broken UTF-8": (8, _of_user(*_BROKEN)),
    "deep JSON": (6, _deep_json),
    "huge number": (6, lambda n: {"body": _with(f'"temperature": {_NUMBERS[n % 6]}')}),
    "lone surrogate": (5, _of_user(*_SURROGATES)),
    "many values": (4, _many_values),
    "long prompt": (4, _long_prompt),
    "too many": (8, _too_many),
    "compressed": (3, _compressed),
}
"""Kinds that are bodies, and how many there are of each."""

PIECES: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
    "slow headers": (6, _slow_head),
    "slow body": (6, _slow_body),
    "long headers": (2, lambda n: {"pieces": (_HEAD + _LONG[n % 2] + b"\r\n\r\n",)}),
    "no HTTP": (5, lambda n: {"pieces": (_NO_HTTP[n % 6],)}),
}
"""Kinds that are sent over a bare socket."""
