"""Limits of requests in number, length, depth and size. A request beyond any of them gets status 400.

The readers of fields and the OpenAPI description share them. Limits marked "as for OpenAI" are OpenAI's, so that a
request that passes there passes here.
"""

from __future__ import annotations

from typing import Any

from constrain.llama.decoding.ranges import MAX_PENALTY
from constrain.llama.decoding.sampling import OPTIONS

MAX_CHOICES = 128
"""Answers to one prompt (``n``, ``best_of``), as for OpenAI. Beyond: status 400."""

MAX_MESSAGES = 2048
"""Messages of a conversation, as for OpenAI. Beyond: status 400."""

MAX_INPUTS = 2048
"""Texts of one request for embeddings, as for OpenAI. Beyond: status 400."""

MAX_TOOLS = 128
"""Tools, or functions, of one request, as for OpenAI. Beyond: status 400."""

MAX_STOPS = 64
"""Texts of ``stop``; OpenAI takes 4. Beyond: status 400."""

MAX_STOP_SEQUENCES = 1024
"""Texts of ``stop_sequences``. Beyond: status 400."""

MAX_COMPLETION_LOGPROBS = 5
"""Most likely tokens reported for each place of a text completion (``logprobs``), as for OpenAI. Beyond: status 400."""

MAX_BIAS = 100
"""The greatest value of ``logit_bias``, and with a minus sign the least, as for OpenAI. Beyond: status 400."""

TEMPERATURES = (0, 2)
"""Least and greatest ``temperature`` (as for OpenAI)."""

MESSAGE_TEMPERATURES = (0, 1)
"""Least and greatest ``temperature`` of messages (as for Anthropic)."""

SHARES = (0, 1)
"""Least and greatest ``top_p`` and ``min_p``, which are probabilities."""

PENALTIES = (-MAX_PENALTY, MAX_PENALTY)
"""Least and greatest ``presence_penalty`` and ``frequency_penalty`` (as for OpenAI)."""

REPEAT_PENALTIES = (0.01, 100.0)
"""Least and greatest ``repeat_penalty`` and ``repetition_penalty``, divisors of logits; 1 has no effect."""

GIVEN_SEEDS = (-(2**63), 2**63 - 1)
"""Least and greatest ``seed`` (as for OpenAI); each is mapped to one of the sampler's ``SEEDS``."""

RANGES: dict[str, tuple[Any, Any]] = {
    **{name: option.range for name, option in OPTIONS.items()},
    "temperature": TEMPERATURES,
    "seed": GIVEN_SEEDS,
    "repeat_penalty": REPEAT_PENALTIES,
    "repetition_penalty": REPEAT_PENALTIES,
    "stop": (0, MAX_STOPS),
    "logit_bias": (-MAX_BIAS, MAX_BIAS),
}
"""Ranges of the fields that ``fields.sampling`` reads."""

MAX_MODELS_PAGE = 1000
"""Models of one page of the list for Anthropic's clients (``limit``), as for Anthropic. Beyond: status 400."""

MAX_PAGE = 100
"""Items of one page of the input of a stored response (``limit``), as for OpenAI. Beyond: status 400."""

MAX_FIELD_NESTING = 220
"""Levels of objects and arrays in one field of a request. Beyond: status 400.

The ``openai`` package's types, which write responses, can repeat fields of up to 250 levels.
"""

MAX_SCHEMA_NESTING = 200
"""Levels of objects and arrays in one JSON Schema of a request, on every endpoint. Beyond: status 400.

The levels around a schema in its field fit between this limit and ``MAX_FIELD_NESTING``.
"""
