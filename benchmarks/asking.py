"""Ways of asking a model for a function call or the contents of a document (``benchmarks/accuracy.py``).

A way takes a model, a task and the most tokens of an answer. All ways but the first two are ours; their names say what
differs from ``constrained``.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import llama_cpp

import constrain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = 7
ASKED = "Answer with JSON in this format:\n{schema}"
MATCHES = "Answer with JSON that matches this schema:"
FILES: dict[constrain.Model, Path] = {}
"""The files of the models that are asked, for the other engine."""


def prompt_only(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """The prompt says what is wanted; nothing is enforced. The temperature is 0, as in constrained."""
    return constrain.complete(model, instructed(task), max_tokens=limit, seed=SEED, thinking=False, temperature=0)


def llama_cpp_python(model: constrain.Model, task: dict[str, Any], limit: int) -> Plain:
    """llama-cpp-python's own grammar of the schema, the question as in prompt, at its default temperature, 0.2."""
    response_format = {"type": "json_object", "schema": schema_of(task)}
    answer = its_model(FILES[model], model.llama.n_threads).create_chat_completion(
        instructed(task), response_format=response_format, max_tokens=limit, seed=SEED
    )
    return Plain(answer["choices"][0]["message"]["content"] or "", Used(answer["usage"]["completion_tokens"]))


@functools.cache
def its_model(path: Path, threads: int) -> llama_cpp.Llama:
    return llama_cpp.Llama(str(path), n_ctx=4096, n_threads=threads, n_threads_batch=threads, verbose=False)


def constrained(model: constrain.Model, task: dict[str, Any], limit: int, **more: Any) -> constrain.Completion:
    """Our defaults: a tool that must be called, or the document's schema."""
    if task["task"] == "call":
        wanted: dict[str, Any] = {"tools": task["tools"], "tool_choice": "required", "parallel_tool_calls": False}
        return constrain.complete(model, task["messages"], max_tokens=limit, seed=SEED, **wanted, **more)
    return constrain.complete(model, question(task), schema=task["schema"], max_tokens=limit, seed=SEED, **more)


def sampled(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, at temperature 0.8."""
    return constrained(model, task, limit, temperature=0.8)


def compact(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, without white space in JSON."""
    return constrained(model, task, limit, whitespace="compact")


def confident(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with the probability of each part of the answer."""
    return constrained(model, task, limit, confidence=True)


def drafted(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, behind a draft of at most 96 tokens, both at temperature 0."""
    return constrained(model, task, limit + 96, draft=96, temperature=0)


def unseen(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, without the schema in the prompt (documents only: tools are always shown)."""
    return constrained(model, task, limit, show_schema=False)


def penalized(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with repeat_penalty=1.1."""
    return constrained(model, task, limit, repeat_penalty=1.1)


def exemplified(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with the shortest valid answer as an example behind the schema (documents only)."""
    example = constrain.compile(task["schema"], model).matcher().shortest_completion().decode()
    shown = f"{ASKED}\n\nA valid answer to another question: {example}"
    return constrained(model, task, limit, show_schema=shown)


def whole(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with the JSON Schema itself in the prompt in place of its short form (documents only)."""
    asked = {**task, "question": f"{task['question']}\n\n{MATCHES} {json.dumps(task['schema'])}"}
    return constrained(model, asked, limit, show_schema=False)


def quoted(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with all strings of a document as quotes of it (documents only)."""
    changed = {**task, "schema": rewritten(task["schema"], quote)}
    return constrained(model, changed, limit, sources={"document": task["context"]})


def nullable(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with null allowed in place of every string and number of a document (documents only)."""
    return constrained(model, {**task, "schema": rewritten(task["schema"], or_null)}, limit)


def reasoned(model: constrain.Model, task: dict[str, Any], limit: int) -> Plain:
    """As constrained, with the evidence, a string of at most 200 characters, before the answer (documents only)."""
    evidence = {"type": "string", "maxLength": 200, "description": "what the document says about the question"}
    parts = {"evidence": evidence, "answer": task["schema"]}
    schema = {
        "type": "object",
        "properties": parts,
        "required": list(parts),
        "additionalProperties": False,
        **{key: task["schema"][key] for key in ("$defs", "definitions") if key in task["schema"]},
    }
    completion = constrained(model, {**task, "schema": schema}, limit + 64)
    return Plain(completion.text, Used(completion.usage.completion_tokens), completion.value["answer"])


def unordered(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, with the keys in any order."""
    return constrained(model, task, limit, property_order="any")


def votes(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, the vote of five answers."""
    return constrained(model, task, limit, n=5, vote=True)


class Used(NamedTuple):
    completion_tokens: int


class Plain(NamedTuple):
    """The members of a completion that are read here: of a text of another engine, or of a part of an answer."""

    text: str
    usage: Used
    value: Any = None
    fields: None = None


WAYS: dict[str, Callable[..., constrain.Completion]] = {
    "prompt": prompt_only,
    "llama-cpp-python": llama_cpp_python,
    "constrained": constrained,
    "sampled": sampled,
    "votes": votes,
    "compact": compact,
    "penalized": penalized,
    "unordered": unordered,
    "confident": confident,
    "drafted": drafted,
    "unseen": unseen,
    "exemplified": exemplified,
    "whole": whole,
    "quoted": quoted,
    "nullable": nullable,
    "reasoned": reasoned,
}

LABELS = {
    "prompt": "prompt only",
    "llama-cpp-python": "llama-cpp-python's grammar",
    "constrained": "constrain, default options",
    "sampled": "temperature=0.8",
    "votes": "n=5, vote=True",
    "compact": 'whitespace="compact"',
    "penalized": "repeat_penalty=1.1",
    "unordered": 'property_order="any"',
    "confident": "confidence=True",
    "drafted": "draft=96",
    "unseen": "show_schema=False",
    "exemplified": "shortest answer shown",
    "whole": "JSON Schema shown",
    "quoted": "strings are quotes",
    "nullable": "null allowed",
    "reasoned": "evidence first",
}
"""What a table calls each way."""

OF_DOCUMENTS = {"unseen", "exemplified", "whole", "quoted", "nullable", "reasoned"}
"""The ways in which no calls are asked for: they ask as ``constrained`` does."""


def rewritten(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema in which every part that has a type has gone through ``change``."""
    if isinstance(schema, list):
        return [rewritten(each, change) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: rewritten(each, change) for key, each in schema.items()}
    return change(parts) if isinstance(parts.get("type"), str | list) else parts


def quote(part: dict[str, Any]) -> dict[str, Any]:
    is_free = part["type"] == "string" and not part.keys() & {"enum", "const", "format", "pattern"}
    return {**part, "x-quote": "document"} if is_free else part


def or_null(part: dict[str, Any]) -> dict[str, Any]:
    is_leaf = part["type"] in ("string", "number", "integer", "boolean") and not part.keys() & {"enum", "const"}
    return {**part, "type": [part["type"], "null"]} if is_leaf else part


def schema_of(task: dict[str, Any]) -> Any:
    """The schema of an answer: of calls, one of the functions and its arguments."""
    if task["task"] == "extract":
        return task["schema"]
    functions = [tool["function"] for tool in task["tools"]]
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": each["name"]}, "arguments": each["parameters"]},
            "required": ["name", "arguments"],
        }
        for each in functions
    ]
    return calls[0] if len(calls) == 1 else {"oneOf": calls}


def question(task: dict[str, Any]) -> str:
    return f"{task['context']}\n\n{task['question']}"


def instructed(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Messages that ask for JSON in words."""
    if task["task"] == "extract":
        schema = json.dumps(task["schema"])
        return [{"role": "user", "content": f"{question(task)}\n\n{MATCHES} {schema}"}]
    functions = json.dumps([tool["function"] for tool in task["tools"]])
    *before, last = task["messages"]
    wanted = 'Answer with one call of a function, as JSON: {"name": ..., "arguments": {...}}. The functions:'
    return [*before, {**last, "content": f"{last['content']}\n\n{wanted} {functions}"}]
