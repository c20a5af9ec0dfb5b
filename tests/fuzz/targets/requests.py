"""Bodies of requests. The first byte of an input chooses the endpoint, the rest is the body.

The application answers in this process, on a tiny model that mostly ends at the first occasion. What a request needs
compiled or read in a process of its own is done here, too, so that the fuzzer sees what is covered; what takes longer
than such a process may take ends as it would.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import constrain
from constrain.llama.decoding.sampling import OPTIONS
from constrain.server.app import Application
from constrain.server.sandbox import session, worker
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from constrain.vocabulary.vocabulary import Vocabulary
from tests.fuzz.judge import BrokenPromiseError, Meter
from tests.fuzz.mutation import Trees
from tests.fuzz.targets import schemas
from tests.support.chat.templates import template
from tests.support.llama.transformer import Tensor, llama_tensors, sizes, write_model
from tests.support.server.asking import ask, error_of

DECLARED = (constrain.LimitError,)
MAX_SIZE = 6000

ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/embeddings")
_WIDTH = 32
_CONTEXT = 2048
"""Tokens, which are bytes: enough for a prompt with tools, and written quickly."""
_TEMPLATES = {"small": "qwen2.5", "reasons": "qwen3", "harmony": "harmony"}

_COMPOSED = 0.3
"""How likely an input is put together anew of what belongs together: most that is changed at random is refused."""

_BUSY = (429, 503)
"""Statuses of a server that has too much to do, which is no failure."""


_NAMES = """
    <s> </s> <|im_start|> <|im_end|> <think> </think> <tool_call> </tool_call> <|start|> <|end|> <|message|>
    <|channel|> <|call|> <|return|> <|constrain|>
"""
_SPECIAL = _NAMES.split()
_LIKED = {3: 2.0, 9: 2.0, 13: 2.0, len(_SPECIAL) + ord('"'): 1.2, len(_SPECIAL) + ord("1"): 0.8}


def _write_model(path: Path) -> None:
    """A model of one layer that does nothing: the next token depends on the last one alone."""
    rng = np.random.default_rng(0)
    scales = {"token_embd": 1.0, "output": 0.2}

    def make(name: str, *shape: int) -> Tensor:
        return (scales.get(name, 0.0) * rng.standard_normal(shape)).astype(np.float32)

    tensors = llama_tensors(make, len(_SPECIAL) + 256, _WIDTH, _WIDTH, 1)
    tensors["token_embd.weight"][:, 0] = 4.0
    for likely, logit in _LIKED.items():
        tensors["output.weight"][likely, 0] = logit
    numbers = {"context_length": _CONTEXT, **sizes(_WIDTH, _WIDTH, 1, 1)}
    write_model(path, "llama", numbers, tensors, special=_SPECIAL, eos=3)


@cache
def _application() -> Application:
    folder = Path(tempfile.mkdtemp(prefix="constrain-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "tiny.gguf"
    _write_model(path)
    sources = []
    for name, family in _TEMPLATES.items():
        model = constrain.Model(path, n_ctx=_CONTEXT, n_threads=1, parallel=2, chat_template=template(family))
        atexit.register(model.close)
        worker._vocabularies[model.vocabulary.fingerprint] = model.vocabulary
        sources.append(ModelSource((name,), 1_700_000_000, 2, 0, lambda model=model: model))
    return Application(Models(sources), Settings(queue=2, compile_seconds=3.0))


@contextlib.contextmanager
def _without_processes() -> Iterator[None]:
    """What sessions do is done here, and nothing is logged."""
    log, run_elsewhere = logging.getLogger("constrain.server"), session.Session.run
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    session.Session.run = _run_here  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        session.Session.run = run_elsewhere  # type: ignore[method-assign]
        log.setLevel(level)


async def _run_here(self: session.Session, _: Vocabulary | None, function: Callable[..., Any], *args: Any) -> Any:
    """``Session.run`` without a process."""
    self.place = None
    begun = time.process_time()
    try:
        return function(*args)
    finally:
        if time.process_time() - begun > self.limits.seconds:
            raise self._limit(f"{self.limits.seconds:g} seconds")


def run(data: bytes, meter: Meter) -> str:
    """Sends a body and looks at the answer."""
    path = ENDPOINTS[(data[:1] or b"0")[0] % len(ENDPOINTS)]
    application = _application()
    with _without_processes(), meter.call(path):
        response = ask(application, "POST", path, content=data[1:], headers={"Content-Type": "application/json"})
    if response.status_code >= 500 and response.status_code not in _BUSY:
        raise BrokenPromiseError(f"{path} answers {response.status_code}: {response.text[:500]}")
    if response.status_code >= 400:
        error_of(response)
    elif response.headers["content-type"].startswith("text/event-stream"):
        _require_whole(response.text)
    else:
        response.json()
    return str(response.status_code)


def _require_whole(text: str) -> None:
    """A stream has JSON in each event, and ends as streams do."""
    events = [event for event in text.split("\n\n") if event]
    for event in events:
        line = event.splitlines()[-1]
        if line == "data: [DONE]":
            continue
        body = json.loads(line.removeprefix("data: "))
        if isinstance(body, dict) and (body.get("error") or body.get("type") in ("error", "response.failed")):
            raise BrokenPromiseError(f"a stream breaks off: {line[:500]}")
    last = events[-1] if events else ""
    if last != "data: [DONE]" and "response.completed" not in last and "response.incomplete" not in last:
        raise BrokenPromiseError(f"a stream ends in {last[-300:]!r}")


def seeds() -> Iterable[bytes]:
    """None beside the files."""
    return ()


def mutate(data: bytes, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """Another endpoint, or a changed body."""
    if rng.random() < _COMPOSED:
        return _composed(rng)
    head = bytes([48 + rng.randrange(len(ENDPOINTS))]) if rng.random() < 0.07 or not data else data[:1]
    return head + _TREES.mutated(data[1:], rng, mutate_bytes)


_SCHEMAS = (
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"enum": ["yes", "no"]}, {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, {"type": "string",
    "maxLength": 3},
    {"type": "string", "pattern": "^[a-c]{2}$"}, {"not": {}}, {"$ref": "#"}, True, {"type": "object"}, {},
)  # fmt: skip
_FUNCTION = {"type": "function", "function": {"name": "f", "parameters": _SCHEMAS[0]}}
_FLAT = {"type": "function", "name": "f", "parameters": _SCHEMAS[0], "strict": True}
_TAG = {
    "type": "tag",
    "begin": "<a",
    "content": {"type": "json_schema", "json_schema": {"const": 1}},
    "end": [">", "b"],
}
_TAGS = (
    {"type": "structural_tag", "format": _TAG},
    {"type": "structural_tag", "structures": [{"begin": "<a>", "schema": {}, "end": ">"}], "triggers": ["<"]},
    {
        "type": "structural_tag",
        "format": {"type": "triggered_tags", "triggers": ["<"], "tags": [_TAG], "stop_after_first": True},
    },
    {
        "format": {
            "type": "sequence",
            "elements": [{"type": "any_text", "excludes": ["a"]}, {"type": "token", "token": 1}],
        }
    },
)
_STRUCTURED = ({"structural_tag": _TAGS[0]}, {"regex": "a"}, {}, {"regex": "a", "choice": ["b"]})
_GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "a" | "b"'}}
_FLAT_GRAMMAR = {"type": "grammar", "syntax": "regex", "definition": "[ab]{1,3}"}
_CUSTOM = {"type": "custom", "custom": {"name": "g", "format": _GRAMMAR}}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
_ITEMS = (
    {"role": "user", "content": "x"}, {"type": "message", "role": "user", "content": [{"type": "input_text",
    "text": "x"}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "x"}, {"type": "custom_tool_call", "call_id": "c",
    "name": "g", "input": "a"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]}, {"type": "item_reference", "id": "x"},
)  # fmt: skip
_MESSAGES = (
    {"role": "user", "content": "x"}, {"role": "system", "content": "x"}, {"role": "assistant", "content": None,
    "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "x"}, {"role": "developer", "content": "x"},
    {"role": "assistant", "content": "x"},
    {"role": "user", "content": [{"type": "text", "text": "x"}]}, {"role": "user", "content": "<|im_end|>"},
)  # fmt: skip
_WIDE_NUMBERS = (0, 1, 2, 0.5, -1, 1e-9, 100, 2**31, 2**64, 10**400, 1e308, -0.0, True, None)
_KEYS: dict[str, Any] = {
    **{name: schemas._KEYS[name] for name in ("type", "properties", "anyOf", "items", "pattern", "enum", "const",
    "format", "$ref", "required")},
    "model": (*_TEMPLATES, "x", ""),
    "messages": ([_MESSAGES[0]], [..., _MESSAGES[0]], list(_MESSAGES[:1]) * 3),
    "prompt": ("x", ["x", "y"], [1, 2], [[1], [2]], "", []),
    "input": ("x", list(_ITEMS[:1]), [_ITEMS[0], ...], ["x"], [[1, 2]], [1]),
    "instructions": ("x", None, ""),
    "previous_response_id": ("resp_x", None, ""),
    "stream": (True, False, None),
    "stream_options": ({"include_usage": True}, {}, None),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of"), (1, 2, 3, 10, 40,
    *_WIDE_NUMBERS)),
    **dict.fromkeys(
        (*OPTIONS, "top_logprobs", "n_probs", "max_tool_calls", "dimensions"), _WIDE_NUMBERS,
    ),
    "logprobs": (True, False, 0, 1, 5, 6),
    "echo": (True, False),
    "suffix": ("x", None),
    "samplers": ("kpt", "z", ["top_k", "temp"], [], ["x"], 1),
    "dry_sequence_breakers": (["\n", ":"], [], ["a" * 50], "x", [1]),
    "stop": ("a", ["a", "b"], "", [], ["\n"] * 5, "1", '"'),
    "logit_bias": ({"5": 1}, {"3": -100, "20": 100}, {"999999": 1}, {"x": 1}, {}),
    "response_format": (
        {"type": "json_object"}, {"type": "text"}, {"type": "json_schema", "json_schema": {"name": "x", "schema": ...}},
        *({"type": "json_schema", "json_schema": {"name": "x", "strict": True,
        "schema": schema}} for schema in _SCHEMAS),
        {"type": "grammar", "grammar": 'start: "a"'}, {"type": "regex", "pattern": "[ab]+"}, *_TAGS,
    ),
    "text": ({"format": {"type": "json_schema", "name": "x", "schema": _SCHEMAS[0]}}, {"format": {"type": "text"}},
    {"verbosity": "low"},
             {"format": {"type": "json_object"}}, "x"),
    "schema": _SCHEMAS,
    "parameters": _SCHEMAS,
    "strict": (True, False, None),
    "tools": ([_FUNCTION], [_CUSTOM], [_FLAT], [{"type": "custom", "name": "g", "format": _FLAT_GRAMMAR}], [_FUNCTION,
    _CUSTOM], [], [...]),
    "functions": ([_FUNCTION["function"]], []),
    "function_call": ("auto", "none", {"name": "f"}),
    "tool_choice": ("auto", "none", "required", {"type": "function", "function": {"name": "f"}}, {"type": "function",
    "name": "f"},
                    {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
                    {"type": "custom", "name": "g"}),
    "parallel_tool_calls": (True, False),
    "role": ("user", "system", "developer", "assistant", "tool", "function"),
    "content": ("x", "", None, [{"type": "text", "text": "x"}], [{"type": "input_text", "text": "x"}], "<|im_start|>"),
    "tool_calls": ([_CALL], []),
    "tool_call_id": ("c", ""),
    "arguments": ("{}", '{"a": 1}', "", "[", '{"a": "\\ud800"}'),
    "definition": ('start: "a"', 'start: /a+/ b\nb: "c"', "[ab]{2}", "(", "start:", "(?=a)b"),
    "syntax": ("lark", "regex"),
    "include": (["message.output_text.logprobs"], ["reasoning.encrypted_content"], []),
    "reasoning": ({"effort": "low"}, {"effort": "x"}, None),
    "reasoning_effort": ("low", "none", "x"),
    "metadata": ({}, {"a": "b"}, {"a": 1}),
    "store": (True, False),
    "background": (True, False),
    "truncation": ("auto", "disabled", "x"),
    "show_schema": (True, False),
    "draft": (True, 3, 0, "x"),
    "guided_json": (..., ),
    "guided_choice": (["a", "b"], [], ["a", 1]),
    "regex": ("[ab]{2}", "(", ""),
    "grammar": ('root ::= "a" root | "b"', 'start: "a"', "root ::=", 1),
    "structural_tag": (*_TAGS, '{"format": {"type": "any_text"}}', "{", 1),
    "structured_outputs": (*_STRUCTURED, {"json": ...}),
    "encoding_format": ("float", "base64", "x"),
    "user": ("x", 1),
    "service_tier": ("auto", "x"),
    "modalities": (["text"], ["audio"]),
    "prediction": ({"type": "content", "content": "x"},),
    "name": ("f", "g", "x", "", "a b", "é"),
    "description": ("x",),
}  # fmt: skip
_TREES = Trees(
    _KEYS,
    (*_MESSAGES, *_ITEMS, *_SCHEMAS, _FUNCTION, _CUSTOM, _FLAT, "x", "", 0, 1, True, None, 1.5, [], {}, [[]]),
    ([...], {"a": ...}),
)

_FITTING: tuple[tuple[Any, ...], ...] = (
    (
        *({name: value} for name in ("stream", "parallel_tool_calls", "show_schema", "store") for value in (True,
        False)),
        *({"max_tokens": count} for count in (1, 3, 12, 60)), *({"draft": most} for most in (True, 5)),
        *({"response_format": each} for each in _KEYS["response_format"][:2]),
        *({"response_format": {"type": "json_schema", "json_schema": {"name": "x",
        "schema": each}}} for each in _SCHEMAS),
        *({"tools": tools, "tool_choice": choice} for tools in ([_FUNCTION], [_FUNCTION,
        _CUSTOM]) for choice in ("auto", "required", "none")),
        {"logprobs": True, "top_logprobs": 2}, {"stream": True, "stream_options": {"include_usage": True}}, {"n": 2},
        {"stop": ["1", "a"]},
        {"messages": [_MESSAGES[1], _MESSAGES[0], _MESSAGES[2], _MESSAGES[3]]}, {"logit_bias": {"20": 90,
        "49": -100}}, {"temperature": 0},
        {"messages": [_MESSAGES[0], _MESSAGES[5], _MESSAGES[6], _MESSAGES[7]]}, {"reasoning_effort": "low"},
        {"seed": 1, "top_k": 3},
        {"functions": [_FUNCTION["function"]], "function_call": {"name": "f"}}, {"repeat_penalty": 2,
        "presence_penalty": -1, "min_p": 0.3},
    ),
    (
        *({name: value} for name in ("stream", "parallel_tool_calls", "show_schema", "store") for value in (True,
        False)),
        *({"max_output_tokens": count} for count in (1, 3, 12, 60)), *({"draft": most} for most in (True, 5)),
        *({"text": {"format": {"type": "json_schema", "name": "x", "schema": each}}} for each in _SCHEMAS),
        *({"tools": [_FLAT, {"type": "custom", "name": "g", "format": _FLAT_GRAMMAR}],
        "tool_choice": choice} for choice in ("auto", "required", "none")),
        {"include": ["message.output_text.logprobs"], "top_logprobs": 2}, {"input": list(_ITEMS[:4])},
        {"input": [_ITEMS[0], _ITEMS[5], _ITEMS[1]]},
        {"instructions": "x", "metadata": {"a": "b"}}, {"temperature": 0, "top_p": 0.4},
        {"reasoning": {"effort": "low"}}, {"truncation": "auto"},
    ),
    (
        *({"max_tokens": count} for count in (1, 3, 12)), {"stream": True}, {"logprobs": 2}, {"echo": True},
        {"prompt": ["x", "y"]},
        {"prompt": [[20, 21], [22]]}, {"stop": "1"}, {"n": 2, "best_of": 2}, {"temperature": 0}, {"seed": 3,
        "frequency_penalty": 1},
    ),
    ({"input": ["x", "y"]}, {"input": [[20, 21], [22]]}, {"encoding_format": "base64"}, {"dimensions": 8},
    {"user": "x"}),
)  # fmt: skip
"""Of each endpoint: members that may be there, and mostly fit together."""

_PLAIN: tuple[dict[str, Any], ...] = ({"messages": [_MESSAGES[0]]}, {"input": "x"}, {"prompt": "x"}, {"input": "x"})


def _composed(rng: Random) -> bytes:
    number = rng.choice((0, 0, 0, 1, 1, 1, 2, 3))
    body: dict[str, Any] = {"model": rng.choice(list(_TEMPLATES)), **_PLAIN[number]}
    for fitting in rng.sample(_FITTING[number], rng.randint(1, 5)):
        body.update(fitting)
    return bytes([48 + number]) + json.dumps(body).encode()
