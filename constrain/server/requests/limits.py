"""Ranges of the fields of requests, and the nesting of their values. A request beyond any of them gets status 400.

The readers of fields and the OpenAPI description share them. Most are OpenAI's, so that a request that passes there
passes here.
"""

from __future__ import annotations

from typing import Any

from constrain.llama.decoding.sampling import OPTIONS

RANGES: dict[str, tuple[Any, Any]] = {
    **{name: option.range for name, option in OPTIONS.items()},
    "best_of": (1, 128),
    "choice": (1, 10_000),  # texts, also of ``guided_choice``
    "input": (0, 2048),  # texts for embeddings
    "input_extra": (0, 256),
    "limit": (1, 100),  # items of a page
    "logit_bias": (-100, 100),
    "logprobs": (0, 5),  # of text completions
    "messages": (0, 2048),
    "n": (1, 128),
    "repeat_penalty": (0.01, 100.0),
    "repetition_penalty": (0.01, 100.0),
    "seed": (-(2**63), 2**63 - 1),  # each is mapped to one of the sampler's ``SEEDS``
    "stop": (0, 64),  # OpenAI takes 4
    "stop_sequences": (0, 1024),
    "temperature": (0, 2),
}
"""Least and greatest value of each field that has a range of its own; of lists, the least and greatest length."""

MESSAGE_RANGES = {"limit": (1, 1000), "temperature": (0, 1)}
"""Ranges of fields for Anthropic's clients that differ, as for Anthropic."""

MAX_FIELD_NESTING = 220
"""Levels of objects and arrays in one field of a request, and 20 less in a JSON Schema. Beyond: status 400.

The ``openai`` package's types, which write responses, can repeat fields of up to 250 levels. The levels around a schema
in its field fit between the two, so that every endpoint takes the same schemas.
"""

SCHEMA_NESTING = MAX_FIELD_NESTING - 20
"""Levels of objects and arrays in one JSON Schema of a request, on every endpoint."""

MARSHALLED = 2
"""The version of ``marshal`` that spells equal values alike, for keys: it has no references."""
