"""Sampling, stop texts, and the shown schema: fields that all endpoints that write text read alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from constrain.llama.decoding.ranges import seed_of
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import array, boolean, integer, mapping, number, wrong_type
from constrain.server.requests.limits import (
    BIAS_KEY,
    GIVEN_SEEDS,
    MAX_BIAS,
    MAX_CHOICES,
    MAX_COUNT,
    MAX_STOPS,
    PENALTIES,
    REPEAT_PENALTIES,
    SHARES,
    TEMPERATURES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions


def read_sampling(body: Mapping[str, Any]) -> ChatOptions:
    """Reads the options for sampling and stop texts. Raises ``ApiError``."""
    options: dict[str, Any] = {
        "temperature": number(body, "temperature", *TEMPERATURES),
        "top_p": number(body, "top_p", *SHARES),
        "top_k": integer(body, "top_k", 0, MAX_COUNT),
        "min_p": number(body, "min_p", *SHARES),
        "repeat_penalty": number(body, "repeat_penalty", *REPEAT_PENALTIES),
        "presence_penalty": number(body, "presence_penalty", *PENALTIES),
        "frequency_penalty": number(body, "frequency_penalty", *PENALTIES),
        "seed": None if (seed := integer(body, "seed", *GIVEN_SEEDS)) is None else seed_of(seed),
        "stop": _stop(body.get("stop")),
        "logit_bias": _logit_bias(body.get("logit_bias")),
    }
    found: ChatOptions = {name: value for name, value in options.items() if value is not None}  # type: ignore[assignment]
    return found


def read_max_tokens(body: Mapping[str, Any], *names: str, least: int = 1) -> tuple[ChatOptions, str]:
    """Returns the smallest limit on tokens in a request, and the name of its field. Raises ``ApiError``.

    Without a limit, there is no option, and the name is the last one of the possible fields.
    """
    limits = {name: integer(body, name, least) for name in names}
    given = {name: min(value, MAX_COUNT) for name, value in limits.items() if value is not None}
    if not given:
        return {}, names[-1]
    name = min(given, key=lambda name: given[name])
    return {"max_tokens": given[name]}, name


def read_n(body: Mapping[str, Any]) -> int:
    """Reads ``n``: the number of answers per prompt. Raises ``ApiError``."""
    return integer(body, "n", 1, MAX_CHOICES) or 1


def read_show_schema(body: Mapping[str, Any]) -> ChatOptions:
    """Reads whether the prompt shows the schema of the answer. Raises ``ApiError``."""
    wanted = boolean(body, "show_schema")
    return {} if wanted is None else {"show_schema": wanted}


def _stop(given: object) -> list[str] | None:
    if given is None:
        return None
    stops = [given] if isinstance(given, str) else array(given, "stop", MAX_STOPS)
    for index, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise wrong_type(f"stop[{index}]", "a string", stop)
        if not stop:
            raise ApiError(
                "Invalid 'stop': an empty string would end every answer at once.", param="stop", code="invalid_value"
            )
    return stops


def _logit_bias(given: object) -> dict[int, float] | None:
    if given is None:
        return None
    biases = mapping(given, "logit_bias")
    for token in biases:
        if not re.fullmatch(BIAS_KEY, token):
            raise ApiError(
                f"Invalid key in 'logit_bias': {token[:40]!r}. Expected the number of a token.",
                param="logit_bias",
                code="invalid_value",
            )
    named = {f"logit_bias.{token}": bias for token, bias in biases.items()}
    values = [number(named, name, -MAX_BIAS, MAX_BIAS) or 0.0 for name in named]
    return {int(token): value for token, value in zip(biases, values, strict=True)}
