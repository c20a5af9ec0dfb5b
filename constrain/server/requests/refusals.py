"""Fields that change the answer and that an endpoint does not read: they get status 400, and are never ignored.

Unknown fields are ignored. The fields here are known from other servers or other endpoints. A value without effect
(null, false, an empty text, list or object, and the values in ``_NEUTRAL``) is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, array
from constrain.server.http.account import warn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_FORMAT_FIELDS = "format guided_decoding guided_whitespace_pattern response_schema schema"
"""Names of formats on other servers that this one does not read; ``peers`` has those that it reads."""

_USE_FORMATS = (
    "This server takes a JSON Schema as 'response_format' ('text.format' of a response), and grammars, regular "
    "expressions and choices as 'structured_outputs'."
)


def advise(names: str, advice: str) -> dict[str, str]:
    """Returns a table of fields, given with spaces between them, that have the same alternative."""
    return dict.fromkeys(names.split(), advice)


ON_ALL_ENDPOINTS = {
    **advise(_FORMAT_FIELDS, _USE_FORMATS),
    **advise("adapter_id lora lora_adapters lora_path", "This server applies no adapters."),
    **advise(
        "allowed_token_ids bad_words banned_strings banned_tokens custom_token_bans",
        "Use 'logit_bias', or a schema or grammar that says what an answer may be.",
    ),
    **advise(
        "adaptive_target do_sample dynamic_temperature epsilon_cutoff eta_cutoff penalty_alpha smoothing_factor "
        "temperature_last tfs tfs_z top_a",
        "Use a sampler of llama.cpp: 'temperature', 'dynatemp_range', 'top_p', 'min_p', 'typical_p', 'top_n_sigma', "
        "'xtc_probability' or 'mirostat', in the order of 'samplers'.",
    ),
    **advise("sampler_order sampler_priority", "Use 'samplers'."),
    **advise("encoder_repetition_penalty no_repeat_ngram_size", "Use 'dry_multiplier'."),
    **advise("cfg_scale guidance_scale negative_prompt", "This server evaluates one prompt."),
    **advise("custom_logit_processor logits_processors", "This server runs no code of requests."),
    **advise("decoder_input_details prompt_logprobs", "This server has no log-probabilities of a prompt."),
    **advise("include_stop_str_in_output no_stop_trim", "An answer ends in front of the text that stops it."),
    "chat_template": "The model has its template; start the server with another one ('chat_template').",
    "documents": "Write them into the messages or the prompt.",
    "guideline": "Write it into the messages or the prompt.",
    **advise("grammar_lazy grammar_triggers", "Use a structural tag, whose triggers say where a grammar begins."),
    "ignore_eos": "An answer ends where the model or its format ends it.",
    "length_penalty": "This server samples; it has no beam search.",
    "min_keep": "Samplers keep one token at least.",
    "mirostat_mode": "Use 'mirostat'.",
    "n_indent": "Use a grammar that says how lines begin.",
    "n_probs": "Use 'top_logprobs', or 'logprobs' of /v1/completions.",
    "post_sampling_probs": "Probabilities are those of the model, before any sampler.",
    "prompt_embeds": "Send texts or token ids.",
    "return_tokens_as_token_ids": "Log-probabilities name tokens by their texts and bytes.",
    "skip_special_tokens": "Answers have no texts of special tokens.",
    "stop_regex": "Use 'stop', or a grammar that ends there.",
    "t_max_predict_ms": "A request ends at the server's 'request_timeout', or when its client leaves.",
    "truncate_prompt_tokens": "Send a shorter prompt: the model reads all of it.",
    "typical": "Use 'typical_p'.",
    "watermark": "This server marks no texts.",
    "max_new_tokens": "Use 'max_completion_tokens', 'max_output_tokens' (responses) or 'max_tokens' (completions).",
    **advise("min_new_tokens min_tokens", "Use a schema that asks for a longer answer ('minLength', 'minItems')."),
    "n_predict": "Use 'max_completion_tokens', 'max_output_tokens' (responses) or 'max_tokens' (completions).",
    "stop_sequences": "Use 'stop'.",
    "stop_token_ids": "Use 'stop' with the texts of the tokens.",
    "use_beam_search": "This server samples; it has no beam search.",
}
"""Fields that every endpoint refuses unless it reads them, with the alternative."""

CHAT_FIELDS = {
    **ON_ALL_ENDPOINTS,
    "n_cmpl": "Use 'n'.",
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
    **advise(
        "ebnf grammar guided_choice guided_grammar guided_json guided_regex json_schema regex response_format "
        f"structural_tag structured_outputs {_FORMAT_FIELDS}",
        "Use 'language'.",
    ),
    **advise("logprobs top_logprobs", "Each token of an answer has them."),
    **advise("n vote unbias best_of", "Ask /v1/chat/completions: the playground writes one answer."),
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
    **{name: advice for name, advice in ON_ALL_ENDPOINTS.items() if name != "n_probs"},
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
    **advise(
        _FORMAT_FIELDS,
        "This server takes a JSON Schema as 'output_config.format', and grammars, regular expressions and choices as "
        "'structured_outputs'.",
    ),
    **advise("max_completion_tokens max_new_tokens max_output_tokens n_predict", "Use 'max_tokens'."),
    **advise("logprobs top_logprobs unbias vote", "Ask /v1/chat/completions."),
    "background": "This server answers while the client waits.",
    "best_of": "A message is one answer.",
    "compaction": "Send the conversation that the model shall read as 'messages'.",
    "conversation": "Send the whole conversation as 'messages'.",
    "echo": "Ask /v1/completions.",
    "function_call": "Use 'tool_choice'.",
    "functions": "Use 'tools'.",
    "input": "Use 'messages'.",
    "instructions": "Use 'system'.",
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

HOSTED_FIELDS = ("container", "mcp_servers", "web_search_options")
"""Fields of tools that other servers run."""

_NO = (
    "epsilon_cutoff eta_cutoff min_new_tokens min_tokens min_keep mirostat_mode n_indent n_probs no_repeat_ngram_size "
    "penalty_alpha smoothing_factor t_max_predict_ms top_a"
)
_ONE = "best_of cfg_scale encoder_repetition_penalty guidance_scale length_penalty n n_cmpl tfs tfs_z typical"
_NEUTRAL: dict[str, float | bool] = {
    "adaptive_target": -1,
    "do_sample": True,
    "skip_special_tokens": True,
    **dict.fromkeys(_NO.split(), 0),
    **dict.fromkeys(_ONE.split(), 1),
}
"""Values of fields that have no effect. Of a field that is true in this table, false has one."""

_FORMAT_MEMBERS = (
    *_FORMAT_FIELDS.split(),
    "choice",
    "ebnf",
    "grammar",
    "json_schema",
    "pattern",
    "regex",
    "strict",
    "value",
)
"""Members of a format, on this server or others, that change the language of an answer."""


def unsupported(param: str, why: str) -> FieldError:
    """Returns the error for a field that this server would otherwise ignore."""
    return FieldError(f"Unsupported parameter: '{param}'. {why}", param=param, code="unsupported_parameter")


def refuse_fields(body: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Raises ``FieldError`` for a refused field, and warns of fields that are left out.

    ``refused``: alternatives, by name of the field.
    """
    for name in [name for name in refused if "." in name or name in body]:
        outer, _, inner = name.partition(".")
        value = body.get(outer)
        if inner:
            value = value.get(inner) if isinstance(value, dict) else None
        if not asks_for_nothing(name, value):
            raise unsupported(name, refused[name])
    for name in HOSTED_FIELDS:
        if not asks_for_nothing(name, body.get(name)):
            warn(f"'{name}' is left out: this server runs no tools.")
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
    neutral = _NEUTRAL.get(name)
    if isinstance(neutral, bool):
        return value is None or value is neutral
    if value is None or value is False or value in ("", [], {}):
        return True
    return neutral is not None and value is not True and value == neutral
