"""Writes docs/reference/http.md: the paths of the server and the fields of its requests.

The source is the description that the server gives of itself at ``/openapi.json``. It does not say what fields mean;
``_MEANINGS`` does.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from constrain.llama.decoding.sampling import LISTS, OPTIONS
from constrain.server.openapi.document import describe
from constrain.server.openapi.operations import OPERATIONS
from tools.pages.markdown import NOTE, cell, code, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = f"""# HTTP

Paths and fields of `constrain serve`, which listens at `http://127.0.0.1:8080` by default. Those under `/v1/` are
OpenAI's and, at `/v1/messages`, Anthropic's, and work without `/v1`, too; those under `/api/` are Ollama's, and under
`/api/v0/` LM Studio's; `/completion` and its neighbours are [llama-server's](../guides/server-llama.md). A running
server describes them at `/openapi.json`, with all parts of bodies and responses; this page is made from that
description.

A request needs `Content-Type: application/json` and, if the server has keys,
`Authorization: Bearer KEY` or `X-Api-Key: KEY`. A field that is null counts as left out. Fields that say what an answer
must be like and are not listed here are a 400; other unknown fields are ignored.

{NOTE}
"""

_BODIES = {
    "ChatRequest": "POST /v1/chat/completions",
    "ResponsesRequest": "POST /v1/responses",
    "CompletionRequest": "POST /v1/completions",
    "EmbeddingRequest": "POST /v1/embeddings",
    "MessagesRequest": "POST /v1/messages",
    "OllamaChatRequest": "POST /api/chat",
    "OllamaGenerateRequest": "POST /api/generate",
    "OllamaEmbedRequest": "POST /api/embed",
    "OllamaEmbeddingsRequest": "POST /api/embeddings",
    "OllamaModelRequest": "POST /api/show and POST /api/pull",
}

_LARGE = 1 << 31
"""From here on a bound is shown as a power of two."""

_KNOWN_TYPES = ("string", "boolean", "integer", "number", "array", "object")

_MEANINGS = {
    "ebnf": "SGLang's: a grammar that the answer matches",
    "grammar": "llama-server's: a grammar that the answer matches, GBNF or Lark",
    "guided_choice": "vLLM's: the texts that the answer may be",
    "guided_grammar": "vLLM's: a grammar that the answer matches, GBNF or Lark",
    "guided_json": "vLLM's: a JSON Schema that the answer matches, or its text",
    "guided_regex": "vLLM's: a pattern that the answer matches",
    "json_schema": "SGLang's and llama-server's: a JSON Schema that the answer matches, or its text",
    "regex": "SGLang's: a pattern that the answer matches",
    "structural_tag": "a structural tag of XGrammar that the answer matches, or its text",
    "structured_outputs": "vLLM's: one of the same, as a member",
    "best_of": "answers to write per prompt (`n`); the `n` with the highest mean log-probability are returned",
    "cache_prompt": 'what is kept of the prompt on disk: the shared beginning, `"whole"`, or (`false`) nothing: '
    "[The prompt cache](../guides/prompt-cache.md)",
    "confidence": "whether `constrain.fields` has the probabilities of the answer's parts, by JSON Pointer",
    "certificate": "whether `constrain.certificate` has the proof that the answer is one of its schema or grammar; "
    '`"prompt"`: with the token ids of the prompt',
    "dimensions": "length of the vectors; only the model's own length is accepted",
    "draft": "whether the model first thinks in plain text, or most tokens of this draft: [Accuracy]"
    "(../guides/accuracy.md#think-first)",
    "echo": "whether the text begins with the prompt",
    "encoding_format": "whether a vector is a list of numbers or base64",
    "frequency_penalty": "subtracted from the logit of a token once for each time that the answer already has it",
    "function_call": "older form of `tool_choice`",
    "functions": "older form of `tools`",
    "format": "`json` for any JSON object, or the JSON Schema that the answer matches",
    "include": "additional parts of the response, such as `message.output_text.logprobs`",
    "EmbeddingRequest.input": "the texts, or their token ids",
    "ResponsesRequest.input": "the conversation: a text, or a list of items",
    "OllamaEmbedRequest.input": "the text or texts",
    "keep_alive": "0 without a prompt unloads the model; otherwise, models leave memory where others need room",
    "n_probs": "llama-server's name of `logprobs`; 0 is none",
    "name": "older name of `model`",
    "options": "sampling (`temperature`, `top_p`, `seed`, `stop`...), `num_predict`: "
    "[Ollama's clients](../guides/server-ollama.md)",
    "raw": "whether the model continues the prompt, without its chat template",
    "think": "whether the model reasons before its answer, and how long",
    "truncate": "whether a text is cut where it does not fit into the context (yes)",
    "verbose": "only false is accepted",
    "instructions": "a system message in front of the conversation; the next response does not inherit it",
    "logit_bias": "added to the logits, by token id",
    "ChatRequest.logprobs": "whether the answer has the log-probabilities of its tokens",
    "CompletionRequest.logprobs": "number of likeliest tokens to report at each position, with log-probabilities",
    "max_completion_tokens": "most tokens of the answer; JSON, calls and texts of grammars are complete within it",
    "max_output_tokens": "most tokens of the answer; JSON, calls and texts of grammars are complete within it",
    "max_tokens": "most tokens of the answer; JSON, calls and texts of grammars are complete within it",
    "MessagesRequest.messages": "the conversation of user and assistant, as text, calls, results and thinking",
    "messages": "the conversation: system, developer, user, assistant, tool and function messages, as text",
    "metadata": "returned with the response",
    "min_p": "least probability of a token, as a fraction of the likeliest token's",
    "model": "name of a model that the server has",
    "ChatRequest.n": "answers to write",
    "CompletionRequest.n": "answers to write",
    "ResponsesRequest.n": "with `vote`, the number of answers that vote",
    "vote": "whether the `n` answers become the one that they agree on, field by field",
    "unbias": "with `vote`, whether the answers are weighted, to undo the bias of the masks: [Confidence]"
    "(../guides/confidence.md#weight-the-votes)",
    "output_config": "`format` is the format of the answer, `json_schema` with a schema; `effort` has no effect",
    "output_format": "older form of `output_config.format`",
    "MessagesRequest.parallel_tool_calls": "refused: `tool_choice.disable_parallel_tool_use` says it",
    "parallel_tool_calls": "whether an answer may hold several calls",
    "presence_penalty": "subtracted from the logit of each token that the answer already has",
    "previous_response_id": "id of a stored response whose conversation this request continues",
    "OllamaGenerateRequest.prompt": "the question; without one, the model is only loaded",
    "OllamaEmbeddingsRequest.prompt": "the text",
    "OllamaChatRequest.logprobs": "whether the answer has the log-probabilities of its tokens",
    "OllamaGenerateRequest.logprobs": "whether the answer has the log-probabilities of its tokens",
    "OllamaChatRequest.messages": "the conversation: system, user, assistant and tool messages; without one, the model "
    "is only loaded",
    "OllamaChatRequest.stream": "whether the answer comes as lines of JSON (yes)",
    "OllamaGenerateRequest.stream": "whether the answer comes as lines of JSON (yes)",
    "OllamaModelRequest.stream": "whether success comes as a line of JSON (yes)",
    "OllamaChatRequest.tools": "functions with a JSON Schema that the model may call",
    "prompt": "text or texts that the model continues, or their token ids; no chat template is applied",
    "prompt_cache_retention": "`in_memory` keeps the prompt off the disk, as `cache_prompt: false` does",
    "repeat_penalty": "divides the logits of tokens among the last 64 of the answer",
    "response_format": "format of the answer: `text`, `json_object`, `json_schema` with a schema, or `structural_tag`",
    "seed": "makes sampling reproducible",
    "show_schema": "whether the model sees a short form of the schema (yes)",
    "sources": "texts that strings with `x-quote` are quoted from, by name: each a text or a list of texts",
    "stop": "a text or texts that end an answer of free text",
    "stop_sequences": "texts that end an answer of free text",
    "store": "whether the response is kept (yes), for `previous_response_id`",
    "return_progress": "llama-server's: whether a stream tells how much of the prompt is read",
    "stream": "whether the answer comes as server-sent events",
    "stream_options": "`include_usage`: the last event has the numbers of tokens",
    "system": "a system message in front of the conversation",
    "temperature": "divides the logits; 0 takes the likeliest token (0 or 0.8: see Accuracy)",
    "text": "`format` is the format of the answer: `text`, `json_object`, `json_schema`, or `structural_tag`",
    "add_generation_prompt": "whether the answer is a message of its own, after a last message of the assistant",
    "continue_final_message": "whether a last message of the assistant is the beginning of the answer",
    "chat_template_kwargs": 'variables for the model\'s chat template, such as `{"enable_thinking": false}`',
    "enable_thinking": "whether a model that can reason does so",
    "reasoning": "an object: `effort` as `reasoning_effort`, `enabled` as `enable_thinking`, `max_tokens` as "
    "`thinking_budget`",
    "thinking_budget": "tokens of the reasoning, a soft limit; 0 for no reasoning",
    "reasoning_effort": "how much a model that can reason does so",
    "thinking": "whether a model that can reason does so, and within how many tokens",
    "MessagesRequest.tool_choice": "`auto`, `any`, `none` or one `tool`; with or without parallel use",
    "MessagesRequest.tools": "functions with a JSON Schema (`input_schema`) that the model may call",
    "thread": "refused: the whole conversation is in `messages`",
    "tool_choice": "`none`, `auto`, `required`, one tool, or a list of allowed tools",
    "tools_shown": "what the prompt shows of the tools: `all`; `names`, and each tool once it is called; or `auto`: "
    "[Tools](../guides/tools.md#many-tools)",
    "tools": "functions with a JSON Schema, and custom tools with a grammar, that the model may call",
    "top_k": "samples from this number of likeliest tokens; 0 for all",
    "top_logprobs": "number of likeliest tokens to report at each position",
    "top_p": "samples from the likeliest tokens whose probabilities add up to this value (0.95)",
    "truncation": "has no effect: a conversation that does not fit into the context is refused",
    "user": "returned with the response; has no other effect",
}
"""The meaning of each field, in all bodies that have it or, behind the name of a body, in that one."""

_MEANINGS |= {
    name: f"a step of the choice of tokens: see [Options](options.md#{name})"
    for name in (*OPTIONS, *LISTS)
    if name not in _MEANINGS
}


def page() -> str:
    """Returns the text of the page."""
    routes: Any = [SimpleNamespace(path_format=one.path, methods=(one.method,)) for one in OPERATIONS]
    described = describe(routes, ["small"], has_keys=True)
    schemas = described["components"]["schemas"]
    used = {_key(body, name) for body in _BODIES for name in schemas[body]["properties"]}
    assert used == _MEANINGS.keys(), f"without a meaning, or no fields: {used ^ _MEANINGS.keys()}"
    parts = [_HEADER, "## Paths\n\n", table(("method and path", "does", "errors"), _paths(described["paths"]))]
    parts.append("\nEvery path may also answer with status 405, for another method.\n")
    for body, path in _BODIES.items():
        parts.append(f"\n## {path}\n\n{table(('field', 'value', 'meaning'), _fields(body, schemas[body]))}")
    parts.append(f"\n## Statuses of errors\n\n{table(('status', 'when'), _statuses(described['paths']), 'rl')}")
    return "".join(parts)


def _paths(paths: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            errors = [status for status in operation["responses"] if status != "200"]
            yield code(f"{method.upper()} {path}"), cell(operation["summary"]), ", ".join(errors)


def _fields(body: str, described: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, schema in sorted(described["properties"].items()):
        needed = " (required)" if name in described.get("required", ()) else ""
        yield code(name) + needed, _value(schema), cell(_MEANINGS[_key(body, name)])


def _key(body: str, name: str) -> str:
    """Returns the key of a field's meaning."""
    own = f"{body}.{name}"
    return own if own in _MEANINGS else name


def _value(schema: dict[str, Any]) -> str:
    """Returns the types of a field, and the bounds that all of its values have."""
    shown = " or ".join(dict.fromkeys(_types(schema)))
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        shown += f", {_number(least)}" + (" or more" if most is None or most >= _LARGE - 1 else f" to {_number(most)}")
    for keyword, unit in (("maxItems", "items"), ("maxProperties", "members")):
        if keyword in schema:
            shown += f", at most {schema[keyword]} {unit}"
    return shown


def _types(schema: dict[str, Any]) -> Iterator[str]:
    given = schema.get("type")
    if "$ref" in schema:
        yield "name" if schema["$ref"].endswith("ModelName") else "object"
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from _types(each)
    elif "enum" in schema:
        yield " or ".join(code(value) for value in schema["enum"])
    elif "const" in schema:
        yield code(schema["const"])
    elif given is None:
        yield "any"
    else:
        yield from (each for each in _KNOWN_TYPES if each in ([given] if isinstance(given, str) else given))


def _number(value: float) -> str:
    if abs(value) < _LARGE:
        return f"{value:g}"
    return f"{'-' if value < 0 else ''}2^{abs(int(value)).bit_length() - (abs(int(value)).bit_count() == 1)}"


def _statuses(paths: dict[str, Any]) -> list[tuple[str, str]]:
    found = {
        (status, cell(response["description"]))
        for methods in paths.values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if status != "200"
    }
    return sorted(found)
