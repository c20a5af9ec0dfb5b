"""What clients ask a server in ``serving.py``, how they read its streams, and whether an answer is what was asked for.

The mix: objects of three schemas, a function tool, texts of a pattern and of a grammar, and plain text, in turns. A
client reads the socket itself, because the clients share the processor with the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import lark
from judge import flaw

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SMALL = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "inhabitants": {"type": "integer", "minimum": 0}},
    "required": ["city", "inhabitants"],
    "additionalProperties": False,
}
MEDIUM = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "maxLength": 60},
        "author": {"type": "string", "minLength": 3, "maxLength": 40},
        "year": {"type": "integer", "minimum": 1000, "maximum": 2100},
        "genre": {"enum": ["novel", "poem", "play", "essay"]},
        "about": {"type": "string", "minLength": 40, "maxLength": 200},
    },
    "required": ["title", "author", "year", "genre", "about"],
    "additionalProperties": False,
}
LARGE = {
    "type": "object",
    "properties": {
        "number": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{6}$"},
        "date": {"type": "string", "format": "date"},
        "paid": {"type": "boolean"},
        "customer": {"$ref": "#/$defs/person"},
        "seller": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
        "items": {
            "type": "array",
            "minItems": 2,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 2, "maxLength": 30},
                    "pieces": {"type": "integer", "minimum": 1, "maximum": 99},
                    "price": {"type": "number", "minimum": 0, "maximum": 9999},
                    "unit": {"enum": ["piece", "box", "kg", "m"]},
                },
                "required": ["name", "pieces", "price", "unit"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["number", "date", "paid", "customer", "seller", "items"],
    "additionalProperties": False,
    "$defs": {
        "person": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 40},
                "email": {"type": "string", "maxLength": 40, "pattern": "^[a-z]+@[a-z]+[.]com$"},
                "street": {"type": "string", "minLength": 2, "maxLength": 40},
                "city": {"type": "string", "minLength": 2, "maxLength": 30},
            },
            "required": ["name", "email", "street", "city"],
            "additionalProperties": False,
        }
    },
}
PLATES = "[A-Z]{2}-[0-9]{4}(, [A-Z]{2}-[0-9]{4}){3,9}"
SUMS = """
start: sum ("; " sum)~2..7
sum: term (" + " term | " - " term)~1..4
term: NUMBER | "(" sum ")"
NUMBER: /[1-9][0-9]?/
"""
PLATES_GBNF = 'root ::= plate (", " plate){3,9}\nplate ::= [A-Z]{2} "-" [0-9]{4}'
SUMS_GBNF = r"""
root ::= sum ("; " sum){2,7}
sum ::= term (" + " term | " - " term){1,4}
term ::= number | "(" sum ")"
number ::= [1-9] [0-9]?
"""


@dataclass(frozen=True)
class Kind:
    """One kind of request.

    Attributes:
        name: of the kind.
        prompt: what the user says; ``{}`` is another subject each time.
        body: the members of the request that ask for it.
        peer: the same for llama-cpp-python's server: no custom tools, a grammar as GBNF.
        batched: the same for llama-cpp-python's example server, which has no grammars.
        wrong: what is wrong with a text; empty if nothing is.
    """

    name: str
    prompt: str
    body: dict[str, Any]
    peer: dict[str, Any]
    batched: dict[str, Any]
    wrong: Callable[[str], str]


@dataclass
class Answer:
    """One answer as a client saw it.

    Attributes:
        kind: which kind of request it answers.
        leaves_after: events after which the client leaves; ``None`` for a client that stays.
        texts: the text, or each call's arguments.
        seconds_to_first: from the request to its first piece.
        in_time: how many characters had come when the measurement ended.
        has_left: whether the client did leave.
        error: what went wrong, if it did not end as streams do.
    """

    kind: Kind
    leaves_after: int | None
    texts: dict[int, str] = field(default_factory=dict)
    seconds_to_first: float | None = None
    in_time: int = 0
    has_left: bool = False
    error: str = ""

    @property
    def wrong(self) -> str:
        """What is wrong with it; an answer that the client did not wait for is not judged."""
        if self.has_left:
            return ""
        if self.error or not self.texts:
            return self.error or "no text"
        return next((found for found in map(self.kind.wrong, self.texts.values()) if found), "")


def schema_kind(name: str, prompt: str, schema: dict[str, Any]) -> Kind:
    ours = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
    peer = {"type": "json_object", "schema": schema}
    asked = {"response_format": ours}
    return Kind(name, prompt, asked, {"response_format": peer}, asked, judging(schema))


def tool_kind(name: str, prompt: str, schema: dict[str, Any]) -> Kind:
    tools = [
        {"type": "function", "function": {"name": "save_book", "description": "Saves a book.", "parameters": schema}},
        {"type": "function", "function": {"name": "save_city", "description": "Saves a city.", "parameters": SMALL}},
    ]
    choice = {"type": "function", "function": {"name": "save_book"}}
    asked = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False}
    peer = {"tools": tools, "tool_choice": choice}
    return Kind(name, prompt, asked, peer, peer, judging(schema))


def grammar_kind(name: str, prompt: str, syntax: str, text: str, gbnf: str) -> Kind:
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": text}}
    tool = {"type": "custom", "custom": {"name": name, "description": "Takes a text.", "format": grammar}}
    asked = {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    return Kind(name, prompt, asked, {"grammar": gbnf}, {}, matching(syntax, text))


def judging(schema: dict[str, Any]) -> Callable[[str], str]:
    return lambda text: flaw(schema, text.encode())


def matching(syntax: str, text: str) -> Callable[[str], str]:
    if syntax == "regex":
        return lambda found: "" if re.fullmatch(text, found) else f"does not match: {found!r}"
    parser = lark.Lark(text, parser="earley")

    def parse(found: str) -> str:
        try:
            parser.parse(found)
        except lark.exceptions.LarkError as why:
            return f"is not in the grammar: {found!r}: {str(why)[:100]}"
        return ""

    return parse


KINDS = (
    schema_kind("city", "Name a city that has to do with {}, and how many live there.", SMALL),
    schema_kind("book", "Make up a book about {}.", MEDIUM),
    schema_kind("invoice", "Make up an invoice of a shop for {}.", LARGE),
    tool_kind("tool", "Make up a book about {}, and save it.", MEDIUM),
    grammar_kind("plates", "Write number plates of cars that have to do with {}.", "regex", PLATES, PLATES_GBNF),
    grammar_kind("sums", "Write some sums about {}.", "lark", SUMS, SUMS_GBNF),
    Kind("text", "Write some sentences about {}.", {}, {}, {}, lambda _: ""),
)
SUBJECTS = (
    "cats", "the sea", "two kings", "mathematics", "Rome", "love", "a long winter", "the moon", "trains", "bread",
    "a garden", "war", "the desert", "music", "an island", "old age", "a lighthouse", "chess", "a river", "ghosts",
)  # fmt: skip
MOST_TOKENS = 250


def request_body(number: int, model: str, server: Literal["body", "peer", "batched"]) -> tuple[Kind, dict[str, Any]]:
    """The request of a number: kinds and subjects in turns. ``server``: which members of its kind it has."""
    kind = KINDS[number % len(KINDS)]
    text = kind.prompt.format(SUBJECTS[number // len(KINDS) % len(SUBJECTS)])
    return kind, {
        "model": model,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant, and you are brief."},
            {"role": "user", "content": text},
        ],
        "max_tokens": MOST_TOKENS,
        "temperature": 0.7,
        "seed": number,
        "stream": True,
        **getattr(kind, server),
    }


async def ask(port: int, body: dict[str, Any], answer: Answer, end: float) -> None:
    """Sends a request and reads its stream into ``answer``; ``end``: of the measurement, ``time.perf_counter()``."""
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(body).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        if answer.leaves_after == 0:
            answer.has_left = True
            return
        status = (await reader.readline()).split()
        while (await reader.readline()).strip():
            pass
        if status[1:2] != [b"200"]:
            answer.error = f"status {b' '.join(status[1:]).decode()}: {(await reader.read()).decode()[:200]}"
            return
        last, count = b"", 0
        async for line in body_lines(reader):
            if not line.startswith(b"data: "):
                continue
            last, count = line, count + 1
            if count == answer.leaves_after:
                answer.has_left = True
                return
            note(answer, line[6:], started, end)
        if not answer.error and last.strip() != b"data: [DONE]":
            answer.error = f"the stream ends with {last[:100]!r}"
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        answer.error = f"{type(error).__name__}: {error}"
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def body_lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a body that is sent in chunks (RFC 9112 section 7.1)."""
    rest = b""
    while size := int(await reader.readline(), 16):
        rest += (await reader.readexactly(size + 2))[:-2]
        *lines, rest = rest.split(b"\n")
        for line in lines:
            yield line


def note(answer: Answer, data: bytes, started: float, end: float) -> None:
    """Adds an event to an answer."""
    if data.strip() == b"[DONE]":
        return
    event = json.loads(data)
    if "choices" not in event:
        answer.error = str(event)[:200]
        return
    for choice in event["choices"]:
        delta = choice["delta"]
        pieces = [(0, delta.get("content"))]
        for call in delta.get("tool_calls") or ():
            pieces.append((call["index"], (call.get("function") or {}).get("arguments")))
            pieces.append((call["index"], (call.get("custom") or {}).get("input")))
        for index, text in pieces:
            if not text:
                continue
            now = time.perf_counter()
            if answer.seconds_to_first is None:
                answer.seconds_to_first = now - started
            if now <= end:
                answer.in_time += len(text)
            answer.texts[index] = answer.texts.get(index, "") + text
