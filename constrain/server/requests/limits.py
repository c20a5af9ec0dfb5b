"""Limits of requests: how many, how long, how deep, how large. Beyond each of them a request is a 400.

The readers of fields and the OpenAPI description both take them from here. Those with an ``OpenAI`` beside them are
OpenAI's, so that a request that passes there passes here.
"""

from __future__ import annotations

from constrain.llama.decoding.ranges import MAX_PENALTY

MAX_CHOICES = 128
"""Answers to one prompt (``n``, ``best_of``), as for OpenAI. Beyond: status 400."""

MAX_MESSAGES = 2048
"""Messages of a conversation, as for OpenAI. Beyond: status 400."""

MAX_INPUTS = 2048
"""Texts of one request for embeddings, as for OpenAI. Beyond: status 400."""

MAX_TOOLS = 128
"""Tools, or functions, of one request, as for OpenAI. Beyond: status 400."""

MAX_STOPS = 4
"""Texts of ``stop``, as for OpenAI. Beyond: status 400."""

MAX_METADATA = 16
"""Members of ``metadata``, as for OpenAI. Beyond: status 400."""

MAX_COMPLETION_LOGPROBS = 5
"""Most likely tokens reported for each place of a text completion (``logprobs``), as for OpenAI. Beyond: status 400."""

MAX_BIAS = 100
"""Added to a logit, or subtracted from it, by ``logit_bias``, as for OpenAI. Beyond: status 400."""

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
"""Tokens of ``top_k`` or of a limit on tokens: more than any context holds. Beyond: status 400 for ``top_k``; limits on
tokens count as this one."""

MAX_PAGE = 100
"""Items of one page of the input of a stored response (``limit``), as for OpenAI. Beyond: status 400."""

MAX_NESTING = 220
"""Levels of objects and arrays in one field of a request. Beyond: status 400.

The types of the ``openai`` package, which write responses, repeat fields of up to 250 levels.
"""

MAX_SCHEMA_NESTING = 200
"""Levels of objects and arrays in one JSON Schema of a request, on every endpoint. Beyond: status 400.

What stands around a schema in its field fits between this and ``MAX_NESTING``.
"""
