"""Fields that change the answer and that an endpoint does not read: they get status 400, and are never ignored.

Unknown fields are ignored. The fields here are known from other servers or other endpoints. A value without effect
(null, false, an empty text, list or object, and the values in ``_NEUTRAL``) is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, array

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_FORMAT_FIELDS = (
    "format",
    "guided_decoding",
    "guided_whitespace_pattern",
    "response_schema",
    "schema",
)
"""Names of formats on other servers that this one does not read; ``peers`` has those that it reads."""

_USE_FORMATS = (
    "This server takes a JSON Schema as 'response_format' ('text.format' of a response), and grammars, regular "
    "expressions and choices as 'structured_outputs'."
)

ON_ALL_ENDPOINTS = {
    **dict.fromkeys(_FORMAT_FIELDS, _USE_FORMATS),
    "allowed_token_ids": "Use 'logit_bias', or a schema or grammar that says what an answer may be.",
    "bad_words": "Use 'logit_bias', or a schema or grammar that says what an answer may be.",
    "ignore_eos": "An answer ends where the model or its format ends it.",
    "length_penalty": "This server samples; it has no beam search.",
    "max_new_tokens": "Use 'max_completion_tokens', 'max_output_tokens' (responses) or 'max_tokens' (completions).",
    "min_new_tokens": "Use a schema that asks for a longer answer ('minLength', 'minItems').",
    "min_tokens": "Use a schema that asks for a longer answer ('minLength', 'minItems').",
    "repetition_penalty": "Use 'repeat_penalty', which counts the last 64 tokens of the answer.",
    "n_predict": "Use 'max_completion_tokens', 'max_output_tokens' (responses) or 'max_tokens' (completions).",
    "stop_sequences": "Use 'stop'.",
    "stop_token_ids": "Use 'stop' with the texts of the tokens.",
    "use_beam_search": "This server samples; it has no beam search.",
    "web_search_options": "This server has no access to the web.",
}
"""Fields that every endpoint refuses unless it reads them, with the alternative."""

CHAT_FIELDS = {
    **ON_ALL_ENDPOINTS,
    "background": "This server answers while the client waits.",
    "best_of": "Use 'n', which returns every answer.",
    "conversation": "Send the whole conversation as 'messages'.",
    "input": "Use 'messages'.",
    "instructions": "Use a message with the role 'system'.",
    "max_output_tokens": "Use 'max_completion_tokens'.",
    "echo": "Ask /v1/completions.",
    "previous_response_id": "Send the whole conversation as 'messages', or ask /v1/responses.",
    "prompt": "Use 'messages', or ask /v1/completions.",
    "suffix": "This server writes what follows the messages, not what stands between two texts.",
    "text.format": "Use 'response_format'.",
}
"""Fields that chat completions refuse, with the alternative."""

PLAYGROUND_FIELDS = {
    **CHAT_FIELDS,
    **dict.fromkeys(
        (
            "ebnf",
            "grammar",
            "guided_choice",
            "guided_grammar",
            "guided_json",
            "guided_regex",
            "json_schema",
            "regex",
            "response_format",
            "structural_tag",
            "structured_outputs",
            *_FORMAT_FIELDS,
        ),
        "Use 'language'.",
    ),
    **dict.fromkeys(("logprobs", "top_logprobs"), "Each token of an answer has them."),
    **dict.fromkeys(("n", "vote", "unbias"), "Ask /v1/chat/completions: the playground writes one answer."),
    "best_of": "Ask /v1/chat/completions: the playground writes one answer.",
    "function_call": "Use 'tool_choice'.",
    "functions": "Use 'tools'.",
}
"""Fields that the playground refuses, with the alternative."""

RESPONSES_FIELDS = {
    **ON_ALL_ENDPOINTS,
    "background": "This server answers while the client waits.",
    "best_of": "A response is one answer.",
    "conversation": "Send the whole conversation as input, or use previous_response_id.",
    "echo": "Ask /v1/completions.",
    "function_call": "Use 'tool_choice'.",
    "functions": "Use 'tools'.",
    "logprobs": "Use 'top_logprobs', or 'include' with 'message.output_text.logprobs'.",
    "max_completion_tokens": "Use 'max_output_tokens'.",
    "max_tokens": "Use 'max_output_tokens'.",
    "messages": "Use 'input'.",
    "prompt": "This server keeps no prompts; send the text as instructions and input.",
    "response_format": "Use 'text.format'.",
    "suffix": "This server writes what follows the input, not what stands between two texts.",
}
"""Fields that responses refuse, with the alternative."""

COMPLETIONS_FIELDS = {
    **ON_ALL_ENDPOINTS,
    "draft": "Ask /v1/chat/completions: a draft needs a conversation.",
    "functions": "Ask /v1/chat/completions.",
    "input": "Use 'prompt'.",
    "instructions": "Write them into 'prompt'.",
    "max_completion_tokens": "Use 'max_tokens'.",
    "max_output_tokens": "Use 'max_tokens'.",
    "messages": "Use 'prompt', or ask /v1/chat/completions.",
    "suffix": "This server writes what follows a prompt, not what stands between two texts.",
    "text.format": "Use 'response_format'.",
    "tools": "Ask /v1/chat/completions.",
}
"""Fields that text completions refuse, with the alternative."""

MESSAGES_FIELDS = {
    **{name: advice for name, advice in ON_ALL_ENDPOINTS.items() if name != "stop_sequences"},
    **dict.fromkeys(
        _FORMAT_FIELDS,
        "This server takes a JSON Schema as 'output_config.format', and grammars, regular expressions and choices as "
        "'structured_outputs'.",
    ),
    **dict.fromkeys(("max_completion_tokens", "max_new_tokens", "max_output_tokens", "n_predict"), "Use 'max_tokens'."),
    **dict.fromkeys(("logprobs", "top_logprobs", "unbias", "vote"), "Ask /v1/chat/completions."),
    "background": "This server answers while the client waits.",
    "best_of": "A message is one answer.",
    "compaction": "Send the conversation that the model shall read as 'messages'.",
    "container": "This server runs no code.",
    "conversation": "Send the whole conversation as 'messages'.",
    "echo": "Ask /v1/completions.",
    "function_call": "Use 'tool_choice'.",
    "functions": "Use 'tools'.",
    "input": "Use 'messages'.",
    "instructions": "Use 'system'.",
    "parallel_tool_calls": "Use 'tool_choice.disable_parallel_tool_use'.",
    "mcp_servers": "This server calls no other servers. List their tools as 'tools', and call them in your program.",
    "n": "A message is one answer; ask again, or ask /v1/chat/completions.",
    "previous_response_id": "Send the whole conversation as 'messages'.",
    "prompt": "Use 'messages', or ask /v1/completions.",
    "response_format": "Use 'output_config.format'.",
    "stop": "Use 'stop_sequences'.",
    "stop_token_ids": "Use 'stop_sequences' with the texts of the tokens.",
    "suffix": "This server writes what follows the messages, not what stands between two texts.",
    "text.format": "Use 'output_config.format'.",
}
"""Fields that messages refuse, with the alternative."""

_NEUTRAL: dict[str, float] = {
    "best_of": 1,
    "length_penalty": 1,
    "min_new_tokens": 0,
    "min_tokens": 0,
    "n": 1,
    "repetition_penalty": 1,
}
"""Values of fields that have no effect."""

_FORMAT_MEMBERS = (*_FORMAT_FIELDS, "choice", "ebnf", "grammar", "json_schema", "pattern", "regex", "strict", "value")
"""Members of a format, on this server or others, that change the language of an answer."""


def unsupported(param: str, why: str) -> FieldError:
    """Returns the error for a field that this server would otherwise ignore."""
    return FieldError(f"Unsupported parameter: '{param}'. {why}", param=param, code="unsupported_parameter")


def refuse_fields(body: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Raises ``FieldError`` for a refused field. ``refused``: alternatives, by name of the field."""
    for name, advice in refused.items():
        outer, _, inner = name.partition(".")
        value = body.get(outer)
        if inner:
            value = value.get(inner) if isinstance(value, dict) else None
        if not asks_for_nothing(name, value):
            raise unsupported(name, advice)
    modalities = body.get("modalities")
    if modalities is not None and array(modalities, "modalities") != ["text"]:
        raise unsupported("modalities", "This server writes text only.")


def refuse_members(document: Mapping[str, Any], place: str, kind: str, read: Collection[str]) -> None:
    """Raises ``FieldError`` for a member of a format that its type does not read, but that would change the answer."""
    for name in _FORMAT_MEMBERS:
        if name not in read and not asks_for_nothing(name, document.get(name)):
            raise unsupported(f"{place}.{name}", f"A format of the type '{kind}' does not have it.")


def asks_for_nothing(name: str, value: object) -> bool:
    """Returns whether the value of a field has no effect."""
    if value is None or value is False or value in ("", [], {}):
        return True
    return name in _NEUTRAL and value is not True and value == _NEUTRAL[name]
