"""Limits of requests: how many, how long, how deep, how large. Beyond each of them a request is a 400.

The readers of fields and the OpenAPI description both take them from here. Those with an ``OpenAI`` beside them are
OpenAI's, so that a request that passes there passes here.
"""

from __future__ import annotations

from constrain.llama.decoding.ranges import MAX_PENALTY

MAX_CHOICES = 128
"""Answers to one prompt: ``n`` and ``best_of`` (OpenAI)."""

MAX_MESSAGES = 2048
"""Messages of a conversation (OpenAI)."""

MAX_INPUTS = 2048
"""Texts of one request for embeddings (OpenAI)."""

MAX_TOOLS = 128
"""Tools, or functions, of one request (OpenAI)."""

MAX_STOPS = 4
"""Texts of ``stop`` (OpenAI)."""

MAX_METADATA = 16
"""Members of ``metadata`` (OpenAI)."""

MAX_COMPLETION_LOGPROBS = 5
"""Most likely tokens that a text completion tells for each place, ``logprobs`` (OpenAI)."""

MAX_BIAS = 100
"""What ``logit_bias`` adds to a logit, or subtracts from it (OpenAI)."""

BIAS_KEY = r"[0-9]{1,9}"
"""Pattern of the keys of ``logit_bias``: ids of tokens in decimal digits."""

TEMPERATURES = (0, 2)
"""The least and the greatest ``temperature`` (OpenAI)."""

SHARES = (0, 1)
"""The least and the greatest ``top_p`` and ``min_p``, which are probabilities."""

PENALTIES = (-MAX_PENALTY, MAX_PENALTY)
"""The least and the greatest ``presence_penalty`` and ``frequency_penalty`` (OpenAI)."""

REPEAT_PENALTIES = (0.01, 100.0)
"""The least and the greatest ``repeat_penalty``, which divides logits; 1 is none."""

GIVEN_SEEDS = (-(2**63), 2**63 - 1)
"""The least and the greatest ``seed`` (OpenAI); each stands for one of the sampler's ``SEEDS``."""

MAX_COUNT = 2**31 - 1
"""Tokens: more than any context holds, and few enough for the sampler to count. A greater ``top_k`` is a 400; greater
limits on tokens stand for this one."""

MAX_PAGE = 100
"""Items of the input of a response in one page, ``limit`` (OpenAI)."""

MAX_NESTING = 220
"""Levels of objects and arrays in one field of a request. The types of the ``openai`` package, which write responses,
repeat fields of up to 250 levels."""

MAX_SCHEMA_NESTING = 200
"""Levels of objects and arrays in one JSON Schema of a request, on every endpoint. What stands around a schema in its
field fits between this and ``MAX_NESTING``."""
